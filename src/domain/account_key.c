#include "domain/account_key.h"

#include "base/clock.h"
#include "store/keys.h"

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

static enum iw_error create_run(const struct store *store, void *argument)
{
    struct key_work *work = argument;
    uint8_t digest[32];
    char prefix[key_prefix_size];
    key_digest(work->value, digest);
    key_prefix(work->value, prefix);
    const struct keys_row row = {.account_id = work->session->account.id,
                                 .name = work->wish->name,
                                 .digest = digest,
                                 .prefix = prefix,
                                 .created_ms = clock_now_ms(),
                                 .expires_ms = work->wish->expires_ms};
    enum iw_error error = keys_insert(store, &row, &work->id);
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
    int64_t total, valid;
    struct key_work work = {session, wish, value, 0, audit_actor_of(&session->user, place), key};
    enum iw_error error = keys_count(&domain->store, session->account.id, clock_now_ms(), &total, &valid);
    if (error == IW_OK && valid >= account_key_valid_max)
        return context_fail(domain->context, IW_VALIDATION_FAILED,
                            "The account has %d valid keys; revoke one that is not used.",
                            account_key_valid_max);
    if (error != IW_OK)
        return error;
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
