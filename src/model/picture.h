/*
 * The memory that a picture takes in an image process, estimated from the header. The image process refuses
 * a picture before it decodes a pixel. The pool, which has no image library, refuses the upload by the same
 * numbers.
 */
#ifndef MODEL_PICTURE_H
#define MODEL_PICTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/context.h"
#include "model/format.h"
#include "model/order.h"

/* Pixels above which lossless WebP is written by the fastest method, which needs less memory. */
enum { picture_webp_fast_from_px = 12000000 };

/* The shortest side that an engine changes. A protection has no source for less; a mark does not fit less. */
enum { picture_protect_side_px = 64, picture_embed_side_px = 256 };

/* Limits of an engine, and its memory beside the picture. */
struct picture_engine {
    uint32_t side_min_px; /* 0 if there is none */
    uint32_t bytes_px;
    uint32_t bytes_max; /* the most that bytes_px gives; 0 means no limit */
    uint32_t bytes_column;
    uint32_t early_bytes_100px; /* in addition, before an encoder runs; for 100 pixels */
    bool is_read_only;          /* nothing is encoded */
};

/* What a header says. */
struct picture_form {
    enum format format;
    uint32_t width_px;
    uint32_t height_px;
    uint32_t channels; /* as decoded */
    uint32_t depth_bits;
    bool is_lossless;           /* WebP */
    bool is_cmyk;               /* JPEG: the inks are kept beside the pixels */
    uint64_t coefficient_bytes; /* JPEG: all of them, if they are held at once; else 0 */
};

/* Peaks with the pixels, without the engine. */
struct picture_load {
    uint32_t width_px;
    uint32_t height_px;
    uint64_t pixel_bytes; /* with the inks of CMYK */
    uint64_t decode_bytes;
    uint64_t encode_bytes;
};

/* The engine of an order's type. */
const struct picture_engine *picture_engine(enum order_type type);

/* Measured for each format; picture.c has the numbers. */
struct picture_load picture_load(const struct picture_form *form);

/* The peak of the whole work. */
uint64_t picture_work_bytes(const struct picture_load *load, const struct picture_engine *engine);

/* What the estimate may take of an image process: an eighth is for the file, the result and the libraries. */
uint64_t picture_allowed_bytes(uint64_t process_bytes);

/*
 * IMAGE_TOO_LARGE with the need, the limit and the size that fits, if the work takes more than most_bytes;
 * 0 is no limit.
 */
enum iw_error picture_check_memory(struct context *context, const struct picture_load *load,
                                   const struct picture_engine *engine, uint64_t most_bytes) IW_MUST_USE;

/* Megapixels of the largest sequential JPEG of 3:2 that an order's type can have in most_bytes. */
unsigned picture_megapixels(enum order_type type, uint64_t most_bytes);

#endif
