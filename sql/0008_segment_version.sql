-- Segments that an earlier release has written are built again: they lack the texts of watermarks and metadata.

ALTER TABLE order_segments
    ADD COLUMN version TINYINT UNSIGNED NOT NULL DEFAULT 0 COMMENT '0: of a release that did not write it',
    ADD KEY order_segments_version (version);
