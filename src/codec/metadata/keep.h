/* Everything of a file besides the pixels: the pieces of its metadata, and how the file was encoded. */
#ifndef CODEC_METADATA_KEEP_H
#define CODEC_METADATA_KEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/context.h"
#include "codec/metadata/exif.h"

/* All metadata of one picture; more is IMAGE_TOO_LARGE. */
enum { keep_bytes_max = 16 * 1024 * 1024 };

#define KEEP_TAG(a, b, c, d)                                                                                 \
    (((uint32_t)(a) << 24) | ((uint32_t)(b) << 16) | ((uint32_t)(c) << 8) | (uint32_t)(d))

/* A piece of metadata, byte for byte: a JPEG segment, a PNG chunk or a WebP chunk. */
struct keep_chunk {
    uint32_t tag;         /* JPEG: marker 0xE0..0xEF, 0xFE; else four letters, first highest */
    bool is_after_pixels; /* PNG: after the last IDAT */
    size_t size;
    unsigned char *data; /* owned by the keep; may be changed in place */
    struct keep_chunk *next;
};

/* Kinds of dropped metadata, for the note METADATA_LEFT_OUT. The table of phrases is in metadata/clean.c. */
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
    bool is_smoothed;       /* coefficients are missing in a progressive file, so decoders smooth blocks */
    bool is_unoptimised;    /* the coefficients for own Huffman tables do not fit the memory */
    bool is_inverted;       /* CMYK: samples are 255 - ink, as Adobe writes them */
    unsigned char *inks;    /* CMYK: four bytes a pixel, 255 is full ink; malloc'ed */
    struct cmyk_grid *grid; /* CMYK: the rendition of the inks */
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

/* The EXIF thumbnail, which preview.c replaces by one of the result. */
struct keep_thumbnail {
    struct exif exif;
    struct exif_thumbnail place;
    bool is_learned; /* the members below are those of the old JPEG */
    uint32_t width_px;
    uint32_t height_px;
    uint32_t channels;
    struct keep_jpeg jpeg;
};

struct codec_keep {
    struct arena *arena; /* owns this struct and all chunks */
    struct keep_loss loss;
    unsigned orientation;             /* 1..8, of a format without an EXIF block; 0 if unknown */
    unsigned left_out;                /* enum keep_left_out */
    const char *provenance;           /* URL of the removed Content Credentials; NULL if unknown */
    struct keep_thumbnail *thumbnail; /* NULL if there is none */
    size_t chunk_bytes;
    size_t end;           /* JPEG, PNG, WebP: end of the picture in the file */
    unsigned color_count; /* of a lossless picture; 0 if unknown, or too many for a palette */
    struct keep_chunk *first;
    struct keep_chunk *last;
    struct keep_jpeg jpeg; /* only the member of the file's format is valid */
    struct keep_png png;
    struct keep_webp webp;
};

/* A number of four bytes, first highest. */
static inline uint32_t keep_number(const unsigned char *bytes)
{
    return KEEP_TAG(bytes[0], bytes[1], bytes[2], bytes[3]);
}

/* JPEG: APP0 to APP15, and the most bytes that a segment holds. */
enum { keep_app0 = 0xE0, keep_segment_bytes = 65533 };

bool keep_starts_with(const struct keep_chunk *chunk, const void *bytes, size_t size);

/* The first piece with the tag that starts with these bytes. NULL if there is none. */
struct keep_chunk *keep_find(const struct codec_keep *keep, uint32_t tag, const void *head, size_t size);

struct codec_keep *keep_new(void);

/* Appends a copy of a piece. IMAGE_TOO_LARGE if the pieces take more than keep_bytes_max. */
enum iw_error keep_add(struct context *context, struct codec_keep *keep, uint32_t tag, bool is_after_pixels,
                       const void *data, size_t size) IW_MUST_USE;

/* Inserts a new piece after `behind`, or at the front if that is NULL. */
void keep_insert(struct codec_keep *keep, struct keep_chunk *behind, uint32_t tag, const void *data,
                 size_t size);

/* Removes pieces with tag 0 from the list. */
void keep_sweep(struct codec_keep *keep);

/* Frees the keep with all that it owns; NULL is allowed. */
void keep_free(struct codec_keep *keep);

#endif
