/*
 * Detects PNG and WebP files whose end is missing, from the lengths in the file, while the
 * bytes arrive. It decodes no pixels and keeps only a few bytes.
 *
 * It reports "cut off" only for a file that no decoder accepts because pixels are missing. If only an end
 * marker, checksums or metadata are missing, or if the structure is invalid, the decoder decides. JPEG is
 * never reported, because its scans have no length field.
 *
 * Sources: the PNG specification, chapter 5; RFC 9649 (WebP); RFC 1950 and RFC 1951 (bytes
 * after the last pixel).
 */
#ifndef SERVICE_FILES_CUTOFF_H
#define SERVICE_FILES_CUTOFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/sniff.h"

enum { cutoff_head_max = 12 };

/* Initialise to zeros, and set the format. */
struct cutoff {
    enum format format;
    uint8_t head[cutoff_head_max]; /* the bytes of the current chunk's header that have arrived */
    size_t head_count;
    unsigned heads;       /* number of headers read, counted up to 2; the first is the file signature */
    uint64_t left_bytes;  /* remaining bytes of the current chunk after its header */
    bool is_in_pixels;    /* the current chunk holds pixels */
    bool has_pixels;      /* a chunk with pixels has begun */
    bool is_judged;       /* decided; further bytes are ignored */
    uint64_t size_bytes;  /* bytes added so far */
    uint64_t named_bytes; /* size of the file according to the WebP header */
    uint8_t tail[cutoff_head_max];
};

/* Adds the next bytes of the file; begin with the first. */
void cutoff_add(struct cutoff *cutoff, const void *bytes, size_t size);

/* Call after the last byte: true if the file lacks pixels. */
bool cutoff_is_cut(const struct cutoff *cutoff);

#endif
