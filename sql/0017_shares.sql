-- What a client sees of each file's result, and refusals apart from failures.
--
-- Both changes are instant.  A file's columns are empty for results that an earlier release made.

ALTER TABLE files
    ADD COLUMN protection_percent TINYINT UNSIGNED NULL COMMENT 'anti-AI: the part of the ordered change that is in the result',
    ADD COLUMN result_bytes BIGINT NULL COMMENT 'of the largest result',
    ALGORITHM = INSTANT;

-- refused: the client's file or address is at fault, so that nobody has to look at the job.
ALTER TABLE jobs
    MODIFY COLUMN status ENUM('queued', 'leased', 'done', 'failed', 'refused') NOT NULL DEFAULT 'queued',
    ALGORITHM = INSTANT;
