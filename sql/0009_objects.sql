-- Uploads that go straight to an object store: the version of the bytes that was confirmed, and the orders
-- whose uploads a worker looks for.  Both stay empty with a local file store.

-- Instant: no row is copied, and no request waits.
ALTER TABLE files
    ADD COLUMN etag VARCHAR(80) CHARACTER SET ascii NULL COMMENT 'of the object under store_key; NULL: not from a client''s PUT',
    ALGORITHM=INSTANT;

-- Without a foreign key: the row is written before its order, and a worker deletes it after the order's start.
CREATE TABLE upload_checks (
    order_id BIGINT NOT NULL PRIMARY KEY,
    account_id BIGINT NOT NULL,
    check_at DATETIME(3) NOT NULL COMMENT 'when a worker looks for the uploads; a notification of the store sets it to now',
    KEY upload_checks_due (check_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
