#include "model/account.h"

#include <string.h>

#include "base/text.h"
#include "model/word.h"

static const char *const status_names[ACCOUNT_STATUS_COUNT] = {"active", "suspended"};

const char *account_status_name(enum account_status status)
{
    return status_names[status];
}

bool account_status_read(const char *name, enum account_status *status)
{
    int found = word_find(name, status_names, ACCOUNT_STATUS_COUNT);
    if (found >= 0)
        *status = (enum account_status)found;
    return found >= 0;
}

static const char *const scope_names[key_scope_count] = {"read", "antiAi", "watermarkEmbed",
                                                         "watermarkExtract", "webhooks"};

enum key_scope key_scope_of(enum order_type type)
{
    return (enum key_scope)(KEY_SCOPE_ANTI_AI << (int)type);
}

const char *key_scope_name(unsigned index)
{
    return scope_names[index];
}

const char *key_scopes_text(struct arena *arena, unsigned scopes, const char *separator)
{
    struct text text;
    text_init(&text, arena);
    for (unsigned i = 0; i < key_scope_count; i++)
        if ((scopes & 1u << i) != 0)
            text_printf(&text, "%s%s", text.length > 0 ? separator : "", scope_names[i]);
    return text.length > 0 ? text.data : NULL;
}

bool key_scopes_read(const char *names, unsigned *scopes)
{
    for (const char *name = names; name != NULL;
         name = strchr(name, ',') != NULL ? strchr(name, ',') + 1 : NULL) {
        char one[20];
        size_t length = strcspn(name, ",");
        if (length >= sizeof one)
            return false;
        memcpy(one, name, length);
        one[length] = '\0';
        int found = word_find(one, scope_names, key_scope_count);
        if (found < 0)
            return false;
        *scopes |= 1u << found;
    }
    return true;
}
