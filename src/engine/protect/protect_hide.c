#include "engine/protect/protect_hide.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/watermark/clones.h"
#include "engine/image.h"
#include "engine/protect/protect_calm.h"
#include "engine/protect/protect_draw.h"
#include "engine/protect/protect_skin.h"
#include "engine/protect/ramp.h"

/* The mask of a block uses the roots of its neighbours.  The same holds at a quarter of the size, where a
 * block covers four by four. */
enum {
    root_margin = canvas_mask_margin + 1,
    coarse_parts = 4,
    coarse_margin = root_margin / coarse_parts + 2
};

static const float own_times = 2; /* largest multiple of a block's own spread */
/* Fourth roots of shares.  0.42 of the texture at a quarter of the size counts.  Next to smooth places at
 * least 0.42 of a block's own spread counts. */
static const float coarse_root = 0.805030f, own_grain_root = 0.805030f;

/* The spread from which a block gets some grain, and the width up to full grain. */
static const struct ramp grainy = {0.0011f, 0.0006f};
static const struct ramp beside = {0.0003f, 0.0003f}; /* of the flattest neighbouring block */
/* The mean distance of blocks from grey from which a picture has colour. */
static const struct ramp colored = {0.005f, 0.01f};

static inline float block_sum(const float columns[canvas_block_px])
{
    return columns[0] + columns[1] + columns[2] + columns[3];
}

/*
 * The mean squared distance of luma from its best-fitting plane, for each block of four rows of width_px
 * pixels.  A gradient therefore masks no more than a single colour does.
 */
ENGINE_CLONES static void blocks_spread(const float *luma, size_t width_px, float *spreads)
{
    static const float places[canvas_block_px] = {-1.5f, -.5f, .5f, 1.5f}; /* from the centre of a block */
    const float pixels = canvas_block_px * canvas_block_px, places_square = 20; /* summed over a block */
    for (size_t first = 0; first < width_px; first += canvas_block_px) {
        float sums[canvas_block_px] = {0}, squares[canvas_block_px] = {0};
        float across[canvas_block_px] = {0}, down[canvas_block_px] = {0};
        for (unsigned row = 0; row < canvas_block_px; row++)
            for (unsigned i = 0; i < canvas_block_px; i++)
                sums[i] += luma[row * width_px + first + i];
        const float mean = block_sum(sums) / pixels;
        for (unsigned row = 0; row < canvas_block_px; row++) {
            for (unsigned i = 0; i < canvas_block_px; i++) {
                const float apart = luma[row * width_px + first + i] - mean;
                squares[i] += apart * apart;
                across[i] += apart * places[i];
                down[i] += apart * places[row];
            }
        }
        const float slopes = block_sum(across) * block_sum(across) + block_sum(down) * block_sum(down);
        const float left = block_sum(squares) - slopes / places_square;
        spreads[first / canvas_block_px] = left > 0 ? left / pixels : 0;
    }
}

/* The fourth roots of spreads, which are given as squares. */
ENGINE_CLONES static void spreads_root(float *spreads, size_t count)
{
    for (size_t i = 0; i < count; i++)
        spreads[i] = sqrtf(sqrtf(sqrtf(spreads[i] + 1e-8f)));
}

/* The spread of a fourth root. */
static inline float unrooted(float root)
{
    return root * root * (root * root);
}

/* The roots of a row of blocks, starting at a column.  pixels: scratch of one row of pixels and four of
 * luma. */
static void roots_row(const struct canvas *canvas, int64_t row, int64_t column, size_t blocks, float *pixels,
                      float *roots)
{
    const size_t width_px = blocks * canvas_block_px;
    float *luma = pixels + width_px * canvas_colors;
    for (unsigned i = 0; i < canvas_block_px; i++) {
        canvas_pixels(canvas, row * canvas_block_px + i, column * canvas_block_px, width_px, pixels);
        draw_luma(pixels, width_px, luma + i * width_px);
    }
    blocks_spread(luma, width_px, roots);
    spreads_root(roots, blocks);
}

static inline float hidden(float floor, float knee, float grain, float spread)
{
    float texture = spread * spread * spread / (spread * spread + grain * grain);
    return (texture + floor) / (texture + knee);
}

float canvas_hidden(const struct canvas_hiding *hiding, float spread)
{
    return hidden(hiding->floor, hiding->knee, hiding->grain, spread);
}

/* The mean of fourth roots over 3x3 blocks, to the fourth power: one edge or star hardly raises it. */
static inline float spread_around(const float *const roots[3], size_t first)
{
    float sum = 0;
    for (unsigned row = 0; row < 3; row++)
        sum += roots[row][first] + roots[row][first + 1] + roots[row][first + 2];
    return unrooted(sum / 9);
}

