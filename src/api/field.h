/*
 * Readers for the fields of a JSON body.  Each function reads and checks one
 * member.  An invalid member adds a detail under the field's full name, so that
 * one response lists every fault of the body.  null counts as absent.
 */
#ifndef API_FIELD_H
#define API_FIELD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/context.h"
#include "base/json.h"

/* An object whose fields are read, and the prefix of their names ("files[3]."). */
struct field_scope {
    struct context *context;
    const struct json *object;
    const char *prefix;
};

/*
 * Opens a member object as inner.  False if it is absent or not an object; the
 * latter adds a detail.  An empty array counts as an empty object (PHP encodes it
 * so), unless the object is required.
 */
bool field_object(const struct field_scope *scope, const char *name, bool is_required,
                  struct field_scope *inner);

/* Adds a detail for the field name. */
void field_bad(const struct field_scope *scope, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A string of least to most code points without control characters; NULL if absent or invalid. */
const struct json *field_string(const struct field_scope *scope, const char *name, bool is_required,
                                size_t least, size_t most);

/* A boolean; fallback if absent or invalid. */
bool field_boolean(const struct field_scope *scope, const char *name, bool fallback);

/* An array of least to most items; NULL if absent or invalid. */
const struct json *field_array(const struct field_scope *scope, const char *name, bool is_required,
                               size_t least, size_t most);

/*
 * An order id as a decimal string.  0, which no order has, for any other text.
 * 0 and a detail if it is absent, empty or not a string.
 */
int64_t field_order_id(const struct field_scope *scope, const char *name);

/* A file name with an extension of these formats (bits); NULL if absent or invalid. */
const char *field_file_name(const struct field_scope *scope, const char *name, unsigned formats);

#endif
