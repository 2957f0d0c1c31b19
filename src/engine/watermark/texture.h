/*
 * The masking model and the whitening. The embedder scales the pattern by local texture; the
 * reader weighs samples by the same measure.
 */
#ifndef ENGINE_WATERMARK_TEXTURE_H
#define ENGINE_WATERMARK_TEXTURE_H

#include <stdbool.h>

#include "engine/watermark/plane.h"
#include "engine/watermark/workspace.h"

/* No published source; `./dev bench watermark` measures the effect. */
enum {
    texture_luma_radius = 2, /* of the local mean of luma, pixels */
    texture_blue_radius = 5  /* of the local mean of Cb */
};

/*
 * Receives row y. detail is the plane minus its local mean. activity is a local mean of
 * |detail| that a single edge raises little. Both rows are valid during the call; detail may be
 * modified.
 */
typedef void texture_sink(void *closure, int y, float *detail, const float *activity);

/*
 * Passes every row of a plane to the sink, in order. radius is that of luma or of Cb. The plane is mirrored
 * beyond its edges. Returns false if memory is short.
 */
bool texture_rows(const float *plane, int width, int height, int radius, struct workspace *workspace,
                  texture_sink *sink, void *closure);

/* The detail and activity of a whole plane. */
struct texture {
    float *detail;
    float *activity;
};

/* Returns false if memory is short. The result belongs to the workspace. */
bool texture_measure(const float *plane, int width, int height, int radius, struct workspace *workspace,
                     struct texture *texture);

/* Inputs of the pattern's strength. */
struct texture_mask {
    const struct plane *plane;
    const float *activity; /* of the plane's luma */
    float blue_share;      /* amplitude of Cb to that of luma */
    bool caps_flat;        /* caps flat places, which the underlay marks, as if they were white */
};

/* Computes the standard deviation of the pattern along part of a row, at a gain. blue may be NULL. */
void texture_mask_row(const struct texture_mask *mask, size_t first, size_t count, float gain, float *luma,
                      float *blue);

/* Weighs detail in place by the expected pattern over the host's texture. weight may be NULL. */
void texture_whiten_row(float *detail, const float *activity, const float *luma, const float *weight,
                        int width, bool is_blue);

/*
 * Weighs damage's detail in place, after the host was subtracted. The mark follows the host's texture, and
 * the noise is the damage. Places that lost the host's texture have lost the mark too.
 */
void texture_whiten_residual(struct texture *damage, const struct texture *host,
                             const struct texture *suspect, const struct plane *plane, const float *inside);

#endif
