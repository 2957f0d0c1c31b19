-- The web console: users, their sessions and tokens, invitations, the audit log, queued mail, the request log.
-- A program of the release before uses none of these tables.  Secrets are stored as SHA-256, or sealed.

CREATE TABLE users (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    account_id BIGINT NOT NULL,
    role ENUM('owner', 'member') NOT NULL,
    email VARCHAR(254) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'in lower case',
    name VARCHAR(100) NOT NULL,
    language ENUM('en', 'ko') NOT NULL DEFAULT 'en',
    password_hash VARCHAR(128) CHARACTER SET ascii NULL COMMENT 'Argon2id with its parameters; NULL: none is set',
    totp_sealed VARBINARY(64) NULL COMMENT 'the secret of the second factor, encrypted',
    totp_enabled_at DATETIME(3) NULL,
    totp_step BIGINT NOT NULL DEFAULT 0 COMMENT 'the time step of the last accepted code',
    is_admin BOOLEAN NOT NULL DEFAULT FALSE COMMENT 'of the operator',
    is_disabled BOOLEAN NOT NULL DEFAULT FALSE,
    email_verified_at DATETIME(3) NULL,
    created_at DATETIME(3) NOT NULL,
    last_sign_in_at DATETIME(3) NULL,
    UNIQUE KEY users_email (email),
    KEY users_account (account_id, id),
    CONSTRAINT users_owner FOREIGN KEY (account_id) REFERENCES accounts (id) ON DELETE CASCADE
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE user_sessions (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    user_id BIGINT NOT NULL,
    digest BINARY(32) NOT NULL COMMENT 'SHA-256 of the token in the cookie',
    address VARCHAR(45) CHARACTER SET ascii NOT NULL,
    user_agent VARCHAR(200) NOT NULL,
    created_at DATETIME(3) NOT NULL,
    seen_at DATETIME(3) NOT NULL,
    expires_at DATETIME(3) NOT NULL COMMENT 'however often it is used',
    UNIQUE KEY user_sessions_digest (digest),
    KEY user_sessions_user (user_id, id),
    KEY user_sessions_retention (seen_at),
    CONSTRAINT user_sessions_owner FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- Tokens that a user presents once: in a link of a mail, or between password and second factor.
CREATE TABLE user_tokens (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    user_id BIGINT NOT NULL,
    purpose ENUM('verify', 'reset', 'challenge') NOT NULL,
    digest BINARY(32) NOT NULL COMMENT 'SHA-256 of the token',
    uses_left TINYINT UNSIGNED NOT NULL COMMENT 'a challenge allows several wrong codes',
    created_at DATETIME(3) NOT NULL,
    expires_at DATETIME(3) NOT NULL,
    UNIQUE KEY user_tokens_digest (digest),
    KEY user_tokens_user (user_id, purpose),
    KEY user_tokens_retention (expires_at),
    CONSTRAINT user_tokens_owner FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE recovery_codes (
    user_id BIGINT NOT NULL,
    digest BINARY(32) NOT NULL COMMENT 'SHA-256 of the code',
    PRIMARY KEY (user_id, digest),
    CONSTRAINT recovery_codes_owner FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE invitations (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    account_id BIGINT NOT NULL,
    email VARCHAR(254) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'in lower case',
    role ENUM('owner', 'member') NOT NULL,
    digest BINARY(32) NOT NULL COMMENT 'SHA-256 of the token',
    created_at DATETIME(3) NOT NULL,
    expires_at DATETIME(3) NOT NULL,
    UNIQUE KEY invitations_digest (digest),
    UNIQUE KEY invitations_email (account_id, email),
    KEY invitations_retention (expires_at),
    CONSTRAINT invitations_owner FOREIGN KEY (account_id) REFERENCES accounts (id) ON DELETE CASCADE
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- Security events.  No foreign keys: an event outlives its user.
CREATE TABLE audit_events (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    account_id BIGINT NULL,
    user_id BIGINT NULL COMMENT 'who did it; NULL: unknown, or the operator at the command line',
    user_name VARCHAR(100) NULL COMMENT 'at that time',
    event VARCHAR(40) CHARACTER SET ascii NOT NULL,
    address VARCHAR(45) CHARACTER SET ascii NOT NULL,
    details VARCHAR(1000) NOT NULL COMMENT 'lines of name, tab and value',
    at DATETIME(3) NOT NULL,
    KEY audit_events_account (account_id, id),
    KEY audit_events_user (user_id, event),
    KEY audit_events_retention (at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- Attempts to sign in by user and by address; a row is a name's SHA-256, so that it holds no address.
CREATE TABLE sign_in_attempts (
    name_digest BINARY(32) NOT NULL PRIMARY KEY,
    attempts INT UNSIGNED NOT NULL,
    tried_at DATETIME(3) NOT NULL,
    next_at DATETIME(3) NOT NULL COMMENT 'earlier attempts are refused',
    KEY sign_in_attempts_retention (tried_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE mails (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    recipient VARCHAR(254) CHARACTER SET ascii NOT NULL,
    sealed VARBINARY(8000) NOT NULL COMMENT 'subject and text, encrypted: they may hold a token',
    attempt INT UNSIGNED NOT NULL DEFAULT 0,
    available_at DATETIME(3) NOT NULL COMMENT 'a lease moves it ahead',
    reason VARCHAR(200) NULL COMMENT 'why the last attempt failed',
    created_at DATETIME(3) NOT NULL,
    KEY mails_next (available_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- Requests with an API key, for the account's developers; kept for a week.
CREATE TABLE request_log (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    account_id BIGINT NOT NULL,
    key_id BIGINT NOT NULL,
    request_id VARCHAR(64) CHARACTER SET ascii NOT NULL,
    method VARCHAR(10) CHARACTER SET ascii NOT NULL,
    path VARCHAR(200) CHARACTER SET ascii NOT NULL,
    status SMALLINT UNSIGNED NOT NULL,
    code VARCHAR(40) CHARACTER SET ascii NOT NULL COMMENT 'of an error; empty: none',
    ms INT UNSIGNED NOT NULL,
    at DATETIME(3) NOT NULL,
    KEY request_log_account (account_id, id) COMMENT 'the only one: each index costs every request'
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- Failed jobs that an operator retries in the console.  The worker does it: the console may not change jobs.
CREATE TABLE job_retries (
    job_id BIGINT NOT NULL PRIMARY KEY,
    requested_at DATETIME(3) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
