-- Each file has a thumbnail of its result; the order shows that of its first file. A client may add a word to the names
-- of results. orders.thumbnail_digest stays: the previous release writes it, and orders of that release have their thumbnail
-- only there.

ALTER TABLE files
    ADD COLUMN thumbnail_store_key VARCHAR(128) CHARACTER SET ascii NULL COMMENT 'of its result; NULL if there is none',
    ADD COLUMN thumbnail_digest BINARY(32) NULL COMMENT 'SHA-256';

ALTER TABLE orders
    ADD COLUMN result_suffix VARCHAR(20) CHARACTER SET ascii NULL COMMENT 'before the extension of the names of results';
