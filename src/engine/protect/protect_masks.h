/*
 * The masks of a picture, a value for each block of 4x4 pixels: their definition, their means, and their
 * interpolation for a row of pixels.  protect_hide.c and protect_calm.c compute them.
 */
#ifndef ENGINE_PROTECT_PROTECT_MASKS_H
#define ENGINE_PROTECT_PROTECT_MASKS_H

#include "engine/protect/protect_canvas.h"

enum {
    canvas_mask_margin = 6 /* blocks beyond the picture; all further out equal the outermost */
};

/* The numbers of blocks in a row and in a column of the mask. */
size_t canvas_mask_columns(const struct canvas *canvas);
size_t canvas_mask_rows(const struct canvas *canvas);

/*
 * The texture mask as a function of the spread of luma around planes near a block, 0..1.  The term s =
 * spread² / (spread + grain) removes the grain of a sky.  The mask is (s + floor) / (s + knee): floor / knee
 * where it is flat, towards 1 with texture.
 */
struct canvas_hiding {
    float floor, knee, grain;
    float smooth;      /* distance of luma from planes at which a block counts half as smooth */
    float calm;        /* attenuation there */
    float mild, eased; /* the same for mild blocks, which mask somewhat more */
    float calm_from;   /* smooth share of the picture from which mild blocks count; 0: always */
    float skin;        /* attenuation on skin */
    /* The masking at which a block counts half as plain; eased is its attenuation, too.  Then both for light
     * blocks. */
    float plain, light_plain, light_eased;
};

/* A value for every block and canvas_mask_margin more on each side, row by row.  The caller owns the
 * memory. */
struct canvas_masks {
    float *mask; /* the texture mask */
    float *calm; /* the attenuation: highest where luma is near planes in a block and its neighbours, as in a
                    sky.  High on skin and in plain blocks; 0 in textured ones */
    float *spread;  /* distance of luma from planes near a block, 0..1; at most twice the distance in it */
    float *grained; /* grain of blocks that are smooth, mild, plain or skin, 0..1.  None where a block or its
                       neighbour is flat, except flat spots of a photograph's sky */
    /* Set by canvas_mask.  color: the permitted chroma of the perturbation, 0..1; 0 for a grey picture.
     * taken: 1 for a photograph, 0 for a drawing. */
    float color, taken;
};

/* The blocks of a row of a mask that belong to the picture. */
static inline const float *canvas_picture_row(const struct canvas *canvas, const float *values, unsigned row)
{
    return values + (row + canvas_mask_margin) * canvas_mask_columns(canvas) + canvas_mask_margin;
}

/* The mean of a mask over the blocks of the picture. */
double canvas_mean(const struct canvas *canvas, const float *values);

/* The number of the picture's blocks above a value. */
size_t canvas_count_above(const struct canvas *canvas, const float *values, float value);

/*
 * The texture mask of count pixels of a row, three values each, interpolated between blocks.  A neighbour
 * counts at most four times the block's own value.  Pixels may lie beyond the picture.  side: the width of a
 * block in pixels, canvas_block_px, or half of it at half size.  x and count are multiples of side.
 */
void canvas_mask_line(const struct canvas *canvas, const float *mask, unsigned side, int64_t y, int64_t x,
                      size_t count, float *line);

/* The same for masks.calm or masks.grained, without a limit of neighbours; always at full size. */
void canvas_smooth_line(const struct canvas *canvas, const float *blocks, int64_t y, int64_t x, size_t count,
                        float *line);

#endif
