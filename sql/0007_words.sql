-- The index of lists: words of names, for the keyword, and what lists filter by.
-- imgward-worker fills both tables in the background and reconciles them.
-- A program of the release before does not write them.
-- Lists read younger orders from the tables orders and files.

-- A segment is a range of ids of one account.  The orders of a segment have positions from 0, by id.
CREATE TABLE order_segments (
    account_id BIGINT NOT NULL,
    first_id BIGINT NOT NULL COMMENT 'begin of the range; the oldest begins at 0',
    last_id BIGINT NOT NULL COMMENT 'end of the range, included',
    version INT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'grows when positions change',
    order_count INT UNSIGNED NOT NULL COMMENT 'without deleted orders',
    is_open BOOLEAN NOT NULL COMMENT 'the range may grow',
    due_at DATETIME(3) NOT NULL COMMENT 'when it is compared with the orders',
    facts BLOB NOT NULL COMMENT 'a byte an order: status, type and channel; 255: deleted',
    ids MEDIUMBLOB NOT NULL COMMENT 'eight bytes an order, big-endian',
    PRIMARY KEY (account_id, first_id),
    KEY order_segments_due (due_at),
    CONSTRAINT order_segments_account FOREIGN KEY (account_id) REFERENCES accounts (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE order_words (
    account_id BIGINT NOT NULL,
    bucket VARBINARY(2) NOT NULL COMMENT 'the first two bytes of its words; one byte: all words with that byte',
    first_id BIGINT NOT NULL COMMENT 'the segment',
    postings MEDIUMBLOB NOT NULL COMMENT 'words and their positions in the segment (src/domain/posting.h)',
    PRIMARY KEY (account_id, bucket, first_id),
    KEY order_words_segment (account_id, first_id),
    CONSTRAINT order_words_segment FOREIGN KEY (account_id, first_id)
        REFERENCES order_segments (account_id, first_id) ON DELETE CASCADE
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- The numbers of rows and bytes that /metrics shows.  imgward-worker counts large tables in slices.
CREATE TABLE census (
    source VARCHAR(20) CHARACTER SET ascii NOT NULL COMMENT 'the table that was read',
    kind VARCHAR(20) CHARACTER SET ascii NOT NULL COMMENT 'of jobs; else empty',
    state VARCHAR(20) CHARACTER SET ascii NOT NULL,
    number BIGINT NOT NULL,
    oldest_at DATETIME(3) NULL COMMENT 'when the oldest that waits was due',
    PRIMARY KEY (source, kind, state)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
