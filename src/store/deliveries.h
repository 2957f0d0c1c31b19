/*
 * Deliveries on their way: leased, sent, recorded.
 *
 * A delivery is due by the program's clock (tests own it) and leased for a time
 * counted by the database's, so that the clocks of workers do not matter.
 * Every lease counts the attempt up, and whatever a worker writes afterwards
 * names its attempt: a worker that lost its lease changes nothing any more.
 * How a delivery stands is decided by model/delivery.h.
 */
#ifndef STORE_DELIVERIES_H
#define STORE_DELIVERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <imgward/context.h>

#include "model/delivery.h"
#include "store/db.h"

/* Most deliveries of one webhook that are under way at once, over all workers. */
enum { deliveries_receiver_max = 3 };

/* Most secrets that sign at once: the newest, when a client rotates more often in a day. */
enum { deliveries_secrets_max = 5 };

/* A receiver with the deliveries leased for it; texts and bytes are the arena's. */
struct deliveries_lease {
    int64_t webhook_id;
    int64_t account_id;
    const char *url;
    struct delivery_secret secrets[deliveries_secrets_max]; /* all that sign, the newest first */
    unsigned secret_count;
    struct delivery deliveries[deliveries_receiver_max];
    unsigned count;
};

/* A webhook that has something due and room for it. */
struct deliveries_receiver {
    int64_t webhook_id;
    int64_t account_id;
    bool is_failing; /* its last try failed */
};

/*
 * Whom something can be sent to now, at most account_most of one account and
 * most in all; the array is the arena's.  Healthy receivers come before failing
 * ones, then accounts take turns, then whoever has waited longest.
 */
enum iw_error deliveries_due(const struct store *store, int64_t now_ms, unsigned account_most, unsigned most,
                             struct deliveries_receiver **receivers, unsigned *count) IW_MUST_USE;

/*
 * Leases up to most due deliveries of one webhook; count is 0 when another
 * worker is just at it.  Those of a webhook that is not active are cancelled.
 */
enum iw_error deliveries_lease(const struct store *store, int64_t webhook_id, const char *owner,
                               int64_t lease_s, int64_t now_ms, unsigned most,
                               struct deliveries_lease *lease) IW_MUST_USE;

/*
 * Moves a leased delivery on by an event of its worker, if the attempt is still
 * the one that holds the lease; NOT_FOUND with the reason "fenced" otherwise.
 * In the same transaction the webhook's row notes the success, or the failure,
 * or is deactivated: by an answer 410, or after five days without success.
 * status is the answer's or 0; reason a short constant word or NULL.
 * inactive_reason tells what it was deactivated for, or NULL.
 */
enum iw_error deliveries_record(const struct store *store, int64_t webhook_id,
                                const struct delivery *delivery, const struct delivery_verdict *verdict,
                                int64_t status, const char *reason, int64_t now_ms,
                                const char **inactive_reason) IW_MUST_USE;

/* Hands a leased delivery back untried, for some time later; a lost lease is fine. */
enum iw_error deliveries_postpone(const struct store *store, const struct delivery *delivery,
                                  const char *reason, int64_t until_ms) IW_MUST_USE;

/* Cancels what a webhook that was deleted or deactivated still has to be sent. */
enum iw_error deliveries_cancel(const struct store *store, int64_t webhook_id, const char *reason,
                                int64_t now_ms) IW_MUST_USE;

/*
 * Puts a delivery at the beginning of its schedule, due now.  NOT_FOUND when it
 * is being sent just now, or is not there.
 */
enum iw_error deliveries_repeat(const struct store *store, int64_t webhook_id, int64_t event_id,
                                int64_t now_ms) IW_MUST_USE;

/* Takes back what was leased to an owner who is dead; count gets how many. */
enum iw_error deliveries_release_owner(const struct store *store, const char *owner,
                                       int64_t *count) IW_MUST_USE;

/* Takes back what nobody recorded in time, some at a time; count gets how many. */
enum iw_error deliveries_release_silent(const struct store *store, int64_t *count) IW_MUST_USE;

/* Makes due what waits for its first try, or longer than the schedule lets it: the clock was set back since.
 */
enum iw_error deliveries_hasten_stranded(const struct store *store, int64_t now_ms,
                                         int64_t *count) IW_MUST_USE;

/* The owners of leases whose names begin with a prefix; the array is the arena's. */
enum iw_error deliveries_owners(const struct store *store, const char *prefix, const char ***owners,
                                unsigned *count) IW_MUST_USE;

/* What an event tells of, as it stands now.  NOT_FOUND when the event is gone. */
enum iw_error deliveries_subject(const struct store *store, int64_t event_id,
                                 struct delivery_subject *subject) IW_MUST_USE;

/*
 * Forgets deliveries that ended, events without deliveries and deleted webhooks
 * without deliveries, all from before a time, some at a time; count gets how many rows.
 */
enum iw_error deliveries_forget(const struct store *store, int64_t before_ms, int64_t *count) IW_MUST_USE;

#endif
