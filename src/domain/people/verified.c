#include "domain/people/verified.h"

#include <string.h>

#include "base/fault.h"
#include "db/users.h"

/* True when the user has the password and the second factor that were verified, and may still sign in. */
static bool is_as_verified(const struct user *now, const struct user *verified)
{
    const char *hash = now->password_hash, *verified_hash = verified->password_hash;
    size_t size = now->totp_sealed != NULL ? now->totp_sealed_size : 0;
    size_t verified_size = verified->totp_sealed != NULL ? verified->totp_sealed_size : 0;
    bool is_same_hash =
        hash == NULL || verified_hash == NULL ? hash == verified_hash : strcmp(hash, verified_hash) == 0;
    return is_same_hash && now->totp_enabled_ms == verified->totp_enabled_ms && size == verified_size &&
           (size == 0 || memcmp(now->totp_sealed, verified->totp_sealed, size) == 0) &&
           now->is_disabled == verified->is_disabled;
}

enum iw_error verified_lock(const struct domain *domain, const struct user *user, const char *action)
{
    struct user now;
    fault_point(FAULT_USER_VERIFIED, action);
    (void)action;
    enum iw_error error = users_lock(&domain->db, user->id, &now);
    if (error == IW_NOT_FOUND)
        context_clear(domain->context);
    else if (error != IW_OK)
        return error;
    if (error == IW_OK && is_as_verified(&now, user))
        return IW_OK;
    return context_fail(domain->context, IW_SESSION_REQUIRED,
                        "Your password or second factor was changed meanwhile; sign in again.");
}
