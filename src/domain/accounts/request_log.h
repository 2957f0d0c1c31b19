/*
 * The request log of the last seven days, for an account's developers.
 *
 * A pool process collects the rows of its requests.  It writes them after an answer, at most once a second.
 * Rows that cannot be written are dropped, and so are rows above the limits below: the log is no
 * accounting.
 */
#ifndef DOMAIN_ACCOUNTS_REQUEST_LOG_H
#define DOMAIN_ACCOUNTS_REQUEST_LOG_H

#include "db/request_log.h"
#include "domain/domain.h"

enum {
    /*
     * Rows per second and process, of all accounts and of a single account; further rows are dropped and
     * counted in the log.
     */
    request_log_rows_max = 500,
    request_log_account_max = 100,
    /*
     * Bodies per second, process and account.  A kept pair costs some 0.06 ms of CPU, a fifth of a creation,
     * so that a flood must not keep all.  A client that sends one request after another reaches one process.
     */
    request_log_bodies_max = 8,
    request_log_days = 7
};

struct request_log;

/* The bodies of a request and its answer, as received and sent.  Bytes; borrowed. */
struct request_log_pair {
    const char *request;
    size_t request_bytes;
    const char *response;
    size_t response_bytes;
};

/* The buffer of one process.  The caller owns it. */
struct request_log *request_log_new(void);
void request_log_free(struct request_log *log);

/*
 * Adds a row; copies its texts.  Of the bodies it copies the starts, without secrets; bodies may be NULL. log
 * may be NULL.
 */
void request_log_add(struct request_log *log, const struct request_log_row *row,
                     const struct request_log_pair *bodies);

/* Writes the rows that are due, or with is_all all of them. */
void request_log_flush(struct request_log *log, struct domain *domain, bool is_all);

/* Milliseconds until the rows are due; -1 if there are none. */
int request_log_wait_ms(const struct request_log *log);

enum iw_error request_log_list(struct domain *domain, const struct request_log_filter *filter,
                               struct request_log_rows *rows) IW_MUST_USE;

/* Reads the bodies of a request into *row.  RESOURCE_NOT_FOUND if none are kept. */
enum iw_error request_log_find_bodies(struct domain *domain, int64_t account_id, const char *request_id,
                                      struct request_log_row *row) IW_MUST_USE;

/*
 * Deletes some rows of more than seven days, or beyond the bounds (db/bounds.h); *count: how many. Bodies of
 * deliveries count from the event. With console.keep_bodies off, deletes bodies of any age.
 */
enum iw_error request_log_forget_old(struct domain *domain, int64_t *count) IW_MUST_USE;

#endif
