#include "base/json.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/crypto.h"

enum { depth_max = 32 };

_Static_assert(JSON_KIND_OBJECT == (int)JSON_OBJECT && JSON_KIND_NULL == (int)JSON_NULL, "kinds of json.h");

static json_t *value_of(const struct json *json)
{
    return (json_t *)(uintptr_t)json;
}

static const struct json *json_of(const json_t *value)
{
    return (const struct json *)value;
}

static bool is_too_deep(json_t *from, unsigned depth)
{
    size_t index;
    const char *key;
    json_t *value;
    bool is_deep = depth > depth_max;
    json_array_foreach(from, index, value) is_deep = is_deep || is_too_deep(value, depth + 1);
    json_object_foreach(from, key, value) is_deep = is_deep || is_too_deep(value, depth + 1);
    return is_deep;
}

/*
 * Jansson rejects integers over 63 bits, which are valid JSON. If the text has such an integer, all numbers
 * are read as reals and is_inexact is set.
 */
static json_t *text_load(const char *text, size_t length, json_error_t *problem, bool *is_inexact)
{
    static const size_t flags = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY;
    json_t *root = json_loadb(text, length, flags, problem);
    *is_inexact = root == NULL && json_error_code(problem) == json_error_numeric_overflow;
    return *is_inexact ? json_loadb(text, length, flags | JSON_DECODE_INT_AS_REAL, problem) : root;
}

/*
 * Returns the position after a string that begins at a quotation mark, or length if the string does not end.
 */
static size_t string_end(const char *text, size_t length, size_t at)
{
    for (at++; at < length && text[at] != '"'; at++)
        at += text[at] == '\\';
    return at < length ? at + 1 : length;
}

/* Returns true if the string at a position is the name of a member whose value is an array. */
static bool array_begins(const char *text, size_t length, size_t at, const char *name)
{
    size_t size = strlen(name), after = at + size + 2;
    if (length - at < size + 2 || memcmp(text + at + 1, name, size) != 0 || text[after - 1] != '"')
        return false;
    while (after < length && strchr(" \t\r\n:", text[after]) != NULL && text[after] != '\0')
        after++;
    return after < length && text[after] == '[';
}

bool json_array_exceeds(const char *text, size_t length, const char *name, size_t most)
{
    size_t commas = 0, depth = 0;
    bool is_inside = false;
    for (size_t at = 0; at < length;) {
        char byte = text[at];
        if (byte == '"') {
            is_inside = is_inside || (depth == 1 && array_begins(text, length, at, name));
            at = string_end(text, length, at);
            continue;
        }
        depth += byte == '[' || byte == '{';
        commas += is_inside && depth == 2 && byte == ',';
        if ((byte == ']' || byte == '}') && depth > 0 && --depth == 1 && is_inside)
            return commas >= most;
        if (commas >= most)
            return true;
        at++;
    }
    return false;
}

/*
 * Adds a member with the digest of the text, so that json_digest distinguishes integers that became the same
 * real.
 */
static void text_digest_add(struct arena *arena, const char *text, size_t length, json_t *root)
{
    uint8_t digest[sha256_bytes];
    crypto_sha256(text, length, digest);
    if (json_typeof(root) == JSON_OBJECT)
        json_object_set_new(root, "", json_string(crypto_hex(arena, digest, sizeof digest)));
}

/* ---- bodies that are not JSON ---- */

/* Signatures of other formats; they may contain zero bytes. */
static const struct {
    size_t size;
    const char *bytes;
    const char *what;
} beginnings[] = {
    {4, "\xff\xfe\0\0", "UTF-32 text; send JSON in UTF-8"},
    {4, "\0\0\xfe\xff", "UTF-32 text; send JSON in UTF-8"},
    {3, "\0\0\0", "UTF-32 text; send JSON in UTF-8"},
    {2, "\xff\xfe", "UTF-16 text; send JSON in UTF-8"},
    {2, "\xfe\xff", "UTF-16 text; send JSON in UTF-8"},
    {1, "\0", "UTF-16 text; send JSON in UTF-8"},
    {2, "\x1f\x8b", "compressed with gzip; send the JSON uncompressed"},
    {2, "--", "a form (multipart/form-data); send a JSON object"},
    {1, "<", "XML or HTML; send a JSON object"},
};

/* Returns the format of a text that is not JSON, with the remedy, or NULL if the text looks like JSON. */
static const char *foreign_text(const char *text, size_t length)
{
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++)
        if (length >= beginnings[i].size && memcmp(text, beginnings[i].bytes, beginnings[i].size) == 0)
            return beginnings[i].what;
    /* UTF-16 or UTF-32, little endian, without a byte order mark (RFC 4627, section 3). */
    if (length >= 4 && text[1] == '\0')
        return text[2] == '\0' ? "UTF-32 text; send JSON in UTF-8" : "UTF-16 text; send JSON in UTF-8";
    /* "name=" begins application/x-www-form-urlencoded. */
    size_t at = 0;
    while (at < length && (isalnum((unsigned char)text[at]) || strchr("_-.%+[]", text[at]) != NULL))
        at++;
    return at > 0 && at < length && text[at] == '=' ? "a form (name=value); send a JSON object" : NULL;
}

