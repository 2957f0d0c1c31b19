/* The properties that a file's header gives, and the limits that they are checked against before decoding. */
#ifndef CODEC_LIMITS_H
#define CODEC_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/context.h"
#include "model/format.h"
#include "model/picture.h"

/* JPEG scans. Each is a pass over the whole picture, so the number limits CPU time. */
enum { codec_scans_max = 100 };

/* Readable rows of a partial picture; fewer is IMAGE_CORRUPT. The watermark reader needs as many. */
enum { codec_partial_rows_least = 48 };

struct codec_limits {
    uint64_t pixels_max;       /* 0 means no limit */
    uint32_t side_max_px;      /* 0 means no limit */
    uint32_t side_min_px;      /* of the shorter side; less is IMAGE_TOO_SMALL */
    uint64_t memory_max_bytes; /* peak of decoding or encoding, with pixels; 0 means no limit */
    struct picture_engine
        engine;              /* of the caller, in addition to the picture; is_read_only: no encoding, and */
                             /* an animation's first frame is decoded */
    unsigned formats_more;   /* with is_read_only: formats beside those that are changed, as bits */
    bool is_partial_allowed; /* with is_read_only: missing pixels are no error; the picture */
                             /* ends after the last readable row */
};

/* Properties that the header gives. */
struct codec_header {
    enum format format;
    uint32_t width_px;
    uint32_t height_px;
    uint32_t channels;            /* as decoded, see engine/image.h */
    uint32_t depth_bits;          /* 8 or 16 */
    bool is_lossy;                /* JPEG and lossy WebP */
    bool is_small;                /* decoded: stored without loss in few bits a pixel, as drawings are */
    bool is_cmyk;                 /* JPEG: the file stays CMYK; the image is sRGB */
    bool is_animated;             /* IMAGE_FORMAT_UNSUPPORTED unless is_read_only */
    uint32_t frame_count;         /* of an animation */
    uint64_t decode_memory_bytes; /* peak estimates, with pixels */
    uint64_t encode_memory_bytes;
};

/* Estimates the memory of a picture, except a JPEG, from the other members. */
void limits_estimate(struct codec_header *header);

/* True if picture and engine fit the limits. */
bool limits_fit(const struct codec_limits *limits, const struct codec_header *header);

/* Checks a filled header. IMAGE_FORMAT_UNSUPPORTED, IMAGE_CORRUPT, IMAGE_TOO_LARGE, IMAGE_TOO_SMALL. */
enum iw_error limits_check(struct context *context, const struct codec_limits *limits,
                           const struct codec_header *header) IW_MUST_USE;

/* The checks that need no size: animations and pictures without pixels. */
enum iw_error limits_check_animation(struct context *context, const struct codec_limits *limits,
                                     const struct codec_header *header) IW_MUST_USE;

#endif
