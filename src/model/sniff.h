/*
 * Identifies a picture by its first bytes. Uses no image library, so that the API can refuse
 * other formats while they arrive.
 */
#ifndef MODEL_SNIFF_H
#define MODEL_SNIFF_H

#include <stddef.h>

#include "model/format.h"

/*
 * Number of bytes to pass; with fewer, the format of a picture may be FORMAT_NONE. An SVG may begin with a
 * long XML prologue.
 */
enum { sniff_bytes = 256 };

/* The format according to the first n bytes; the rest of the file may be invalid. */
enum format sniff_format(const void *first_bytes, size_t n);

/*
 * A sentence for the client about a file that the order does not accept: the format, if it is known,
 * and how to convert it. Static, or the arena's.
 */
const char *sniff_advice(struct arena *arena, const void *first_bytes, size_t n);

#endif
