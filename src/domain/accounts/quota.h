/*
 * Quotas: what an account may have, store and create, by plan and by the account's own limits.
 *
 * src/db counts in the transaction of each creation (db/quotas.h).  This module has the limits, the
 * refusals and the reconciliation.
 */
#ifndef DOMAIN_ACCOUNTS_QUOTA_H
#define DOMAIN_ACCOUNTS_QUOTA_H

#include "db/quotas.h"
#include "domain/domain.h"
#include "model/account.h"

/* The limits of a plan; the account's own limits replace them. */
struct quota_numbers quota_limits(const struct config *config, const char *plan,
                                  const struct quota_numbers *own);

/*
 * The number of creations to claim ahead if the account has made so many requests this minute: at most a
 * sixteenth of a limit.
 */
int64_t quota_ahead(const struct quota_claim *claim, unsigned requests);

/* VALIDATION_FAILED with a detail for each limit that the creation would exceed in an unused account. */
enum iw_error quota_alone_check(struct context *context, const struct quota_claim *claim) IW_MUST_USE;

/* A limit and its use. */
struct quota_state {
    enum quota quota;
    int64_t limit;
    int64_t used;
    unsigned frees_s; /* after a refusal, the seconds until some of the limit may be free; at least 1 */
};

/* Finds the limit that is used most, by account->used. Returns false if no limit is used to half. */
bool quota_nearest(const struct config *config, const struct account *account, struct quota_state *nearest);

/*
 * After a claim was refused: USAGE_LIMIT_EXCEEDED with a sentence, retry_after_s and the refusal. IW_OK if
 * the claim should be tried again: no limit is exceeded now, or the row of the account was missing.
 */
enum iw_error quota_refuse(struct domain *domain, const struct quota_claim *claim,
                           struct quota_state *refusal) IW_MUST_USE;

/* The account's use without the reserve; promised bytes in bytes. Creates a missing row. */
enum iw_error quota_used(const struct domain *domain, int64_t account_id,
                         struct quota_numbers *used) IW_MUST_USE;

/* In a transaction that adds a webhook: locks the account's usage. Errors and refusal as quota_refuse. */
enum iw_error quota_webhook_claim(struct domain *domain, const struct account *account,
                                  struct quota_state *refusal) IW_MUST_USE;

/* The daily usage, that is, the results of a day. */
enum { quota_days = 7 };

struct quota_day {
    char date[11]; /* YYYY-MM-DD, UTC */
    int64_t count;
};

/* The seven days up to that of last_ms, oldest first. */
enum iw_error quota_recent(struct domain *domain, int64_t account_id, int64_t last_ms,
                           struct quota_day days[quota_days]) IW_MUST_USE;

/*
 * Reconciles the counters of one account with its rows, each account at most once a minute.  Logs
 * usage_high once if the use of a limit reaches 80 per cent. *is_done is true if an account was due.
 */
enum iw_error quota_reconcile(const struct domain *domain, bool *is_done) IW_MUST_USE;

#endif
