/*
 * The rows behind presigned URLs: the place of an upload, the stored bytes of a
 * result, an archive or a thumbnail.  SQL only; the rules are domain/uploads.c.
 */
#ifndef STORE_UPLOADS_H
#define STORE_UPLOADS_H

#include <stdbool.h>
#include <stdint.h>

#include <imgward/context.h>
#include <imgward/order.h>

#include "store/db.h"

/* Where an upload goes; texts are the arena's. */
struct upload_place {
    int64_t account_id;
    int64_t file_id;
    enum order_type order_type;
    enum order_status order_status;
    bool is_started;       /* the order was started at some time */
    bool is_uploaded;      /* the file has bytes already */
    const char *store_key; /* of those bytes, or NULL */
    const char *name;      /* of the file, as the client called it */
};

/*
 * The place of an upload: the file of an order at a position, as the unmarked
 * original or not.  With for_change the order's row is locked until the
 * transaction ends.  NOT_FOUND when there is none, or it is fetched by URL.
 */
enum iw_error uploads_find(const struct store *store, int64_t order_id, int64_t position, bool is_original,
                           bool for_change, struct upload_place *place) IW_MUST_USE;

/* What a file is after its upload. */
struct upload_facts {
    const char *store_key;
    const char *format; /* "jpeg", "png", "webp" */
    int64_t size_bytes;
    const uint8_t *sha256; /* 32 bytes */
};

/* Marks a file as uploaded.  Inside the transaction that holds the order's row. */
enum iw_error uploads_mark(const struct store *store, int64_t file_id, int64_t now_ms,
                           const struct upload_facts *facts) IW_MUST_USE;

/* Something that can be downloaded; texts are the arena's. */
struct download_row {
    enum order_status order_status;
    int64_t expires_ms;    /* of the order; 0: none */
    bool is_deleted;       /* the order's files are gone */
    const char *name;      /* of the result, or of the order */
    const char *format;    /* of a result; "" otherwise */
    const char *store_key; /* NULL: there is none */
};

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
