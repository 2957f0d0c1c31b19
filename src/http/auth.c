#include "http/auth.h"

#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "domain/caller.h"
#include "domain/domain.h"
#include "domain/key.h"
#include "http/suspect.h"

enum { cache_slots = 256 };

/* One remembered key: the first byte of the digest is its slot. */
struct remembered {
    uint8_t digest[sha256_bytes];
    struct caller caller;
    int64_t until_ms; /* monotonic; 0: empty */
};

static struct remembered cache[cache_slots];

void auth_forget(void)
{
    memset(cache, 0, sizeof cache);
    suspect_forget();
}

/* The key of "Bearer KEY"; NULL when the header is anything else. */
static const char *bearer_key(const char *header)
{
    if (strncasecmp(header, "Bearer ", 7) != 0)
        return NULL;
    header += 7;
    header += strspn(header, " ");
    return key_is_well_formed(header, strlen(header)) ? header : NULL;
}

/* True when the slot holds this key, be it too old to be trusted.  Compared in constant time. */
static bool cache_knows(const uint8_t digest[sha256_bytes])
{
    const struct remembered *slot = &cache[digest[0]];
    return slot->until_ms != 0 && crypto_equal(slot->digest, digest, sha256_bytes);
}

static struct caller *cache_find(const uint8_t digest[sha256_bytes])
{
    struct remembered *slot = &cache[digest[0]];
    return cache_knows(digest) && slot->until_ms > clock_monotonic_ms() ? &slot->caller : NULL;
}

static void cache_put(const struct config *config, const uint8_t digest[sha256_bytes],
                      const struct caller *caller)
{
    struct remembered *slot = &cache[digest[0]];
    memcpy(slot->digest, digest, sha256_bytes);
    slot->caller = *caller;
    /* Long past when nothing is to be trusted: the key is known all the same. */
    slot->until_ms = config->api_key_cache_s == 0 ? 1 : clock_monotonic_ms() + config->api_key_cache_s * 1000;
}

static const char *address_of(const struct request *request)
{
    const char *address = request_parameter(request, "REMOTE_ADDR");
    return address != NULL ? address : "";
}

/* An address that has tried many unknown keys tries no more of them for a while. */
static enum iw_error address_admit(struct request *request, const uint8_t digest[sha256_bytes])
{
    unsigned wait_s = cache_knows(digest) ? 0 : suspect_wait_s(address_of(request));
    if (wait_s == 0)
        return IW_OK;
    request->context->retry_after_s = wait_s;
    request->context->reason = "unknown_keys";
    return context_fail(request->context, IW_RATE_LIMIT_EXCEEDED,
                        "Too many requests without a valid key from this address; try again in %u s.",
                        wait_s);
}

/* Asks the domain and remembers its answer; a key that nobody has is noted. */
static enum iw_error caller_load(struct request *request, const uint8_t digest[sha256_bytes],
                                 struct caller *caller)
{
    enum iw_error error = address_admit(request, digest);
    if (error == IW_OK)
        error = caller_find(request->domain, digest, caller);
    if (error == IW_AUTH_TOKEN_INVALID)
        suspect_note(address_of(request));
    if (error == IW_OK)
        cache_put(request->config, digest, caller);
    return error;
}

enum iw_error auth_check(struct request *request)
{
    uint8_t digest[sha256_bytes];
    const char *header = request_header(request, "Authorization");
    if (header == NULL)
        return context_fail(request->context, IW_AUTH_NOT_AUTHENTICATED, NULL);
    const char *key = bearer_key(header);
    if (key == NULL)
        return context_fail(request->context, IW_AUTH_TOKEN_INVALID_FORMAT, NULL);
    key_digest(key, digest);
    struct caller *caller = arena_alloc(request->arena, sizeof *caller);
    const struct caller *remembered = cache_find(digest);
    if (remembered != NULL) {
        *caller = *remembered;
    } else {
        enum iw_error error = caller_load(request, digest, caller);
        if (error != IW_OK)
            return error;
    }
    request->context->account_id = caller->id;
    if (caller->key_expires_ms != 0 && caller->key_expires_ms <= clock_now_ms())
        return context_fail(request->context, IW_AUTH_TOKEN_EXPIRED, NULL);
    if (caller->is_suspended)
        return context_fail(request->context, IW_AUTH_FORBIDDEN, NULL);
    request->caller = caller;
    return IW_OK;
}