/* Records why the text cannot be parsed as JSON. */
static enum iw_error text_refuse(struct context *context, const char *text, size_t length,
                                 const json_error_t *problem)
{
    const char *foreign = foreign_text(text, length);
    size_t blanks = 0;
    while (blanks < length && text[blanks] != '\0' && strchr(" \t\r\n", text[blanks]) != NULL)
        blanks++;
    if (blanks == length) {
        context_detail(context, "body", "is empty; it must be a JSON object");
        return context_fail(context, IW_VALIDATION_FAILED, "The body is empty; send a JSON object.");
    }
    if (foreign != NULL) {
        context_detail(context, "body", "is not JSON but %s", foreign);
        return context_fail(context, IW_VALIDATION_FAILED, "The body is not JSON but %s.", foreign);
    }
    context_detail(context, "body", "malformed JSON at line %d, column %d: %s", problem->line,
                   problem->column, problem->text);
    return context_fail(context, IW_VALIDATION_FAILED, "The body is not valid JSON (line %d, column %d): %s.",
                        problem->line, problem->column, problem->text);
}

static void value_end(void *value)
{
    json_decref(value);
}

enum iw_error json_read(struct context *context, const char *text, size_t length, const struct json **json)
{
    static const char mark[] = "\xef\xbb\xbf"; /* byte order mark; a parser may ignore it (RFC 8259, 8.1) */
    json_error_t problem;
    size_t skipped =
        length >= sizeof mark - 1 && memcmp(text, mark, sizeof mark - 1) == 0 ? sizeof mark - 1 : 0;
    bool is_inexact;
    text += skipped;
    length -= skipped;
    json_t *root = text_load(text, length, &problem, &is_inexact);
    if (root == NULL)
        return text_refuse(context, text, length, &problem);
    arena_at_end(context->arena, value_end, root);
    if (is_too_deep(root, 0)) {
        context_detail(context, "body", "is nested more than %d levels deep; reduce the nesting", depth_max);
        return context_validated(context);
    }
    if (is_inexact)
        text_digest_add(context->arena, text, length, root);
    *json = json_of(root);
    return IW_OK;
}

bool json_is(const struct json *json, enum json_kind kind)
{
    return json != NULL && (int)json_typeof(value_of(json)) == (int)kind;
}

const char *json_kind_name(const struct json *json)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array", [JSON_STRING] = "a string",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a number",  [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "null"};
    return names[json_typeof(value_of(json))];
}

const char *json_string_of(const struct json *json)
{
    return json_string_value(value_of(json));
}

bool json_is_text(const struct json *json)
{
    return json_is(json, JSON_KIND_STRING) && strlen(json_string_of(json)) == json_length(json);
}

size_t json_length(const struct json *json)
{
    const json_t *value = value_of(json);
    return json_string_length(value) + json_array_size(value) + json_object_size(value);
}

int64_t json_integer_of(const struct json *json)
{
    return json_integer_value(value_of(json));
}

double json_real_of(const struct json *json)
{
    return json_real_value(value_of(json));
}

const struct json *json_item(const struct json *json, size_t index)
{
    return json_of(json_array_get(value_of(json), index));
}

const struct json *json_member(const struct json *json, const char *name)
{
    return json_of(json_object_get(value_of(json), name));
}

const struct json *json_member_next(const struct json *json, const char **name)
{
    json_t *object = value_of(json);
    void *at = *name == NULL ? json_object_iter(object)
                             : json_object_iter_next(object, json_object_key_to_iter(*name));
    *name = json_object_iter_key(at);
    return json_of(json_object_iter_value(at));
}

/*
 * Returns a copy in which texts that mean the same are equal; the caller owns the reference. A real above 53
 * bits does not count as an integer.
 */
static json_t *canonical(json_t *from)
{
    size_t index;
    const char *key;
    json_t *value;
    double real = json_real_value(from);
    if (json_is_real(from) && real > -0x1p53 && real < 0x1p53 && real == trunc(real))
        return json_integer((json_int_t)real);
    if (json_typeof(from) != JSON_ARRAY && json_typeof(from) != JSON_OBJECT)
        return json_incref(from);
    json_t *to = json_array_size(from) > 0 ? json_array() : json_object();
    json_array_foreach(from, index, value) json_array_append_new(to, canonical(value));
    json_object_foreach(from, key, value) if (!json_is_null(value))
        json_object_set_new_nocheck(to, key, canonical(value));
    return to;
}

void json_digest(const struct json *json, uint8_t digest[32])
{
    json_t *value = canonical(value_of(json));
    char *text = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    if (text == NULL)
        abort();
    crypto_sha256(text, strlen(text), digest);
    free(text);
    json_decref(value);
}
