/*
 * Reading the fields of a JSON body: each function takes one member, checks it,
 * and adds a detail under the field's full name when it is bad, so that one pass
 * over a body names everything that is wrong with it.  null counts as absent.
 */
#ifndef API_FIELD_H
#define API_FIELD_H

#include <stdbool.h>
#include <stdint.h>

#include <imgward/context.h>

#include "base/json.h"

/* Where fields are: the object, and what its fields' names begin with ("files[3]."). */
struct field_place {
    struct context *context;
    const struct json *object;
    const char *prefix;
};

/*
 * The place of a member object; false when it is absent, or is no object (a
 * detail then).  An empty array counts as an object without members (PHP), but
 * not where one is required, which has members.
 */
bool field_object(const struct field_place *place, const char *name, bool is_required,
                  struct field_place *inner);

/* Adds a detail for the field name of place. */
void field_bad(const struct field_place *place, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * A string of least..most code points without control characters; NULL when it
 * is absent or bad.
 */
const struct json *field_string(const struct field_place *place, const char *name, bool is_required,
                                size_t least, size_t most);

/* A boolean; fallback when it is absent or bad. */
bool field_boolean(const struct field_place *place, const char *name, bool fallback);

/* An array of least..most items; NULL when it is absent or bad. */
const struct json *field_array(const struct field_place *place, const char *name, bool is_required,
                               size_t least, size_t most);

/*
 * An order id, as the decimal string we gave; 0, which no order has, when it is
 * another word, and also when it is absent, empty or not a string (a detail then).
 */
int64_t field_order_id(const struct field_place *place, const char *name);

/* A file name as the contract allows them; NULL when it is absent or bad. */
const char *field_file_name(const struct field_place *place, const char *name);

#endif
