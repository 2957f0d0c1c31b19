#include "domain/accounts/account_key.h"

#include "base/clock.h"
#include "db/keys.h"
#include "db/transaction.h"
#include "domain/people/throttle.h"

enum { day_s = 24 * 60 * 60 };

enum iw_error account_key_list(struct domain *domain, int64_t account_id, int64_t limit, int64_t offset,
                               struct account_key_rows *rows)
{
    int64_t valid;
    const struct keys_page page = {limit, offset};
    enum iw_error error = keys_count(&domain->db, account_id, clock_now_ms(), &rows->total, &valid);
    return error == IW_OK ? keys_page(&domain->db, account_id, &page, &rows->items, &rows->count) : error;
}

/* Revoked keys stay in the table: so also the keys of a day are limited.  The count's row is locked. */
static enum iw_error create_check(struct domain *domain, int64_t account_id)
{
    int64_t total, valid = 0;
    unsigned wait_s = 0;
    const char *name = arena_printf(domain->context->arena, "keys:%lld", (long long)account_id);
    enum iw_error error = throttle_spend(domain, name, account_key_valid_max, day_s, &wait_s);
    if (error == IW_OK && wait_s == 0)
        error = keys_count(&domain->db, account_id, clock_now_ms(), &total, &valid);
    if (error == IW_OK && valid >= account_key_valid_max)
        return context_fail(domain->context, IW_VALIDATION_FAILED,
                            "The account has %d valid keys; revoke one that is not used.",
                            account_key_valid_max);
    if (error != IW_OK || wait_s == 0)
        return error;
    domain->context->retry_after_s = wait_s;
    domain->context->reason = "keys";
    return context_fail(domain->context, IW_USAGE_LIMIT_EXCEEDED,
                        "The account made %d keys today; further ones are possible in %u s.",
                        account_key_valid_max, wait_s);
}

enum iw_error account_key_create(struct domain *domain, const struct session *session,
                                 const struct account_key_wish *wish, const struct audit_place *place,
                                 char value[key_size], struct account_key *key)
{
    uint8_t digest[32];
    char prefix[key_prefix_size];
    enum iw_error error;
    key_make(value);
    key_digest(value, digest);
    key_prefix(value, prefix);
    const struct audit_actor actor = audit_actor_of(&session->user, place);
    const struct keys_row row = {.account_id = session->account.id,
                                 .name = wish->name,
                                 .digest = digest,
                                 .prefix = prefix,
                                 .created_ms = clock_now_ms(),
                                 .expires_ms = wish->expires_ms,
                                 .user_id = session->user.id,
                                 .user_email = session->user.email};
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        int64_t id = 0;
        error = create_check(domain, row.account_id);
        if (error == IW_OK)
            error = keys_insert(&domain->db, &row, &id);
        if (error == IW_OK)
            error = keys_get(&domain->db, row.account_id, id, key);
        if (error == IW_OK)
            error = audit_add(domain, &actor, "keyCreated", "name", row.name, "prefix", prefix, NULL);
    }
    return error;
}

/* RESOURCE_NOT_FOUND.  A key that was revoked before stays as it is. */
static enum iw_error revoke_write(struct domain *domain, const struct session *session, int64_t id,
                                  const struct audit_place *place, struct account_key *key)
{
    int64_t account_id = session->account.id;
    const struct audit_actor actor = audit_actor_of(&session->user, place);
    enum iw_error error = keys_get(&domain->db, account_id, id, key);
    if (error == IW_NOT_FOUND) {
        context_clear(domain->context);
        return context_fail(domain->context, IW_RESOURCE_NOT_FOUND, "Your account has no key with this id.");
    }
    if (error != IW_OK || key->revoked_at_ms != 0)
        return error;
    error = keys_revoke(&domain->db, id, clock_now_ms());
    if (error == IW_OK)
        error = keys_get(&domain->db, account_id, id, key);
    return error == IW_OK
               ? audit_add(domain, &actor, "keyRevoked", "name", key->name, "prefix", key->prefix, NULL)
               : error;
}

enum iw_error account_key_revoke(struct domain *domain, const struct session *session, int64_t id,
                                 const struct audit_place *place, struct account_key *key)
{
    enum iw_error error;
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        error = revoke_write(domain, session, id, place, key);
    }
    return error;
}
