-- The first schema: everything the contract needs.
--
-- Times are DATETIME(3) in UTC.  Names compare byte for byte (utf8mb4_nopad_bin)
-- wherever two of them being "the same" has consequences.  Secrets are never
-- stored in the clear: of an API key there is its SHA-256, of a webhook secret
-- its ciphertext.

CREATE TABLE plans (
    name VARCHAR(16) CHARACTER SET ascii NOT NULL PRIMARY KEY,
    requests_per_minute INT UNSIGNED NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

INSERT INTO plans (name, requests_per_minute) VALUES ('free', 60), ('pro', 300), ('enterprise', 1000);

CREATE TABLE accounts (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    name VARCHAR(100) NOT NULL,
    plan VARCHAR(16) CHARACTER SET ascii NOT NULL,
    requests_per_minute INT UNSIGNED NULL COMMENT 'overrides the plan',
    status ENUM('active', 'suspended') NOT NULL DEFAULT 'active',
    created_at DATETIME(3) NOT NULL,
    UNIQUE KEY accounts_name (name),
    CONSTRAINT accounts_plan FOREIGN KEY (plan) REFERENCES plans (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE api_keys (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    account_id BIGINT NOT NULL,
    name VARCHAR(100) NOT NULL DEFAULT '',
    prefix VARCHAR(16) CHARACTER SET ascii NOT NULL COMMENT 'first characters, to recognise a key by',
    digest BINARY(32) NOT NULL COMMENT 'SHA-256 of the whole key',
    created_at DATETIME(3) NOT NULL,
    expires_at DATETIME(3) NULL,
    revoked_at DATETIME(3) NULL,
    last_used_at DATETIME(3) NULL,
    UNIQUE KEY api_keys_digest (digest),
    KEY api_keys_account (account_id, id),
    CONSTRAINT api_keys_owner FOREIGN KEY (account_id) REFERENCES accounts (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

-- One row an order.  Lists read it by (account_id, id) from the newest down.
CREATE TABLE orders (
    id BIGINT NOT NULL PRIMARY KEY COMMENT 'time-ordered: 41 bits of milliseconds, 22 random',
    account_id BIGINT NOT NULL,
    type ENUM('antiAi', 'watermarkEmbed', 'watermarkExtract') NOT NULL,
    channel ENUM('api', 'web') NOT NULL DEFAULT 'api',
    status ENUM('pending', 'inProgress', 'complete', 'failed', 'detected', 'undetected', 'expired') NOT NULL,
    name VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci NOT NULL,
    idempotency_key VARCHAR(255) NOT NULL,
    body_digest BINARY(32) NOT NULL COMMENT 'of the canonical request body',
    strength ENUM('low', 'standard', 'high') NULL,
    zero_copy BOOLEAN NOT NULL DEFAULT FALSE,
    include_original BOOLEAN NOT NULL DEFAULT FALSE,
    file_count SMALLINT UNSIGNED NOT NULL,
    completed_file_count SMALLINT UNSIGNED NOT NULL DEFAULT 0,
    failed_file_count SMALLINT UNSIGNED NOT NULL DEFAULT 0,
    result_count SMALLINT UNSIGNED NOT NULL DEFAULT 0,
    has_thumbnail BOOLEAN NOT NULL DEFAULT FALSE,
    thumbnail_store_key VARCHAR(128) CHARACTER SET ascii NULL COMMENT 'where it is, when there is one',
    zip_store_key VARCHAR(128) CHARACTER SET ascii NULL COMMENT 'the archive, when there are several results',
    zip_size_bytes BIGINT NULL,
    watermark_text TEXT NULL COMMENT 'what an extraction found',
    error_code VARCHAR(40) CHARACTER SET ascii NULL COMMENT 'of the order as a whole, such as UPLOAD_EXPIRED',
    request_id VARCHAR(64) CHARACTER SET ascii NOT NULL DEFAULT '',
    created_at DATETIME(3) NOT NULL,
    updated_at DATETIME(3) NOT NULL,
    started_at DATETIME(3) NULL,
    ended_at DATETIME(3) NULL,
    expires_at DATETIME(3) NULL COMMENT 'when a complete order loses its files, a pending one fails',
    files_deleted_at DATETIME(3) NULL,
    UNIQUE KEY orders_idempotency (account_id, type, idempotency_key),
    KEY orders_list (account_id, id),
    KEY orders_list_status (account_id, status, id),
    KEY orders_list_type (account_id, type, id),
    KEY orders_upkeep (status, expires_at),
    CONSTRAINT orders_account FOREIGN KEY (account_id) REFERENCES accounts (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

-- One row a file of an order; an extraction with its original has two.
CREATE TABLE files (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    order_id BIGINT NOT NULL,
    position SMALLINT UNSIGNED NOT NULL COMMENT '1-based, in the order of the request',
    role ENUM('main', 'original') NOT NULL DEFAULT 'main',
    name VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci NOT NULL,
    status ENUM('pending', 'uploaded', 'processing', 'complete', 'failed') NOT NULL DEFAULT 'pending',
    source_url TEXT CHARACTER SET ascii NULL COMMENT 'fetched by the service instead of uploaded',
    target_url TEXT CHARACTER SET ascii NULL COMMENT 'zero copy: where the result is pushed to',
    target_key VARCHAR(1024) NULL,
    target_expires_at DATETIME(3) NULL,
    store_key VARCHAR(128) CHARACTER SET ascii NULL COMMENT 'of the uploaded or fetched bytes; NULL once deleted',
    format ENUM('jpeg', 'png', 'webp') NULL,
    size_bytes BIGINT NULL,
    digest BINARY(32) NULL,
    error_code VARCHAR(40) CHARACTER SET ascii NULL,
    error_sentence VARCHAR(500) NULL,
    uploaded_at DATETIME(3) NULL,
    updated_at DATETIME(3) NOT NULL,
    UNIQUE KEY files_place (order_id, role, position),
    CONSTRAINT files_order FOREIGN KEY (order_id) REFERENCES orders (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

-- The texts of watermarks: what is embedded is the number, this is what it means.
CREATE TABLE watermark_texts (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    number BIGINT UNSIGNED NOT NULL COMMENT '64 random bits',
    account_id BIGINT NOT NULL,
    text TEXT NOT NULL,
    text_digest BINARY(32) NOT NULL,
    created_at DATETIME(3) NOT NULL,
    UNIQUE KEY watermark_texts_number (number),
    UNIQUE KEY watermark_texts_text (account_id, text_digest),
    CONSTRAINT watermark_texts_account FOREIGN KEY (account_id) REFERENCES accounts (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

-- Which texts an embedding order marks its files with, each its own copy.
CREATE TABLE order_watermarks (
    order_id BIGINT NOT NULL,
    file_position SMALLINT UNSIGNED NOT NULL,
    copy SMALLINT UNSIGNED NOT NULL COMMENT '1-based among the texts of the file',
    text_id BIGINT NOT NULL,
    PRIMARY KEY (order_id, file_position, copy),
    CONSTRAINT order_watermarks_order FOREIGN KEY (order_id) REFERENCES orders (id),
    CONSTRAINT order_watermarks_text FOREIGN KEY (text_id) REFERENCES watermark_texts (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- What can be downloaded.  (file_id, copy) is unique: a job done twice leaves one result.
CREATE TABLE results (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    order_id BIGINT NOT NULL,
    file_id BIGINT NOT NULL,
    copy SMALLINT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'position of the watermark text; 0 for anti-AI',
    name VARCHAR(300) NOT NULL COMMENT 'what the client is given, unique within the order',
    store_key VARCHAR(128) CHARACTER SET ascii NOT NULL,
    format ENUM('jpeg', 'png', 'webp') NOT NULL,
    size_bytes BIGINT NOT NULL,
    digest BINARY(32) NOT NULL,
    width_px INT UNSIGNED NOT NULL,
    height_px INT UNSIGNED NOT NULL,
    created_at DATETIME(3) NOT NULL,
    UNIQUE KEY results_place (file_id, copy),
    KEY results_order (order_id, id),
    CONSTRAINT results_order FOREIGN KEY (order_id) REFERENCES orders (id),
    CONSTRAINT results_file FOREIGN KEY (file_id) REFERENCES files (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

-- The work.  A row is written in the transaction of the state change that needs it.
CREATE TABLE jobs (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    account_id BIGINT NOT NULL,
    order_id BIGINT NOT NULL,
    file_id BIGINT NOT NULL DEFAULT 0 COMMENT '0 for jobs on the order as a whole',
    copy SMALLINT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'which watermark text; 0 where there is none',
    kind ENUM('protect', 'embed', 'extract', 'archive', 'fetch', 'push') NOT NULL,
    class ENUM('image', 'transfer') AS (IF(kind IN ('fetch', 'push'), 'transfer', 'image')) STORED
        COMMENT 'what it waits for: a place at an image process, or one on the network',
    status ENUM('queued', 'leased', 'done', 'failed') NOT NULL DEFAULT 'queued',
    attempt INT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'grows with every lease; fences late results',
    failure_count INT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'transient troubles',
    death_count INT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'image processes that died of it',
    available_at DATETIME(3) NOT NULL,
    lease_owner VARCHAR(80) CHARACTER SET ascii NULL,
    lease_until DATETIME(3) NULL,
    reason VARCHAR(40) CHARACTER SET ascii NULL COMMENT 'of the last requeue or failure',
    request_id VARCHAR(64) CHARACTER SET ascii NOT NULL DEFAULT '' COMMENT 'of the request that caused it',
    created_at DATETIME(3) NOT NULL,
    updated_at DATETIME(3) NOT NULL,
    UNIQUE KEY jobs_place (order_id, kind, file_id, copy),
    KEY jobs_next (status, class, account_id, available_at, id),
    KEY jobs_leases (status, lease_until),
    CONSTRAINT jobs_order FOREIGN KEY (order_id) REFERENCES orders (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- Results a day and account, counted in the transaction that makes them.
CREATE TABLE usage_days (
    account_id BIGINT NOT NULL,
    day DATE NOT NULL,
    result_count BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, day),
    CONSTRAINT usage_days_account FOREIGN KEY (account_id) REFERENCES accounts (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE webhooks (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    account_id BIGINT NOT NULL,
    name VARCHAR(100) NOT NULL DEFAULT '',
    url TEXT CHARACTER SET ascii NOT NULL,
    is_active BOOLEAN NOT NULL DEFAULT TRUE,
    inactive_reason VARCHAR(40) CHARACTER SET ascii NULL COMMENT 'RECEIVER_GONE, RECEIVER_FAILING, BY_CLIENT',
    first_failure_at DATETIME(3) NULL COMMENT 'of the failures since the last success',
    created_at DATETIME(3) NOT NULL,
    updated_at DATETIME(3) NOT NULL,
    deleted_at DATETIME(3) NULL,
    KEY webhooks_account (account_id, id),
    KEY webhooks_upkeep (deleted_at),
    CONSTRAINT webhooks_owner FOREIGN KEY (account_id) REFERENCES accounts (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

-- What a webhook signs with: the current secret, and after a rotation the ones before for a while.
CREATE TABLE webhook_secrets (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    webhook_id BIGINT NOT NULL,
    sealed VARBINARY(255) NOT NULL COMMENT 'encrypted',
    signs_until DATETIME(3) NULL COMMENT 'NULL: the current one',
    created_at DATETIME(3) NOT NULL,
    KEY webhook_secrets_webhook (webhook_id, id),
    CONSTRAINT webhook_secrets_owner FOREIGN KEY (webhook_id) REFERENCES webhooks (id) ON DELETE CASCADE
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- What happened, once an order's end, written in the transaction that ends it.
CREATE TABLE webhook_events (
    id BIGINT NOT NULL PRIMARY KEY COMMENT 'time-ordered like an order id',
    account_id BIGINT NOT NULL,
    order_id BIGINT NULL,
    type VARCHAR(50) CHARACTER SET ascii NOT NULL,
    sequence INT UNSIGNED NOT NULL DEFAULT 1,
    occurred_at DATETIME(3) NOT NULL,
    KEY webhook_events_account (account_id, id),
    KEY webhook_events_upkeep (occurred_at),
    UNIQUE KEY webhook_events_sequence (order_id, sequence),
    CONSTRAINT webhook_events_owner FOREIGN KEY (account_id) REFERENCES accounts (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- One event on its way to one receiver.
CREATE TABLE webhook_deliveries (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    webhook_id BIGINT NOT NULL,
    event_id BIGINT NOT NULL,
    status ENUM('PENDING', 'SENDING', 'DELIVERED', 'FAILED') NOT NULL DEFAULT 'PENDING',
    attempt INT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'grows with every lease; fences late answers',
    failure_count INT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'tries that failed; the place in the schedule',
    available_at DATETIME(3) NOT NULL,
    lease_owner VARCHAR(80) CHARACTER SET ascii NULL,
    lease_until DATETIME(3) NULL,
    response_status SMALLINT UNSIGNED NULL COMMENT 'of the last try, when it was answered',
    reason VARCHAR(40) CHARACTER SET ascii NULL COMMENT 'why the last try failed',
    tried_at DATETIME(3) NULL COMMENT 'when the last try ended',
    delivered_at DATETIME(3) NULL,
    created_at DATETIME(3) NOT NULL,
    updated_at DATETIME(3) NOT NULL,
    UNIQUE KEY webhook_deliveries_once (webhook_id, event_id),
    KEY webhook_deliveries_next (status, webhook_id, available_at),
    KEY webhook_deliveries_leases (status, lease_until),
    KEY webhook_deliveries_event (event_id),
    KEY webhook_deliveries_upkeep (status, updated_at),
    CONSTRAINT webhook_deliveries_webhook FOREIGN KEY (webhook_id) REFERENCES webhooks (id),
    CONSTRAINT webhook_deliveries_event FOREIGN KEY (event_id) REFERENCES webhook_events (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
