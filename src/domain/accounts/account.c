#include "domain/accounts/account.h"

#include "base/clock.h"
#include "db/keys.h"

enum { touch_every_ms = 60000 };

enum iw_error account_key_refuse(struct context *context, int64_t revoked_ms)
{
    if (revoked_ms == 0)
        return context_fail(context, IW_AUTH_TOKEN_INVALID, NULL);
    return context_fail(context, IW_AUTH_TOKEN_INVALID,
                        "The API key was revoked at %s; use another key or ask the operator for one.",
                        clock_iso_text(context->arena, revoked_ms));
}

enum iw_error account_authenticate(struct domain *domain, const uint8_t digest[32], struct account *account)
{
    int64_t now_ms = clock_now_ms();
    enum iw_error error = keys_find(&domain->db, digest, account);
    if (error == IW_NOT_FOUND) {
        context_clear(domain->context);
        return account_key_refuse(domain->context, 0);
    }
    if (error == IW_OK && account->key_revoked_ms != 0)
        return account_key_refuse(domain->context, account->key_revoked_ms);
    if (error != IW_OK || now_ms - account->key_last_used_ms < touch_every_ms)
        return error;
    return keys_touch(&domain->db, account->key_id, now_ms);
}
