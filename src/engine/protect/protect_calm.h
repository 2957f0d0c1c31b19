/*
 * The attenuation of the perturbation in each block of a picture, and the grain that replaces it.  Attenuated
 * are smooth and mild blocks, skin, and plain blocks, the last more where they are light.  The weight of each
 * depends on the picture: in drawings only plain blocks that are not smooth count.  tools/generator.py has
 * the same.
 */
#ifndef ENGINE_PROTECT_PROTECT_CALM_H
#define ENGINE_PROTECT_PROTECT_CALM_H

#include "engine/protect/protect_masks.h"

/* Inputs from the first pass, one value for each value of the masks. */
struct calm_told {
    const float *milds; /* how mild the blocks are that are not smooth */
    const float *luma;
    const float *warm; /* how close their colours are to skin's; NULL: not needed */
};

/* Replaces the smoothness of blocks (masks.calm) by their attenuation, and the permitted grain
 * (masks.grained) by the grain they get.  room: scratch of eight rows of the masks. */
void calm_masks(const struct canvas *canvas, const struct canvas_hiding *hiding, const struct calm_told *told,
                float *room, struct canvas_masks *masks);

#endif
