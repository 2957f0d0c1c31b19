/*
 * How files and orders come to their end, as the worker writes it: results,
 * counts, usage, the close itself, and which orders' time is over.
 *
 * Rules live in src/domain/outcome.c and src/domain/retention.c.  Lock the order
 * first (closing_order_lock) and write all that belongs together in that
 * transaction: everybody who locks an order's rows takes the order's first.
 */
#ifndef STORE_CLOSING_H
#define STORE_CLOSING_H

#include <stdbool.h>
#include <stdint.h>

#include <imgward/context.h>

#include "model/order.h"
#include "model/result.h"
#include "store/db.h"

/* Reads and locks an order for the rest of the transaction.  ORDER_NOT_FOUND. */
enum iw_error closing_order_lock(const struct store *store, int64_t order_id,
                                 struct order_progress *order) IW_MUST_USE;

/* Writes the counts and the thumbnail's key of an order that is locked. */
enum iw_error closing_order_count(const struct store *store, const struct order_progress *order,
                                  int64_t now_ms) IW_MUST_USE;

/*
 * Sets the status of a locked order to what order_next said, if it still is the
 * one it was read with; SERVER_INTERNAL_ERROR otherwise.  expires_at_ms 0: never.
 */
enum iw_error closing_order_close(const struct store *store, const struct order_progress *order,
                                  enum order_status next, int64_t now_ms, int64_t expires_at_ms) IW_MUST_USE;

/* Notes an error of the order as a whole. */
enum iw_error closing_order_error(const struct store *store, int64_t order_id,
                                  enum iw_error code) IW_MUST_USE;

/* The archive of an order. */
enum iw_error closing_archive_put(const struct store *store, int64_t order_id, const char *store_key,
                                  int64_t size_bytes, const uint8_t digest[32]) IW_MUST_USE;

/* What the thumbnail is that closing_order_count names. */
enum iw_error closing_thumbnail_digest(const struct store *store, int64_t order_id,
                                       const uint8_t digest[32]) IW_MUST_USE;

/* A result; one that was there for the same file and copy is replaced. */
enum iw_error closing_result_put(const struct store *store, const struct result *result,
                                 int64_t now_ms) IW_MUST_USE;

/* Gives a result another name. */
enum iw_error closing_result_name(const struct store *store, int64_t result_id, const char *name) IW_MUST_USE;

/* The results of an order in the order of its files; the array is the arena's. */
enum iw_error closing_results(const struct store *store, int64_t order_id, struct result **results,
                              unsigned *count) IW_MUST_USE;

/* Notes why a file fails; what was noted first stays. */
enum iw_error closing_file_error(const struct store *store, int64_t file_id, enum iw_error code,
                                 const char *sentence) IW_MUST_USE;

/* Notes what the client should know of a file's result; of several copies the first note stays. */
enum iw_error closing_file_note(const struct store *store, int64_t file_id, const char *code,
                                const char *sentence) IW_MUST_USE;

/* Ends a file of which no job is left: failed when an error was noted, complete otherwise. */
enum iw_error closing_file_end(const struct store *store, int64_t file_id, int64_t now_ms,
                               bool *is_failed) IW_MUST_USE;

/* What an extraction read. */
enum iw_error closing_watermark_put(const struct store *store, int64_t order_id, const char *text,
                                    size_t length) IW_MUST_USE;

/* Forgets the results of one copy of a file (copy -1: of the whole order), whose bytes the caller deletes. */
enum iw_error closing_results_forget(const struct store *store, int64_t order_id, int64_t file_id,
                                     int64_t copy) IW_MUST_USE;

/*
 * Takes back that files failed whose jobs jobs_reopen is about to queue anew; count gets how many of
 * them had ended.  Lock the order first.
 */
enum iw_error closing_files_reopen(const struct store *store, int64_t order_id, int64_t now_ms,
                                   int64_t *count) IW_MUST_USE;

/* Fails every file of an order that has not ended. */
enum iw_error closing_files_fail(const struct store *store, int64_t order_id, enum iw_error code,
                                 int64_t now_ms) IW_MUST_USE;

/* All results that an order may have, by file and copy; the array is the arena's. */
enum iw_error closing_places(const struct store *store, int64_t order_id, struct result_slot **places,
                             unsigned *count) IW_MUST_USE;

/* Most orders of the two below. */
enum { closing_orders_max = 8 };

/* Keeps those of the orders that are neither pending nor in progress. */
enum iw_error closing_ended(const struct store *store, int64_t *order_ids, unsigned *count) IW_MUST_USE;

/* The inputs of orders are gone from the store; the URLs of their targets, which let write, are forgotten. */
enum iw_error closing_inputs_forget(const struct store *store, const int64_t *order_ids,
                                    unsigned count) IW_MUST_USE;

/* Everything of an order is gone from the store. */
enum iw_error closing_files_forget(const struct store *store, int64_t order_id, int64_t now_ms) IW_MUST_USE;

/* Counts results of a UTC day ("YYYY-MM-DD"). */
enum iw_error closing_usage_add(const struct store *store, int64_t account_id, const char *day,
                                int64_t count) IW_MUST_USE;

/* At most most orders in a status whose expires_at has passed, behind the first skipped; the array is the
 * arena's. */
enum iw_error closing_overdue(const struct store *store, enum order_status status, int64_t now_ms,
                              unsigned most, unsigned skipped, int64_t **order_ids,
                              unsigned *count) IW_MUST_USE;

/*
 * Ended orders with ids from id_from on whose inputs are still in the store, at
 * most most of them; the array is the arena's.
 */
enum iw_error closing_uncleared(const struct store *store, int64_t id_from, unsigned most,
                                int64_t **order_ids, unsigned *count) IW_MUST_USE;

/* What of an order in the store still counts: the keys of inputs, results, archive and thumbnail; the
 * arena's. */
enum iw_error closing_keys(const struct store *store, int64_t order_id, const char ***keys,
                           unsigned *count) IW_MUST_USE;

/* The status of an order; ORDER_NOT_FOUND. */
enum iw_error closing_order_status(const struct store *store, int64_t order_id,
                                   enum order_status *status) IW_MUST_USE;

#endif
