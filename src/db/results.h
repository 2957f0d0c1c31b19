/* The table results, and the bytes behind download URLs: results, archives and thumbnails. */
#ifndef DB_RESULTS_H
#define DB_RESULTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/context.h"
#include "db/db.h"
#include "model/result.h"

/* Writes a result; replaces an earlier result of the same file and copy. */
enum iw_error results_write(const struct db *db, const struct result *result, int64_t now_ms) IW_MUST_USE;

enum iw_error results_rename(const struct db *db, int64_t result_id, const char *name) IW_MUST_USE;

/* The results of an order, by file and copy; the array is in the arena. */
enum iw_error results_list(const struct db *db, int64_t order_id, struct result **results,
                           unsigned *count) IW_MUST_USE;

/* The same with the ids and names that a client needs. */
enum iw_error results_list_names(const struct db *db, int64_t order_id, struct order_result **results,
                                 size_t *count) IW_MUST_USE;

/* All results that an order has or may still get, by file and copy; the array is in the arena. */
enum iw_error results_slots(const struct db *db, int64_t order_id, struct result_slot **slots,
                            unsigned *count) IW_MUST_USE;

/* Deletes the rows of one copy of a file (copy -1: of the order).  The caller deletes the bytes. */
enum iw_error results_forget(const struct db *db, int64_t order_id, int64_t file_id,
                             int64_t copy) IW_MUST_USE;

/* The bytes of a result. */
enum iw_error results_find(const struct db *db, int64_t order_id, int64_t result_id, struct download_row *row,
                           bool *is_found) IW_MUST_USE;

/* The archive of an order; row->store_key is NULL if there is none. */
enum iw_error results_find_archive(const struct db *db, int64_t order_id, struct download_row *row,
                                   bool *is_found) IW_MUST_USE;

/* The same for the thumbnail of a file's result; position 0: of the order. */
enum iw_error results_find_thumbnail(const struct db *db, int64_t order_id, int64_t position,
                                     struct download_row *row, bool *is_found) IW_MUST_USE;

#endif
