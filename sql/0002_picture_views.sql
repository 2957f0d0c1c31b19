-- An extraction compares the picture with the one to which the watermark was added.

ALTER TABLE order_watermarks
    ADD COLUMN picture_view VARBINARY(4101) NULL COMMENT 'of the first copy: the file in small (struct watermark_view)';

ALTER TABLE readings
    ADD COLUMN is_same_picture BOOLEAN NULL COMMENT 'the mark was in the picture to which it was added; NULL: undecided';

ALTER TABLE orders
    ADD COLUMN watermark_is_same_picture BOOLEAN NULL COMMENT 'of all marks of an extraction the worst; NULL: undecided';
