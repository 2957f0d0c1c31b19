#include "domain/people/token.h"

#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "db/tokens.h"
#include "db/users.h"

enum { token_bytes = 32, challenge_uses = 5, challenge_s = 600 };

const char *token_new(struct arena *arena, uint8_t digest[32])
{
    uint8_t random[token_bytes];
    crypto_random(random, sizeof random);
    const char *token = crypto_base64url(arena, random, sizeof random);
    crypto_wipe(random, sizeof random);
    token_digest(token, digest);
    return token;
}

void token_digest(const char *token, uint8_t digest[32])
{
    crypto_sha256(token, strlen(token), digest);
}

enum iw_error token_make(const struct domain *domain, int64_t user_id, enum token_purpose purpose,
                         const char **token)
{
    uint8_t digest[32];
    int64_t now_ms = clock_now_ms();
    const int64_t lifetimes_s[TOKEN_PURPOSE_COUNT] = {
        [TOKEN_VERIFY] = domain->config->console_invitation_s,
        [TOKEN_RESET] = domain->config->console_reset_s,
        [TOKEN_CHALLENGE] = challenge_s,
    };
    *token = token_new(domain->context->arena, digest);
    const struct tokens_row row = {.user_id = user_id,
                                   .purpose = purpose,
                                   .digest = digest,
                                   .uses = purpose == TOKEN_CHALLENGE ? challenge_uses : 1,
                                   .created_ms = now_ms,
                                   .expires_ms = now_ms + lifetimes_s[purpose] * 1000};
    return tokens_insert(&domain->db, &row);
}

/* The user of a valid token; user_id is 0 if the token is not valid. */
static enum iw_error user_of(const struct domain *domain, int64_t user_id, struct user *user)
{
    bool is_found = false;
    enum iw_error error = IW_OK;
    if (user_id != 0)
        error = users_find(&domain->db, user_id, user, &is_found);
    return error == IW_OK && (!is_found || user->is_disabled)
               ? context_fail(domain->context, IW_TOKEN_INVALID, NULL)
               : error;
}

enum iw_error token_find(const struct domain *domain, enum token_purpose purpose, const char *token,
                         struct user *user)
{
    uint8_t digest[32];
    int64_t user_id = 0;
    token_digest(token, digest);
    enum iw_error error = tokens_find(&domain->db, purpose, digest, clock_now_ms(), &user_id);
    return error == IW_OK ? user_of(domain, user_id, user) : error;
}

enum iw_error token_take(const struct domain *domain, enum token_purpose purpose, const char *token,
                         struct user *user)
{
    uint8_t digest[32];
    int64_t user_id = 0;
    token_digest(token, digest);
    enum iw_error error = tokens_take(&domain->db, purpose, digest, clock_now_ms(), &user_id);
    return error == IW_OK ? user_of(domain, user_id, user) : error;
}

const char *token_link(struct arena *arena, const struct config *config, const char *page, const char *token)
{
    return arena_printf(arena, "%s/console/#/%s?token=%s", config->api_public_url, page, token);
}
