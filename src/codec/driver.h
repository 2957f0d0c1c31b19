/* The functions of one format, and those that all formats share. */
#ifndef CODEC_DRIVER_H
#define CODEC_DRIVER_H

#include "codec/bytes.h"
#include "codec/metadata/keep.h"
#include "codec/picture.h"
#include "codec/transfer.h"

struct codec_change; /* codec/codec.h */

/* The most bytes of an ICC profile. */
enum { driver_icc_max_bytes = 4 * 1024 * 1024 };

/*
 * Everything that the codecs know of one format. Names, first bytes and the switch of the configuration are
 * in model/format.c, because programs without image libraries need them.
 */
struct codec_driver {
    /* Loads what the decoder needs before the process is sealed. May be NULL. */
    void (*prepare)(void);
    enum iw_error (*probe)(struct context *context, const unsigned char *data, size_t size,
                           const struct codec_limits *limits, struct codec_header *header);
    enum iw_error (*decode)(struct context *context, const unsigned char *data, size_t size,
                            const struct codec_limits *limits, struct codec_picture *picture);
    /* If it is NULL, the whole picture is decoded before rows are passed. */
    enum iw_error (*decode_rows)(struct context *context, const unsigned char *data, size_t size,
                                 const struct codec_limits *limits, codec_rows_taker *taker, void *user);
    /* NULL if signature or checksums of the format show a transfer as text. */
    struct transfer_bytes (*compressed)(const unsigned char *data, size_t size);

    /* The profile in the arena, or NULL if it has no sound profile. A format without this function is sRGB.
     */
    const unsigned char *(*icc)(struct arena *arena, const struct codec_keep *keep, size_t *size);
    bool has_color_chunks; /* cICP, gAMA, cHRM and sRGB of PNG declare the colour space, too */
    struct {
        uint32_t tag; /* of the piece; 0 if there is none */
        size_t prefix_bytes;
    } exif;

    /* Only of formats that are changed and written: */
    enum iw_error (*encode)(struct context *context, const struct codec_picture *picture,
                            struct codec_bytes *bytes);
    void (*clean)(struct codec_keep *keep, const unsigned char *data, size_t size); /* see metadata/clean.h */
    const struct packets_place *xmp;
    /* For codec_finer. NULL if there is no level. */
    bool (*finer)(struct codec_picture *picture, unsigned level);
    /* For codec_quality; NULL if the format has none. */
    float *(*quality)(struct codec_picture *picture);
    void (*color)(struct codec_keep *keep); /* after a grey picture got colours; may be NULL */
    /* For codec_encode_change; NULL if the format has no coefficients to choose. Peak memory with the pixels;
     * 0 if this picture has none. */
    uint64_t (*change_bytes)(const struct codec_picture *picture, unsigned finer);
    enum iw_error (*encode_change)(struct context *context, const struct codec_picture *picture,
                                   struct codec_change *change, struct codec_bytes *bytes);
    /* For codec_stripes; set if encode_change is. */
    enum iw_error (*encode_stripes)(struct context *context, const struct codec_picture *picture,
                                    const struct image_stripes *stripes, const struct codec_change *change,
                                    struct codec_bytes *bytes, double *part);
};

/* X(format, row): every format, and the row of its file. */
#define DRIVERS(X)                                                                                           \
    X(FORMAT_JPEG, jpeg_driver)                                                                              \
    X(FORMAT_PNG, png_driver)                                                                                \
    X(FORMAT_WEBP, webp_driver)                                                                              \
    X(FORMAT_HEIC, heif_driver)                                                                              \
    X(FORMAT_AVIF, heif_driver)                                                                              \
    X(FORMAT_TIFF, tiff_driver)                                                                              \
    X(FORMAT_GIF, gif_driver)                                                                                \
    X(FORMAT_BMP, bmp_driver)

#define DRIVER_DECLARE(format, row) extern const struct codec_driver row;
DRIVERS(DRIVER_DECLARE)
#undef DRIVER_DECLARE

/*
 * Decodes with a driver into a picture that is all zeros, without cropping or cleaning it. After an
 * error the caller frees the picture.
 */
enum iw_error driver_decode(struct context *context, const struct codec_driver *driver, const void *data,
                            size_t size, const struct codec_limits *limits,
                            struct codec_picture *picture) IW_MUST_USE;

/* IMAGE_CORRUPT, because the file is truncated. */
enum iw_error driver_cut(struct context *context, size_t size);

/* IMAGE_CORRUPT, because the file is damaged. */
enum iw_error driver_damaged(struct context *context, enum format format);

/* The ICC profile, in the arena. NULL if there is none, if it is broken, and for formats that are only read.
 */
const unsigned char *driver_icc(struct arena *arena, const struct codec_picture *picture, size_t *size);

/* The orientation, 1..8, as in EXIF; 1 if it is unknown. */
unsigned driver_orientation(const struct codec_picture *picture);

#endif
