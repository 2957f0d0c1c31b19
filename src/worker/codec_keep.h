/*
 * What the codecs share among themselves: the pieces kept of a file besides its
 * pixels, and the table that each format fills.  Private to codec*.c,
 * thumbnail.c and xmp.c.
 */
#ifndef WORKER_CODEC_KEEP_H
#define WORKER_CODEC_KEEP_H

#include "worker/codec.h"

/* A piece of metadata, byte for byte: a JPEG segment, a PNG or a WebP chunk. */
struct keep_chunk {
    uint32_t tag;         /* JPEG: marker 0xE0..0xEF, 0xFE; PNG and WebP: the four letters, first highest */
    bool is_after_pixels; /* PNG: stands behind the last IDAT */
    size_t size;
    const unsigned char *data;
    struct keep_chunk *next;
};

enum { keep_components_max = 4, keep_quant_entries = 64 };

struct keep_jpeg {
    int color_space; /* libjpeg's J_COLOR_SPACE of the file */
    int component_count;
    int h_sampling[keep_components_max];
    int v_sampling[keep_components_max];
    uint16_t quant[keep_components_max][keep_quant_entries];
    unsigned restart_interval;
    uint64_t coefficient_bytes;
    bool is_progressive;
    bool is_arithmetic;
    bool is_inverted;       /* CMYK: samples are 255 - ink, as Adobe writes them */
    unsigned char *inks;    /* CMYK: four bytes a pixel, 255 is full ink; malloc'ed */
    struct cmyk_grid *grid; /* CMYK: its rendition */
};

struct keep_png {
    bool is_interlaced;
    bool is_palette;
    unsigned depth_bits; /* of the file: 1, 2, 4, 8, 16 */
};

struct keep_webp {
    float quality; /* of lossy files, 0..100, from the quantiser of the frame */
};

struct codec_keep {
    struct arena *arena; /* owns this struct and all chunks */
    size_t chunk_bytes;
    unsigned color_count; /* of a lossless picture as decoded; 0: more than a palette holds, or not counted */
    struct keep_chunk *first;
    struct keep_chunk *last;
    struct keep_jpeg jpeg; /* the one of the file's format is valid */
    struct keep_png png;
    struct keep_webp webp;
};

/* One format; a row of the table in codec.c. */
struct codec_driver {
    enum iw_error (*probe)(struct context *context, const unsigned char *data, size_t size,
                           const struct codec_limits *limits, struct codec_header *header);
    enum iw_error (*decode)(struct context *context, const unsigned char *data, size_t size,
                            const struct codec_limits *limits, struct codec_picture *picture);
    /* NULL: decode whole, then hand over. */
    enum iw_error (*decode_rows)(struct context *context, const unsigned char *data, size_t size,
                                 const struct codec_limits *limits, codec_rows_taker *taker, void *user);
    enum iw_error (*encode)(struct context *context, const struct codec_picture *picture,
                            struct codec_bytes *bytes);
};

extern const struct codec_driver codec_jpeg_driver;
extern const struct codec_driver codec_png_driver;
extern const struct codec_driver codec_webp_driver;

#define KEEP_TAG(a, b, c, d)                                                                                 \
    (((uint32_t)(a) << 24) | ((uint32_t)(b) << 16) | ((uint32_t)(c) << 8) | (uint32_t)(d))

/* Checks a filled header against the limits. */
enum iw_error codec_check(struct context *context, const struct codec_limits *limits,
                          const struct codec_header *header) IW_MUST_USE;

/* The part of it that needs no size: refuses animations and pictures without pixels. */
enum iw_error codec_check_animation(struct context *context, const struct codec_limits *limits,
                                    const struct codec_header *header) IW_MUST_USE;

/* Makes picture->keep and room for the pixels of picture->header; both the picture's. */
enum iw_error codec_picture_make(struct context *context, struct codec_picture *picture) IW_MUST_USE;

struct codec_keep *keep_new(void);

/* Copies a piece to the end of the list.  IMAGE_TOO_LARGE past codec_metadata_max_bytes. */
enum iw_error keep_add(struct context *context, struct codec_keep *keep, uint32_t tag, bool is_after_pixels,
                       const void *data, size_t size) IW_MUST_USE;

/* Puts a new piece behind the piece `behind` (NULL: at the front). */
void keep_insert(struct codec_keep *keep, struct keep_chunk *behind, uint32_t tag, const void *data,
                 size_t size);

/* Bytes that grow: appends, false when there is no memory.  capacity is the caller's to keep. */
bool codec_bytes_append(struct codec_bytes *bytes, size_t *capacity, const void *data, size_t size);

/* IMAGE_CORRUPT: the bytes end before the picture does. */
enum iw_error codec_cut(struct context *context, size_t size);

/* IMAGE_CORRUPT with the sentence for damage; format is "JPEG" and so on. */
enum iw_error codec_damaged(struct context *context, const char *format);

/* ---- codec_palette.c: the colours of a picture that has few ---- */

enum { palette_colors_max = 256, palette_slot_bits = 10, palette_slots = 1 << palette_slot_bits };

struct palette {
    unsigned count;
    uint32_t colors[palette_colors_max]; /* red, green, blue, alpha; red highest */
    uint16_t slots[palette_slots];       /* of the hash: number of the colour + 1; 0: empty */
};

/* False for more colours than a palette holds, and for 16 bits. */
bool palette_collect(const struct image *image, struct palette *palette);

/* Puts colours that are not opaque first. */
void palette_order(struct palette *palette);

/* The indices of row y, all of whose colours the palette has. */
void palette_row(const struct palette *palette, const struct image *image, uint32_t y,
                 unsigned char *indices);

/* ---- codec_cmyk.c: CMYK as sRGB, and changes of it carried back ---- */

struct cmyk_grid;

/* From a CMYK profile, or without one (NULL, or a profile of other colours) by the plain product; NULL: no
 * memory.  The caller frees it. */
struct cmyk_grid *cmyk_grid_new(const void *icc, size_t size);

/* The sRGB rendition of so many pixels. */
void cmyk_to_rgb(const struct cmyk_grid *grid, const unsigned char *ink, uint32_t count, unsigned char *rgb);

/* The inks whose rendition differs from that of `ink` as `rgb` does.  Where rgb is the rendition, the same
 * inks. */
void cmyk_carry(const struct cmyk_grid *grid, const unsigned char *ink, const unsigned char *rgb,
                uint32_t count, unsigned char *out);

/* ---- codec_meta.c: what the pieces mean ---- */

/* The ICC profile, in the arena; NULL when there is none or it is broken. */
const unsigned char *meta_icc(struct arena *arena, const struct codec_picture *picture, size_t *size);

/* The EXIF orientation, 1..8; 1 when unknown. */
unsigned meta_orientation(const struct codec_picture *picture);

/* The XMP packet, in the arena or the keep's; NULL when there is none. */
const char *meta_xmp(struct arena *arena, const struct codec_picture *picture, size_t *size);

/* Puts a packet in the place of the old one, or adds it.  IMAGE_TOO_LARGE when a JPEG segment cannot hold it.
 */
enum iw_error meta_xmp_replace(struct context *context, struct codec_picture *picture, const char *packet,
                               size_t size) IW_MUST_USE;

/* ---- xmp.c ---- */

/*
 * The packet with plus:DataMining set to the prohibition, in the arena; the
 * packet itself when it says so already.  A NULL or malformed packet gives a
 * fresh one.  Taken from the padding before the packet's end where there is some.
 */
const char *xmp_opt_out(struct arena *arena, const char *packet, size_t size, size_t *size_out);

#endif
