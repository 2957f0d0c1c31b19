#include "http/auth.h"

#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "domain/caller.h"
#include "domain/domain.h"
#include "domain/key.h"

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

static struct caller *cache_find(const uint8_t digest[sha256_bytes])
{
    struct remembered *slot = &cache[digest[0]];
    bool is_it = slot->until_ms > clock_monotonic_ms() && memcmp(slot->digest, digest, sha256_bytes) == 0;
    return is_it ? &slot->caller : NULL;
}

static void cache_put(const struct config *config, const uint8_t digest[sha256_bytes],
                      const struct caller *caller)
{
    struct remembered *slot = &cache[digest[0]];
    memcpy(slot->digest, digest, sha256_bytes);
    slot->caller = *caller;
    slot->until_ms = config->api_key_cache_s == 0 ? 0 : clock_monotonic_ms() + config->api_key_cache_s * 1000;
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
        enum iw_error error = caller_find(request->domain, digest, caller);
        if (error != IW_OK)
            return error;
        cache_put(request->config, digest, caller);
    }
    request->context->account_id = caller->id;
    if (caller->key_expires_ms != 0 && caller->key_expires_ms <= clock_now_ms())
        return context_fail(request->context, IW_AUTH_TOKEN_EXPIRED, NULL);
    if (caller->is_suspended)
        return context_fail(request->context, IW_AUTH_FORBIDDEN, NULL);
    request->caller = caller;
    return IW_OK;
}
