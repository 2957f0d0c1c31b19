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
#include <imgward/order.h>

#include "store/db.h"

struct order {
    int64_t id;
    enum order_type type;
    enum order_channel channel;
    enum order_status status;
    const char *name;
    const char *body_digest; /* 32 bytes */
    bool is_zero_copy;
    bool has_thumbnail;
    const char *zip_store_key; /* NULL: there is no archive */
    unsigned file_count;
    unsigned file_rows; /* the files read along, originals too; 0 where none were */
    unsigned completed_file_count;
    const char *watermark_text; /* NULL: none */
    const char *error_code;     /* of the order as a whole; NULL: none */
    int64_t created_ms;
    int64_t updated_ms;
    int64_t expires_ms; /* 0: never */
};

struct order_file {
    int64_t id;
    unsigned position; /* from 1 */
    bool is_original;
    const char *name;
    const char *status;         /* "pending", "uploaded", "processing", "complete", "failed" */
    const char *error_code;     /* NULL: none */
    const char *error_sentence; /* NULL: none */
    const char *note_code;      /* of its result; NULL: none */
    const char *note_sentence;  /* valid with note_code */
    const char *source_url;     /* fetched instead of uploaded; NULL: uploaded */
};

struct order_result {
    int64_t id;
    int64_t file_id;
    const char *name;
    const char *format; /* "jpeg", "png", "webp" */
};

/* One file of a new order. */
struct order_row_file {
    unsigned position; /* from 1 */
    bool is_original;
    const char *name;
    const char *source_url; /* NULL: it will be uploaded */
    const char *target_url; /* zero copy: where the result is pushed to; NULL otherwise */
    const char *target_key;
    int64_t target_expires_ms;
    const char *target_headers; /* as the worker reads them; NULL: none */
    const int64_t *text_ids;    /* of its watermark texts, in order */
    unsigned text_count;
};

/* What a new order is made of. */
struct order_row {
    int64_t id;
    int64_t account_id;
    enum order_type type;
    const char *name;
    const char *key; /* idempotency key */
    size_t key_length;
    const uint8_t *body_digest; /* 32 bytes */
    enum order_strength strength;
    bool is_zero_copy;
    bool is_started;     /* nothing is to be uploaded: inProgress at once, with its jobs */
    unsigned file_count; /* without originals */
    const struct order_row_file *files;
    unsigned file_rows; /* with them */
    int64_t created_ms;
    int64_t expires_ms;
};

/* What a list is narrowed to; -1 and NULL narrow nothing. */
struct order_filter {
    int64_t account_id;
    int type;
    int status;
    int channel;
    const char *keyword;
    int64_t id_above; /* only ids above this; 0: all */
    int64_t id_up_to; /* only ids up to this; 0: all */
};

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

/* A watermark text and the file that it marks. */
struct order_text {
    int64_t id; /* the same for the same text */
    int64_t file_id;
    const char *text;
    size_t length;
};

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
