#include "base/redact.h"

#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/render.h"

#define CUT  "\xE2\x80\xA6" /* "…" */
#define MASK "***"

/* Parts of the names of members whose values are masked, in lower case without "_" and "-". */
static const char *const secret_parts[] = {"secret", "password",  "token",      "authorization", "header",
                                           "apikey", "accesskey", "privatekey", "signature",     "cookie"};

/* The beginnings of the service's own secrets. */
static const char *const tokens[] = {"iw_live_", "whsec_"};

struct redaction {
    struct arena *arena; /* of one call */
    struct text text;
    struct render render;
    size_t most;
};

/* ---- texts ---- */

static bool is_slash(char byte)
{
    return byte == '/' || byte == '\\';
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

static bool is_of_token(char byte)
{
    return (byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z') ||
           (byte != '\0' && strchr("_-+/=", byte) != NULL);
}

/* Returns the length of the token that begins here, or 0. */
static size_t token_length(const char *at, const char *end)
{
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        size_t length = strlen(tokens[i]);
        if ((size_t)(end - at) < length || memcmp(at, tokens[i], length) != 0)
            continue;
        while (at + length < end && is_of_token(at[length]))
            length++;
        return length;
    }
    return 0;
}

static bool ends_with_scheme(const char *start, const char *colon)
{
    static const char *const schemes[] = {"http", "https", "ftp"};
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        size_t length = strlen(schemes[i]);
        if ((size_t)(colon - start) >= length && strncasecmp(colon - length, schemes[i], length) == 0)
            return true;
    }
    return false;
}

/* Returns where the host of a URL may begin if this is the colon of its scheme, otherwise NULL. */
static const char *host_find(const char *start, const char *at, const char *end)
{
    const char *host = at + 1;
    if (*at != ':')
        return NULL;
    while (host < end && is_slash(*host))
        host++;
    return host > at + 1 || ends_with_scheme(start, at) ? host : NULL;
}

/* Returns where the text goes on after the user name and the password, which need not be valid. */
static const char *user_mask(struct text *to, const char *host, const char *end)
{
    const char *slash = host;
    while (slash < end && !is_slash(*slash))
        slash++;
    const char *at = memrchr(host, '@', (size_t)(slash - host));
    if (at != NULL)
        text_add_string(to, MASK);
    return at != NULL ? at : host;
}

/* True for "?a=b": a query without the URL. */
static bool has_pair(const char *at, const char *end)
{
    for (at++; at < end && !is_blank(*at) && *at != '?' && *at != '#'; at++)
        if (*at == '=')
            return true;
    return false;
}

/*
 * Copies a text. After the first URL begins, all from a query or a fragment on is masked: blanks and quotes
 * do not end a URL, because clients write them into URLs by mistake.
 */
static void text_mask(struct text *to, const char *at, const char *end, size_t most)
{
    const char *start = at, *host = NULL;
    while (at < end && is_slash(*at))
        at++;
    bool is_url = at - start >= 2;
    text_add(to, start, (size_t)(at - start));
    if (is_url)
        at = user_mask(to, at, end);
    while (at < end && to->length <= most) {
        size_t token = token_length(at, end);
        if ((*at == '?' || *at == '#') && (is_url || has_pair(at, end))) {
            text_add(to, at, 1);
            text_add_string(to, MASK);
            return;
        }
        if (token > 0) {
            text_add_string(to, MASK);
            at += token;
        } else if ((host = host_find(start, at, end)) != NULL) {
            is_url = true;
            text_add(to, at, (size_t)(host - at));
            at = user_mask(to, host, end);
        } else {
            text_add(to, at++, 1);
        }
    }
}

static struct text text_masked(const struct redaction *copy, const char *text, size_t length)
{
    struct text masked;
    text_init(&masked, copy->arena);
    text_mask(&masked, text, text + length, copy->most);
    return masked;
}

/* ---- JSON ---- */

static bool is_secret(const struct redaction *copy, const char *name)
{
    size_t length = 0;
    char *plain = arena_array(copy->arena, strlen(name) + 1, 1);
    for (; *name != '\0'; name++)
        if (*name != '_' && *name != '-')
            plain[length++] = *name;
    for (size_t i = 0; i < sizeof secret_parts / sizeof secret_parts[0]; i++)
        if (strcasestr(plain, secret_parts[i]) != NULL)
            return true;
    return false;
}

