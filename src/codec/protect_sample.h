/*
 * What an encoder makes of a picture.  And strips of a big picture, at most a
 * quarter of its rows, put together to a small one that strengths are tried on:
 * what the encoder costs there it costs everywhere, within about a tenth of a dB.
 * Knows no strengths and no engine but its plan.
 */
#ifndef CODEC_PROTECT_SAMPLE_H
#define CODEC_PROTECT_SAMPLE_H

#include <imgward/protect.h>

#include "codec/codec.h"

struct protect_sample {
    struct codec_picture picture; /* its metadata borrowed from the picture it was taken of */
    void *plain;                  /* the strips' own pixels */
    unsigned strips;
    uint32_t period_rows; /* from one strip to the next */
};

/*
 * For JPEG pictures of 1,072 rows and more: fewer strips would say too little of
 * the rest, and WebP's encoder decides on the picture as a whole.
 */
bool sample_is_worth(const struct codec_picture *picture);

/* Takes the strips.  The caller frees them with sample_free.  NO_MEMORY. */
enum iw_error sample_take(struct context *context, const struct codec_picture *picture,
                          struct protect_sample *sample) IW_MUST_USE;
void sample_free(struct protect_sample *sample);

/*
 * The PSNR of the strips against themselves when they are rendered at the scale,
 * and when they are encoded then.  Errors are those of the codecs.
 */
enum iw_error sample_measure(struct context *context, struct protect_plan *plan,
                             struct protect_sample *sample, double scale, double *rendered_db,
                             double *encoded_db) IW_MUST_USE;

/* The PSNR of encoded bytes against the picture, without a second whole picture in memory. */
enum iw_error bytes_measure(struct context *context, const struct codec_bytes *bytes,
                            const struct image *image, double *psnr_db) IW_MUST_USE;

#endif
