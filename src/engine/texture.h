/*
 * How much a picture hides at each place, and the whitening that goes with it:
 * the embedder scales the pattern by the same measure of texture by which the
 * reader weighs what it sees.
 */
#ifndef ENGINE_TEXTURE_H
#define ENGINE_TEXTURE_H

#include <stdbool.h>

#include "engine/plane.h"
#include "engine/workspace.h"

/* Of one plane: what lies in the pattern's band, and how strong that is around each pixel. */
struct texture {
    float *detail;   /* the plane less its local mean */
    float *activity; /* the local mean of |detail|, lenient to lone edges */
};

/* The detail and activity of a plane of width * height.  False when there is no memory. */
bool texture_measure(const float *plane, int width, int height, int radius, struct workspace *workspace,
                     struct texture *texture);

/* The strength of the pattern at each pixel before the common factor, and the cap on it. */
struct texture_mask {
    float *luma_shape;
    float *luma_cap;
    float *blue_shape; /* NULL for a grey picture */
    float *blue_cap;
};

bool texture_mask(const struct plane *plane, struct workspace *workspace, struct texture_mask *mask);

/* Detail weighed by what was likely put there over what the host does there; in place in detail. */
void texture_whiten(struct texture *texture, const struct plane *plane, bool is_blue);

/*
 * The same where the host was taken away: the mark follows the texture of the
 * host, the noise is the damage, and where the suspect has lost the host's
 * texture it has lost the mark too; in place in damage's detail.
 */
void texture_whiten_residual(struct texture *damage, const struct texture *host,
                             const struct texture *suspect, const struct plane *plane, const float *inside);

#endif