static void plain_put(struct redaction *copy, const char *key, const struct json *json)
{
    const char *string = json_string_of(json);
    if (string != NULL) {
        const struct text masked = text_masked(copy, string, json_length(json));
        render_string_n(&copy->render, key, masked.data, masked.length);
    } else if (json_is(json, JSON_KIND_INTEGER)) {
        render_integer(&copy->render, key, json_integer_of(json));
    } else if (json_is(json, JSON_KIND_REAL)) {
        render_real(&copy->render, key, json_real_of(json));
    } else if (json_is(json, JSON_KIND_NULL)) {
        render_null(&copy->render, key);
    } else {
        render_boolean(&copy->render, key, json_is(json, JSON_KIND_TRUE));
    }
}

/* Goes no further than the copy has room. */
static void value_put(struct redaction *copy, const char *key, const struct json *json, bool is_hidden)
{
    const char *name = NULL;
    if (json_is(json, JSON_KIND_OBJECT)) {
        render_object_begin(&copy->render, key);
        for (const struct json *member;
             copy->text.length <= copy->most && (member = json_member_next(json, &name)) != NULL;)
            value_put(copy, text_masked(copy, name, strlen(name)).data, member,
                      is_hidden || is_secret(copy, name));
        render_object_end(&copy->render);
    } else if (json_is(json, JSON_KIND_ARRAY)) {
        render_array_begin(&copy->render, key);
        for (size_t i = 0; copy->text.length <= copy->most && i < json_length(json); i++)
            value_put(copy, NULL, json_item(json, i), is_hidden);
        render_array_end(&copy->render);
    } else if (is_hidden && !json_is(json, JSON_KIND_NULL)) {
        render_string(&copy->render, key, MASK);
    } else {
        plain_put(copy, key, json);
    }
}

/* ---- the result ---- */

static void characters_clean(struct text *text)
{
    bool is_utf8 = text_is_utf8(text->data, text->length);
    for (size_t i = 0; i < text->length; i++) {
        unsigned char byte = (unsigned char)text->data[i];
        if ((byte < 0x20 && !is_blank((char)byte)) || byte == 0x7F || (byte > 0x7F && !is_utf8))
            text->data[i] = '?';
    }
}

/* Copies the start that has room, without a character that the cut would split. */
static const char *start_copy(struct arena *arena, const struct text *text, size_t most)
{
    size_t length = most - strlen(CUT);
    if (text->length <= most)
        return arena_text_n(arena, text->data, text->length);
    while (length > 0 && (text->data[length] & 0xC0) == 0x80)
        length--;
    return arena_printf(arena, "%.*s" CUT, (int)length, text->data);
}

static const char *copy_make(struct arena *arena, const char *text, size_t length, size_t most, bool is_free)
{
    const struct json *json;
    struct context context;
    struct redaction copy = {.arena = arena_new(0), .most = most};
    context_init(&context, copy.arena, NULL);
    text_init(&copy.text, copy.arena);
    render_init(&copy.render, &copy.text);
    if (length > redact_read_max)
        text_printf(&copy.text, "(not kept: %zu bytes; at most %d are read)", length, redact_read_max);
    else if (json_read(&context, text, length, &json) == IW_OK)
        value_put(&copy, NULL, json, false);
    else if (is_free && memchr(text, '{', length) == NULL)
        text_mask(&copy.text, text, text + length, most);
    else if (length > 0)
        text_printf(&copy.text, "(not kept: %zu bytes that are not valid JSON)", length);
    characters_clean(&copy.text);
    const char *result = start_copy(arena, &copy.text, most);
    arena_free(copy.arena);
    return result;
}

const char *redact(struct arena *arena, const char *text, size_t length, size_t most)
{
    return copy_make(arena, text, length, most, false);
}

const char *redact_answer(struct arena *arena, const char *text, size_t length, size_t most)
{
    return copy_make(arena, text, length, most, true);
}
