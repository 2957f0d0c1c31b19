/* The table request_log: requests with an API key, for the developers of their account. */
#ifndef DB_REQUEST_LOG_H
#define DB_REQUEST_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/context.h"
#include "db/query.h"

struct request_log_row {
    int64_t account_id;
    int64_t key_id;
    const char *request_id;
    const char *method;
    const char *path;
    unsigned status;
    const char *code; /* "" means no error */
    int64_t ms;
    int64_t at_ms;
    const char *request_body;  /* NULL if no bodies are kept, otherwise the starts of both (base/redact.h) */
    const char *response_body; /* in UTF-8 */
};

/* Inserts rows and their bodies in a few statements. */
enum iw_error request_log_insert(const struct db *db, const struct request_log_row *rows,
                                 unsigned count) IW_MUST_USE;

/* The conditions of a list.  NULL and 0 means no condition. */
struct request_log_filter {
    int64_t account_id;
    int64_t since_ms;
    const char *method;
    int64_t status_from; /* a range */
    int64_t status_to;
    const char *code;
    int64_t key_id;
    const char *request_id;
    int64_t before_id; /* only older rows */
    int64_t limit;
    int64_t offset;
};

/* A list reads this many rows, however many match; that is a third of the 50 ms that a list may take. */
enum { request_log_window = 5000 };

struct request_log_rows {
    struct request_log_row *items; /* in the arena */
    size_t count;
    int64_t total;    /* of the rows that were read */
    int64_t older_id; /* before_id of the list of older rows; 0 if there are none */
};

/* One page, newest first. */
enum iw_error request_log_page(const struct db *db, const struct request_log_filter *filter,
                               struct request_log_rows *rows) IW_MUST_USE;

/* Reads the bodies of a request. *is_found is false if none are kept. */
enum iw_error request_log_bodies(const struct db *db, int64_t account_id, const char *request_id,
                                 struct request_log_row *row, bool *is_found) IW_MUST_USE;

/* Deletes some older rows and older bodies, those of deliveries too, and sets *count to their number. */
enum iw_error request_log_forget(const struct db *db, int64_t before_ms, int64_t bodies_before_ms,
                                 int64_t *count) IW_MUST_USE;

#endif
