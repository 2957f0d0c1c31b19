/*
 * The table orders.
 *
 * Functions that a client's request calls take the account, so that another account's order is not found.
 * The worker's functions only take the order: lock it first (orders_progress_lock), and before its files and
 * jobs, so that no two transactions wait for each other.  Rules are in src/domain.
 */
#ifndef DB_ORDERS_H
#define DB_ORDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/context.h"
#include "db/query.h"
#include "model/file.h"
#include "model/order.h"
#include "model/result.h"

/*
 * Writes an order and its files in one statement and one transaction; an order with texts in the transaction
 * of its caller.  Sets file_ids[0..file_rows).
 * TWIN_EXISTS if the id or the idempotency key is taken, USAGE_LIMIT_EXCEEDED if the claim is refused; then
 * nothing is written.
 */
enum iw_error orders_insert(const struct db *db, const struct order_row *row, int64_t *file_ids) IW_MUST_USE;

/* The order and all its files, originals last, in one query. */
enum iw_error orders_find(const struct db *db, int64_t account_id, int64_t id, struct order *order,
                          struct order_file **files, bool *is_found) IW_MUST_USE;

/* Only the type and the trace id (NULL without one), in one row. */
enum iw_error orders_type(const struct db *db, int64_t account_id, int64_t id, enum order_type *type,
                          const char **trace_id, bool *is_found) IW_MUST_USE;

/* An idempotency key: unique per account and order type. */
struct orders_key {
    int64_t account_id;
    enum order_type type;
    const char *key;
    size_t key_length;
};

/* The same by idempotency key. */
enum iw_error orders_find_by_key(const struct db *db, const struct orders_key *key, struct order *order,
                                 struct order_file **files, bool *is_found) IW_MUST_USE;

/* The same as orders_find; locks the order's row until the transaction ends. */
enum iw_error orders_lock(const struct db *db, int64_t account_id, int64_t id, struct order *order,
                          struct order_file **files, bool *is_found) IW_MUST_USE;

/* Starts a locked pending order.  SERVER_INTERNAL_ERROR if its status is no longer from. */
enum iw_error orders_start(const struct db *db, int64_t id, enum order_status from, enum order_status to,
                           int64_t now_ms) IW_MUST_USE;

enum iw_error orders_count(const struct db *db, const struct order_filter *filter,
                           int64_t *count) IW_MUST_USE;

/* One page, newest first; the array is in the arena. */
enum iw_error orders_page(const struct db *db, const struct order_filter *filter, int64_t limit,
                          int64_t offset, struct order **orders, size_t *count) IW_MUST_USE;

/*
 * All orders of a filter, newest first, unbuffered.  Each is valid during the callback, which must not use
 * the connection and returns false to stop.
 */
enum iw_error orders_stream(const struct db *db, const struct order_filter *filter,
                            bool (*take)(void *user, const struct order *order), void *user) IW_MUST_USE;

enum { orders_ids_max = 100 };

/* The account's orders of at most orders_ids_max ids, newest first; the array is in the arena. */
enum iw_error orders_of_ids(const struct db *db, int64_t account_id, const struct query_ids *ids,
                            struct order **orders, size_t *count) IW_MUST_USE;

/* The same for any number of ids, with a callback; see orders_stream. */
enum iw_error orders_stream_ids(const struct db *db, int64_t account_id, const struct query_ids *ids,
                                bool (*take)(void *user, const struct order *order), void *user) IW_MUST_USE;

/* An order's name, with a file's name or a watermark's text or both; the others are NULL. */
struct order_names {
    int64_t order_id;
    const char *order, *file, *text;
};

/*
 * The names and texts of all orders, newest first; the rows of an order follow each other.  Without a
 * keyword only the orders' names.  The filter's keyword has no other effect here and in the functions above.
 * See orders_stream for the callback.
 */
enum iw_error orders_names(const struct db *db, const struct order_filter *filter,
                           bool (*take)(void *user, const struct order_names *names), void *user) IW_MUST_USE;

/*
 * Reads the words of a row; type may be NULL.  SERVER_INTERNAL_ERROR for words that this version does not
 * know: the database is newer.
 */
enum iw_error orders_words_read(struct context *context, const char *type_word, enum order_type *type,
                                const char *status_word, enum order_status *status) IW_MUST_USE;

/* ---- Progress and end of an order ---- */

/* Reads and locks an order until the transaction ends.  ORDER_NOT_FOUND. */
enum iw_error orders_progress_lock(const struct db *db, int64_t order_id,
                                   struct order_progress *order) IW_MUST_USE;

