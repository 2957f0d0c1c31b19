/*
 * Makes pictures for the tests in memory with the libraries of the formats: every format, variant and
 * kind of metadata that the codecs must keep.
 */
#ifndef UNIT_PICTURE_MAKER_H
#define UNIT_PICTURE_MAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/codec.h"

struct made_spec {
    const char *name;
    enum format format;
    uint32_t width_px;
    uint32_t height_px;
    uint32_t channels; /* of the file; JPEG: 1, 3 or 4 (CMYK); WebP: 3, 4 */
    bool has_metadata;

    const char *xmp;        /* NULL: made_xmp; with has_metadata */
    bool is_xmp_compressed; /* PNG */
    size_t text_bytes;      /* PNG: additional text chunk of this size */
    bool has_many_scans;    /* JPEG, grey: 127 scans */

    int sampling;        /* JPEG: luma sampling factors as 11, 21, 22 */
    int factors[4];      /* JPEG: sampling factors of each component; 0 for one each */
    bool is_split;       /* JPEG: a scan for each component */
    bool is_ycck;        /* JPEG of 4 channels, stored as YCCK */
    bool is_unmarked;    /* JPEG of 4 channels without Adobe's marker: the samples are not inverted */
    bool has_ink_icc;    /* JPEG of 4 channels: a CMYK profile instead of sRGB; with has_metadata */
    unsigned restart;    /* JPEG: the restart interval */
    bool is_progressive; /* JPEG scans, PNG interlacing */
    bool is_arithmetic;  /* JPEG */
    bool is_rgb;         /* JPEG stored as RGB */
    int quality;         /* JPEG, lossy WebP */

    int depth_bits;        /* PNG */
    bool is_palette;       /* PNG */
    bool has_transparency; /* PNG: a tRNS chunk */
    bool is_animated;      /* PNG: acTL and two fcTL; WebP: two frames */

    bool is_lossless; /* WebP */
};

/* Texts of the metadata, which tests find in the encoded files. */
extern const char made_xmp[];
extern const char made_exif[]; /* a TIFF block with orientation 6 */
extern const size_t made_exif_bytes;
extern const char made_comment[];
extern const char made_photoshop[];
extern const size_t made_photoshop_bytes;
extern const char made_extended_xmp[];
extern const char made_private[]; /* an unknown chunk, safe to copy */
extern const char made_unsafe[];  /* an unknown chunk, not safe to copy */
extern const char made_after[];   /* a PNG text after the pixels */
extern const size_t made_after_bytes;

/* Returns an sRGB profile; the caller frees it. */
unsigned char *made_icc(size_t *size);

/* Returns a CMYK profile of a press with much dot gain; the caller frees it. */
unsigned char *made_ink_icc(size_t *size);

/* Makes the file; free it with bytes_free. Exits the test program if a library fails. */
struct codec_bytes make_picture(const struct made_spec *spec);

/* Returns the sample, 0..255, from which all pictures are computed. */
unsigned made_sample(uint32_t x, uint32_t y, uint32_t channel);

#endif
