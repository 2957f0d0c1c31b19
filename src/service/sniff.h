/*
 * Tells an image by its first bytes.  Knows nothing of image libraries: the API
 * links it to refuse files of other formats while they arrive.
 */
#ifndef SERVICE_SNIFF_H
#define SERVICE_SNIFF_H

#include <stddef.h>

#include "model/format.h"

/* Bytes that decide; fewer may give FORMAT_NONE for an image.  An SVG may begin with a long XML prologue. */
enum { sniff_bytes = 256 };

/* The format that the first n bytes announce.  Says nothing of the rest of the file. */
enum format sniff_format(const void *first_bytes, size_t n);

/*
 * A sentence for the client about a file that is FORMAT_NONE: the format, where
 * it is a well-known one, and how to get an image that is taken.  A constant.
 */
const char *sniff_advice(const void *first_bytes, size_t n);

#endif
