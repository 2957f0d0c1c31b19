-- Who works, since when, and what he counted; and what an operator switched.
-- A program of the release before knows neither table and goes on without.

CREATE TABLE workers (
    owner VARCHAR(80) CHARACTER SET ascii NOT NULL PRIMARY KEY COMMENT 'as in jobs.lease_owner',
    host VARCHAR(255) CHARACTER SET ascii NOT NULL,
    pid BIGINT NOT NULL,
    version VARCHAR(40) CHARACTER SET ascii NOT NULL,
    places INT UNSIGNED NOT NULL COMMENT 'jobs that it can do at once',
    busy INT UNSIGNED NOT NULL COMMENT 'and does',
    metrics MEDIUMTEXT CHARACTER SET ascii NOT NULL COMMENT 'samples in the text format of Prometheus',
    started_at DATETIME(3) NOT NULL,
    seen_at DATETIME(3) NOT NULL,
    KEY workers_seen (seen_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE switches (
    name VARCHAR(40) CHARACTER SET ascii NOT NULL PRIMARY KEY COMMENT 'queuePaused; on while its row is there',
    set_at DATETIME(3) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
