/*
 * JSON in: a tree in the arena.  Jansson parses and never leaves json.c.  JSON
 * out is render.h.
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
    const char *name;   /* in an object: the member's name */
    const char *string; /* JSON_KIND_STRING: UTF-8, closed by a zero; may hold zeros inside */
    size_t length;      /* bytes of the string, or the count of children */
    int64_t integer;
    double real;
    const struct json *first; /* children of an array or object, in order */
    const struct json *next;
};

/*
 * Parses a whole text; a byte order mark of UTF-8 before it is skipped.
 * Malformed: VALIDATION_FAILED whose sentence names line and column, or what the
 * text is if it is not JSON at all, with a detail for the field "body".  Nesting is limited, and a
 * name that stands twice in one object is refused.
 */
enum iw_error json_read(struct context *context, const char *text, size_t length,
                        const struct json **json) IW_MUST_USE;

/* "an array", "true": for sentences. */
const char *json_kind_name(enum json_kind kind);

/* The member of an object, or NULL when it is missing (or json is no object). */
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

/* True for a missing member and for null, which mean the same in a request. */
static inline bool json_is_absent(const struct json *json)
{
    return json == NULL || json->kind == JSON_KIND_NULL;
}

/*
 * SHA-256 over a canonical form of a tree: object members sorted by name, no
 * blanks, absent and null the same, an empty array and an empty object too.  Two bodies that mean the same
 * give the same digest, whatever their spelling.
 */
void json_digest(struct arena *arena, const struct json *json, uint8_t digest[32]);

#endif
