/*
 * The rows behind presigned URLs: the place of an upload, the stored bytes of a
 * result, an archive or a thumbnail.  SQL only; the rules are domain/uploads.c.
 */
#ifndef STORE_UPLOADS_H
#define STORE_UPLOADS_H

#include <stdbool.h>
#include <stdint.h>

#include <imgward/context.h>

#include "model/file.h"
#include "model/result.h"
#include "store/db.h"

/*
 * The place of an upload: the file of an order at a position, as the unmarked
 * original or not.  With for_change the order's row is locked until the
 * transaction ends.  NOT_FOUND when there is none, or it is fetched by URL.
 */
enum iw_error uploads_find(const struct store *store, int64_t order_id, int64_t position, bool is_original,
                           bool for_change, struct upload_place *place) IW_MUST_USE;

/* Marks a file as uploaded.  Inside the transaction that holds the order's row. */
enum iw_error uploads_mark(const struct store *store, int64_t file_id, int64_t now_ms,
                           const struct upload_facts *facts) IW_MUST_USE;

/* A result of an order.  NOT_FOUND when there is none. */
enum iw_error downloads_find_result(const struct store *store, int64_t order_id, int64_t result_id,
                                    struct download_row *row) IW_MUST_USE;

/* The archive of an order; has no store_key while none was made.  NOT_FOUND as above. */
enum iw_error downloads_find_archive(const struct store *store, int64_t order_id,
                                     struct download_row *row) IW_MUST_USE;

/* The thumbnail of an order: store_key is NULL when there is none.  NOT_FOUND as above. */
enum iw_error downloads_find_thumbnail(const struct store *store, int64_t order_id,
                                       struct download_row *row) IW_MUST_USE;

#endif
