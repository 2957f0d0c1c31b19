/*
 * Measures an encoder's effect on a picture. Strengths are tried on a sample: strips of a large
 * picture, at most a quarter of its rows, joined to a small picture. The encoder's loss on it
 * matches the whole within about 0.1 dB.
 */
#ifndef CODEC_PROTECT_SAMPLE_H
#define CODEC_PROTECT_SAMPLE_H

#include <imgward/protect.h>

#include "codec/codec.h"

struct protect_sample {
    struct codec_picture picture; /* metadata borrowed from the source picture */
    void *plain;                  /* original pixels of the strips */
    unsigned strips;
    uint32_t period_rows; /* distance between strips */
};

/*
 * True for JPEG pictures of at least 1,072 rows. Fewer strips are not representative, and
 * WebP's encoder decides on the whole picture.
 */
bool sample_is_worth(const struct codec_picture *picture);

/* Take the strips. The caller frees them with sample_free. NO_MEMORY. */
enum iw_error sample_take(struct context *context, const struct codec_picture *picture,
                          struct protect_sample *sample) IW_MUST_USE;
void sample_free(struct protect_sample *sample);

/* PSNR of the strips after rendering at the scale, and after encoding. Errors are those of the codecs. */
enum iw_error sample_measure(struct context *context, struct protect_plan *plan,
                             struct protect_sample *sample, double scale, double *rendered_db,
                             double *encoded_db) IW_MUST_USE;

/* PSNR of encoded bytes against the picture, without a second whole picture in memory. */
enum iw_error bytes_measure(struct context *context, const struct codec_bytes *bytes,
                            const struct image *image, double *psnr_db) IW_MUST_USE;

#endif
