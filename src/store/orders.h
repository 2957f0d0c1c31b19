/*
 * Orders and their files: the rows that the domain works on.
 *
 * Every function that a client's request leads to takes the account, so that
 * another account's order is as good as a missing one: NOT_FOUND.
 */
#ifndef STORE_ORDERS_H
#define STORE_ORDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <imgward/context.h>

#include "model/file.h"
#include "model/order.h"
#include "model/result.h"
#include "store/db.h"

/*
 * Writes an order and its files in one statement and one transaction.
 * file_ids[0..file_rows) are set.  TWIN_EXISTS when the id or the idempotency
 * key is taken, with nothing written.
 */
enum iw_error orders_insert(const struct store *store, const struct order_row *row,
                            int64_t *file_ids) IW_MUST_USE;

/* The order and all its files (originals last), in one query. */
enum iw_error orders_find(const struct store *store, int64_t account_id, int64_t id, struct order *order,
                          struct order_file **files) IW_MUST_USE;

/* The same by idempotency key. */
enum iw_error orders_find_by_key(const struct store *store, int64_t account_id, enum order_type type,
                                 const char *key, size_t key_length, struct order *order,
                                 struct order_file **files) IW_MUST_USE;

/* The same, with the order's row locked until the transaction ends. */
enum iw_error orders_lock(const struct store *store, int64_t account_id, int64_t id, struct order *order,
                          struct order_file **files) IW_MUST_USE;

/* Starts a pending order: compare and set.  NOT_FOUND when it is no longer in status from. */
enum iw_error orders_start(const struct store *store, int64_t id, enum order_status from,
                           enum order_status to, int64_t now_ms) IW_MUST_USE;

/* The texts of an embedding order, file by file; the array is the arena's. */
enum iw_error orders_texts(const struct store *store, int64_t id, struct order_text **texts,
                           size_t *count) IW_MUST_USE;

/* What can be downloaded, in the order of the files and of their copies. */
enum iw_error orders_results(const struct store *store, int64_t id, struct order_result **results,
                             size_t *count) IW_MUST_USE;

enum iw_error orders_count(const struct store *store, const struct order_filter *filter,
                           int64_t *count) IW_MUST_USE;

/* One page, newest first; the array is the arena's. */
enum iw_error orders_page(const struct store *store, const struct order_filter *filter, int64_t limit,
                          int64_t offset, struct order **orders, size_t *count) IW_MUST_USE;

/*
 * All of them, newest first, one by one, unbuffered: each lives until take
 * answers, and nothing may be asked of db in between.  take answers false to stop.
 */
enum iw_error orders_stream(const struct store *store, const struct order_filter *filter,
                            bool (*take)(void *user, const struct order *order), void *user) IW_MUST_USE;

#endif
