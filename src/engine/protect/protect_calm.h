/*
 * Which share of what is drawn is left out of each block of a picture, and how much grain it gets instead:
 * where it is smooth or mild, on skin, where little hides, and more of it where it is light.  And which of
 * that counts in a picture at all: of drawings only what is plain, but not smooth.  tools/generator.py has
 * the same.
 */
#ifndef ENGINE_PROTECT_PROTECT_CALM_H
#define ENGINE_PROTECT_PROTECT_CALM_H

#include "engine/protect/protect_masks.h"

/* What was told of the blocks before, for every value of the masks. */
struct calm_told {
    const float *milds; /* how mild those are that are not smooth */
    const float *luma;
    const float *warm; /* how far their colours are skin's; NULL: nobody asks */
};

/* Makes of how smooth blocks are (masks.calm) what is left out of them, and of the grain that they may get
 * (masks.grained) what they get.  room: of eight rows of the masks. */
void calm_masks(const struct canvas *canvas, const struct canvas_hiding *hiding, const struct calm_told *told,
                float *room, struct canvas_masks *masks);

#endif
