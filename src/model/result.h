/* Results, archives and thumbnails: the rows that queries return.  Texts are in the arena. */
#ifndef MODEL_RESULT_H
#define MODEL_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "model/format.h"
#include "model/order.h"

/*
 * The shares of the protection, in percent, from which on a result is strongly protected, and protected at
 * all. A result that is not strong gets a note. 50 and 25 are those of the API (doc/openapi.yaml).
 */
enum { result_strong_percent = 50, result_medium_percent = 25 };

/* The word for a share: "strong", "medium" or "weak". */
static inline const char *result_word(int percent)
{
    return percent >= result_strong_percent ? "strong" : percent >= result_medium_percent ? "medium" : "weak";
}

/* A result as the API lists it. */
struct order_result {
    int64_t id;
    int64_t file_id;
    const char *name;
    const char *store_key;
    enum format format;
    const char *watermark; /* the text of a marked copy; else NULL */
};

/* A result as the worker writes it and the archive reads it. */
struct result {
    int64_t order_id;
    int64_t file_id;
    int64_t copy; /* position of the watermark text; 0 for anti-AI */
    const char *name;
    const char *store_key;
    enum format format;
    int64_t size_bytes;
    uint8_t digest[32]; /* SHA-256 */
    uint32_t width_px;
    uint32_t height_px;
    int protection_percent; /* share of the protection; valid for anti-AI */
    const char *watermark;  /* the text of a marked copy; else NULL. Only read */
};

/* A result that an order has or may still get. */
struct result_slot {
    int64_t position;
    int64_t copy;
    const char *file_name;
    int64_t copy_count;      /* of its file */
    enum format format;      /* of the result, else of the input; FORMAT_NONE: neither exists */
    int64_t result_id;       /* 0 means no result yet */
    const char *result_name; /* valid with result_id */
};

/* The bytes behind a download URL. */
struct download_row {
    enum order_status order_status;
    enum order_channel order_channel;
    int64_t expires_ms;    /* of the order; 0 means never */
    bool is_deleted;       /* the order's files were deleted */
    const char *name;      /* of the result, or of the order */
    enum format format;    /* FORMAT_ZIP for an archive */
    const char *store_key; /* NULL if there is none */
    bool is_suspended;     /* the account of the order */
    int64_t account_id;
    const char *trace_id; /* of the order; NULL if it has none */
};

#endif
