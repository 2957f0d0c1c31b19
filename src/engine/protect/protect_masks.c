#include "engine/protect/protect_masks.h"

#include <assert.h>
#include <float.h>
#include <string.h>

#include "engine/watermark/clones.h"
#include "engine/protect/ramp.h"

/* Blocks of a row that are computed together. */
enum { run_blocks = 64 };

size_t canvas_mask_columns(const struct canvas *canvas)
{
    return (size_t)canvas->columns + 2 * canvas_mask_margin;
}

size_t canvas_mask_rows(const struct canvas *canvas)
{
    return (size_t)canvas->rows + 2 * canvas_mask_margin;
}

double canvas_mean(const struct canvas *canvas, const float *values)
{
    double sum = 0;
    for (unsigned row = 0; row < canvas->rows; row++)
        for (unsigned i = 0; i < canvas->columns; i++)
            sum += (double)canvas_picture_row(canvas, values, row)[i];
    return sum / ((double)canvas->rows * canvas->columns);
}

size_t canvas_count_above(const struct canvas *canvas, const float *values, float value)
{
    size_t above = 0;
    for (unsigned row = 0; row < canvas->rows; row++)
        for (unsigned i = 0; i < canvas->columns; i++)
            above += canvas_picture_row(canvas, values, row)[i] > value;
    return above;
}

/* A row of the mask; rows further out equal the outermost. */
static const float *mask_at(const struct canvas *canvas, const float *mask, int64_t row)
{
    int64_t at = canvas_clamped(row + canvas_mask_margin, (int64_t)canvas_mask_rows(canvas));
    return mask + (size_t)at * canvas_mask_columns(canvas);
}

/* Values of count blocks of a row; blocks further out equal the outermost. */
static void blocks_of(const struct canvas *canvas, const float *row, int64_t column, size_t count,
                      float *blocks)
{
    const int64_t columns = (int64_t)canvas_mask_columns(canvas), first = column + canvas_mask_margin;
    if (first >= 0 && first + (int64_t)count <= columns)
        memcpy(blocks, row + first, count * sizeof *blocks);
    else
        for (size_t i = 0; i < count; i++)
            blocks[i] = row[canvas_clamped(first + (int64_t)i, columns)];
}

/* For one row of pixels: the value of each block at its centre, and its left and right neighbours' values. */
struct between {
    float middle[run_blocks], left[run_blocks], right[run_blocks];
};

/* The limit of a neighbour's value: times the block's own value plus more. */
struct bound {
    float times, more;
};
static const struct bound unbounded = {0, FLT_MAX};
/* Prevents drawing on flat blocks next to an edge. */
static const struct bound mask_bound = {4, 0};

/* Interpolates a row of blocks, starting one block before the first, with the row above or below.  weight:
 * the weight of the pixels' own row. */
ENGINE_CLONES static void blocks_between(const float *here, const float *there, float weight,
                                         struct bound bound, size_t count, struct between *between)
{
    for (size_t i = 0; i < count; i++) {
        const float own = here[i + 1], most = own * bound.times + bound.more, other = 1 - weight;
        between->middle[i] = own * weight + least_of(there[i + 1], most) * other;
        between->left[i] = least_of(here[i], most) * weight + least_of(there[i], most) * other;
        between->right[i] = least_of(here[i + 2], most) * weight + least_of(there[i + 2], most) * other;
    }
}

/* The weight of a pixel's own block, from the block's edge. */
static const float own_weights[canvas_block_px] = {.625f, .875f, .875f, .625f},
                   own_weights_halved[canvas_block_px / 2] = {.75f, .75f};

/*
 * Interpolates the pixels of a row, each between two blocks.  side is a compile-time constant.
 */
static inline void pixels_between(const struct between *restrict between, size_t count, const unsigned side,
                                  const float *weights, float *restrict line)
{
    enum { values_max = canvas_block_px * canvas_colors };
    float own[values_max], left[values_max], right[values_max];
    for (unsigned k = 0; k < side * canvas_colors; k++) {
        const unsigned pixel = k / canvas_colors;
        own[k] = weights[pixel];
        left[k] = pixel < side / 2 ? 1 - own[k] : 0;
        right[k] = pixel < side / 2 ? 0 : 1 - own[k];
    }
    for (size_t block = 0; block < count; block++, line += side * canvas_colors)
        for (unsigned k = 0; k < side * canvas_colors; k++)
            line[k] = between->middle[block] * own[k] + between->left[block] * left[k] +
                      between->right[block] * right[k];
}

ENGINE_CLONES static void pixels_between_blocks(const struct between *between, size_t count, float *line)
{
    pixels_between(between, count, canvas_block_px, own_weights, line);
}

ENGINE_CLONES static void pixels_between_halved(const struct between *between, size_t count, float *line)
{
    pixels_between(between, count, canvas_block_px / 2, own_weights_halved, line);
}

static void values_line(const struct canvas *canvas, const float *values, struct bound bound, unsigned side,
                        int64_t y, int64_t x, size_t count, float *line)
{
    const bool is_halved = side != canvas_block_px;
    const unsigned down = (unsigned)y % side;
    const int64_t row = (y - down) / side, column = x / (int64_t)side;
    const float weight = (is_halved ? own_weights_halved : own_weights)[down];
    const float *here_row = mask_at(canvas, values, row);
    const float *there_row = mask_at(canvas, values, down < side / 2 ? row - 1 : row + 1);
    const size_t blocks = count / side;
    float here[run_blocks + 2], there[run_blocks + 2];
    struct between between;
    assert(x % (int64_t)side == 0 && count % side == 0);
    for (size_t first = 0; first < blocks; first += run_blocks) {
        const size_t some = blocks - first < run_blocks ? blocks - first : run_blocks;
        blocks_of(canvas, here_row, column + (int64_t)first - 1, some + 2, here);
        blocks_of(canvas, there_row, column + (int64_t)first - 1, some + 2, there);
        blocks_between(here, there, weight, bound, some, &between);
        (is_halved ? pixels_between_halved : pixels_between_blocks)(&between, some,
                                                                    line + first * side * canvas_colors);
    }
}

void canvas_mask_line(const struct canvas *canvas, const float *mask, unsigned side, int64_t y, int64_t x,
                      size_t count, float *line)
{
    values_line(canvas, mask, mask_bound, side, y, x, count, line);
}

void canvas_smooth_line(const struct canvas *canvas, const float *smooth, int64_t y, int64_t x, size_t count,
                        float *line)
{
    values_line(canvas, smooth, unbounded, canvas_block_px, y, x, count, line);
}
