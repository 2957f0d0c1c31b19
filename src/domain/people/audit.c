#include "domain/people/audit.h"

#include <stdarg.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "db/audit.h"
#include "domain/people/throttle.h"

/* A person makes some dozen changes a day, and a script that renews keys makes some hundred. */
enum { details_bytes_max = 900, changes_day_max = 2000, day_s = 24 * 60 * 60 };

struct audit_actor audit_actor_of(const struct user *user, const struct audit_client *client)
{
    return (struct audit_actor){user->account.id, user->id, user->name, user->email, client->address};
}

enum iw_error audit_network_known(const struct domain *domain, int64_t user_id,
                                  const struct audit_client *client, bool *is_known)
{
    struct arena *arena = domain->context->arena;
    return audit_has(&domain->db, user_id, "signedIn",
                     arena_printf(arena, "network\t%s\n", throttle_network(arena, client->address)),
                     is_known);
}

enum iw_error audit_change_admit(struct domain *domain, int64_t user_id)
{
    unsigned wait_s;
    const char *name = arena_printf(domain->context->arena, "changes:%lld", (long long)user_id);
    enum iw_error error = throttle_spend(domain, name, changes_day_max, day_s, &wait_s);
    if (error != IW_OK || wait_s == 0)
        return error;
    domain->context->retry_after_s = wait_s;
    domain->context->reason = "changes";
    return context_fail(domain->context, IW_USAGE_LIMIT_EXCEEDED,
                        "You made %d changes today; you can make more in %u s.", changes_day_max, wait_s);
}

enum iw_error audit_add(const struct domain *domain, const struct audit_actor *actor, const char *event, ...)
{
    struct text details;
    va_list pairs;
    text_init(&details, domain->context->arena);
    va_start(pairs, event);
    for (const char *name; (name = va_arg(pairs, const char *)) != NULL;) {
        const char *value = va_arg(pairs, const char *);
        if (value == NULL || details.length + strlen(name) + strlen(value) > details_bytes_max)
            continue;
        text_printf(&details, "%s\t", name);
        /* Writes one line: names and addresses have no control characters, other values lose them. */
        for (; *value != '\0'; value++)
            text_add(&details, *value == '\t' || *value == '\n' ? " " : value, 1);
        text_add_string(&details, "\n");
    }
    va_end(pairs);
    const struct audit_event row = {.at_ms = clock_now_ms(),
                                    .event = event,
                                    .user_id = actor->user_id,
                                    .user_name = actor->user_name,
                                    .user_email = actor->user_email,
                                    .address = actor->address != NULL ? actor->address : "",
                                    .details = details.data};
    log_event(LOG_INFO, domain->context, "audit", LOG_TEXT("what", event),
              LOG_NUMBER("user_id", actor->user_id), LOG_TEXT("address", row.address));
    return audit_insert(&domain->db, actor->account_id, &row);
}

enum iw_error audit_change_note(struct domain *domain, const struct user *user,
                                const struct audit_client *client, const char *event, const char *id)
{
    const struct audit_actor actor = audit_actor_of(user, client);
    return audit_add(domain, &actor, event, "id", id, NULL);
}
