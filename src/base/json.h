/*
 * JSON input: values of Jansson that belong to the arena. Only json.c includes Jansson; render.h writes JSON.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/context.h"
#include "base/text.h"

/* In the order of Jansson's types. */
enum json_kind {
    JSON_KIND_OBJECT,
    JSON_KIND_ARRAY,
    JSON_KIND_STRING,
    JSON_KIND_INTEGER,
    JSON_KIND_REAL,
    JSON_KIND_TRUE,
    JSON_KIND_FALSE,
    JSON_KIND_NULL
};

/* A value. The struct is never defined. */
struct json;

/*
 * Parses a whole text. A UTF-8 byte order mark at the beginning is skipped. Malformed text is
 * VALIDATION_FAILED with a detail for the field "body", whose sentence states line and column, or the format
 * if the text is not JSON at all. Nesting is limited, and duplicate member names are rejected.
 */
enum iw_error json_read(struct context *context, const char *text, size_t length,
                        const struct json **json) IW_MUST_USE;

/*
 * Returns true if the text is an object whose member of this name is an array of more than most items. Scans
 * the text only up to that item and does not parse it, so malformed text may give either result.
 */
bool json_array_exceeds(const char *text, size_t length, const char *name, size_t most);

/* Returns false for NULL. */
bool json_is(const struct json *json, enum json_kind kind);

/* "an array", "true": for use in messages. */
const char *json_kind_name(const struct json *json);

/*
 * Returns the text of a string: UTF-8 with a terminating zero, which may contain zero bytes. Returns NULL for
 * other kinds and for NULL.
 */
const char *json_string_of(const struct json *json);

/* True for a string without zero bytes. */
bool json_is_text(const struct json *json);

/* Returns the number of bytes of a string, items of an array, or members of an object. */
size_t json_length(const struct json *json);

/* Returns the value of an integer; 0 for other kinds. */
int64_t json_integer_of(const struct json *json);

/* Returns the value of a real; 0 for other kinds. */
double json_real_of(const struct json *json);

/* Returns an item of an array; NULL after the last item, and if json is not an array. */
const struct json *json_item(const struct json *json, size_t index);

/* Returns a member of an object; NULL if the member is missing or json is not an object. */
const struct json *json_member(const struct json *json, const char *name);

/*
 * Returns the member that follows the member *name in the text, or the first member if *name is NULL, and
 * sets *name. Returns NULL after the last member, and if json is not an object.
 */
const struct json *json_member_next(const struct json *json, const char **name);

/* True for an object, and for an empty array: PHP writes an empty object as "[]". */
static inline bool json_is_object(const struct json *json)
{
    return json_is(json, JSON_KIND_OBJECT) || (json_is(json, JSON_KIND_ARRAY) && json_length(json) == 0);
}

/* True for a missing member and for null. Requests make no difference between them. */
static inline bool json_is_absent(const struct json *json)
{
    return json == NULL || json_is(json, JSON_KIND_NULL);
}

/*
 * SHA-256 of a canonical form of a value: members sorted by name, no white space, null members left out, an
 * empty array written as an empty object. Requests that mean the same have the same digest. If the text has
 * an integer over 63 bits, its bytes are hashed instead.
 */
void json_digest(const struct json *json, uint8_t digest[32]);

#endif
