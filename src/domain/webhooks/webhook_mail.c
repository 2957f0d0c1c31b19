#include "domain/webhooks/webhook_mail.h"

#include "db/users.h"
#include "db/webhooks.h"
#include "domain/people/mail.h"

enum iw_error webhook_deactivated_mail(const struct domain *domain, int64_t account_id, int64_t id,
                                       const char *reason)
{
    struct user *users = NULL;
    struct webhook webhook;
    size_t count = 0;
    if (!mail_is_on(domain->config))
        return IW_OK;
    enum iw_error error = webhooks_find(&domain->db, account_id, id, &webhook);
    if (error == IW_OK)
        error = users_owners(&domain->db, account_id, &users, &count);
    for (size_t i = 0; error == IW_OK && i < count; i++) {
        const struct mail mail = {.kind = MAIL_WEBHOOK_INACTIVE,
                                  .language = users[i].language,
                                  .recipient = users[i].email,
                                  .values = {webhook.url, reason}};
        error = mail_queue(domain, &mail);
    }
    return error;
}
