#include "base/json.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/crypto.h"
#include "base/render.h"

enum { depth_max = 32 };

static struct json *tree_copy(struct arena *arena, const json_t *from, const char *name, unsigned depth);

static void child_add(struct json *parent, const struct json **last, const struct json *child)
{
    /* Casting const away is safe: no other code has seen the list yet. */
    if (*last == NULL)
        parent->first = child;
    else
        ((struct json *)(uintptr_t)*last)->next = child;
    *last = child;
    parent->length++;
}

static void children_copy(struct arena *arena, json_t *from, struct json *to, unsigned depth)
{
    const struct json *last = NULL;
    size_t index;
    const char *key;
    json_t *value;
    if (json_is_array(from)) {
        json_array_foreach(from, index, value) child_add(to, &last, tree_copy(arena, value, NULL, depth + 1));
    } else {
        json_object_foreach(from, key, value)
            child_add(to, &last, tree_copy(arena, value, arena_text(arena, key), depth + 1));
    }
}

static struct json *tree_copy(struct arena *arena, const json_t *from, const char *name, unsigned depth)
{
    static const enum json_kind kinds[] = {
        [JSON_OBJECT] = JSON_KIND_OBJECT,   [JSON_ARRAY] = JSON_KIND_ARRAY, [JSON_STRING] = JSON_KIND_STRING,
        [JSON_INTEGER] = JSON_KIND_INTEGER, [JSON_REAL] = JSON_KIND_REAL,   [JSON_TRUE] = JSON_KIND_TRUE,
        [JSON_FALSE] = JSON_KIND_FALSE,     [JSON_NULL] = JSON_KIND_NULL};
    struct json *to = arena_alloc(arena, sizeof *to);
    to->kind = kinds[json_typeof(from)];
    to->name = name;
    to->integer = json_integer_value(from);
    to->real = json_number_value(from);
    if (to->kind == JSON_KIND_STRING) {
        to->length = json_string_length(from);
        to->string = arena_text_n(arena, json_string_value(from), to->length);
    } else if ((to->kind == JSON_KIND_ARRAY || to->kind == JSON_KIND_OBJECT) && depth < depth_max) {
        children_copy(arena, (json_t *)(uintptr_t)from, to, depth);
    }
    return to;
}

static unsigned tree_depth(json_t *from, unsigned depth)
{
    unsigned deepest = depth;
    size_t index;
    const char *key;
    json_t *value;
    if (depth > depth_max)
        return depth;
    json_array_foreach(from, index, value)
    {
        unsigned below = tree_depth(value, depth + 1);
        deepest = below > deepest ? below : deepest;
    }
    json_object_foreach(from, key, value)
    {
        unsigned below = tree_depth(value, depth + 1);
        deepest = below > deepest ? below : deepest;
    }
    return deepest;
}

/*
 * Jansson refuses integers over 63 bits, which are valid JSON. All numbers are then read as
 * reals: is_inexact.
 */
static json_t *text_load(const char *text, size_t length, json_error_t *problem, bool *is_inexact)
{
    static const size_t flags = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY;
    json_t *root = json_loadb(text, length, flags, problem);
    *is_inexact = root == NULL && json_error_code(problem) == json_error_numeric_overflow;
    return *is_inexact ? json_loadb(text, length, flags | JSON_DECODE_INT_AS_REAL, problem) : root;
}

/* The position after a string that begins at a quotation mark; length when it does not end. */
static size_t string_end(const char *text, size_t length, size_t at)
{
    for (at++; at < length && text[at] != '"'; at++)
        at += text[at] == '\\';
    return at < length ? at + 1 : length;
}

/* True when the string at a position is the name of a member whose value is an array. */
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

/* Adds a member with the digest of the text, so that json_digest tells apart integers that became one real.
 */
static void text_digest_add(struct arena *arena, const char *text, size_t length, struct json *root)
{
    uint8_t digest[sha256_bytes];
    struct json *member = arena_alloc(arena, sizeof *member);
    if (root->kind != JSON_KIND_OBJECT)
        return;
    crypto_sha256(text, length, digest);
    *member = (struct json){.kind = JSON_KIND_STRING,
                            .name = "",
                            .string = crypto_hex(arena, digest, sizeof digest),
                            .length = 2 * sizeof digest,
                            .next = root->first};
    root->first = member;
    root->length++;
}

/* ---- bodies that are not JSON ---- */

/* Signatures of other formats. A signature may contain zero bytes. */
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

