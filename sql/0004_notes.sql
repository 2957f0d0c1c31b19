-- What a client should know of a file that is complete, and the headers that an output target asks for.
-- A program of the release before leaves them NULL: no note, no headers.
-- Instant: no row is copied, and no request waits.
ALTER TABLE files
    ADD COLUMN note_code VARCHAR(40) CHARACTER SET ascii NULL COMMENT 'such as PROTECTION_REDUCED',
    ADD COLUMN note_sentence VARCHAR(1000) NULL,
    ADD COLUMN target_headers TEXT NULL COMMENT 'zero copy: a JSON object of strings, sent with the PUT',
    ALGORITHM=INSTANT;
