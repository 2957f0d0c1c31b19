#include "service/net/sigv4.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/crypto.h"
#include "base/text.h"

enum { day_size = 9 };

struct sigv4 {
    char *access_key;
    char *secret; /* "AWS4" and the secret key */
    char *region;
    char day[day_size];     /* of the signing key; "" at first */
    struct crypto_mac *mac; /* the signing key of that day */
};

static char *text_copy(const char *text)
{
    char *copy = strdup(text);
    if (copy == NULL)
        abort();
    return copy;
}

struct sigv4 *sigv4_new(const char *access_key, const char *secret_key, const char *region)
{
    static const char start[] = "AWS4";
    struct sigv4 *made = calloc(1, sizeof *made);
    size_t size = sizeof start + strlen(secret_key);
    char *secret = malloc(size);
    if (made == NULL || secret == NULL)
        abort();
    memcpy(secret, start, sizeof start);
    memcpy(secret + sizeof start - 1, secret_key, size - sizeof start + 1);
    made->secret = secret;
    made->access_key = text_copy(access_key);
    made->region = text_copy(region);
    return made;
}

void sigv4_free(struct sigv4 *sigv4)
{
    if (sigv4 == NULL)
        return;
    crypto_mac_free(sigv4->mac);
    crypto_wipe(sigv4->secret, strlen(sigv4->secret));
    free(sigv4->secret);
    free(sigv4->access_key);
    free(sigv4->region);
    free(sigv4);
}

void sigv4_date(int64_t time_ms, char text[sigv4_date_size])
{
    time_t seconds = (time_t)(time_ms / 1000);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    strftime(text, sigv4_date_size, "%Y%m%dT%H%M%SZ", &parts);
}

/* ---- The canonical request ---- */

/* Percent-encodes all bytes except the unreserved characters of RFC 3986. */
static void encoded_add(struct text *text, const char *value)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    for (const char *at = value; *at != '\0'; at++)
        if (strchr(plain, *at) != NULL)
            text_add(text, at, 1);
        else
            text_printf(text, "%%%02X", (unsigned char)*at);
}

static int by_name(const void *one, const void *other)
{
    return strcmp(((const struct sigv4_pair *)one)->name, ((const struct sigv4_pair *)other)->name);
}

/* Returns a sorted copy. No caller has the same name twice. */
static struct sigv4_pair *pairs_sorted(struct arena *arena, const struct sigv4_pair *pairs, size_t count)
{
    struct sigv4_pair *sorted = arena_array(arena, count + 1, sizeof *sorted);
    if (count > 0) {
        memcpy(sorted, pairs, count * sizeof *sorted);
        qsort(sorted, count, sizeof *sorted, by_name);
    }
    return sorted;
}

const char *sigv4_query(struct arena *arena, const struct sigv4_pair *pairs, size_t count)
{
    struct text query;
    const struct sigv4_pair *sorted = pairs_sorted(arena, pairs, count);
    text_init(&query, arena);
    for (size_t i = 0; i < count; i++) {
        text_add_string(&query, i == 0 ? "" : "&");
        encoded_add(&query, sorted[i].name);
        text_add_string(&query, "=");
        encoded_add(&query, sorted[i].value);
    }
    return query.data;
}

/* A request with its sorted headers and query, ready to be signed. */
struct canonical {
    const struct sigv4_request *request;
    struct sigv4_pair headers[sigv4_pairs_max];
    size_t header_count;
    const char *query;
    const char *payload;
    char date[sigv4_date_size];
    const char *signed_headers; /* "host;x-amz-date" */
};

static void canonical_header_add(struct canonical *canonical, const char *name, const char *value)
{
    if (canonical->header_count == sigv4_pairs_max)
        abort(); /* Cannot fail, because the callers' headers are constant. */
    canonical->headers[canonical->header_count++] = (struct sigv4_pair){name, value};
}

static void headers_make(struct canonical *canonical, struct arena *arena)
{
    const struct sigv4_request *request = canonical->request;
    struct text names;
    canonical_header_add(canonical, "host", request->host);
    for (size_t i = 0; i < request->header_count; i++)
        canonical_header_add(canonical, request->headers[i].name, request->headers[i].value);
    qsort(canonical->headers, canonical->header_count, sizeof canonical->headers[0], by_name);
    text_init(&names, arena);
    for (size_t i = 0; i < canonical->header_count; i++)
        text_printf(&names, "%s%s", i == 0 ? "" : ";", canonical->headers[i].name);
    canonical->signed_headers = names.data;
}

