-- Each file has a thumbnail of its result; the order shows that of its first file. A client may add a word to the names
-- of results.

ALTER TABLE files
    ADD COLUMN thumbnail_store_key VARCHAR(128) CHARACTER SET ascii NULL COMMENT 'of its result; NULL if there is none',
    ADD COLUMN thumbnail_digest BINARY(32) NULL COMMENT 'SHA-256';

ALTER TABLE orders
    DROP COLUMN thumbnail_digest,
    ADD COLUMN result_suffix VARCHAR(20) CHARACTER SET ascii NULL COMMENT 'before the extension of the names of results';