/* The minimum over 3x3 blocks. */
static inline float least_around(const float *const roots[3], size_t first)
{
    float least = roots[0][first];
    for (unsigned row = 0; row < 3; row++)
        for (size_t at = first; at < first + 3; at++)
            least = least_of(least, roots[row][at]);
    return least;
}

/* A block's mask is limited to twice its own spread, so that a flat block next to an edge has none. */
ENGINE_CLONES static void mask_row(const struct canvas_hiding *hiding, const float *const roots[3],
                                   size_t count, float *mask, float *spread)
{
    const float floor = hiding->floor, knee = hiding->knee, grain = hiding->grain;
    for (size_t i = 0; i < count; i++) {
        const float near = spread_around(roots, i), own = unrooted(roots[1][i + 1]);
        spread[i] = least_of(near, own_times * own);
        mask[i] = hidden(floor, knee, grain, spread[i]);
    }
}

/* Computes from three rows of roots and of grainless roots: how smooth blocks and their neighbours are, how
 * mild the others are, and the permitted grain of both. */
ENGINE_CLONES static void smooth_row(const struct canvas_hiding *hiding, const float *const roots[3],
                                     const float *const grainless[3], size_t count, float *smooth,
                                     float *mild, float *grained)
{
    const float half_smooth = hiding->smooth, half_mild = hiding->mild;
    for (size_t i = 0; i < count; i++) {
        const float around = spread_around(grainless, i), own = own_times * unrooted(grainless[1][i + 1]);
        const float spread = least_of(around, own), flattest = unrooted(least_around(roots, i));
        smooth[i] = nearness(spread, half_smooth);
        mild[i] = nearness(spread, half_mild) - smooth[i];
        grained[i] = ramped(grainy, spread_around(roots, i)) * ramped(beside, flattest);
    }
}

/* A line buffer of the last three rows of roots. */
struct ring {
    float *roots;
    size_t blocks, rows; /* rows: the number of rows so far */
};

/* The place of the next row. */
static float *ring_next(struct ring *ring)
{
    return ring->roots + ring->rows++ % 3 * ring->blocks;
}

/* The last three rows from the top down; valid from the third row on. */
static void ring_lasts(const struct ring *ring, const float *lasts[3])
{
    for (size_t i = 0; i < 3; i++)
        lasts[i] = ring->roots + (ring->rows + i) % 3 * ring->blocks;
}

/* The block at a quarter of the size that covers one of the picture; both indices count from their
 * margins. */
static inline size_t coarse_at(size_t block)
{
    return (block + coarse_margin * coarse_parts - root_margin) / coarse_parts;
}

/*
 * The part of blocks' roots that counts for smoothness.  At a quarter of the size film grain is a quarter as
 * strong, but texture keeps its strength.  This separates the two.  Next to an outline the coarse blocks are
 * not usable.  The smoothest block around them counts instead, up to the amount that a block's own grain
 * allows.
 */
static void grainless_row(const float *roots, const float *const coarse[3], size_t blocks, float *grainless)
{
    for (size_t i = 0; i < blocks; i++) {
        const size_t at = coarse_at(i);
        const float near = coarse_root * coarse[1][at],
                    smoothest = coarse_root * least_around(coarse, at - 1);
        const float own = own_grain_root * roots[i], limit = most_of(smoothest, own);
        grainless[i] = least_of(roots[i], least_of(near, limit));
    }
}

/* The last three rows: roots of the picture, of a quarter of its size, and their grainless part, which
 * determines smoothness.  For every value of the masks also its luma, and how close its colour is to skin's
 * (warm; NULL: not needed). */
struct rings {
    struct ring whole, coarse, grainless;
    float *luma, *warm;
    double colorfulness; /* sum over the picture's blocks so far */
};

/* Computes the luma and the colours of a row of blocks, which are the pixels of a quarter of the size. */
static void means_fill(const struct canvas *canvas, struct rings *rings, int64_t row, const float *pixels,
                       const float *luma)
{
    enum { beyond = coarse_margin * coarse_parts - canvas_mask_margin };
    const size_t columns = canvas_mask_columns(canvas);
    const int64_t at = row + canvas_mask_margin;
    if (at < 0 || at >= (int64_t)canvas_mask_rows(canvas))
        return;
    memcpy(rings->luma + (size_t)at * columns, luma + beyond, columns * sizeof *luma);
    if (row >= 0 && row < canvas->rows)
        rings->colorfulness +=
            skin_colorfulness(pixels + coarse_margin * coarse_parts * canvas_colors, canvas->columns);
    if (rings->warm != NULL)
        skin_colors(pixels + beyond * canvas_colors, columns, rings->warm + (size_t)at * columns);
}

