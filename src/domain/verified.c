#include "domain/verified.h"

#include <string.h>

#include <imgward/fault.h>

#include "store/users.h"

static bool is_same_text(const char *one, const char *other)
{
    return one == NULL || other == NULL ? one == other : strcmp(one, other) == 0;
}

static bool is_same_factor(const struct user *one, const struct user *other)
{
    size_t size = one->totp_sealed != NULL ? one->totp_sealed_size : 0;
    size_t other_size = other->totp_sealed != NULL ? other->totp_sealed_size : 0;
    return one->totp_enabled_ms == other->totp_enabled_ms && size == other_size &&
           (size == 0 || memcmp(one->totp_sealed, other->totp_sealed, size) == 0);
}

enum iw_error verified_lock(const struct domain *domain, const struct user *user, const char *action)
{
    struct user now;
    fault_point(FAULT_USER_VERIFIED, action);
    (void)action;
    enum iw_error error = users_lock(&domain->store, user->id, &now);
    if (error == IW_NOT_FOUND)
        context_clear(domain->context);
    else if (error != IW_OK)
        return error;
    if (error == IW_OK && is_same_text(now.password_hash, user->password_hash) &&
        is_same_factor(&now, user) && now.is_disabled == user->is_disabled)
        return IW_OK;
    return context_fail(domain->context, IW_SESSION_REQUIRED,
                        "Your password or second factor was changed meanwhile; sign in again.");
}
