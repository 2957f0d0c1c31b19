-- Bodies for the developers of an account. They have tables of their own, because lists read the rows of the logs.

CREATE TABLE request_bodies (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    account_id BIGINT NOT NULL,
    request_id VARCHAR(64) CHARACTER SET ascii NOT NULL,
    request_body VARCHAR(4096) NOT NULL COMMENT 'the start, without secrets; so is the answer',
    response_body VARCHAR(4096) NOT NULL,
    at DATETIME(3) NOT NULL,
    KEY request_bodies_account (account_id, id, request_id) COMMENT 'finds a request, and the bound of the account'
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE delivery_bodies (
    delivery_id BIGINT NOT NULL PRIMARY KEY,
    headers VARCHAR(4096) NOT NULL COMMENT 'of the last attempt, one a line; payload and answer begin here, too',
    payload VARCHAR(4096) NOT NULL,
    answer VARCHAR(1024) NOT NULL COMMENT 'empty: none',
    CONSTRAINT delivery_bodies_delivery FOREIGN KEY (delivery_id) REFERENCES webhook_deliveries (id) ON DELETE CASCADE
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