/* Writes the counts and the thumbnail's key of a locked order. */
enum iw_error orders_progress_write(const struct db *db, const struct order_progress *order,
                                    int64_t now_ms) IW_MUST_USE;

/*
 * Sets the status of a locked order to the result of order_next.  SERVER_INTERNAL_ERROR if it is no longer
 * order->status.  expires_at_ms 0 means never.
 */
enum iw_error orders_close(const struct db *db, const struct order_progress *order, enum order_status next,
                           int64_t now_ms, int64_t expires_at_ms) IW_MUST_USE;

/* Writes the error of the order as a whole. */
enum iw_error orders_error_write(const struct db *db, int64_t order_id, enum iw_error code) IW_MUST_USE;

enum iw_error orders_archive_write(const struct db *db, int64_t order_id, const char *store_key,
                                   int64_t size_bytes, const uint8_t digest[32]) IW_MUST_USE;

/* Writes the text that an extraction read, its certainty, and whether the picture is the marked one. */
enum iw_error orders_watermark_write(const struct db *db, int64_t order_id, const char *text, size_t length,
                                     int64_t certainty, enum same_picture same) IW_MUST_USE;

/* The status of an order; ORDER_NOT_FOUND. */
enum iw_error orders_status(const struct db *db, int64_t order_id, enum order_status *status) IW_MUST_USE;

/* ---- Retention ---- */

/* The most orders of orders_ended_keep and files_inputs_forget. */
enum { orders_batch_max = 8 };

/* Removes pending orders and orders in progress from a list of ids. */
enum iw_error orders_ended_keep(const struct db *db, int64_t *order_ids, unsigned *count) IW_MUST_USE;

/*
 * The orders of a status whose expires_at has passed: at most `most` orders, without the first `skipped`
 * ones.
 */
enum iw_error orders_overdue(const struct db *db, enum order_status status, int64_t now_ms, unsigned most,
                             unsigned skipped, struct query_ids *order_ids) IW_MUST_USE;

/*
 * Reads the next `most` orders in progress after *after_id and before an id, and returns those with a waiting
 * job of twenty attempts or more.  Advances *after_id; 0 at the end.
 */
enum iw_error orders_stuck(const struct db *db, int64_t *after_id, int64_t before_id, unsigned most,
                           struct query_ids *order_ids) IW_MUST_USE;

/*
 * Reads the next `most` orders after *after_id and before an id, and returns those that ended before a time
 * and no longer have files in the store. Advances *after_id; 0 at the end.
 */
enum iw_error orders_outdated(const struct db *db, int64_t *after_id, int64_t before_id,
                              int64_t ended_before_ms, unsigned most,
                              struct query_ids *order_ids) IW_MUST_USE;

/* In a transaction: deletes the rows of a locked order.  Its texts stay. */
enum iw_error orders_forget(const struct db *db, int64_t order_id) IW_MUST_USE;

/* At most most ended orders from an id on that still have inputs in the file store. */
enum iw_error orders_uncleared(const struct db *db, int64_t id_from, unsigned most,
                               struct query_ids *order_ids) IW_MUST_USE;

/* The keys of an order's files in the store: inputs, results, archive and thumbnails. */
enum iw_error orders_store_keys(const struct db *db, int64_t order_id, struct query_texts *keys) IW_MUST_USE;

/* Records that all files of an order were deleted from the store. */
enum iw_error orders_files_forget(const struct db *db, int64_t order_id, int64_t now_ms) IW_MUST_USE;

/* ---- For operators and monitoring; read only ---- */

/* All orders. */
enum iw_error orders_count_all(const struct db *db, int64_t *count) IW_MUST_USE;

/* Conditions of an operator's search; NULL means no condition. */
struct orders_search {
    const char *account; /* name or number */
    const char *status;
    const char *request_id; /* of the creation */
    const char *name;       /* a part of it */
    int64_t most;
};

/* Orders of any account, newest first. */
enum iw_error orders_search(const struct db *db, const struct orders_search *search,
                            struct query_table *table) IW_MUST_USE;

enum { orders_inspect_tables = 5 };

/* The order, its files, results, jobs and history (a time and a sentence each); ORDER_NOT_FOUND. */
enum iw_error orders_inspect(const struct db *db, int64_t order_id,
                             struct query_table tables[orders_inspect_tables]) IW_MUST_USE;

#endif