/* Computes the roots and means of the next row of blocks at a quarter of the size. */
static void coarse_fill(const struct canvas *canvas, struct rings *rings, float *pixels)
{
    const int64_t first = ((int64_t)rings->coarse.rows - coarse_margin) * canvas_block_px;
    const size_t blocks = rings->coarse.blocks, width_px = blocks * canvas_block_px;
    float *luma = pixels + width_px * canvas_colors, *roots = ring_next(&rings->coarse);
    for (unsigned i = 0; i < canvas_block_px; i++) {
        canvas_pixels_quartered(canvas, first + i, -coarse_margin * canvas_block_px, width_px, pixels);
        draw_luma(pixels, width_px, luma + i * width_px);
        means_fill(canvas, rings, first + i, pixels, luma + i * width_px);
    }
    blocks_spread(luma, width_px, roots);
    spreads_root(roots, blocks);
}

/* Fills the next row of the picture's blocks and the rows that belong to it. */
static void rings_fill(const struct canvas *canvas, struct rings *rings, float *pixels)
{
    const size_t row = rings->whole.rows, blocks = rings->whole.blocks;
    const float *coarse[3];
    float *roots = ring_next(&rings->whole);
    roots_row(canvas, (int64_t)row - root_margin, -root_margin, blocks, pixels, roots);
    while (rings->coarse.rows < coarse_at(row) + 2)
        coarse_fill(canvas, rings, pixels);
    ring_lasts(&rings->coarse, coarse);
    grainless_row(roots, coarse, blocks, ring_next(&rings->grainless));
}

static struct ring ring_of(size_t blocks)
{
    return (struct ring){malloc(sizeof(float) * 3 * blocks), blocks, 0};
}

bool canvas_mask(const struct canvas *canvas, const struct canvas_hiding *hiding, struct canvas_masks *masks)
{
    const size_t columns = canvas_mask_columns(canvas), rows = canvas_mask_rows(canvas), blocks = columns + 2;
    float *pixels = malloc(sizeof(float) * blocks * canvas_block_px * (canvas_block_px + canvas_colors));
    struct rings rings = {
        ring_of(blocks), ring_of(coarse_at(blocks - 1) + 2), ring_of(blocks), NULL, NULL, 0};
    /* The buffers for mild blocks that are not smooth, for luma and, when needed, for skin colours. */
    const bool is_skin = hiding->skin > 0 && image_has_color(canvas->image);
    float *milds = malloc(sizeof(float) * rows * columns * (is_skin ? 3 : 2));
    if (milds != NULL) {
        rings.luma = milds + rows * columns;
        rings.warm = is_skin ? rings.luma + rows * columns : NULL;
    }
    const bool is_memory = pixels != NULL && milds != NULL && rings.whole.roots != NULL &&
                           rings.coarse.roots != NULL && rings.grainless.roots != NULL;
    const float *roots[3], *grainless[3];
    while (is_memory && rings.whole.rows < rows + 2) {
        rings_fill(canvas, &rings, pixels);
        if (rings.whole.rows < 3)
            continue;
        const size_t first = (rings.whole.rows - 3) * columns;
        ring_lasts(&rings.whole, roots);
        ring_lasts(&rings.grainless, grainless);
        mask_row(hiding, roots, columns, masks->mask + first, masks->spread + first);
        smooth_row(hiding, roots, grainless, columns, masks->calm + first, milds + first,
                   masks->grained + first);
    }
    if (is_memory)
        calm_masks(canvas, hiding, &(struct calm_told){milds, rings.luma, rings.warm}, pixels, masks);
    masks->color = ramped(colored, (float)(rings.colorfulness / ((double)canvas->rows * canvas->columns)));
    free(pixels);
    free(rings.whole.roots);
    free(rings.coarse.roots);
    free(rings.grainless.roots);
    free(milds);
    return is_memory;
}

void canvas_peaks(const struct canvas *canvas, const struct canvas_peaks *peaks,
                  const struct canvas_hiding *hiding, const struct canvas_masks *masks, uint8_t *levels)
{
    static const float plain_less = 0.7f;
    const float less = plain_less * (1 - masks->taken);
    const size_t columns = canvas_picture_blocks(canvas->image->width_px);
    const size_t rows = canvas_picture_blocks(canvas->image->height_px);
    const unsigned left = canvas->left_px / canvas_block_px, top = canvas->top_px / canvas_block_px;
    for (size_t row = 0; row < rows; row++) {
        const float *here = canvas_picture_row(canvas, masks->spread, top + (unsigned)row) + left;
        for (size_t i = 0; i < columns; i++) {
            const float plain = ramped(grainy, here[i]) * nearness(here[i], hiding->plain);
            const float level = least_of(peaks->least + peaks->times * 255 * here[i], peaks->most);
            *levels++ = (uint8_t)(level * (1 - less * plain) + .5f);
        }
    }
}
