/*
 * Orders: creating, confirming, looking at them, handing out their URLs.
 *
 * The rules of contract sections 3 and 6.  Knows neither HTTP nor JSON; what a
 * client sent comes in as structs, checked (src/api), and what it is to be told
 * goes out as structs.
 */
#ifndef DOMAIN_ORDER_H
#define DOMAIN_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <imgward/order.h>

#include "domain/domain.h"
#include "service/admission.h"
#include "store/orders.h"

enum {
    order_files_max = 100,
    order_texts_max = 10, /* a file */
    order_text_code_points_max = 1000,
    order_name_code_points_max = 64,
    order_key_code_points_max = 255
};

/* A watermark text that a client wants; its bytes are kept as they are. */
struct order_request_text {
    const char *text;
    size_t length;
};

/* A file that a client wants worked on. */
struct order_request_file {
    const char *name;
    const char *source_url; /* NULL: it will be uploaded */
    const char *target_url; /* zero copy alone, with the next three */
    const char *target_key;
    int64_t target_expires_ms;
    const char *target_headers;             /* opaque here, for store and worker; NULL: none */
    const struct order_request_text *texts; /* embedding alone */
    unsigned text_count;
};

/* What a client wants.  The texts are borrowed until the order is created. */
struct order_request {
    enum order_type type;
    const char *name; /* NULL: one is made from type and day */
    const char *key;  /* idempotency key */
    size_t key_length;
    uint8_t body_digest[32];
    enum order_strength strength;
    bool is_zero_copy;
    struct order_request_file *files;
    unsigned file_count;
    const char *original_name; /* extraction: of the unmarked original; NULL: there is none */
};

/* An order as a client is shown it. */
struct order_view {
    struct order order;
    struct order_file *files; /* order.file_count of them, the originals behind; order.file_rows in all */
    bool is_replay;           /* it was there before */
};

/* Adds a detail for each output target whose time is over. */
void order_targets_check(struct context *context, const struct order_request *wanted);

/*
 * Creates the order, or finds the one that the same key made before (is_replay).
 * While another creation with the key holds the lock, waits for it, at most as
 * long as a lock lives.  IDEMPOTENCY_KEY_REUSED when the body differs;
 * VALIDATION_FAILED when a target's time is over and the order is not there
 * already.  A failure opens the lock if it is ours.
 */
enum iw_error order_create(struct domain *domain, struct admission *admission,
                           const struct order_request *wanted, struct order_view *view) IW_MUST_USE;

/* ORDER_NOT_FOUND for another account's order as well. */
enum iw_error order_find(struct domain *domain, int64_t account_id, int64_t id,
                         struct order_view *view) IW_MUST_USE;

/*
 * Starts an order whose files are all there, in one transaction with its jobs,
 * and rings the bell.  Confirming what has started starts nothing and answers the
 * status.  ORDER_NOT_FOUND; ORDER_NOT_PENDING for a failed or expired order;
 * ORDER_FILE_NOT_UPLOADED with a detail for each missing file.
 */
enum iw_error order_confirm(struct domain *domain, int64_t account_id, int64_t id,
                            enum order_status *status) IW_MUST_USE;

/* A pending order, for fresh upload URLs.  ORDER_NOT_FOUND, ORDER_NOT_PENDING. */
enum iw_error order_refresh(struct domain *domain, int64_t account_id, int64_t id,
                            struct order_view *view) IW_MUST_USE;

/* The results of a complete order, and the one file that a client downloads. */
struct order_download {
    struct order order;
    struct order_result *results;
    size_t result_count;
    const char *url;    /* presigned: the picture of a single result, the archive of several; NULL: no file */
    const char *name;   /* the file's; valid with url, as the next */
    const char *format; /* "zip" for the archive */
};

/* Finds the results of an order and decides which file is downloaded.  Checks nothing of the order. */
enum iw_error order_download_make(struct domain *domain, const struct order *order,
                                  struct order_download *download) IW_MUST_USE;

/*
 * The same for a client's request, with the checks in the contract's order: ORDER_NOT_FOUND,
 * ORDER_TYPE_CANT_DOWNLOAD, ORDER_EXPIRED, ORDER_NOT_COMPLETED, PROCESSED_FILE_NOT_FOUND.
 */
enum iw_error order_download(struct domain *domain, int64_t account_id, int64_t id,
                             struct order_download *download) IW_MUST_USE;

/* The archive's name: that of the order, without what no file may be called. */
const char *order_archive_name(struct arena *arena, const char *order_name);

/*
 * Starts a pending order whose row is locked, inside that transaction: its status
 * and its jobs.  ORDER_NOT_PENDING when it is not pending.
 */
enum iw_error order_start(const struct store *store, const struct order *order,
                          enum order_status *status) IW_MUST_USE;

/* The texts of an embedding order; none for any other. */
enum iw_error order_texts(struct domain *domain, const struct order *order, struct order_text **texts,
                          size_t *count) IW_MUST_USE;

/* True when a file still waits for its upload. */
bool order_file_is_missing(const struct order_file *file);

/* Why a file failed. */
struct order_failure {
    const char *code; /* "IMAGE_CORRUPT" */
    const char *sentence;
};

/* Why a file failed, by itself or with its order; false for a file that did not. */
bool order_file_failure(const struct order *order, const struct order_file *file,
                        struct order_failure *failure);

/*
 * "fileName: CODE: sentence" of each file that failed, one a line, joined by
 * newlines; NULL when none did.  A name that is in the order twice is followed by
 * "(position N, fileId ID)".  The arena's.
 */
const char *order_errors(struct arena *arena, const struct order_view *view);

/* The presigned URLs.  "" never; all are the arena's. */
const char *order_upload_url(const struct domain *domain, struct arena *arena, int64_t order_id,
                             const struct order_file *file, int64_t *expires_ms);
const char *order_upload_key(struct arena *arena, int64_t order_id, const struct order_file *file);
const char *order_result_url(const struct domain *domain, struct arena *arena, int64_t order_id,
                             int64_t result_id);
const char *order_archive_url(const struct domain *domain, struct arena *arena, int64_t order_id);

/* NULL when the order has no thumbnail (any more). */
const char *order_thumbnail_url(const struct domain *domain, struct arena *arena, const struct order *order);

/* One page of what a filter lets through, newest first; the array is the arena's. */
enum iw_error order_page(struct domain *domain, const struct order_filter *filter, int64_t limit,
                         int64_t offset, struct order **orders, size_t *count) IW_MUST_USE;

/* All of it, one by one, as orders_stream says. */
enum iw_error order_stream(struct domain *domain, const struct order_filter *filter,
                           bool (*take)(void *user, const struct order *order), void *user) IW_MUST_USE;

/* How many orders a filter lets through; quick for all orders of a large account. */
enum iw_error order_count(struct domain *domain, const struct order_filter *filter,
                          int64_t *count) IW_MUST_USE;

#endif
