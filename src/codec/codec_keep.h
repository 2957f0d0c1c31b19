/*
 * Shared by the codecs: the pieces of a file besides its pixels, and the table of functions
 * that each format fills. Private to this room.
 */
#ifndef CODEC_CODEC_KEEP_H
#define CODEC_CODEC_KEEP_H

#include "codec/codec.h"

/* A piece of metadata, byte for byte: a JPEG segment, a PNG chunk or a WebP chunk. */
struct keep_chunk {
    uint32_t tag;         /* JPEG: marker 0xE0..0xEF, 0xFE; else four letters, first highest */
    bool is_after_pixels; /* PNG: after the last IDAT */
    size_t size;
    unsigned char *data; /* owned by the keep; may be changed in place */
    struct keep_chunk *next;
};

/* Kinds of dropped metadata, for the note METADATA_LEFT_OUT; its table is in metadata/clean.c. */
enum keep_left_out {
    KEEP_LEFT_GAIN_MAP = 1 << 0,
    KEEP_LEFT_FILM = 1 << 1,
    KEEP_LEFT_DEPTH = 1 << 2,
    KEEP_LEFT_FURTHER = 1 << 3,
    KEEP_LEFT_TRAILER = 1 << 4,
    KEEP_LEFT_PREVIEW = 1 << 5,
    KEEP_LEFT_TWIN = 1 << 6,
    KEEP_LEFT_XMP_PART = 1 << 7,
    KEEP_LEFT_XMP = 1 << 8,
    KEEP_LEFT_CREDENTIALS = 1 << 9, /* noted as CONTENT_CREDENTIALS_REMOVED */
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
    bool is_unoptimised;    /* the coefficients for own Huffman tables do not fit the memory */
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

/* The pixels that a cut or damaged file lacks; only with is_partial_allowed. */
struct keep_loss {
    uint32_t rows_px; /* from the top, with pixels */
    bool is_coarse;   /* these rows lack scans, passes or damaged blocks */
};

struct keep_thumbnail; /* the EXIF thumbnail of the result, see metadata/preview.c */

struct codec_keep {
    struct arena *arena; /* owns this struct and all chunks */
    struct keep_loss loss;
    unsigned left_out;                /* enum keep_left_out */
    const char *provenance;           /* URL of the removed Content Credentials; NULL: unknown */
    struct keep_thumbnail *thumbnail; /* NULL: none */
    size_t chunk_bytes;
    size_t end;           /* PNG, WebP: end of the picture in the file */
    unsigned color_count; /* of a lossless picture; 0: unknown, or too many for a palette */
    struct keep_chunk *first;
    struct keep_chunk *last;
    struct keep_jpeg jpeg; /* only the member of the file's format is valid */
    struct keep_png png;
    struct keep_webp webp;
};

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

extern const struct codec_driver codec_jpeg_driver;
extern const struct codec_driver codec_png_driver;
extern const struct codec_driver codec_webp_driver;

/* Read only: without an encoder. */
extern const struct codec_driver codec_heif_driver;
extern const struct codec_driver codec_tiff_driver;
extern const struct codec_driver codec_gif_driver;
extern const struct codec_driver codec_bmp_driver;

#define KEEP_TAG(a, b, c, d)                                                                                 \
    (((uint32_t)(a) << 24) | ((uint32_t)(b) << 16) | ((uint32_t)(c) << 8) | (uint32_t)(d))

/* Estimates the memory of a PNG or WebP from the other members. */
void codec_memory(struct codec_header *header);

/* True when picture and engine fit the limits. */
bool codec_fits(const struct codec_limits *limits, const struct codec_header *header);

/* Check a filled header against the limits. */
enum iw_error codec_check(struct context *context, const struct codec_limits *limits,
                          const struct codec_header *header) IW_MUST_USE;

/* The checks that need no size: animations and pictures without pixels. */
enum iw_error codec_check_animation(struct context *context, const struct codec_limits *limits,
                                    const struct codec_header *header) IW_MUST_USE;

/* A number of four bytes, first highest. */
static inline uint32_t keep_number(const unsigned char *bytes)
{
    return KEEP_TAG(bytes[0], bytes[1], bytes[2], bytes[3]);
}

/* JPEG: APP0 to APP15, and the most bytes that a segment holds. */
enum { keep_app0 = 0xE0, keep_segment_bytes = 65533 };

bool keep_starts_with(const struct keep_chunk *chunk, const void *bytes, size_t size);

struct codec_keep *keep_new(void);

/* Append a copy of a piece. IMAGE_TOO_LARGE: more than codec_metadata_max_bytes. */
enum iw_error keep_add(struct context *context, struct codec_keep *keep, uint32_t tag, bool is_after_pixels,
                       const void *data, size_t size) IW_MUST_USE;

/* Insert a new piece after `behind` (NULL: at the front). */
void keep_insert(struct codec_keep *keep, struct keep_chunk *behind, uint32_t tag, const void *data,
                 size_t size);

/* Remove pieces with tag 0 from the list. */
void keep_sweep(struct codec_keep *keep);

/*
 * Decode with a driver into a picture that is all zeros, without cropping or cleaning it. After an
 * error the caller frees the picture.
 */
enum iw_error driver_decode(struct context *context, const struct codec_driver *driver, const void *data,
                            size_t size, const struct codec_limits *limits,
                            struct codec_picture *picture) IW_MUST_USE;

/* Append to growing bytes. False: no memory. The caller keeps the capacity. */
bool codec_bytes_append(struct codec_bytes *bytes, size_t *capacity, const void *data, size_t size);

/* IMAGE_CORRUPT: the file is truncated. */
enum iw_error codec_cut(struct context *context, size_t size);

/* IMAGE_CORRUPT: the file is damaged; format is "JPEG" and so on. */
enum iw_error codec_damaged(struct context *context, const char *format);

/* ---- codec_transfer.c: a JPEG or WebP that was transferred or read as text ---- */

/* IMAGE_CORRUPT when the compressed bytes show it. */
enum iw_error transfer_check(struct context *context, const unsigned char *data, size_t size) IW_MUST_USE;

/* ---- codec_palette.c: pictures with few colours ---- */

enum { palette_colors_max = 256, palette_slot_bits = 10, palette_slots = 1 << palette_slot_bits };

struct palette {
    unsigned count;
    uint32_t colors[palette_colors_max]; /* red, green, blue, alpha; red highest */
    uint16_t slots[palette_slots];       /* hash table: number of the colour + 1; 0: empty */
};

/* False: more colours than a palette holds, or 16 bits. */
bool palette_collect(const struct image *image, struct palette *palette);

/* Sort colours that are not opaque to the front. */
void palette_order(struct palette *palette);

/* Write the indices of row y; the palette must hold all its colours. */
void palette_row(const struct palette *palette, const struct image *image, uint32_t y,
                 unsigned char *indices);

/* ---- codec_cmyk.c: CMYK as sRGB, and changes applied to the inks ---- */

struct cmyk_grid;

/*
 * Make the grid of a CMYK profile, or of the plain product without one (NULL, or a profile of
 * other colours). NULL: no memory. The caller frees it.
 */
struct cmyk_grid *cmyk_grid_new(const void *icc, size_t size);

/* Convert count pixels to sRGB. */
void cmyk_to_rgb(const struct cmyk_grid *grid, const unsigned char *ink, uint32_t count, unsigned char *rgb);

/*
 * Compute the inks whose rendition is `rgb`, near `ink`. Pixels whose rendition is `rgb`
 * already keep their inks.
 */
void cmyk_carry(const struct cmyk_grid *grid, const unsigned char *ink, const unsigned char *rgb,
                uint32_t count, unsigned char *out);

/* ---- metadata/meta.c: the meaning of the pieces ---- */

/* The ICC profile, in the arena. NULL: none, or it is broken; not of formats that are only read. */
const unsigned char *meta_icc(struct arena *arena, const struct codec_picture *picture, size_t *size);

/* The EXIF orientation, 1..8; 1: unknown. */
unsigned meta_orientation(const struct codec_picture *picture);

/* Inflate at most size_max bytes into the arena. NULL: broken or larger. */
unsigned char *meta_inflate(struct arena *arena, const unsigned char *data, size_t size, size_t size_max,
                            size_t *size_out);

/* True: the segment of a JPEG begins like an EXIF block. */
bool meta_is_exif(const struct keep_chunk *chunk);

/* ---- metadata/clean.c ---- */

/* Remove metadata that is not true of the result. data: the whole file. */
void clean_picture(struct codec_picture *picture, const unsigned char *data, size_t size);

/* Note the removed metadata. */
void clean_note(struct context *context, const struct codec_keep *keep);

/* ---- metadata/photoshop.c ---- */

/* Remove thumbnails from image resource blocks. Returns the remaining size. is_changed: there was one. */
size_t photoshop_clean(unsigned char *data, size_t size, bool *is_changed);

/* The same for the APP13 segments of a JPEG, which split the blocks. */
void photoshop_segments_clean(struct codec_keep *keep);

/* ---- metadata/packets.c: every XMP packet of a picture ---- */

/* Remove entries that refer to dropped data. */
void packets_clean(struct codec_picture *picture);

/* Set the opt-out in all packets. IMAGE_TOO_LARGE: a JPEG segment cannot hold it. */
enum iw_error packets_opt_out(struct context *context, struct codec_picture *picture) IW_MUST_USE;

/* The raw profile in the hexadecimal digits of a PNG text chunk, in the arena. NULL: none. */
unsigned char *raw_profile(struct arena *arena, const struct keep_chunk *chunk, size_t *size);

/* Store these bytes in the chunk as a raw profile of the same name. */
void raw_profile_put(struct codec_keep *keep, struct keep_chunk *chunk, const unsigned char *data,
                     size_t size);

/* ---- metadata/preview.c ---- */

struct exif;

/*
 * Remove the previews of an EXIF block. If is_kept and the keep has none yet, a replaceable
 * thumbnail stays and is recorded in the keep.
 */
void preview_clean(struct codec_keep *keep, struct exif *exif, bool is_kept);

/* Replace the recorded thumbnail by one of the current pixels. */
void preview_render(const struct codec_picture *picture);

/* ---- thumbnail.c ---- */

/*
 * Scale the picture to sRGB on white, 3 bytes a pixel, in stored orientation. The caller frees
 * it. NULL: no memory.
 */
unsigned char *thumbnail_rgb(const struct codec_picture *picture, uint32_t width_px, uint32_t height_px);

#endif
