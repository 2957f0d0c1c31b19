-- Who made a key and who caused an event, by address: a user chooses its name freely.
ALTER TABLE api_keys
    ADD COLUMN user_id BIGINT NULL COMMENT 'the user who made it; NULL: the operator, or before this column',
    ADD COLUMN user_email VARCHAR(254) CHARACTER SET ascii NULL COMMENT 'of that user, at that time';
ALTER TABLE audit_events
    ADD COLUMN user_email VARCHAR(254) CHARACTER SET ascii NULL COMMENT 'of the user, at that time';
