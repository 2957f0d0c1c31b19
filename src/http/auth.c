#include "http/auth.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "domain/account.h"
#include "domain/domain.h"
#include "domain/key.h"
#include "http/auth_throttle.h"

/* What is to be sent, behind the sentence that says what was wrong. */
#define AUTH_ADVICE                                                                                          \
    "Send \"Authorization: Bearer iw_live_...\" with your API key: "                                         \
    "iw_live_ and 43 letters and digits, 51 characters."

static_assert(key_length == 51, "AUTH_ADVICE says so");

enum { cache_slots = 256 };

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
    auth_throttle_forget();
}

/* True when the header's scheme is this one, in any case (RFC 9110, 11.1). */
static bool scheme_is(const char *header, const char *scheme)
{
    size_t length = strlen(scheme);
    return strncasecmp(header, scheme, length) == 0 && (header[length] == ' ' || header[length] == '\0');
}

/* Takes the key of "Bearer KEY"; NULL, or why there is none.  The header may hold secrets: it is never
 * quoted. */
static const char *bearer_read(struct arena *arena, const char *header, const char **key)
{
    *key = header + strlen("Bearer");
    if (scheme_is(header, "Bearer")) {
        *key += strspn(*key, " ");
        if (**key == '\0')
            return "no key follows the word Bearer";
        return scheme_is(*key, "Bearer") ? "the word Bearer is there twice" : key_form_fault(arena, *key);
    }
    if (strncasecmp(header, "Bearer", strlen("Bearer")) == 0)
        return "a space is needed between the word Bearer and the key";
    if (strncmp(header, "iw_live_", strlen("iw_live_")) == 0)
        return "the word Bearer is missing before the key";
    return scheme_is(header, "Basic") ? "its scheme is Basic" : "its scheme is not Bearer";
}

static enum iw_error header_missing(struct request *request)
{
    return context_fail(request->context, IW_AUTH_NOT_AUTHENTICATED,
                        "The request has no Authorization header. " AUTH_ADVICE);
}

/* True when the slot holds this key, be it too old to be trusted.  Compared in constant time. */
static bool cache_knows(const uint8_t digest[sha256_bytes])
{
    const struct remembered *slot = &cache[digest[0]];
    return slot->until_ms != 0 && crypto_equal(slot->digest, digest, sha256_bytes);
}

static struct account *cache_find(const uint8_t digest[sha256_bytes])
{
    struct remembered *slot = &cache[digest[0]];
    return cache_knows(digest) && slot->until_ms > clock_monotonic_ms() ? &slot->account : NULL;
}

static void cache_put(const struct config *config, const uint8_t digest[sha256_bytes],
                      const struct account *account)
{
    struct remembered *slot = &cache[digest[0]];
    memcpy(slot->digest, digest, sha256_bytes);
    slot->account = *account;
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
    unsigned wait_s = cache_knows(digest) ? 0 : auth_throttle_wait_s(address_of(request));
    if (wait_s == 0)
        return IW_OK;
    request->context->retry_after_s = wait_s;
    request->context->reason = "unknown_keys";
    return context_fail(request->context, IW_RATE_LIMIT_EXCEEDED,
                        "Too many requests with unknown API keys from this address; try again in %u s, "
                        "with a key that is valid.",
                        wait_s);
}

/* Asks the domain and remembers its answer; a key that nobody has is noted. */
static enum iw_error account_load(struct request *request, const uint8_t digest[sha256_bytes],
                                  struct account *account)
{
    enum iw_error error = address_admit(request, digest);
    if (error == IW_OK)
        error = account_authenticate(request->domain, digest, account);
    if (error == IW_AUTH_TOKEN_INVALID)
        auth_throttle_note(address_of(request));
    if (error == IW_OK)
        cache_put(request->config, digest, account);
    return error;
}

enum iw_error auth_check(struct request *request)
{
    uint8_t digest[sha256_bytes];
    const char *header = request_header(request, "Authorization");
    if (header == NULL)
        return header_missing(request);
    const char *key, *fault = bearer_read(request->arena, header, &key);
    if (fault != NULL)
        return context_fail(request->context, IW_AUTH_TOKEN_INVALID_FORMAT,
                            "The Authorization header is wrong: %s. " AUTH_ADVICE, fault);
    key_digest(key, digest);
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
        return context_fail(request->context, IW_AUTH_TOKEN_EXPIRED,
                            "The API key expired at %s; use another key or ask the operator for one.",
                            clock_iso_text(request->arena, account->key_expires_ms));
    if (account->is_suspended)
        return context_fail(request->context, IW_AUTH_FORBIDDEN, NULL);
    request->account = account;
    return IW_OK;
}
