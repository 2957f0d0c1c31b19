-- What a worker reports of its image processes, its file store and its mails.
-- A worker of the release before leaves the columns NULL.

ALTER TABLE workers
    ADD COLUMN image_ready INT UNSIGNED NULL COMMENT 'image processes that are sealed and can work; NULL: not reported',
    ADD COLUMN image_failing_at DATETIME(3) NULL COMMENT 'since when starts of image processes fail; NULL: none does',
    ADD COLUMN image_reason VARBINARY(400) NULL COMMENT 'of the last failure',
    ADD COLUMN store_failed_at DATETIME(3) NULL COMMENT 'the last failed access to the file store',
    ADD COLUMN store_reason VARBINARY(400) NULL,
    ADD COLUMN mail_sent_at DATETIME(3) NULL COMMENT 'the last mail that was sent',
    ADD COLUMN mail_failed_at DATETIME(3) NULL COMMENT 'the last attempt that failed',
    ADD COLUMN mail_reason VARBINARY(400) NULL;
