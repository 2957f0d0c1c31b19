/*
 * The table webhook_deliveries: due, leased, recorded.  Leases are in leases.h, states in model/delivery.h.
 *
 * The program's clock decides which deliveries are due (tests set it); the database's clock limits leases.
 * A worker records with the attempt as fencing token: after a lost lease it changes nothing.
 */
#ifndef DB_DELIVERIES_H
#define DB_DELIVERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/context.h"
#include "db/query.h"
#include "model/delivery.h"

/* The most deliveries of one webhook that all workers together send at a time. */
enum { deliveries_receiver_max = 3 };

/* The most secrets that sign at a time; these are the newest when a client rotates more often in a day. */
enum { deliveries_secrets_max = 5 };

/* A webhook with a delivery that is due, and below deliveries_receiver_max. */
struct deliveries_receiver {
    int64_t webhook_id;
    int64_t account_id;
    const char *url;
    bool is_failing; /* its last attempt failed */
};

/*
 * The webhooks with due deliveries, at most account_most per account and most in all; the array is in
 * the arena. Healthy receivers come before failing receivers; then accounts take turns; then the longest wait
 * decides.
 */
enum iw_error deliveries_due(const struct db *db, int64_t now_ms, unsigned account_most, unsigned most,
                             struct deliveries_receiver **receivers, unsigned *count) IW_MUST_USE;

struct deliveries_request {
    int64_t webhook_id;
    const char *owner;
    int64_t lease_s;
    int64_t now_ms;
    unsigned most;
};

/* A receiver with its leased deliveries; texts and bytes are in the arena. */
struct deliveries_lease {
    int64_t webhook_id;
    int64_t account_id;
    const char *url;
    struct delivery_secret secrets[deliveries_secrets_max]; /* all that sign, the newest first */
    unsigned secret_count;
    struct delivery deliveries[deliveries_receiver_max];
    unsigned count;
};

/*
 * Leases due deliveries of one webhook; count is 0 while another worker leases from it.  Cancels the
 * deliveries of an inactive webhook.
 */
enum iw_error deliveries_lease(const struct db *db, const struct deliveries_request *request,
                               struct deliveries_lease *lease) IW_MUST_USE;

/* What the last attempt sent and received: starts without secrets (base/redact.h). */
struct deliveries_exchange {
    const char *headers; /* one a line */
    const char *payload;
    const char *answer; /* "": none */
};

/* The result of one attempt. */
struct deliveries_attempt {
    int64_t webhook_id;
    const struct delivery *delivery;
    const struct delivery_verdict *verdict;
    int64_t status;     /* HTTP; 0 means no answer */
    const char *reason; /* a short constant word, or NULL */
    int64_t now_ms;
    const struct deliveries_exchange *exchange; /* replaces an earlier one; NULL if none is kept */
};

/*
 * Records an attempt.  NOT_FOUND with the reason "fenced" if another attempt holds the lease.  The same
 * transaction updates the webhook: a success, a failure, or its deactivation after an answer 410 or five days
 * without success.  inactive_reason is the reason of the deactivation, or NULL.
 */
enum iw_error deliveries_record(const struct db *db, const struct deliveries_attempt *attempt,
                                const char **inactive_reason) IW_MUST_USE;

/* Reads the exchange of an event's delivery to a webhook.  *is_found is false if none is kept. */
enum iw_error deliveries_exchange_find(const struct db *db, int64_t webhook_id, int64_t event_id,
                                       struct deliveries_exchange *exchange, bool *is_found) IW_MUST_USE;

/* Returns a leased delivery that was not sent, due at a later time. A lost lease is not an error. */
enum iw_error deliveries_postpone(const struct db *db, const struct delivery *delivery, const char *reason,
                                  int64_t until_ms) IW_MUST_USE;

/*
 * Writes a delivery of the event to every active webhook of the account, or only to webhook_id if it is not
 * 0.
 */
enum iw_error deliveries_insert(const struct db *db, int64_t event_id, int64_t account_id, int64_t webhook_id,
                                int64_t now_ms) IW_MUST_USE;

/* Cancels the open deliveries of a webhook that was deleted or deactivated. */
enum iw_error deliveries_cancel(const struct db *db, int64_t webhook_id, const char *reason,
                                int64_t now_ms) IW_MUST_USE;

/*
 * Restarts the schedule of a delivery, due now. *is_repeated is false if there is no such delivery or it is
 * being sent.
 */
enum iw_error deliveries_repeat(const struct db *db, int64_t webhook_id, int64_t event_id, int64_t now_ms,
                                bool *is_repeated) IW_MUST_USE;

/* Deletes ended deliveries from before a time, a limited number per call, and sets count to their number. */
enum iw_error deliveries_forget(const struct db *db, int64_t before_ms, int64_t *count) IW_MUST_USE;

/* ---- For operators and monitoring; read only ---- */

/* Deliveries by status; the array is in the arena. */
enum iw_error deliveries_status_counts(const struct db *db, struct query_count **counts,
                                       unsigned *count) IW_MUST_USE;

/* The events whose delivery to a webhook failed finally, oldest first. */
enum iw_error deliveries_failed(const struct db *db, int64_t webhook_id,
                                struct query_ids *event_ids) IW_MUST_USE;

#endif
