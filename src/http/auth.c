#include "http/auth.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "domain/accounts/key.h"
#include "domain/domain.h"
#include "http/auth_throttle.h"

/* The remedy, after the sentence that states the fault. */
#define AUTH_ADVICE                                                                                          \
    "Send \"Authorization: Bearer iw_live_...\" with your API key: "                                         \
    "iw_live_ and 43 letters and digits, 51 characters."

static_assert(key_length == 51, "AUTH_ADVICE states the length");

enum {
    cache_slots = 256,
    dead_slots = 1024,
    /* A revoked key stays revoked and a new key is random, so no cached key can become valid meanwhile. */
    dead_ms = 60000
};

/* One cached key; the first byte of its digest is the slot. */
struct auth_cached {
    uint8_t digest[sha256_bytes];
    struct account account;
    int64_t until_ms; /* monotonic; 0 if empty */
};

static struct auth_cached cache[cache_slots];

/*
 * A digest that no valid key has, so that a repetition costs no query. The first bytes of the digest are the
 * slot.
 */
static struct auth_dead {
    uint8_t digest[sha256_bytes];
    int64_t revoked_ms; /* 0 if the key is unknown */
    int64_t until_ms;   /* monotonic; 0 if empty */
} dead[dead_slots];

void auth_forget(void)
{
    memset(cache, 0, sizeof cache);
    memset(dead, 0, sizeof dead);
    auth_throttle_forget();
}

/* Returns true if the header has this scheme; the case of letters is ignored (RFC 9110, 11.1). */
static bool scheme_is(const char *header, const char *scheme)
{
    size_t length = strlen(scheme);
    return strncasecmp(header, scheme, length) == 0 && (header[length] == ' ' || header[length] == '\0');
}

/*
 * Finds the key in "Bearer KEY". Returns NULL, or the fault as a clause. The header is never quoted, because
 * it may contain a secret.
 */
static const char *bearer_read(struct arena *arena, const char *header, const char **key)
{
    *key = header + strlen("Bearer");
    if (scheme_is(header, "Bearer")) {
        *key += strspn(*key, " ");
        if (**key == '\0')
            return "no key follows the word Bearer";
        return scheme_is(*key, "Bearer") ? "the word Bearer occurs twice" : key_form_fault(arena, *key);
    }
    if (strncasecmp(header, "Bearer", strlen("Bearer")) == 0)
        return "a space is needed between the word Bearer and the key";
    if (strncmp(header, "iw_live_", strlen("iw_live_")) == 0)
        return "the word Bearer is missing before the key";
    return scheme_is(header, "Basic") ? "its scheme is Basic" : "its scheme is not Bearer";
}

/* Returns AUTH_TOKEN_INVALID, or RATE_LIMIT_EXCEEDED after many invalid keys from one address. */
static enum iw_error key_refuse(struct request *request, const struct auth_dead *slot)
{
    struct context *context = request->context;
    const char *address = request_parameter(request, "REMOTE_ADDR");
    unsigned wait_s = auth_throttle_count(address != NULL ? address : "");
    if (wait_s == 0)
        return key_refused(context, slot->revoked_ms);
    context->retry_after_s = wait_s;
    context->reason = "unknown_keys";
    return context_fail(
        context, IW_RATE_LIMIT_EXCEEDED,
        "Too many requests with invalid API keys from this address; try again in %u s with a valid key.",
        wait_s);
}

/* Reads the account from the database and caches it, or caches that the key is dead. */
static enum iw_error account_load(struct request *request, const uint8_t digest[sha256_bytes],
                                  struct account *account)
{
    struct auth_dead *slot = &dead[(digest[0] << 8 | digest[1]) % dead_slots];
    if (slot->until_ms > clock_monotonic_ms() && crypto_equal(slot->digest, digest, sha256_bytes))
        return key_refuse(request, slot);
    *account = (struct account){.id = 0};
    enum iw_error error = key_authenticate(request->domain, digest, account);
    if (error == IW_OK) {
        struct auth_cached *cached = &cache[digest[0]];
        memcpy(cached->digest, digest, sha256_bytes);
        cached->account = *account;
        cached->until_ms = clock_monotonic_ms() + request->config->api_key_cache_s * 1000;
    }
    if (error != IW_AUTH_TOKEN_INVALID)
        return error;
    memcpy(slot->digest, digest, sha256_bytes);
    slot->revoked_ms = account->key_revoked_ms;
    slot->until_ms = clock_monotonic_ms() + dead_ms;
    context_clear(request->context);
    return key_refuse(request, slot);
}

enum iw_error auth_check(struct request *request)
{
    uint8_t digest[sha256_bytes];
    const char *header = request_header(request, "Authorization");
    if (header == NULL)
        return context_fail(request->context, IW_AUTH_NOT_AUTHENTICATED,
                            "The request has no Authorization header. " AUTH_ADVICE);
    const char *key, *fault = bearer_read(request->arena, header, &key);
    if (fault != NULL)
        return context_fail(request->context, IW_AUTH_TOKEN_INVALID_FORMAT,
                            "The Authorization header is wrong: %s. " AUTH_ADVICE, fault);
    key_digest(key, digest);
    struct account *account = arena_alloc(request->arena, sizeof *account);
    const struct auth_cached *cached = &cache[digest[0]];
    if (cached->until_ms > clock_monotonic_ms() && crypto_equal(cached->digest, digest, sha256_bytes)) {
        *account = cached->account;
    } else {
        enum iw_error error = account_load(request, digest, account);
        if (error != IW_OK)
            return error;
    }
    request->context->account_id = account->id;
    if (account->key_expires_ms != 0 && account->key_expires_ms <= clock_now_ms())
        return context_fail(request->context, IW_AUTH_TOKEN_EXPIRED,
                            "The API key expired at %s; use another key or ask the operator for one.",
                            clock_iso_text(request->arena, account->key_expires_ms));
    request->account = account;
    return account->is_suspended ? context_fail(request->context, IW_AUTH_FORBIDDEN, NULL) : IW_OK;
}
