/*
 * Protects a decoded picture and encodes it: perturbation, metadata opt-out, encoding. Lossy
 * results are decoded and compared. Used by the image process and imgwardctl. Opens no file
 * except the weights.
 */
#ifndef IMAGE_PROTECT_PICTURE_H
#define IMAGE_PROTECT_PICTURE_H

#include "codec/codec.h"
#include "engine/protect/protect.h"

/*
 * Reads the weights file, checks the SHA-256 at the end and creates the engine. Call it before the process is
 * sealed. name stands for the path in messages; if it is NULL, the path itself does. On success the caller
 * owns *protect and frees it with protect_free. IO_FAILED, WEIGHTS_INVALID, NO_MEMORY.
 */
enum iw_error protect_picture_open(struct context *context, const char *path, const char *name,
                                   struct protect **protect) IW_MUST_USE;

struct protect_order {
    const void *data; /* the file that the picture was decoded from */
    size_t size;
    const struct codec_limits *limits; /* of decoding */
    enum protect_strength strength;
    uint64_t seed;
    unsigned growth_max_percent; /* of a JPEG or WebP of a higher quality; 100: the file's quality */
};

/*
 * Protects the picture at the strength and encodes it with the metadata opt-out. The report
 * compares the decoded result with the original. Note ENCODED_FINER if the result has a higher quality.
 *
 * On success only the picture's metadata are changed, and the caller owns the bytes. Memory:
 * the picture's size again.
 */
enum iw_error protect_picture(struct context *context, const struct protect *protect,
                              const struct protect_order *order, struct codec_picture *picture,
                              struct codec_bytes *bytes, struct protect_report *report) IW_MUST_USE;

#endif
