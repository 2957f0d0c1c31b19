-- What each account uses, counted in the transactions that use it, and an operator's limits for it.
-- imgward-worker reconciles the counters: a program of the release before does not count.

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

-- Counters of 0 are reconciled first.
INSERT INTO account_usage (account_id, day, reconciled_at) SELECT id, UTC_DATE(), '1970-01-01' FROM accounts;

-- Set by imgwardctl account delete.  Instant: no row is copied, and no request waits.
ALTER TABLE accounts
    ADD COLUMN delete_at DATETIME(3) NULL COMMENT 'when a suspended account and all of its rows are deleted',
    ALGORITHM=INSTANT;
