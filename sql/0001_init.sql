-- The schema of release 1.0.0.  A released migration never changes: a later change is a migration of its own.
--
-- Times are DATETIME(3) in UTC.  Names compare byte for byte (utf8mb4_nopad_bin)
-- wherever two of them being "the same" has consequences.  Secrets are never
-- stored in the clear: of an API key there is its SHA-256, of a webhook secret
-- its ciphertext.

CREATE TABLE accounts (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    name VARCHAR(100) NOT NULL,
    plan VARCHAR(16) CHARACTER SET ascii NOT NULL COMMENT 'its limits are in the configuration, [plan_NAME]',
    requests_per_minute INT UNSIGNED NULL COMMENT 'overrides the plan',
    status ENUM('active', 'suspended') NOT NULL DEFAULT 'active',
    created_at DATETIME(3) NOT NULL,
    delete_at DATETIME(3) NULL COMMENT 'when a suspended account and all of its rows are deleted',
    UNIQUE KEY accounts_name (name)
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
    user_id BIGINT NULL COMMENT 'the user who made it; NULL: the operator',
    user_email VARCHAR(254) CHARACTER SET ascii NULL COMMENT 'of that user, at that time',
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
    watermark_certainty BIGINT NULL COMMENT 'one of so many unmarked pictures gives that answer',
    error_code VARCHAR(40) CHARACTER SET ascii NULL COMMENT 'of the order as a whole, such as UPLOAD_EXPIRED',
    request_id VARCHAR(64) CHARACTER SET ascii NOT NULL DEFAULT '',
    created_at DATETIME(3) NOT NULL,
    updated_at DATETIME(3) NOT NULL,
    started_at DATETIME(3) NULL,
    ended_at DATETIME(3) NULL,
    expires_at DATETIME(3) NULL COMMENT 'when a complete order loses its files, a pending one fails',
    files_deleted_at DATETIME(3) NULL,
    zip_digest BINARY(32) NULL COMMENT 'SHA-256',
    thumbnail_digest BINARY(32) NULL COMMENT 'SHA-256',
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
    format ENUM('jpeg', 'png', 'webp', 'heic', 'avif', 'tiff', 'gif', 'bmp') NULL,
    size_bytes BIGINT NULL,
    digest BINARY(32) NULL,
    error_code VARCHAR(40) CHARACTER SET ascii NULL,
    error_sentence VARCHAR(500) NULL,
    uploaded_at DATETIME(3) NULL,
    updated_at DATETIME(3) NOT NULL,
    note_code VARCHAR(40) CHARACTER SET ascii NULL COMMENT 'such as PROTECTION_REDUCED',
    note_sentence VARCHAR(1000) NULL,
    target_headers TEXT NULL COMMENT 'zero copy: a JSON object of strings, sent with the PUT',
    etag VARCHAR(80) CHARACTER SET ascii NULL COMMENT 'of the object under store_key; NULL: not from a client''s PUT',
    protection_percent TINYINT UNSIGNED NULL COMMENT 'anti-AI: the part of the ordered change that is in the result',
    result_bytes BIGINT NULL COMMENT 'of the largest result',
    UNIQUE KEY files_place (order_id, role, position),
    CONSTRAINT files_order FOREIGN KEY (order_id) REFERENCES orders (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

-- The texts of watermarks.
CREATE TABLE watermark_texts (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    account_id BIGINT NOT NULL,
    text TEXT NOT NULL,
    text_digest BINARY(32) NOT NULL,
    created_at DATETIME(3) NOT NULL,
    UNIQUE KEY watermark_texts_text (account_id, text_digest),
    CONSTRAINT watermark_texts_account FOREIGN KEY (account_id) REFERENCES accounts (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

-- The marked copies of an embedding order: one for each file and text. What is embedded is the number. The row
-- stays when the order is deleted, so that a copy can be traced as long as the account exists.
CREATE TABLE order_watermarks (
    order_id BIGINT NOT NULL COMMENT 'may be deleted',
    file_position SMALLINT UNSIGNED NOT NULL,
    copy SMALLINT UNSIGNED NOT NULL COMMENT '1-based among the texts of the file',
    text_id BIGINT NOT NULL,
    account_id BIGINT NOT NULL,
    number BIGINT UNSIGNED NOT NULL COMMENT '64 random bits, of this copy only',
    PRIMARY KEY (order_id, file_position, copy),
    UNIQUE KEY order_watermarks_number (number),
    KEY order_watermarks_account (account_id, order_id, number),
    CONSTRAINT order_watermarks_text FOREIGN KEY (text_id) REFERENCES watermark_texts (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- The marks that an extraction found, of copies of its account.
CREATE TABLE readings (
    order_id BIGINT NOT NULL,
    number BIGINT UNSIGNED NOT NULL,
    PRIMARY KEY (order_id, number),
    CONSTRAINT readings_order FOREIGN KEY (order_id) REFERENCES orders (id)
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
    status ENUM('queued', 'leased', 'done', 'failed', 'refused') NOT NULL DEFAULT 'queued',
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

-- Each worker: since when it runs, what it counted, the state of its image processes, file store and mails.
CREATE TABLE workers (
    owner VARCHAR(80) CHARACTER SET ascii NOT NULL PRIMARY KEY COMMENT 'as in jobs.lease_owner',
    host VARCHAR(255) CHARACTER SET ascii NOT NULL,
    pid BIGINT NOT NULL,
    version VARCHAR(40) CHARACTER SET ascii NOT NULL,
    places INT UNSIGNED NOT NULL COMMENT 'jobs that it can do at once',
    busy INT UNSIGNED NOT NULL COMMENT 'and does',
    metrics MEDIUMTEXT CHARACTER SET ascii NOT NULL COMMENT 'samples in the text format of Prometheus',
    started_at DATETIME(3) NOT NULL,
    seen_at DATETIME(3) NOT NULL,
    image_ready INT UNSIGNED NULL COMMENT 'image processes that are sealed and can work; NULL: not reported',
    image_failing_at DATETIME(3) NULL COMMENT 'since when starts of image processes fail; NULL: none does',
    image_reason VARBINARY(400) NULL COMMENT 'of the last failure',
    store_failed_at DATETIME(3) NULL COMMENT 'the last failed access to the file store',
    store_reason VARBINARY(400) NULL,
    mail_sent_at DATETIME(3) NULL COMMENT 'the last mail that was sent',
    mail_failed_at DATETIME(3) NULL COMMENT 'the last attempt that failed',
    mail_reason VARBINARY(400) NULL,
    KEY workers_seen (seen_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- What an operator switched.
CREATE TABLE switches (
    name VARCHAR(40) CHARACTER SET ascii NOT NULL PRIMARY KEY COMMENT 'queuePaused; on while its row is there',
    set_at DATETIME(3) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- What each account uses, counted in the transactions that use it, and an operator's limits for it.
-- imgward-worker reconciles the counters.
CREATE TABLE account_usage (
    account_id BIGINT NOT NULL PRIMARY KEY,
    orders_pending BIGINT NOT NULL DEFAULT 0 COMMENT 'orders that have not ended',
    files_pending BIGINT NOT NULL DEFAULT 0 COMMENT 'files of these orders, originals included',
    uploads_pending BIGINT NOT NULL DEFAULT 0 COMMENT 'files that pending orders may upload',
    stored_bytes BIGINT NOT NULL DEFAULT 0 COMMENT 'inputs, results and archives in the file store',
    day DATE NOT NULL COMMENT 'UTC day of the next two counters',
    files_day BIGINT NOT NULL DEFAULT 0,
    texts_day BIGINT NOT NULL DEFAULT 0 COMMENT 'new watermark texts',
    warned INT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'bits of the limits that are used to 80 per cent',
    reconciled_at DATETIME(3) NOT NULL,
    orders_pending_max BIGINT NULL COMMENT 'this and the next: override the plan; 0: no limit',
    files_pending_max BIGINT NULL,
    promised_bytes_max BIGINT NULL,
    stored_bytes_max BIGINT NULL,
    files_day_max BIGINT NULL,
    texts_day_max BIGINT NULL,
    webhooks_max BIGINT NULL,
    KEY account_usage_reconciled (reconciled_at),
    CONSTRAINT account_usage_account FOREIGN KEY (account_id) REFERENCES accounts (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- The index of lists: words of names, for the keyword, and what lists filter by.
-- imgward-worker fills both tables in the background.
-- Lists read younger orders from the tables orders and files.

-- A segment is a range of ids of one account.  The orders of a segment have positions from 0, by id.
CREATE TABLE order_segments (
    account_id BIGINT NOT NULL,
    first_id BIGINT NOT NULL COMMENT 'begin of the range; the oldest begins at 0',
    last_id BIGINT NOT NULL COMMENT 'end of the range, included',
    order_count INT UNSIGNED NOT NULL COMMENT 'without deleted orders',
    is_open BOOLEAN NOT NULL COMMENT 'the range may grow',
    due_at DATETIME(3) NOT NULL COMMENT 'when it is built again',
    facts BLOB NOT NULL COMMENT 'a byte an order: status, type and channel; 255: deleted',
    ids MEDIUMBLOB NOT NULL COMMENT 'eight bytes an order, big-endian',
    PRIMARY KEY (account_id, first_id),
    KEY order_segments_due (due_at),
    CONSTRAINT order_segments_account FOREIGN KEY (account_id) REFERENCES accounts (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE order_words (
    account_id BIGINT NOT NULL,
    bucket VARBINARY(2) NOT NULL COMMENT 'the first two bytes of its words; one byte: all words with that byte',
    first_id BIGINT NOT NULL COMMENT 'the segment',
    postings MEDIUMBLOB NOT NULL COMMENT 'words and their positions in the segment (src/search/README.md)',
    PRIMARY KEY (account_id, bucket, first_id),
    KEY order_words_segment (account_id, first_id),
    CONSTRAINT order_words_segment FOREIGN KEY (account_id, first_id)
        REFERENCES order_segments (account_id, first_id) ON DELETE CASCADE
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- The numbers of rows and bytes that /metrics shows.  imgward-worker counts large tables in slices.
CREATE TABLE census (
    source VARCHAR(20) CHARACTER SET ascii NOT NULL COMMENT 'what was counted: enum census_source',
    kind VARCHAR(20) CHARACTER SET ascii NOT NULL COMMENT 'of jobs; else empty',
    state VARCHAR(20) CHARACTER SET ascii NOT NULL,
    number BIGINT NOT NULL,
    oldest_at DATETIME(3) NULL COMMENT 'when the oldest that waits was due',
    PRIMARY KEY (source, kind, state)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- Which keys belong to this database, so that a restored database is not used with other keys.
-- The first program that starts fills the table.
CREATE TABLE key_ids (
    purpose VARCHAR(20) CHARACTER SET ascii NOT NULL PRIMARY KEY COMMENT 'watermark, sealing or signing',
    ids VARCHAR(255) CHARACTER SET ascii NOT NULL
        COMMENT 'HMAC-SHA256 of a fixed text under the key, cut to 8 bytes; signing keys: newest first',
    recorded_at DATETIME(3) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- Orders whose uploads to an object store a worker looks for.  Empty with a local file store.
-- Without a foreign key: the row is written before its order, and a worker deletes it after the order's start.
CREATE TABLE upload_checks (
    order_id BIGINT NOT NULL PRIMARY KEY,
    account_id BIGINT NOT NULL,
    check_at DATETIME(3) NOT NULL COMMENT 'when a worker looks for the uploads; a notification of the store sets it to now',
    KEY upload_checks_due (check_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- The web console: users, their sessions and tokens, invitations, the audit log, queued mail, the request log.
-- Secrets are stored as SHA-256, or sealed.

CREATE TABLE users (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    account_id BIGINT NOT NULL,
    role ENUM('owner', 'member') NOT NULL,
    email VARCHAR(254) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'in lower case',
    name VARCHAR(100) NOT NULL,
    language ENUM('en', 'ko') NOT NULL DEFAULT 'en',
    password_hash VARCHAR(128) CHARACTER SET ascii NULL COMMENT 'Argon2id with its parameters; NULL: none is set',
    totp_sealed VARBINARY(64) NULL COMMENT 'the secret of the second factor, encrypted',
    totp_enabled_at DATETIME(3) NULL,
    totp_step BIGINT NOT NULL DEFAULT 0 COMMENT 'the time step of the last accepted code',
    is_admin BOOLEAN NOT NULL DEFAULT FALSE COMMENT 'of the operator',
    is_disabled BOOLEAN NOT NULL DEFAULT FALSE,
    email_verified_at DATETIME(3) NULL,
    created_at DATETIME(3) NOT NULL,
    last_sign_in_at DATETIME(3) NULL,
    UNIQUE KEY users_email (email),
    KEY users_account (account_id, id),
    CONSTRAINT users_owner FOREIGN KEY (account_id) REFERENCES accounts (id) ON DELETE CASCADE
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE user_sessions (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    user_id BIGINT NOT NULL,
    digest BINARY(32) NOT NULL COMMENT 'SHA-256 of the token in the cookie',
    address VARCHAR(45) CHARACTER SET ascii NOT NULL,
    user_agent VARCHAR(200) NOT NULL,
    created_at DATETIME(3) NOT NULL,
    seen_at DATETIME(3) NOT NULL,
    expires_at DATETIME(3) NOT NULL COMMENT 'however often it is used',
    UNIQUE KEY user_sessions_digest (digest),
    KEY user_sessions_user (user_id, id),
    KEY user_sessions_retention (seen_at),
    CONSTRAINT user_sessions_owner FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- Tokens that a user presents once: in a link of a mail, or between password and second factor.
CREATE TABLE user_tokens (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    user_id BIGINT NOT NULL,
    purpose ENUM('verify', 'reset', 'challenge') NOT NULL,
    digest BINARY(32) NOT NULL COMMENT 'SHA-256 of the token',
    uses_left TINYINT UNSIGNED NOT NULL COMMENT 'a challenge allows several wrong codes',
    created_at DATETIME(3) NOT NULL,
    expires_at DATETIME(3) NOT NULL,
    UNIQUE KEY user_tokens_digest (digest),
    KEY user_tokens_user (user_id, purpose),
    KEY user_tokens_retention (expires_at),
    CONSTRAINT user_tokens_owner FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE recovery_codes (
    user_id BIGINT NOT NULL,
    digest BINARY(32) NOT NULL COMMENT 'SHA-256 of the code',
    PRIMARY KEY (user_id, digest),
    CONSTRAINT recovery_codes_owner FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE invitations (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    account_id BIGINT NOT NULL,
    email VARCHAR(254) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'in lower case',
    role ENUM('owner', 'member') NOT NULL,
    digest BINARY(32) NOT NULL COMMENT 'SHA-256 of the token',
    created_at DATETIME(3) NOT NULL,
    expires_at DATETIME(3) NOT NULL,
    UNIQUE KEY invitations_digest (digest),
    UNIQUE KEY invitations_email (account_id, email),
    KEY invitations_retention (expires_at),
    CONSTRAINT invitations_owner FOREIGN KEY (account_id) REFERENCES accounts (id) ON DELETE CASCADE
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- Security events.  No foreign keys: an event outlives its user.
CREATE TABLE audit_events (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    account_id BIGINT NULL,
    user_id BIGINT NULL COMMENT 'who did it; NULL: unknown, or the operator at the command line',
    user_name VARCHAR(100) NULL COMMENT 'at that time',
    event VARCHAR(40) CHARACTER SET ascii NOT NULL,
    address VARCHAR(45) CHARACTER SET ascii NOT NULL,
    details VARCHAR(1000) NOT NULL COMMENT 'lines of name, tab and value',
    at DATETIME(3) NOT NULL,
    user_email VARCHAR(254) CHARACTER SET ascii NULL COMMENT 'of the user, at that time',
    KEY audit_events_account (account_id, id),
    KEY audit_events_user (user_id, event),
    KEY audit_events_retention (at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- Attempts to sign in by user and by address; a row is a name's SHA-256, so that it holds no address.
CREATE TABLE sign_in_attempts (
    name_digest BINARY(32) NOT NULL PRIMARY KEY,
    attempts INT UNSIGNED NOT NULL,
    tried_at DATETIME(3) NOT NULL,
    next_at DATETIME(3) NOT NULL COMMENT 'earlier attempts are refused',
    KEY sign_in_attempts_retention (tried_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE mails (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    recipient VARCHAR(254) CHARACTER SET ascii NOT NULL,
    sealed VARBINARY(8000) NOT NULL COMMENT 'subject and text, encrypted: they may hold a token',
    attempt INT UNSIGNED NOT NULL DEFAULT 0,
    available_at DATETIME(3) NOT NULL COMMENT 'a lease moves it ahead',
    reason VARCHAR(200) NULL COMMENT 'why the last attempt failed',
    created_at DATETIME(3) NOT NULL,
    KEY mails_next (available_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- Requests with an API key, for the account's developers; kept for a week.
CREATE TABLE request_log (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    account_id BIGINT NOT NULL,
    key_id BIGINT NOT NULL,
    request_id VARCHAR(64) CHARACTER SET ascii NOT NULL,
    method VARCHAR(10) CHARACTER SET ascii NOT NULL,
    path VARCHAR(200) CHARACTER SET ascii NOT NULL,
    status SMALLINT UNSIGNED NOT NULL,
    code VARCHAR(40) CHARACTER SET ascii NOT NULL COMMENT 'of an error; empty: none',
    ms INT UNSIGNED NOT NULL,
    at DATETIME(3) NOT NULL,
    KEY request_log_account (account_id, id) COMMENT 'the only one: each index costs every request'
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- Failed jobs that an operator retries in the console.  The worker does it: the console may not change jobs.
CREATE TABLE job_retries (
    job_id BIGINT NOT NULL PRIMARY KEY,
    requested_at DATETIME(3) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
