#include "base/redact.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

#define CUT  "\xE2\x80\xA6" /* "…" */
#define MASK "***"

/* Members whose value is a secret, in lower case. */
static const char *const secret_names[] = {"secret",        "password", "token",
                                           "authorization", "apikey",   "api_key"};

struct redaction {
    char *to;
    size_t length;
    size_t room; /* without CUT */
    bool is_cut;
    unsigned depth;        /* of objects and arrays */
    unsigned hidden_depth; /* of the object "headers" that is open; 0 if none is */
    bool is_secret;        /* the next value is a secret */
    bool is_headers;       /* the next value is the value of "headers" */
};

static void put(struct redaction *copy, const char *bytes, size_t length)
{
    if (copy->is_cut)
        return;
    if (length > copy->room - copy->length) {
        length = copy->room - copy->length;
        copy->is_cut = true;
    }
    memcpy(copy->to + copy->length, bytes, length);
    copy->length += length;
}

/* ---- URLs ---- */

static bool is_url(const char *at, const char *end)
{
    size_t length = end - at > 8 ? 8 : (size_t)(end - at);
    return (length > 5 && strncasecmp(at, "http:", 5) == 0) ||
           (length > 6 && strncasecmp(at, "https:", 6) == 0);
}

static const char *url_end(const char *at, const char *end)
{
    while (at < end && strchr(" \t\r\n\"'<>", *at) == NULL)
        at++;
    return at;
}

/* JSON may write the slashes as "\/". */
static const char *url_put(struct redaction *copy, const char *at, const char *end)
{
    const char *last = url_end(at, end), *query = memchr(at, '?', (size_t)(last - at));
    const char *host = at + strlen("http:"), *path = query != NULL ? query : last;
    while (host < path && strchr(":/\\", *host) != NULL)
        host++;
    const char *slash = host;
    while (slash < path && strchr("/\\", *slash) == NULL)
        slash++;
    const char *user = memrchr(host, '@', (size_t)(slash - host));
    put(copy, at, (size_t)(host - at));
    if (user != NULL)
        put(copy, MASK, strlen(MASK));
    put(copy, user != NULL ? user : host, (size_t)(path - (user != NULL ? user : host)));
    if (query != NULL)
        put(copy, "?" MASK, strlen("?" MASK));
    return last;
}

static void span_put(struct redaction *copy, const char *at, const char *end)
{
    const char *start = at;
    while (at < end && !copy->is_cut) {
        if ((*at | 0x20) != 'h' || !is_url(at, end)) {
            at++;
            continue;
        }
        put(copy, start, (size_t)(at - start));
        start = at = url_put(copy, at, end);
    }
    put(copy, start, (size_t)(end - start));
}

/* ---- JSON ---- */

/* Follows the objects between two texts. */
static void structure_follow(struct redaction *copy, const char *at, const char *end)
{
    for (; at < end; at++) {
        if (*at == '{' || *at == '[')
            copy->depth++;
        if (*at == '{' && copy->is_headers && copy->hidden_depth == 0)
            copy->hidden_depth = copy->depth;
        if ((*at == '}' || *at == ']') && copy->depth == copy->hidden_depth)
            copy->hidden_depth = 0;
        if ((*at == '}' || *at == ']') && copy->depth > 0)
            copy->depth--;
        if (strchr("{}],", *at) != NULL)
            copy->is_secret = copy->is_headers = false;
    }
}

/* Returns the quote that ends a text, or end. */
static const char *quote_find(const char *at, const char *end)
{
    while (at < end && *at != '"')
        at += *at == '\\' && at + 1 < end ? 2 : 1;
    return at;
}

static bool is_name(const char *after, const char *end)
{
    while (after < end && strchr(" \t\r\n", *after) != NULL)
        after++;
    return after < end && *after == ':';
}

static void name_follow(struct redaction *copy, const char *name, size_t length)
{
    copy->is_secret = false;
    copy->is_headers = length == strlen("headers") && memcmp(name, "headers", length) == 0;
    for (size_t i = 0; i < sizeof secret_names / sizeof secret_names[0]; i++)
        copy->is_secret |=
            strlen(secret_names[i]) == length && strncasecmp(secret_names[i], name, length) == 0;
}

/* Copies a text from its first quote to its last. */
static const char *text_put(struct redaction *copy, const char *at, const char *end)
{
    const char *close = quote_find(at + 1, end);
    put(copy, at, 1);
    if (close < end && is_name(close + 1, end)) {
        name_follow(copy, at + 1, (size_t)(close - at - 1));
        put(copy, at + 1, (size_t)(close - at - 1));
    } else if (copy->is_secret || copy->hidden_depth > 0) {
        put(copy, MASK, strlen(MASK));
    } else {
        span_put(copy, at + 1, close);
    }
    put(copy, close, close < end);
    return close < end ? close + 1 : end;
}

/* ---- the result ---- */

/* Removes the character that the cut may have split. */
static void cut_end(struct redaction *copy)
{
    while (copy->length > 0 && (copy->to[copy->length - 1] & 0xC0) == 0x80)
        copy->length--;
    if (copy->length > 0 && (copy->to[copy->length - 1] & 0x80) != 0)
        copy->length--;
    memcpy(copy->to + copy->length, CUT, strlen(CUT));
    copy->length += strlen(CUT);
}

static void characters_clean(struct redaction *copy)
{
    bool is_utf8 = text_is_utf8(copy->to, copy->length);
    for (size_t i = 0; i < copy->length; i++) {
        unsigned char byte = (unsigned char)copy->to[i];
        if ((byte < 0x20 && strchr("\t\r\n", byte) == NULL) || byte == 0 || byte == 0x7F ||
            (byte > 0x7F && !is_utf8))
            copy->to[i] = '?';
    }
}

const char *redact(struct arena *arena, const char *text, size_t length, size_t most)
{
    struct redaction copy = {.to = arena_array(arena, most + 1, 1), .room = most - strlen(CUT)};
    const char *end = text + length;
    for (const char *at = text; at < end && !copy.is_cut;) {
        const char *quote = memchr(at, '"', (size_t)(end - at));
        quote = quote != NULL ? quote : end;
        structure_follow(&copy, at, quote);
        span_put(&copy, at, quote);
        at = quote < end ? text_put(&copy, quote, end) : end;
    }
    if (copy.is_cut)
        cut_end(&copy);
    characters_clean(&copy);
    copy.to[copy.length] = '\0';
    return copy.to;
}
