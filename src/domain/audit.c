#include "domain/audit.h"

#include <stdarg.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "domain/throttle.h"
#include "store/audit.h"

enum { details_bytes_max = 900 };

struct audit_actor audit_actor_of(const struct user *user, const struct audit_place *place)
{
    return (struct audit_actor){user->account.id, user->id, user->name, place->address};
}

enum iw_error audit_place_known(const struct store *store, int64_t user_id, const struct audit_place *place,
                                bool *is_known)
{
    struct arena *arena = store->context->arena;
    return audit_has(store, user_id, "signedIn",
                     arena_printf(arena, "network\t%s\n", throttle_network(arena, place->address)), is_known);
}

/* A value in one line.  Names and addresses have no control characters; other values lose them. */
static void value_add(struct text *details, const char *value)
{
    for (; *value != '\0'; value++)
        text_add(details, *value == '\t' || *value == '\n' ? " " : value, 1);
}

enum iw_error audit_add(const struct store *store, const struct audit_actor *actor, const char *event, ...)
{
    struct text details;
    va_list pairs;
    text_init(&details, store->context->arena);
    va_start(pairs, event);
    for (const char *name; (name = va_arg(pairs, const char *)) != NULL;) {
        const char *value = va_arg(pairs, const char *);
        if (value == NULL || details.length + strlen(name) + strlen(value) > details_bytes_max)
            continue;
        text_printf(&details, "%s\t", name);
        value_add(&details, value);
        text_add_string(&details, "\n");
    }
    va_end(pairs);
    const struct audit_event row = {.at_ms = clock_now_ms(),
                                    .event = event,
                                    .user_id = actor->user_id,
                                    .user_name = actor->user_name,
                                    .address = actor->address != NULL ? actor->address : "",
                                    .details = details.data};
    log_event(LOG_INFO, store->context, "audit", LOG_TEXT("what", event),
              LOG_NUMBER("user_id", actor->user_id), LOG_TEXT("address", row.address));
    return audit_insert(store, actor->account_id, &row);
}
