/*
 * JSON input: a tree in the arena. Jansson parses it; only json.c includes Jansson. render.h
 * writes JSON.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include <imgward/context.h>

#include "base/text.h"

enum json_kind {
    JSON_KIND_NULL,
    JSON_KIND_FALSE,
    JSON_KIND_TRUE,
    JSON_KIND_INTEGER,
    JSON_KIND_REAL,
    JSON_KIND_STRING,
    JSON_KIND_ARRAY,
    JSON_KIND_OBJECT
};

struct json {
    enum json_kind kind;
    const char *name;   /* member name, when the parent is an object */
    const char *string; /* JSON_KIND_STRING: UTF-8 with a terminating zero; may contain zero bytes */
    size_t length;      /* bytes of the string, or number of children */
    int64_t integer;
    double real;
    const struct json *first; /* children of an array or object, in order */
    const struct json *next;
};

/*
 * Parses a whole text. A UTF-8 byte order mark at the beginning is skipped. Malformed text is
 * VALIDATION_FAILED with a detail for the field "body". Its sentence names line and column, or
 * the format when the text is not JSON at all. Nesting is limited. Duplicate member names are
 * refused.
 */
enum iw_error json_read(struct context *context, const char *text, size_t length,
                        const struct json **json) IW_MUST_USE;

/*
 * True when the text is an object whose member of this name is an array of more than most items.
 * Reads up to that item and parses nothing; malformed text may give either value.
 */
bool json_array_exceeds(const char *text, size_t length, const char *name, size_t most);

/* "an array", "true": for use in messages. */
const char *json_kind_name(enum json_kind kind);

/* A member of an object; NULL when it is missing or json is not an object. */
const struct json *json_member(const struct json *json, const char *name);

static inline bool json_is(const struct json *json, enum json_kind kind)
{
    return json != NULL && json->kind == kind;
}

/* True for an object, and for an empty array: PHP writes an empty object as "[]". */
static inline bool json_is_object(const struct json *json)
{
    return json_is(json, JSON_KIND_OBJECT) || (json_is(json, JSON_KIND_ARRAY) && json->length == 0);
}

/* True for a missing member and for null. Requests treat both the same. */
static inline bool json_is_absent(const struct json *json)
{
    return json == NULL || json->kind == JSON_KIND_NULL;
}

/*
 * SHA-256 of a canonical form of a tree: members sorted by name, no white space, null members
 * left out, an empty array written as an empty object. Requests that mean the same have the
 * same digest. A text with an integer over 63 bits has the digest of its bytes instead.
 */
void json_digest(struct arena *arena, const struct json *json, uint8_t digest[32]);

#endif
