/*
 * Tells an image by its first bytes.  Knows nothing of image libraries: the API
 * links it to refuse what is no picture while it arrives.
 */
#ifndef SERVICE_SNIFF_H
#define SERVICE_SNIFF_H

#include <stddef.h>

enum sniff_format { SNIFF_NONE = 0, SNIFF_JPEG, SNIFF_PNG, SNIFF_WEBP };

/* Bytes that decide; fewer may give SNIFF_NONE for what is a picture. */
enum { sniff_bytes = 16 };

/* The format that the first n bytes announce.  Says nothing of the rest of the file. */
enum sniff_format sniff_format(const void *first_bytes, size_t n);

#endif