/* Names the format of a text that is not JSON, with the remedy; NULL when it looks like JSON. */
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

/* Records why the text was not parsed as JSON. */
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

enum iw_error json_read(struct context *context, const char *text, size_t length, const struct json **json)
{
    static const char mark[] = "\xef\xbb\xbf"; /* byte order mark; RFC 8259, section 8.1 allows ignoring it */
    json_error_t problem;
    size_t skipped =
        length >= sizeof mark - 1 && memcmp(text, mark, sizeof mark - 1) == 0 ? sizeof mark - 1 : 0;
    bool is_inexact;
    text += skipped;
    length -= skipped;
    json_t *root = text_load(text, length, &problem, &is_inexact);
    if (root == NULL)
        return text_refuse(context, text, length, &problem);
    bool is_too_deep = tree_depth(root, 0) > depth_max;
    struct json *tree = is_too_deep ? NULL : tree_copy(context->arena, root, NULL, 0);
    json_decref(root);
    *json = tree;
    if (tree != NULL && is_inexact)
        text_digest_add(context->arena, text, length, tree);
    if (tree != NULL)
        return IW_OK;
    context_detail(context, "body", "is nested deeper than the %d levels that are allowed", depth_max);
    return context_validated(context);
}

const char *json_kind_name(enum json_kind kind)
{
    static const char *const names[] = {
        [JSON_KIND_NULL] = "null",        [JSON_KIND_FALSE] = "false",     [JSON_KIND_TRUE] = "true",
        [JSON_KIND_INTEGER] = "a number", [JSON_KIND_REAL] = "a number",   [JSON_KIND_STRING] = "a string",
        [JSON_KIND_ARRAY] = "an array",   [JSON_KIND_OBJECT] = "an object"};
    return names[kind];
}

const struct json *json_member(const struct json *json, const char *name)
{
    if (!json_is(json, JSON_KIND_OBJECT))
        return NULL;
    for (const struct json *child = json->first; child != NULL; child = child->next)
        if (strcmp(child->name, name) == 0)
            return child;
    return NULL;
}

static int name_compare(const void *a, const void *b)
{
    return strcmp((*(const struct json *const *)a)->name, (*(const struct json *const *)b)->name);
}

static void canonical_write(struct render *render, struct arena *arena, const struct json *json);

static void canonical_object(struct render *render, struct arena *arena, const struct json *json)
{
    const struct json **members = arena_array(arena, json->length + 1, sizeof(struct json *));
    size_t count = 0;
    for (const struct json *child = json->first; child != NULL; child = child->next)
        if (!json_is_absent(child))
            members[count++] = child;
    qsort(members, count, sizeof *members, name_compare);
    render_object_begin(render, json->name);
    for (size_t i = 0; i < count; i++)
        canonical_write(render, arena, members[i]);
    render_object_end(render);
}

static void canonical_array(struct render *render, struct arena *arena, const struct json *json)
{
    render_array_begin(render, json->name);
    for (const struct json *child = json->first; child != NULL; child = child->next)
        canonical_write(render, arena, child);
    render_array_end(render);
}

static void canonical_write(struct render *render, struct arena *arena, const struct json *json)
{
    switch (json->kind) {
    case JSON_KIND_OBJECT:
        canonical_object(render, arena, json);
        break;
    case JSON_KIND_ARRAY:
        if (json->length == 0)
            canonical_object(render, arena, json);
        else
            canonical_array(render, arena, json);
        break;
    case JSON_KIND_STRING:
        render_string_n(render, json->name, json->string, json->length);
        break;
    case JSON_KIND_INTEGER:
        render_integer(render, json->name, json->integer);
        break;
    case JSON_KIND_REAL:
        render_real(render, json->name, json->real);
        /* Above 53 bits a real is not the integer of the same digits. */
        if (json->real >= 0x1p53 || json->real <= -0x1p53)
            text_add_string(render->text, "e0");
        break;
    case JSON_KIND_NULL:
        render_null(render, json->name);
        break;
    case JSON_KIND_FALSE:
    case JSON_KIND_TRUE:
        render_boolean(render, json->name, json->kind == JSON_KIND_TRUE);
        break;
    }
}

void json_digest(struct arena *arena, const struct json *json, uint8_t digest[32])
{
    struct text text;
    struct render render;
    text_init(&text, arena);
    render_init(&render, &text);
    canonical_write(&render, arena, json);
    crypto_sha256(text.data, text.length, digest);
}
