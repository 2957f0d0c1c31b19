/*
 * Mails: their texts in each language, and the queue in the database that the worker sends.
 *
 * A mail is stored encrypted, because it may hold a token.  Without a mail server (mail.url) no mail is
 * queued.
 */
#ifndef DOMAIN_PEOPLE_MAIL_H
#define DOMAIN_PEOPLE_MAIL_H

#include <stdbool.h>
#include <stdint.h>

#include "domain/domain.h"
#include "model/user.h"

enum mail_kind {
    MAIL_VERIFY,           /* link */
    MAIL_RESET,            /* link */
    MAIL_INVITATION,       /* link, name of the account */
    MAIL_ADDRESS_KNOWN,    /* link of the sign-in page: a sign-up used this address */
    MAIL_NEW_PLACE,        /* address, user agent */
    MAIL_WEBHOOK_INACTIVE, /* URL of the webhook, reason */
    MAIL_KIND_COUNT
};

struct mail {
    enum mail_kind kind;
    enum user_language language;
    const char *recipient;
    const char *values[2]; /* of the kind, above */
    bool is_known; /* caused by the operator, or from a network of the recipient: others use up no budget of
                      it */
};

bool mail_is_on(const struct config *config);

/* The subject and the text of a mail; in the arena. */
void mail_text(struct arena *arena, const struct mail *mail, const char **subject, const char **text);

/*
 * Queues a mail in the caller's transaction.  No effect without a mail server.  A recipient gets a limited
 * number of mails of a kind in a day. Further mails are dropped; a further invitation is
 * USAGE_LIMIT_EXCEEDED.
 */
enum iw_error mail_queue(const struct domain *domain, const struct mail *mail) IW_MUST_USE;

/* A queued mail, leased for a while. */
struct mail_lease {
    int64_t id;
    int64_t attempt;
    const char *recipient;
    const char *subject;
    const char *text;
};

/* True if a mail is due. */
enum iw_error mail_is_due(const struct domain *domain, bool *is_due) IW_MUST_USE;

/* Leases the next mail that is due. */
enum iw_error mail_next(const struct domain *domain, struct mail_lease *lease, bool *is_found) IW_MUST_USE;

/* Deletes a mail that was sent, or that failed for good. */
enum iw_error mail_done(const struct domain *domain, const struct mail_lease *lease) IW_MUST_USE;

/*
 * Plans the next attempt at a mail that failed, or deletes the mail after the last attempt; *is_last is
 * true if it was deleted.
 */
enum iw_error mail_failed(const struct domain *domain, const struct mail_lease *lease, const char *reason,
                          bool *is_last) IW_MUST_USE;

#endif
