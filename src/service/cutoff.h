/*
 * Tells a PNG or WebP file whose end is missing by the lengths that the file
 * itself announces, while its bytes pass by.  No pixel is decoded and nothing is
 * kept but some bytes.
 *
 * It says "cut off" only of a file that no decoder can take: pixels are surely
 * missing.  A cut that loses nothing but an end marker, checksums or metadata is
 * left to the decoder, and so is every structure that is not the one of the
 * format.  Nothing is said of a JPEG: its scans announce no length.  Sources: the
 * PNG specification, chapter 5; RFC 9649 (WebP); RFC 1950 and RFC 1951 (what can
 * follow the last pixel).
 */
#ifndef SERVICE_CUTOFF_H
#define SERVICE_CUTOFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "service/sniff.h"

enum { cutoff_head_max = 12 };

/* All zeros but the format at the beginning. */
struct cutoff {
    enum format format;
    uint8_t head[cutoff_head_max]; /* of the chunk at hand, as far as it is here */
    size_t head_count;
    unsigned heads;       /* read so far: the first one is the signature of the file; 2 at most */
    uint64_t left_bytes;  /* of the chunk at hand, behind its head */
    bool is_in_pixels;    /* the chunk at hand holds pixels */
    bool has_pixels;      /* such a chunk has begun */
    bool is_judged;       /* nothing more is to be said of the file */
    uint64_t size_bytes;  /* so far */
    uint64_t named_bytes; /* the size that a WebP file gives itself */
    uint8_t tail[cutoff_head_max];
};

/* Takes the next bytes of the file, from its first on. */
void cutoff_add(struct cutoff *cutoff, const void *bytes, size_t size);

/* Whether the file that has ended now lacks pixels. */
bool cutoff_is_cut(const struct cutoff *cutoff);

#endif
