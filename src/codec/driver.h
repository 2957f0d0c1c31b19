/* The functions of one format, and those that all formats share. */
#ifndef CODEC_DRIVER_H
#define CODEC_DRIVER_H

#include "codec/codec.h"
#include "codec/metadata/keep.h"

/* Functions of one format; a row of the table in codec.c. */
struct codec_driver {
    enum iw_error (*probe)(struct context *context, const unsigned char *data, size_t size,
                           const struct codec_limits *limits, struct codec_header *header);
    enum iw_error (*decode)(struct context *context, const unsigned char *data, size_t size,
                            const struct codec_limits *limits, struct codec_picture *picture);
    /* NULL: decode the whole picture, then pass its rows. */
    enum iw_error (*decode_rows)(struct context *context, const unsigned char *data, size_t size,
                                 const struct codec_limits *limits, codec_rows_taker *taker, void *user);
    enum iw_error (*encode)(struct context *context, const struct codec_picture *picture,
                            struct codec_bytes *bytes);
};

extern const struct codec_driver jpeg_driver;
extern const struct codec_driver png_driver;
extern const struct codec_driver webp_driver;

/* Read only: without an encoder. */
extern const struct codec_driver heif_driver;
extern const struct codec_driver tiff_driver;
extern const struct codec_driver gif_driver;
extern const struct codec_driver bmp_driver;

/*
 * Decode with a driver into a picture that is all zeros, without cropping or cleaning it. After an
 * error the caller frees the picture.
 */
enum iw_error driver_decode(struct context *context, const struct codec_driver *driver, const void *data,
                            size_t size, const struct codec_limits *limits,
                            struct codec_picture *picture) IW_MUST_USE;

/* IMAGE_CORRUPT: the file is truncated. */
enum iw_error driver_cut(struct context *context, size_t size);

/* IMAGE_CORRUPT: the file is damaged; format is "JPEG" and so on. */
enum iw_error driver_damaged(struct context *context, const char *format);

#endif
