/*
 * Reads the size and the kind of a picture from the header while the bytes arrive, without an image library.
 *
 * It reads the header that every decoder reads: the first frame header of a JPEG, the IHDR of a PNG, the
 * frame header of a still WebP. If there is none, or if the structure is unusual, the image process decides.
 *
 * Sources: ITU-T T.81, B.2.2; the PNG specification, 11.2.1; RFC 6386, 9.1 and RFC 9649, 3.4 (WebP).
 */
#ifndef SERVICE_FILES_HEADER_H
#define SERVICE_FILES_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/picture.h"

enum { header_head_max = 32 };

/* Initialise to zeros, and set form.format. */
struct header {
    struct picture_form form;
    uint8_t head[header_head_max]; /* the bytes of the current part that have arrived */
    size_t count;
    size_t wanted;       /* bytes of the part; 0 before the first byte */
    uint64_t skip_bytes; /* bytes before the next part */
    bool is_over;        /* further bytes are ignored */
};

/* Adds the next bytes of the file. Returns true once, when form has become complete. */
bool header_add(struct header *header, const void *bytes, size_t size);

/*
 * IMAGE_TOO_LARGE if the work of this order type needs more memory than an image process has; 0 means no
 * limit.
 */
enum iw_error header_check(struct context *context, const struct header *header, enum order_type type,
                           int64_t image_memory_bytes) IW_MUST_USE;

#endif
