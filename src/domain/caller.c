#include "domain/caller.h"

#include "base/clock.h"
#include "store/keys.h"

enum { touch_every_ms = 60000 };

enum iw_error caller_find(struct domain *domain, const uint8_t digest[32], struct caller *caller)
{
    int64_t now_ms = clock_now_ms();
    enum iw_error error = keys_find(domain->context, domain->db, digest, caller);
    if (error == IW_NOT_FOUND) {
        context_clear(domain->context);
        return context_fail(domain->context, IW_AUTH_TOKEN_INVALID, NULL);
    }
    if (error == IW_OK && caller->key_revoked_ms != 0)
        return context_fail(domain->context, IW_AUTH_TOKEN_INVALID,
                            "The API key was revoked at %s; use another key or ask the operator for one.",
                            clock_iso_text(domain->context->arena, caller->key_revoked_ms));
    if (error != IW_OK || now_ms - caller->key_last_used_ms < touch_every_ms)
        return error;
    return keys_touch(domain->context, domain->db, caller->key_id, now_ms);
}
