/*
 * The tables order_segments and order_words: the index of lists (src/search/README.md).
 *
 * A segment is a range of an account's order ids.  A transaction that changes an order locks the order,
 * then writes the order's fact to the segment.  A segment is built under locks of these orders, so that
 * both agree.
 */
#ifndef DB_SEGMENTS_H
#define DB_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/context.h"
#include "db/query.h"
#include "model/order.h"
#include "search/search.h"

struct segment {
    int64_t first_id;
    int64_t last_id;
    int64_t order_count; /* without deleted orders */
    bool is_open;        /* the range may grow */
};

/* Sets the mask of a query, by type, status and channel of the filter, and adds the filter's metadata as
 * tags. */
void segments_filter(const struct order_filter *filter, struct search_query *query);

/* ---- reading ---- */

/* The segments to read. */
struct segments_range {
    int64_t account_id;
    int64_t first_min, first_max; /* of first_id */
    int64_t ids_of;               /* the segment that contains this id is read with its ids; -1 for none */
};

/* Callbacks of segments_read; they must not use the connection. */
struct segments_reader {
    /* facts: count bytes; NULL if the query has no conditions.  ids: 8 * count bytes, or NULL. */
    void (*segment)(void *user, const struct segment *segment, const uint8_t *facts, const uint8_t *ids,
                    size_t count);
    void (*row)(void *user, int64_t first_id, const struct search_row *row);
    void *user;
};

/*
 * Reads the segments, oldest first, then their rows for the query's words, in one statement and so in one
 * snapshot.
 */
enum iw_error segments_read(const struct db *db, const struct segments_range *range,
                            const struct search_query *query,
                            const struct segments_reader *reader) IW_MUST_USE;

/* ---- changes of orders, in the transaction that changes the order's row ---- */

/* Writes the status of an order, if a segment has the order. */
enum iw_error segments_status_write(const struct db *db, int64_t order_id,
                                    enum order_status status) IW_MUST_USE;

/* Records that an order is about to be deleted; the order's words are deleted within minutes. */
enum iw_error segments_order_forget(const struct db *db, int64_t order_id) IW_MUST_USE;

/* ---- building; in the worker ---- */

/*
 * Finds among the next 100 accounts after *after_id those that have at least new_min orders, with ids up to
 * horizon_id, after their last segment. Advances *after_id, or sets it to 0 at the end.
 */
enum iw_error segments_grown(const struct db *db, int64_t horizon_id, unsigned new_min, int64_t *after_id,
                             struct query_ids *account_ids) IW_MUST_USE;

/* True if an account has least or more orders of ids after after_id and up to horizon_id. */
enum iw_error segments_has_new(const struct db *db, int64_t account_id, int64_t after_id, int64_t horizon_id,
                               int64_t least, bool *has_new) IW_MUST_USE;

/* A segment that is due, or that an earlier release has written. */
enum iw_error segments_due(const struct db *db, int64_t *account_id, int64_t *first_id,
                           bool *is_found) IW_MUST_USE;

/*
 * In a transaction: locks the newest segment that begins at first_id or before.  A segment that another
 * transaction has locked is not found.
 */
enum iw_error segments_lock(const struct db *db, int64_t account_id, int64_t first_id,
                            struct segment *segment, bool *is_found) IW_MUST_USE;

/*
 * In a transaction: reads the orders of a segment, locks them, and sets order_count. A segment with last_id
 * below up_to_id grows, and last_id and is_open are set, too. *is_whole is false without new orders, or if
 * another transaction has locked one of them. The function does not wait for locks, because the worker's
 * heartbeats must be on time.
 */
enum iw_error segments_gather(const struct db *db, int64_t account_id, struct segment *segment,
                              int64_t up_to_id, struct search_build *build, bool *is_whole) IW_MUST_USE;

/* Replaces a segment and its rows, due again after due_s; deletes the segment if it has no orders. */
enum iw_error segments_write(const struct db *db, int64_t account_id, const struct segment *segment,
                             struct search_build *build, unsigned due_s) IW_MUST_USE;

#endif
