#include "http/auth.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "domain/account.h"
#include "domain/domain.h"
#include "store/keys.h"

static const char key_prefix[] = "iw_live_";
enum {
    key_random_length = 43,
    cache_slots = 256,
    /* last_used_at is written no more often than this. */
    touch_every_ms = 60000
};

/* One remembered key: the first byte of the digest is its slot. */
struct remembered {
    uint8_t digest[sha256_bytes];
    struct account account;
    int64_t until_ms; /* monotonic; 0: empty */
};

static struct remembered cache[cache_slots];

void auth_forget(void)
{
    memset(cache, 0, sizeof cache);
}

bool auth_key_is_well_formed(const char *key)
{
    size_t prefix_length = sizeof key_prefix - 1;
    if (strncmp(key, key_prefix, prefix_length) != 0)
        return false;
    for (const char *at = key + prefix_length; *at != '\0'; at++)
        if (!isalnum((unsigned char)*at) || (unsigned char)*at > 0x7F)
            return false;
    return strlen(key) == prefix_length + key_random_length;
}

/* The key of "Bearer KEY"; NULL when the header is anything else. */
static const char *bearer_key(const char *header)
{
    if (strncasecmp(header, "Bearer ", 7) != 0)
        return NULL;
    header += 7;
    header += strspn(header, " ");
    return auth_key_is_well_formed(header) ? header : NULL;
}

static struct account *cache_find(const uint8_t digest[sha256_bytes])
{
    struct remembered *slot = &cache[digest[0]];
    bool is_it = slot->until_ms > clock_monotonic_ms() && memcmp(slot->digest, digest, sha256_bytes) == 0;
    return is_it ? &slot->account : NULL;
}

static void cache_put(const struct config *config, const uint8_t digest[sha256_bytes],
                      const struct account *account)
{
    struct remembered *slot = &cache[digest[0]];
    memcpy(slot->digest, digest, sha256_bytes);
    slot->account = *account;
    slot->until_ms = config->api_key_cache_s == 0 ? 0 : clock_monotonic_ms() + config->api_key_cache_s * 1000;
}

/* Asks the database, remembers the answer, and notes the use of the key now and then. */
static enum iw_error account_load(struct request *request, const uint8_t digest[sha256_bytes],
                                  struct account *account)
{
    struct db *db = request->domain->db;
    int64_t now_ms = clock_now_ms();
    enum iw_error error = keys_find(request->context, db, digest, account);
    if (error == IW_NOT_FOUND) {
        context_clear(request->context);
        return context_fail(request->context, IW_AUTH_TOKEN_INVALID, NULL);
    }
    if (error != IW_OK)
        return error;
    cache_put(request->config, digest, account);
    if (now_ms - account->key_last_used_ms < touch_every_ms)
        return IW_OK;
    return keys_touch(request->context, db, account->key_id, now_ms);
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
    crypto_sha256(key, strlen(key), digest);
    struct account *account = arena_alloc(request->arena, sizeof *account);
    const struct account *remembered = cache_find(digest);
    if (remembered != NULL) {
        *account = *remembered;
    } else {
        enum iw_error error = account_load(request, digest, account);
        if (error != IW_OK)
            return error;
    }
    request->context->account_id = account->id;
    if (account->key_expires_ms != 0 && account->key_expires_ms <= clock_now_ms())
        return context_fail(request->context, IW_AUTH_TOKEN_EXPIRED, NULL);
    if (account->is_suspended)
        return context_fail(request->context, IW_AUTH_FORBIDDEN, NULL);
    request->account = account;
    return IW_OK;
}
