#include "domain/people/session.h"

#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/text.h"
#include "db/sessions.h"
#include "db/users.h"
#include "domain/people/throttle.h"
#include "domain/people/token.h"

enum {
    touch_every_ms = 60000,
    user_agent_bytes_max = 200,
    sessions_max = 100,
    /* A script may sign in for each run, and each sign-in adds an event. */
    sign_ins_day_max = 1000,
    day_s = 24 * 60 * 60
};

static void session_fill(const struct domain *domain, const char *token, struct session *session)
{
    uint8_t digest[32];
    struct arena *arena = domain->context->arena;
    token_digest(arena_printf(arena, "imgward-csrf-1:%s", token), digest);
    session->csrf_token = crypto_base64url(arena, digest, sizeof digest);
    session->account = session->user.account;
    session->account.channel = ORDER_CHANNEL_WEB;
    session->account.requests_per_minute = (unsigned)domain->config->console_requests_per_minute;
    session->account.in_flight_max = (unsigned)domain->config->console_in_flight_max;
}

/* At most 200 bytes of printable ASCII. */
static const char *user_agent_clean(struct arena *arena, const char *text)
{
    char *clean = arena_text_n(arena, text, strnlen(text, user_agent_bytes_max));
    for (char *at = clean; *at != '\0'; at++)
        if (*at < 0x20 || *at > 0x7E)
            *at = '?';
    return clean;
}

static const char *count_name(struct arena *arena, int64_t user_id)
{
    return arena_printf(arena, "sign-ins:%lld", (long long)user_id);
}

enum iw_error session_admit(const struct domain *domain, int64_t user_id)
{
    unsigned wait_s = 0;
    enum iw_error error =
        throttle_spend(domain, count_name(domain->context->arena, user_id), sign_ins_day_max, day_s, &wait_s);
    if (error != IW_OK || wait_s == 0)
        return error;
    domain->context->retry_after_s = wait_s;
    domain->context->reason = "sign_ins";
    return context_fail(domain->context, IW_SIGN_IN_LIMITED,
                        "You signed in %d times today; try again in %u s.", sign_ins_day_max, wait_s);
}

enum iw_error session_admit_clear(const struct domain *domain, int64_t user_id)
{
    return throttle_refund(domain, count_name(domain->context->arena, user_id));
}

enum iw_error session_open(const struct domain *domain, const struct user *user,
                           const struct audit_client *client, struct session_new *fresh)
{
    uint8_t digest[32];
    struct arena *arena = domain->context->arena;
    int64_t now_ms = clock_now_ms();
    fresh->token = token_new(arena, digest);
    const struct user_session row = {.user_id = user->id,
                                     .address = client->address,
                                     .user_agent = user_agent_clean(arena, client->user_agent),
                                     .created_ms = now_ms,
                                     .expires_ms = now_ms + domain->config->console_session_s * 1000};
    enum iw_error error = sessions_insert(&domain->db, &row, digest);
    if (error == IW_OK)
        error = sessions_trim(&domain->db, user->id, sessions_max);
    if (error != IW_OK)
        return error;
    fresh->session = (struct session){.user = *user};
    session_fill(domain, fresh->token, &fresh->session);
    return IW_OK;
}

enum iw_error session_renew(const struct domain *domain, const struct user *user,
                            const struct audit_client *client, struct session_new *fresh)
{
    enum iw_error error = sessions_end_others(&domain->db, user->id, 0);
    return error == IW_OK ? session_open(domain, user, client, fresh) : error;
}

enum iw_error session_find(struct domain *domain, const char *token, const struct audit_client *client,
                           struct session *session)
{
    uint8_t digest[32];
    struct user_session row;
    int64_t now_ms = clock_now_ms();
    if (token == NULL)
        return context_fail(domain->context, IW_SESSION_REQUIRED, NULL);
    token_digest(token, digest);
    bool is_valid = false;
    enum iw_error error = sessions_find(&domain->db, digest, &row, &is_valid);
    is_valid = is_valid && row.expires_ms > now_ms &&
               row.seen_ms + domain->config->console_session_idle_s * 1000 > now_ms;
    if (error == IW_OK && is_valid)
        error = users_find(&domain->db, row.user_id, &session->user, &is_valid);
    if (error == IW_OK && (!is_valid || session->user.is_disabled))
        return context_fail(domain->context, IW_SESSION_REQUIRED, NULL);
    if (error == IW_OK && now_ms - row.seen_ms >= touch_every_ms)
        error = sessions_touch(&domain->db, row.id, client->address, now_ms);
    if (error != IW_OK)
        return error;
    session->id = row.id;
    session_fill(domain, token, session);
    return IW_OK;
}

enum iw_error session_list(struct domain *domain, int64_t user_id, int64_t limit, int64_t offset,
                           struct session_rows *rows)
{
    int64_t now_ms = clock_now_ms();
    const struct sessions_page page = {.user_id = user_id,
                                       .seen_ms = now_ms - domain->config->console_session_idle_s * 1000,
                                       .now_ms = now_ms,
                                       .limit = limit,
                                       .offset = offset};
    return sessions_page(&domain->db, &page, &rows->items, &rows->count, &rows->total);
}

enum iw_error session_end(struct domain *domain, const struct session *session, int64_t id,
                          const struct audit_client *client)
{
    int64_t count = 0;
    const struct audit_actor actor = audit_actor_of(&session->user, client);
    enum iw_error error = sessions_end(&domain->db, session->user.id, id, &count);
    if (error == IW_OK && count == 0)
        return context_fail(domain->context, IW_RESOURCE_NOT_FOUND, "You have no session with this id.");
    if (error != IW_OK)
        return error;
    return audit_add(domain, &actor, id == session->id ? "signedOut" : "sessionEnded", NULL);
}

enum iw_error session_end_others(struct domain *domain, const struct session *session,
                                 const struct audit_client *client)
{
    const struct audit_actor actor = audit_actor_of(&session->user, client);
    enum iw_error error = sessions_end_others(&domain->db, session->user.id, session->id);
    return error == IW_OK ? audit_add(domain, &actor, "sessionsEnded", NULL) : error;
}
