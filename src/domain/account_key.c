#include "domain/account_key.h"

#include "base/clock.h"
#include "domain/throttle.h"
#include "store/keys.h"

enum { day_s = 24 * 60 * 60 };

enum iw_error account_key_list(struct domain *domain, int64_t account_id, int64_t limit, int64_t offset,
                               struct account_key_rows *rows)
{
    int64_t valid;
    const struct keys_page page = {limit, offset};
    enum iw_error error = keys_count(&domain->store, account_id, clock_now_ms(), &rows->total, &valid);
    return error == IW_OK ? keys_page(&domain->store, account_id, &page, &rows->items, &rows->count) : error;
}

/* The argument of the transactions. */
struct key_work {
    const struct session *session;
    const struct account_key_wish *wish;
    const char *value;
    int64_t id;
    struct audit_actor actor;
    struct account_key *key;
};

/* Revoked keys stay in the table: so also the keys of a day are limited.  The count's row is locked. */
static enum iw_error create_check(const struct store *store, const struct key_work *work)
{
    int64_t total, valid = 0, account_id = work->session->account.id;
    unsigned wait_s = 0;
    const char *name = arena_printf(store->context->arena, "keys:%lld", (long long)account_id);
    enum iw_error error = throttle_spend(store, name, account_key_valid_max, day_s, &wait_s);
    if (error == IW_OK && wait_s == 0)
        error = keys_count(store, account_id, clock_now_ms(), &total, &valid);
    if (error == IW_OK && valid >= account_key_valid_max)
        return context_fail(store->context, IW_VALIDATION_FAILED,
                            "The account has %d valid keys; revoke one that is not used.",
                            account_key_valid_max);
    if (error != IW_OK || wait_s == 0)
        return error;
    store->context->retry_after_s = wait_s;
    store->context->reason = "keys";
    return context_fail(store->context, IW_USAGE_LIMIT_EXCEEDED,
                        "The account made %d keys today; further ones are possible in %u s.",
                        account_key_valid_max, wait_s);
}

static enum iw_error create_run(const struct store *store, void *argument)
{
    struct key_work *work = argument;
    enum iw_error error = create_check(store, work);
    if (error != IW_OK)
        return error;
    uint8_t digest[32];
    char prefix[key_prefix_size];
    key_digest(work->value, digest);
    key_prefix(work->value, prefix);
    const struct keys_row row = {.account_id = work->session->account.id,
                                 .name = work->wish->name,
                                 .digest = digest,
                                 .prefix = prefix,
                                 .created_ms = clock_now_ms(),
                                 .expires_ms = work->wish->expires_ms,
                                 .user_id = work->session->user.id,
                                 .user_email = work->session->user.email};
    error = keys_insert(store, &row, &work->id);
    if (error == IW_OK)
        error = keys_get(store, row.account_id, work->id, work->key);
    return error == IW_OK
               ? audit_add(store, &work->actor, "keyCreated", "name", row.name, "prefix", prefix, NULL)
               : error;
}

enum iw_error account_key_create(struct domain *domain, const struct session *session,
                                 const struct account_key_wish *wish, const struct audit_place *place,
                                 char value[key_size], struct account_key *key)
{
    struct key_work work = {session, wish, value, 0, audit_actor_of(&session->user, place), key};
    key_make(value);
    return db_transaction(&domain->store, create_run, &work);
}

static enum iw_error revoke_run(const struct store *store, void *argument)
{
    struct key_work *work = argument;
    int64_t account_id = work->session->account.id;
    enum iw_error error = keys_get(store, account_id, work->id, work->key);
    if (error == IW_NOT_FOUND) {
        context_clear(store->context);
        return context_fail(store->context, IW_RESOURCE_NOT_FOUND, "Your account has no key with this id.");
    }
    if (error != IW_OK || work->key->revoked_at_ms != 0)
        return error;
    error = keys_revoke(store, work->id, clock_now_ms());
    if (error == IW_OK)
        error = keys_get(store, account_id, work->id, work->key);
    return error == IW_OK ? audit_add(store, &work->actor, "keyRevoked", "name", work->key->name, "prefix",
                                      work->key->prefix, NULL)
                          : error;
}

enum iw_error account_key_revoke(struct domain *domain, const struct session *session, int64_t id,
                                 const struct audit_place *place, struct account_key *key)
{
    struct key_work work = {session, NULL, NULL, id, audit_actor_of(&session->user, place), key};
    return db_transaction(&domain->store, revoke_run, &work);
}
