-- What archives and thumbnails were when they were written, so that imgwardctl store verify can tell
-- a file that has changed.  A program of the release before leaves them NULL, which is "not known".
-- Instant: no row is copied, and nobody waits.
ALTER TABLE orders
    ADD COLUMN zip_digest BINARY(32) NULL COMMENT 'SHA-256',
    ADD COLUMN thumbnail_digest BINARY(32) NULL COMMENT 'SHA-256',
    ALGORITHM=INSTANT;
