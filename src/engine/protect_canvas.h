/*
 * A picture laid under the network's grid of 16x16 pixels: moved by a seeded
 * offset, its edge pixels repeated beyond its borders, any depth and number of
 * channels read as RGB 0..1, at its own size or at half of it.  And what goes with places
 * of the grid alone: the seeded noise, one for each of 16x16 px, the grain, and the
 * texture mask, one for each of 4x4.
 */
#ifndef ENGINE_PROTECT_CANVAS_H
#define ENGINE_PROTECT_CANVAS_H

#include <stdbool.h>

#include <imgward/error.h>
#include <imgward/image.h>

#include "engine/protect_grain.h"

enum {
    canvas_grid_px = 16,
    canvas_block_px = 4,
    canvas_colors = 3,
    canvas_noise_values = 32,
    canvas_reach_px = 256, /* how far left of the picture and above it there is noise */
    canvas_mask_margin = 6 /* blocks beyond the picture, the outermost of which is as all further out */
};

struct canvas {
    const struct image *image; /* borrowed */
    unsigned left_px, top_px;  /* 0 or 16: where the picture begins */
    unsigned rows, columns;    /* in blocks; whole places of the grid */
    uint64_t noise_key, grain_key;
    float levels[256]; /* 8-bit samples as 0..1 */
};

/* The grid's offset and the noise come from the seed. */
void canvas_init(struct canvas *canvas, const struct image *image, uint64_t seed);

/* count pixels of RGB 0..1 from grid place x_px, y_px on; both may lie outside the picture. */
void canvas_pixels(const struct canvas *canvas, int64_t y_px, int64_t x_px, size_t count, float *values);

/* The same at half of the size: count means of 2x2 pixels from place y, x of a grid half as wide on. */
void canvas_pixels_halved(const struct canvas *canvas, int64_t y, int64_t x, size_t count, float *values);

/* The noise of a place of the grid: values of -1..1. */
void canvas_noise(const struct canvas *canvas, int64_t row, int64_t column,
                  float values[canvas_noise_values]);

/* Grain of count pixels of a row, three values each, from grid place x_px, y_px on, which may lie outside the
 * picture within canvas_reach_px. */
void canvas_grain(const struct canvas *canvas, const struct grain *grain, int64_t y_px, int64_t x_px,
                  size_t count, float *values);

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

float canvas_hidden(const struct canvas_hiding *hiding, float spread);

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

/* Fills them.  false: there is no memory. */
bool canvas_mask(const struct canvas *canvas, const struct canvas_hiding *hiding,
                 struct canvas_masks *masks) IW_MUST_USE;

/* The blocks of a row of one of them that are the picture's. */
static inline const float *canvas_picture_row(const struct canvas *canvas, const float *values, unsigned row)
{
    return values + (row + canvas_mask_margin) * canvas_mask_columns(canvas) + canvas_mask_margin;
}

/* The mean of one of them over the blocks of the picture. */
double canvas_mean(const struct canvas *canvas, const float *values);

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

/* That in whole levels of every block of the picture, row by row; less where a drawing is shaded. */
void canvas_peaks(const struct canvas *canvas, const struct canvas_peaks *peaks,
                  const struct canvas_masks *masks, uint8_t *levels);

/* How many of those are more than a value. */
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