/* SHA-256 of the canonical request, in hexadecimal. */
static const char *canonical_digest(const struct canonical *canonical, struct arena *arena)
{
    struct text text;
    uint8_t digest[sha256_bytes];
    text_init(&text, arena);
    text_printf(&text, "%s\n%s\n%s\n", canonical->request->method, canonical->request->path,
                canonical->query);
    for (size_t i = 0; i < canonical->header_count; i++)
        text_printf(&text, "%s:%s\n", canonical->headers[i].name, canonical->headers[i].value);
    text_printf(&text, "\n%s\n%s", canonical->signed_headers, canonical->payload);
    crypto_sha256(text.data, text.length, digest);
    return crypto_hex(arena, digest, sizeof digest);
}

/* ---- The signature ---- */

static void key_derive(const uint8_t *key, size_t size, const char *text, uint8_t derived[sha256_bytes])
{
    struct crypto_mac *mac = crypto_mac_new(key, size);
    crypto_mac_sign(mac, text, strlen(text), derived);
    crypto_mac_free(mac);
}

/* Computes the signing key, which depends only on the day. */
static struct crypto_mac *mac_of_day(struct sigv4 *sigv4, const char *day)
{
    uint8_t key[sha256_bytes];
    if (strcmp(sigv4->day, day) == 0)
        return sigv4->mac;
    crypto_mac_free(sigv4->mac);
    key_derive((const uint8_t *)sigv4->secret, strlen(sigv4->secret), day, key);
    key_derive(key, sizeof key, sigv4->region, key);
    key_derive(key, sizeof key, "s3", key);
    key_derive(key, sizeof key, "aws4_request", key);
    sigv4->mac = crypto_mac_new(key, sizeof key);
    crypto_wipe(key, sizeof key);
    memcpy(sigv4->day, day, day_size);
    return sigv4->mac;
}

/* "20130524/us-east-1/s3/aws4_request" */
static const char *scope_of(const struct sigv4 *sigv4, struct arena *arena, const char *date)
{
    return arena_printf(arena, "%.8s/%s/s3/aws4_request", date, sigv4->region);
}

static const char *signature_make(struct sigv4 *sigv4, struct arena *arena, const struct canonical *canonical)
{
    char day[day_size] = {0};
    uint8_t digest[sha256_bytes];
    memcpy(day, canonical->date, day_size - 1);
    const char *text =
        arena_printf(arena, "AWS4-HMAC-SHA256\n%s\n%s\n%s", canonical->date,
                     scope_of(sigv4, arena, canonical->date), canonical_digest(canonical, arena));
    crypto_mac_sign(mac_of_day(sigv4, day), text, strlen(text), digest);
    return crypto_hex(arena, digest, sizeof digest);
}

const char *sigv4_authorization(struct sigv4 *sigv4, struct arena *arena, const struct sigv4_request *request)
{
    struct canonical canonical = {.request = request, .payload = request->payload_sha256};
    sigv4_date(request->time_ms, canonical.date);
    canonical_header_add(&canonical, "x-amz-content-sha256", request->payload_sha256);
    canonical_header_add(&canonical, "x-amz-date", canonical.date);
    headers_make(&canonical, arena);
    canonical.query = sigv4_query(arena, request->query, request->query_count);
    return arena_printf(arena, "AWS4-HMAC-SHA256 Credential=%s/%s,SignedHeaders=%s,Signature=%s",
                        sigv4->access_key, scope_of(sigv4, arena, canonical.date), canonical.signed_headers,
                        signature_make(sigv4, arena, &canonical));
}

const char *sigv4_presigned_query(struct sigv4 *sigv4, struct arena *arena,
                                  const struct sigv4_request *request, int64_t lifetime_s)
{
    struct canonical canonical = {.request = request, .payload = "UNSIGNED-PAYLOAD"};
    struct sigv4_pair query[sigv4_pairs_max + 5];
    size_t count = request->query_count;
    sigv4_date(request->time_ms, canonical.date);
    headers_make(&canonical, arena);
    if (count > sigv4_pairs_max)
        abort(); /* Cannot fail, because the callers' parameters are constant. */
    if (count > 0)
        memcpy(query, request->query, count * sizeof *query);
    query[count++] = (struct sigv4_pair){"X-Amz-Algorithm", "AWS4-HMAC-SHA256"};
    query[count++] =
        (struct sigv4_pair){"X-Amz-Credential", arena_printf(arena, "%s/%s", sigv4->access_key,
                                                             scope_of(sigv4, arena, canonical.date))};
    query[count++] = (struct sigv4_pair){"X-Amz-Date", canonical.date};
    query[count++] = (struct sigv4_pair){"X-Amz-Expires", arena_printf(arena, "%lld", (long long)lifetime_s)};
    query[count++] = (struct sigv4_pair){"X-Amz-SignedHeaders", canonical.signed_headers};
    canonical.query = sigv4_query(arena, query, count);
    return arena_printf(arena, "%s&X-Amz-Signature=%s", canonical.query,
                        signature_make(sigv4, arena, &canonical));
}
