#include "domain/people/mail.h"

#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/log.h"
#include "db/mails.h"
#include "domain/people/mail_text.h"
#include "domain/people/throttle.h"
#include "service/net/smtp.h"
#include "service/secret/secret_box.h"

enum {
    lease_ms = (smtp_timeout_s + 60) * 1000,
    retry_first_ms = 30000,
    attempts_max = 12,
    plain_bytes_max = 7900,
    day_s = 24 * 60 * 60
};

bool mail_is_on(const struct config *config)
{
    return config->mail_url[0] != '\0' && config->mail_from[0] != '\0';
}

/* The associated data of the seal: a mail in another row's place, with another recipient, does not open. */
static const char *about_of(struct arena *arena, const char *recipient)
{
    return arena_printf(arena, "imgward-mail-1:%s", recipient);
}

/*
 * Mails of a kind to one recipient in a day.  Anybody can cause the first four; a person needs one or two of
 * them, and a stranger must not be flooded.
 */
static const struct {
    const char *name;
    int64_t day_max;
} kinds[MAIL_KIND_COUNT] = {
    [MAIL_VERIFY] = {"verify", 5},         [MAIL_RESET] = {"reset", 10},
    [MAIL_INVITATION] = {"invitation", 3}, [MAIL_ADDRESS_KNOWN] = {"address_known", 3},
    [MAIL_NEW_PLACE] = {"new_place", 10},  [MAIL_WEBHOOK_INACTIVE] = {"webhook_inactive", 10},
};

/* Takes one mail of the recipient's budget.  *is_left: there was one. */
static enum iw_error budget_take(const struct domain *domain, const struct mail *mail, bool *is_left)
{
    unsigned wait_s = 0;
    const char *name = arena_printf(domain->context->arena, "mail:%s:%s%s", kinds[mail->kind].name,
                                    mail->is_known ? "known:" : "", mail->recipient);
    enum iw_error error = throttle_spend(domain, name, kinds[mail->kind].day_max, day_s, &wait_s);
    *is_left = wait_s == 0;
    if (error != IW_OK || *is_left)
        return error;
    log_event(LOG_INFO, domain->context, "mail_dropped", LOG_TEXT("kind", kinds[mail->kind].name),
              LOG_TEXT("reason", "recipient_limit"));
    if (mail->kind != MAIL_INVITATION)
        return IW_OK;
    domain->context->retry_after_s = wait_s;
    domain->context->reason = "mails_recipient";
    return context_fail(domain->context, IW_USAGE_LIMIT_EXCEEDED,
                        "This address got %lld invitations today; try again in %u s.",
                        (long long)kinds[mail->kind].day_max, wait_s);
}

enum iw_error mail_queue(const struct domain *domain, const struct mail *mail)
{
    const char *subject, *text;
    struct arena *arena = domain->context->arena;
    bool is_left = false;
    if (!mail_is_on(domain->config))
        return IW_OK;
    enum iw_error error = budget_take(domain, mail, &is_left);
    if (error != IW_OK || !is_left)
        return error;
    mail_text(arena, mail, &subject, &text);
    /* Subject, line feed, text. */
    char *plain = arena_printf(arena, "%s\n%s", subject, text);
    size_t size = strnlen(plain, plain_bytes_max);
    uint8_t *sealed = arena_alloc(arena, size + crypto_seal_bytes);
    crypto_seal(domain->secret_box->key, about_of(arena, mail->recipient), plain, size, sealed);
    return mails_insert(&domain->db, mail->recipient, sealed, size + crypto_seal_bytes, clock_now_ms());
}

enum iw_error mail_is_due(const struct domain *domain, bool *is_due)
{
    return mails_are_due(&domain->db, clock_now_ms(), is_due);
}

/* Leases again after a seal that does not open: that mail is deleted. */
enum iw_error mail_next(const struct domain *domain, struct mail_lease *lease)
{
    struct mails_row row;
    struct arena *arena = domain->context->arena;
    for (;;) {
        int64_t now_ms = clock_now_ms();
        enum iw_error error = mails_lease(&domain->db, now_ms, now_ms + lease_ms, &row);
        if (error != IW_OK)
            return error;
        *lease = (struct mail_lease){.id = row.id, .attempt = row.attempt, .recipient = row.recipient};
        size_t size = row.sealed_size > crypto_seal_bytes ? row.sealed_size - crypto_seal_bytes : 0;
        char *plain = arena_alloc(arena, size + 1);
        if (size > 0 && crypto_open(domain->secret_box->key, about_of(arena, row.recipient), row.sealed,
                                    row.sealed_size, plain)) {
            size_t length = strcspn(plain, "\n");
            lease->subject = arena_text_n(arena, plain, length);
            lease->text = plain + length + (plain[length] == '\n');
            return IW_OK;
        }
        error = mail_done(domain, lease);
        if (error != IW_OK)
            return error;
    }
}

enum iw_error mail_done(const struct domain *domain, const struct mail_lease *lease)
{
    return mails_delete(&domain->db, lease->id, lease->attempt);
}

enum iw_error mail_failed(const struct domain *domain, const struct mail_lease *lease, const char *reason,
                          bool *is_last)
{
    *is_last = lease->attempt >= attempts_max;
    if (*is_last)
        return mail_done(domain, lease);
    int64_t wait_ms = (int64_t)retry_first_ms << (lease->attempt < 10 ? lease->attempt - 1 : 9);
    const struct mails_row row = {.id = lease->id, .attempt = lease->attempt};
    return mails_postpone(&domain->db, &row, clock_now_ms() + wait_ms, reason);
}
