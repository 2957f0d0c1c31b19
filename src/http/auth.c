#include "http/auth.h"

#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "domain/caller.h"
#include "domain/domain.h"
#include "domain/key.h"
#include "store/keys.h"

enum {
    cache_slots = 256,
    /* last_used_at is written no more often than this. */
    touch_every_ms = 60000
};

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

/* Asks the database, remembers the answer, and notes the use of the key now and then. */
static enum iw_error caller_load(struct request *request, const uint8_t digest[sha256_bytes],
                                 struct caller *caller)
{
    struct db *db = request->domain->db;
    int64_t now_ms = clock_now_ms();
    enum iw_error error = keys_find(request->context, db, digest, caller);
    if (error == IW_NOT_FOUND) {
        context_clear(request->context);
        return context_fail(request->context, IW_AUTH_TOKEN_INVALID, NULL);
    }
    if (error != IW_OK)
        return error;
    cache_put(request->config, digest, caller);
    if (now_ms - caller->key_last_used_ms < touch_every_ms)
        return IW_OK;
    return keys_touch(request->context, db, caller->key_id, now_ms);
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
