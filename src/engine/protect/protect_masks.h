/*
 * What hides what is drawn on a picture, a value for each of its blocks of 4x4 pixels: what the values are
 * and follow, their means, and what lies between them for a row of pixels.  protect_hide.c and protect_calm.c
 * tell them.
 */
#ifndef ENGINE_PROTECT_PROTECT_MASKS_H
#define ENGINE_PROTECT_PROTECT_MASKS_H

#include "engine/protect/protect_canvas.h"

enum {
    canvas_mask_margin = 6 /* blocks beyond the picture, the outermost of which is as all further out */
};

/* How many blocks a row of the mask and a column of it are. */
size_t canvas_mask_columns(const struct canvas *canvas);
size_t canvas_mask_rows(const struct canvas *canvas);

/*
 * How the texture mask follows the spread of luma around planes near a block, 0..1: with s = spread² /
 * (spread + grain), which leaves out what is but grain of a sky, (s + floor) / (s + knee), so from floor /
 * knee where it is flat towards 1.
 */
struct canvas_hiding {
    float floor, knee, grain;
    float smooth;      /* how far luma lies from planes where a block counts for half as smooth, */
    float calm;        /* and which share of what is drawn is left out there */
    float mild, eased; /* the same of blocks that hide somewhat more, mild ones, */
    float calm_from;   /* which begin to count where so much of the picture is smooth; 0: always */
    float skin;        /* the share that is left out on skin */
    /* And how little hides where a block counts for half as plain; eased is left out there, too.  And both
     * where it is light. */
    float plain, light_plain, light_eased;
};

/* A value for every block and for canvas_mask_margin more on each side, row by row; the caller's memory. */
struct canvas_masks {
    float *mask; /* the texture mask */
    float *calm; /* which share of what is drawn is left out: most where luma lies near planes in a block and
                    in those beside it, as in a sky, much on skin and where little hides; none where it is
                    busy */
    float *
        spread; /* how far luma lies from planes near a block, 0..1, but no more than twice as far as in it */
    float *grained; /* how much grain a block gets that is smooth, mild, plain or skin, 0..1: none where it is
                       flat or beside something flat, flat spots of a photograph's sky apart */
    /* Set by canvas_mask: how much colour what is drawn may have, 0..1, a grey picture none; and how far a
     * picture counts as taken, 0..1, a drawing not at all. */
    float color, taken;
};

/* The blocks of a row of one of them that are the picture's. */
static inline const float *canvas_picture_row(const struct canvas *canvas, const float *values, unsigned row)
{
    return values + (row + canvas_mask_margin) * canvas_mask_columns(canvas) + canvas_mask_margin;
}

/* The mean of one of them over the blocks of the picture. */
double canvas_mean(const struct canvas *canvas, const float *values);

/* How many of its blocks are more than a value. */
size_t canvas_count_above(const struct canvas *canvas, const float *values, float value);

/*
 * How much count pixels of a row hide, three values each, the mask taken between blocks, no neighbour of a
 * block counting for more than four times the block itself; any of them may lie beyond the picture.  side:
 * how many pixels a block is wide, canvas_block_px or, at half of the size, half as many; x and count are
 * multiples of it.
 */
void canvas_mask_line(const struct canvas *canvas, const float *mask, unsigned side, int64_t y, int64_t x,
                      size_t count, float *line);

/* The same of masks.calm or masks.grained, whose neighbours count for all they are; always whole pixels. */
void canvas_smooth_line(const struct canvas *canvas, const float *blocks, int64_t y, int64_t x, size_t count,
                        float *line);

#endif
