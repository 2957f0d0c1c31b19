/*
 * How much a picture hides at each place, and the whitening that goes with it:
 * the embedder scales the pattern by the same measure of texture by which the
 * reader weighs what it sees.
 */
#ifndef ENGINE_WATERMARK_TEXTURE_H
#define ENGINE_WATERMARK_TEXTURE_H

#include <stdbool.h>

#include "engine/watermark/plane.h"
#include "engine/watermark/workspace.h"

#define TEXTURE_LUMA_RADIUS 2 /* of the local mean of luma */
#define TEXTURE_BLUE_RADIUS 5 /* and of Cb */

/*
 * Takes row y of a plane as texture: detail is the plane less its local mean;
 * activity the local mean of |detail|, lenient to lone edges.  Both rows are
 * lent for the call; detail may be changed.
 */
typedef void texture_sink(void *closure, int y, float *detail, const float *activity);

/*
 * Hands every row of a plane, in order, to the sink.  radius is that of luma or
 * of Cb.  Beyond its edges the plane counts as mirrored.  False when there is
 * no memory.
 */
bool texture_rows(const float *plane, int width, int height, int radius, struct workspace *workspace,
                  texture_sink *sink, void *closure);

/* The detail and activity of a whole plane. */
struct texture {
    float *detail;
    float *activity;
};

/* The workspace's.  False when there is no memory. */
bool texture_measure(const float *plane, int width, int height, int radius, struct workspace *workspace,
                     struct texture *texture);

/* What the strength of the pattern hangs on. */
struct texture_mask {
    const struct plane *plane;
    const float *activity; /* of the plane's luma */
    float blue_share;      /* amplitude of Cb to that of luma */
    bool has_underlay;     /* flat places, which the underlay marks, get no more than white ones */
};

/* The standard deviation of the pattern along part of a row, at a gain; blue may be NULL. */
void texture_mask_row(const struct texture_mask *mask, size_t first, size_t count, float gain, float *luma,
                      float *blue);

/* Detail weighed by what was likely put there over what the host does there; in place.  weight may be NULL.
 */
void texture_whiten_row(float *detail, const float *activity, const float *luma, const float *weight,
                        int width, bool is_blue);

/*
 * The same where the host was taken away: the mark follows the texture of the
 * host, the noise is the damage, and where the suspect has lost the host's
 * texture it has lost the mark too; in place in damage's detail.
 */
void texture_whiten_residual(struct texture *damage, const struct texture *host,
                             const struct texture *suspect, const struct plane *plane, const float *inside);

#endif
