-- What an API key may do.

ALTER TABLE api_keys
    ADD COLUMN scopes SET('read', 'antiAi', 'watermarkEmbed', 'watermarkExtract', 'webhooks') NULL
        COMMENT 'NULL: everything';
