-- Which keys belong to this database, so that a restored database is not used with other keys.
-- A program of the release before does not know the table; the first program that does fills it.

CREATE TABLE key_ids (
    purpose VARCHAR(20) CHARACTER SET ascii NOT NULL PRIMARY KEY COMMENT 'watermark, sealing or signing',
    ids VARCHAR(255) CHARACTER SET ascii NOT NULL
        COMMENT 'HMAC-SHA256 of a fixed text under the key, cut to 8 bytes; signing keys: newest first',
    recorded_at DATETIME(3) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
