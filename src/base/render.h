/* JSON output into a growing text. */
#ifndef BASE_RENDER_H
#define BASE_RENDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

/*
 * A writer. It adds commas and escapes keys and values. A NULL string is written as null.
 * Array elements have a NULL key.
 */
struct render {
    struct text *text;
    bool needs_comma;
};

void render_init(struct render *render, struct text *text);
void render_object_begin(struct render *render, const char *key);
void render_object_end(struct render *render);
void render_array_begin(struct render *render, const char *key);
void render_array_end(struct render *render);
void render_string(struct render *render, const char *key, const char *value);
void render_string_n(struct render *render, const char *key, const char *value, size_t length);
void render_integer(struct render *render, const char *key, int64_t value);
void render_real(struct render *render, const char *key, double value);
void render_boolean(struct render *render, const char *key, bool value);
void render_null(struct render *render, const char *key);

/*
 * Writes lines of name, tab and value, each closed by a line feed, as an object of strings.  A line without a
 * tab is left out.
 */
void render_lines(struct render *render, const char *key, const char *lines);

/* An ISO 8601 time; 0 becomes null. */
void render_time(struct render *render, const char *key, int64_t time_ms);

/* Writes an integer as a decimal string, because JavaScript numbers cannot hold every id. */
void render_id(struct render *render, const char *key, int64_t id);

#endif
