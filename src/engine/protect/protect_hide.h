/*
 * The masking of each block of a picture: the masks, from the distance of luma from planes in and around it,
 * and the peaks of its samples.  tools/generator.py has the same.
 */
#ifndef ENGINE_PROTECT_PROTECT_HIDE_H
#define ENGINE_PROTECT_PROTECT_HIDE_H

#include "engine/protect/protect_masks.h"

/* The texture mask for a distance of luma from planes. */
float canvas_hidden(const struct canvas_hiding *hiding, float spread);

/* Fills the masks.  false: out of memory. */
bool canvas_mask(const struct canvas *canvas, const struct canvas_hiding *hiding,
                 struct canvas_masks *masks) IW_MUST_USE;

/* Peaks of samples in levels of 255: that of a flat block, the increase per spread, and the maximum. */
struct canvas_peaks {
    float least, times, most;
};

/* The number of blocks in one direction that a picture of a number of pixels covers at least partly. */
static inline size_t canvas_picture_blocks(uint32_t px)
{
    return ((size_t)px + canvas_block_px - 1) / canvas_block_px;
}

/* The peak of every block of the picture in whole levels, row by row; 0.3 of it where a drawing is plain but
 * not flat. */
void canvas_peaks(const struct canvas *canvas, const struct canvas_peaks *peaks,
                  const struct canvas_hiding *hiding, const struct canvas_masks *masks, uint8_t *levels);

#endif
