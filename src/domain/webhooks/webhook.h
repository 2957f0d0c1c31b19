/*
 * Webhooks of an account: rules for their fields, and create, find, change,
 * remove, rotate (contract 7).  Events are in webhook_event.h, secrets and
 * signatures in webhook_secret.h.
 *
 * The webhook of another account is WEBHOOK_NOT_FOUND, like one that does not
 * exist.
 */
#ifndef DOMAIN_WEBHOOKS_WEBHOOK_H
#define DOMAIN_WEBHOOKS_WEBHOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/context.h"
#include "db/webhooks.h"
#include "domain/accounts/quota.h"
#include "domain/domain.h"
#include "model/account.h"
#include "model/webhook.h"

enum {
    webhook_name_length_max = 100,
    webhook_overlap_ms = 24 * 3600 * 1000 /* the previous secret also signs for so long after a rotation */
};

/* The fields that a client may set; NULL and -1: absent. */
struct webhook_fields {
    const char *name;
    size_t name_length;
    const char *url;
    size_t url_length;
    int is_active;
};

/* Adds a detail for each invalid field; with is_new the URL is required. */
void webhook_fields_check(struct context *context, const struct config *config,
                          const struct webhook_fields *fields, bool is_new);

/*
 * Creates a webhook and its secret, which cannot be read again.  USAGE_LIMIT_EXCEEDED, with the refusal, if
 * the account has all webhooks that the quota allows. VALIDATION_FAILED also if another webhook has this
 * URL.
 */
enum iw_error webhook_create(struct domain *domain, const struct account *account,
                             const struct webhook_fields *fields, struct webhook *webhook,
                             const char **secret, struct quota_state *refusal) IW_MUST_USE;

enum iw_error webhook_find(const struct domain *domain, int64_t account_id, int64_t id,
                           struct webhook *webhook) IW_MUST_USE;

/* The same inside the caller's transaction; locks the row. */
enum iw_error webhook_lock(const struct domain *domain, int64_t account_id, int64_t id,
                           struct webhook *webhook) IW_MUST_USE;

/* One page of webhooks; the arena owns it. */
struct webhook_rows {
    struct webhook *items;
    size_t count;
    int64_t total; /* on all pages */
};

/* One page of the account's webhooks, newest first.  keyword NULL means all. */
enum iw_error webhook_list(struct domain *domain, int64_t account_id, const char *keyword,
                           const struct webhooks_page *page, struct webhook_rows *rows) IW_MUST_USE;

/* The time until which the previous secret also signs; 0 if only the current secret signs. */
int64_t webhook_overlap_end_ms(const struct webhook *webhook);

/*
 * Changes the given fields.  VALIDATION_FAILED if another webhook has the new URL.  Deactivation cancels
 * the pending deliveries.
 */
enum iw_error webhook_change(struct domain *domain, int64_t account_id, int64_t id,
                             const struct webhook_fields *fields, struct webhook *webhook) IW_MUST_USE;

enum iw_error webhook_remove(struct domain *domain, int64_t account_id, int64_t id) IW_MUST_USE;

/* Creates a new secret. A replaced secret also signs for 24 hours after the replacement. */
enum iw_error webhook_rotate(struct domain *domain, int64_t account_id, int64_t id, struct webhook *webhook,
                             const char **secret) IW_MUST_USE;

/*
 * Mails the owners of an account whose webhook was deactivated.  reason: "receiver_gone" or
 * "receiver_failing".  No effect without a mail server.
 */
enum iw_error webhook_deactivated_mail(const struct domain *domain, int64_t account_id, int64_t id,
                                       const char *reason) IW_MUST_USE;

#endif
