#include "domain/verified.h"

#include <string.h>

#include <imgward/fault.h>

#include "store/users.h"

/* The argument of verified_run. */
struct verified_work {
    const struct user *user;
    enum iw_error (*run)(const struct store *store, void *argument);
    void *argument;
};

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

static enum iw_error verified_run(const struct store *store, void *argument)
{
    const struct verified_work *work = argument;
    struct user now;
    enum iw_error error = users_lock(store, work->user->id, &now);
    if (error == IW_NOT_FOUND)
        context_clear(store->context);
    else if (error != IW_OK)
        return error;
    if (error == IW_OK && is_same_text(now.password_hash, work->user->password_hash) &&
        is_same_factor(&now, work->user) && now.is_disabled == work->user->is_disabled)
        return work->run(store, work->argument);
    return context_fail(store->context, IW_SESSION_REQUIRED,
                        "Your password or second factor was changed meanwhile; sign in again.");
}

enum iw_error verified_transaction(struct domain *domain, const struct user *user, const char *action,
                                   enum iw_error (*work)(const struct store *store, void *argument),
                                   void *argument)
{
    struct verified_work verified = {user, work, argument};
    fault_point(FAULT_USER_VERIFIED, action);
    (void)action;
    return db_transaction(&domain->store, verified_run, &verified);
}
