/*
 * How much each block of a picture hides: the masks, from how far luma lies from planes in it and around it;
 * and how far its samples may move.  tools/generator.py has the same.
 */
#ifndef ENGINE_PROTECT_PROTECT_HIDE_H
#define ENGINE_PROTECT_PROTECT_HIDE_H

#include "engine/protect/protect_masks.h"

/* The texture mask where luma lies so far from planes. */
float canvas_hidden(const struct canvas_hiding *hiding, float spread);

/* Fills the masks.  false: there is no memory. */
bool canvas_mask(const struct canvas *canvas, const struct canvas_hiding *hiding,
                 struct canvas_masks *masks) IW_MUST_USE;

/* How far samples may move, in levels of 255: so far where a block is flat, so many times its spread further,
 * and so far at most. */
struct canvas_peaks {
    float least, times, most;
};

/* How many blocks, each way, have something of a picture of so many pixels. */
static inline size_t canvas_picture_blocks(uint32_t px)
{
    return ((size_t)px + canvas_block_px - 1) / canvas_block_px;
}

/* That in whole levels of every block of the picture, row by row; .3 of it where a drawing is plain but not
 * flat. */
void canvas_peaks(const struct canvas *canvas, const struct canvas_peaks *peaks,
                  const struct canvas_hiding *hiding, const struct canvas_masks *masks, uint8_t *levels);

#endif
