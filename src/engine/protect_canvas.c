#include "engine/protect_canvas.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine/clones.h"
#include "engine/image.h"
#include "engine/protect_calm.h"
#include "engine/protect_draw.h"
#include "engine/protect_hash.h"
#include "engine/protect_skin.h"
#include "engine/ramp.h"

/* tools/generator.py computes the same; its margin of repeated pixels is canvas_reach_px, so its first place
 * of the noise is ours there. */
enum {
    noise_margin = canvas_reach_px / canvas_grid_px,
    hash_values = 8,
    grid_blocks = canvas_grid_px / canvas_block_px
};

/* Of a row at half of the size, or of blocks: as many are made at once. */
enum { run_pixels = 64, run_blocks = 64 };

/* The mask of a block takes the roots of its neighbours.  At a quarter of the size, where a block covers four
 * by four, the same. */
enum {
    root_margin = canvas_mask_margin + 1,
    coarse_parts = 4,
    coarse_margin = root_margin / coarse_parts + 2
};

static const float own_times = 2; /* a block's own spread, at most */
/* Fourth roots of shares: .42 of what is busy at a quarter of the size counts, and beside what is smooth
 * there .42 of a block's own at least. */
static const float coarse_root = 0.805030f, own_grain_root = 0.805030f;

/* From how far on a block gets any grain, and how much further all of it. */
static const struct ramp grainy = {0.0011f, 0.0006f};
static const struct ramp beside = {0.0003f, 0.0003f}; /* the flattest block beside it */
/* How far from grey blocks are, in the mean, for a picture to have colour. */
static const struct ramp colored = {0.005f, 0.01f};

void canvas_init(struct canvas *canvas, const struct image *image, uint64_t seed)
{
    enum { key_noise = 1, key_offset, key_grain };
    uint64_t place = hash_key(seed, key_offset);
    canvas->image = image;
    canvas->left_px = (place & 1) * canvas_grid_px;
    canvas->top_px = (place >> 1 & 1) * canvas_grid_px;
    canvas->columns = (image->width_px + canvas->left_px + canvas_grid_px - 1) / canvas_grid_px * grid_blocks;
    canvas->rows = (image->height_px + canvas->top_px + canvas_grid_px - 1) / canvas_grid_px * grid_blocks;
    canvas->noise_key = hash_key(seed, key_noise);
    canvas->grain_key = hash_key(seed, key_grain);
    for (unsigned level = 0; level < 256; level++)
        canvas->levels[level] = (float)level / 255;
}

static int64_t clamped(int64_t value, int64_t end)
{
    return value < 0 ? 0 : value >= end ? end - 1 : value;
}

static void pixel8(const struct canvas *canvas, const uint8_t *row, size_t x, float *values)
{
    const uint8_t *pixel = row + x * canvas->image->channels;
    unsigned step = image_has_color(canvas->image) ? 1 : 0;
    for (unsigned color = 0; color < canvas_colors; color++)
        values[color] = canvas->levels[pixel[color * step]];
}

static void pixel16(const struct canvas *canvas, const uint16_t *row, size_t x, float *values)
{
    const uint16_t *pixel = row + x * canvas->image->channels;
    unsigned step = image_has_color(canvas->image) ? 1 : 0;
    for (unsigned color = 0; color < canvas_colors; color++)
        values[color] = (float)pixel[color * step] / 65535;
}

/* 8-bit RGB, the usual case; what the table of levels says, for whole vectors. */
ENGINE_CLONES static void pixels_rgb8(const uint8_t *samples, size_t count, float *values)
{
    for (size_t i = 0; i < count * canvas_colors; i++)
        values[i] = (float)samples[i] / 255;
}

/* Pixels that all lie in the picture. */
static void pixels_inside(const struct canvas *canvas, const void *row, size_t x, size_t count, float *values)
{
    const struct image *image = canvas->image;
    if (image->depth_bits == 8 && image->channels == 3) {
        pixels_rgb8((const uint8_t *)row + x * canvas_colors, count, values);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (image->depth_bits == 8)
            pixel8(canvas, row, x + i, values + i * canvas_colors);
        else
            pixel16(canvas, row, x + i, values + i * canvas_colors);
    }
}

/*
 * Fetches the pixels that will be asked for next, those some rows below: no row of a picture lies where the
 * processor would look for it by itself.
 */
static void pixels_fetch(const struct canvas *canvas, int64_t y, size_t x, size_t count)
{
    enum { rows_ahead = 3, line_bytes = 64 };
    const struct image *image = canvas->image;
    const size_t pixel_bytes = image->channels * image->depth_bits / 8, bytes = count * pixel_bytes;
    const unsigned char *row = image_row(image, (uint32_t)clamped(y + rows_ahead, image->height_px));
    for (size_t at = 0; at < bytes; at += line_bytes)
        __builtin_prefetch(row + x * pixel_bytes + at);
}

void canvas_pixels(const struct canvas *canvas, int64_t y_px, int64_t x_px, size_t count, float *values)
{
    const struct image *image = canvas->image;
    const int64_t width = image->width_px, x = x_px - canvas->left_px, pixels = (int64_t)count;
    const void *row = image_row(image, (uint32_t)clamped(y_px - canvas->top_px, image->height_px));
    const int64_t begin = x < 0 ? clamped(-x, pixels + 1) : 0;
    const int64_t end = x < width ? (width - x < pixels ? width - x : pixels) : 0;
    for (int64_t i = 0; i < begin; i++)
        pixels_inside(canvas, row, 0, 1, values + i * canvas_colors);
    if (begin < end) {
        pixels_fetch(canvas, y_px - canvas->top_px, (size_t)(x + begin), (size_t)(end - begin));
        pixels_inside(canvas, row, (size_t)(x + begin), (size_t)(end - begin),
                      values + begin * canvas_colors);
    }
    for (int64_t i = begin < end ? end : begin; i < pixels; i++)
        pixels_inside(canvas, row, (size_t)(width - 1), 1, values + i * canvas_colors);
}

typedef void (*pixels_function)(const struct canvas *canvas, int64_t y, int64_t x, size_t count,
                                float *values);

/* Means of 2x2 of a function's pixels. */
static void pixels_halved(const struct canvas *canvas, pixels_function pixels_of, int64_t y, int64_t x,
                          size_t count, float *values)
{
    float rows[2][2 * run_pixels * canvas_colors];
    for (size_t first = 0; first < count; first += run_pixels) {
        const size_t here = count - first < run_pixels ? count - first : run_pixels;
        for (unsigned i = 0; i < 2; i++)
            pixels_of(canvas, 2 * y + i, 2 * (x + (int64_t)first), 2 * here, rows[i]);
        draw_halved(rows[0], rows[1], here * canvas_colors, values + first * canvas_colors);
    }
}

void canvas_pixels_halved(const struct canvas *canvas, int64_t y, int64_t x, size_t count, float *values)
{
    pixels_halved(canvas, canvas_pixels, y, x, count, values);
}

static void pixels_quartered(const struct canvas *canvas, int64_t y, int64_t x, size_t count, float *values)
{
    pixels_halved(canvas, canvas_pixels_halved, y, x, count, values);
}

void canvas_noise(const struct canvas *canvas, int64_t row, int64_t column, float values[canvas_noise_values])
{
    uint64_t place = (uint64_t)(row + noise_margin) << 32 | (uint64_t)(column + noise_margin);
    for (unsigned i = 0; i < canvas_noise_values; i++) {
        uint64_t number = place * (canvas_noise_values / hash_values) + i / hash_values;
        uint64_t hash = hash_of(number, canvas->noise_key);
        values[i] = ((float)(hash >> (8 * (i % hash_values)) & 255) - 127.5f) / 127.5f;
    }
}

void canvas_grain(const struct canvas *canvas, const struct grain *grain, int64_t y_px, int64_t x_px,
                  size_t count, float *values)
{
    grain_line(grain, canvas->grain_key, (uint64_t)(y_px + canvas_reach_px),
               (uint64_t)(x_px + canvas_reach_px), count, values);
}

static inline float block_sum(const float columns[canvas_block_px])
{
    return columns[0] + columns[1] + columns[2] + columns[3];
}

/*
 * How far luma lies from the plane that fits it best, as a mean of squares, in each block of four rows of
 * width_px pixels: what only grows lighter hides no more than one colour does.
 */
ENGINE_CLONES static void blocks_spread(const float *luma, size_t width_px, float *spreads)
{
    static const float places[canvas_block_px] = {-1.5f, -.5f, .5f, 1.5f}; /* from the middle of a block */
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

/* The fourth roots of spreads, which come as squares. */
ENGINE_CLONES static void spreads_root(float *spreads, size_t count)
{
    for (size_t i = 0; i < count; i++)
        spreads[i] = sqrtf(sqrtf(sqrtf(spreads[i] + 1e-8f)));
}

/* The spread of a root. */
static inline float unrooted(float root)
{
    return root * root * (root * root);
}

/* Roots of a row of blocks from a column on; pixels: a row of them and four of luma. */
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

/* The mean of fourth roots over 3x3 blocks, to the fourth: one edge, or a star, hardly lifts it. */
static inline float spread_around(const float *const roots[3], size_t first)
{
    float sum = 0;
    for (unsigned row = 0; row < 3; row++)
        sum += roots[row][first] + roots[row][first + 1] + roots[row][first + 2];
    return unrooted(sum / 9);
}

/* The least of 3x3 blocks. */
static inline float least_around(const float *const roots[3], size_t first)
{
    float least = roots[0][first];
    for (unsigned row = 0; row < 3; row++)
        for (size_t at = first; at < first + 3; at++)
            least = least_of(least, roots[row][at]);
    return least;
}

/* No block takes more than twice its own spread allows, so that a flat one beside an edge takes nothing. */
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

/* How smooth blocks are and how mild those that are not, with those around them, and how much grain either
 * may get; from three rows of roots, and of what counts of them. */
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

size_t canvas_mask_columns(const struct canvas *canvas)
{
    return (size_t)canvas->columns + 2 * canvas_mask_margin;
}

size_t canvas_mask_rows(const struct canvas *canvas)
{
    return (size_t)canvas->rows + 2 * canvas_mask_margin;
}

/* The last three rows of roots, each of so many blocks. */
struct ring {
    float *roots;
    size_t blocks, rows; /* rows: how many there were */
};

/* Where the next row belongs. */
static float *ring_next(struct ring *ring)
{
    return ring->roots + ring->rows++ % 3 * ring->blocks;
}

/* The last three from the top down, which mean something from the third on. */
static void ring_lasts(const struct ring *ring, const float *lasts[3])
{
    for (size_t i = 0; i < 3; i++)
        lasts[i] = ring->roots + (ring->rows + i) % 3 * ring->blocks;
}

/* Which block at a quarter of the size covers one of the picture, both counted from their margins on. */
static inline size_t coarse_at(size_t block)
{
    return (block + coarse_margin * coarse_parts - root_margin) / coarse_parts;
}

/*
 * What counts of blocks' roots where it is asked how smooth they are.  At a quarter of the size film grain is
 * a quarter as strong and texture as strong as in the picture, which tells them apart.  Beside an outline the
 * blocks there tell nothing; the smoothest of those around them counts, for as much as a block's own grain
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

/* What the last three rows hold: roots of the picture, of a quarter of its size, and what counts of them
 * where it is asked how smooth blocks are.  And for every value of the masks, its luma, and how far colours
 * are skin's (warm; NULL: nobody asks). */
struct rings {
    struct ring whole, coarse, grainless;
    float *luma, *warm;
    double colorfulness; /* of the picture's blocks so far, summed */
};

/* Tells the luma and the colours of a row of blocks, which are the pixels of a quarter of the size. */
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

/* The roots of the next row of blocks at a quarter of the size, and what else is told there. */
static void coarse_fill(const struct canvas *canvas, struct rings *rings, float *pixels)
{
    const int64_t first = ((int64_t)rings->coarse.rows - coarse_margin) * canvas_block_px;
    const size_t blocks = rings->coarse.blocks, width_px = blocks * canvas_block_px;
    float *luma = pixels + width_px * canvas_colors, *roots = ring_next(&rings->coarse);
    for (unsigned i = 0; i < canvas_block_px; i++) {
        pixels_quartered(canvas, first + i, -coarse_margin * canvas_block_px, width_px, pixels);
        draw_luma(pixels, width_px, luma + i * width_px);
        means_fill(canvas, rings, first + i, pixels, luma + i * width_px);
    }
    blocks_spread(luma, width_px, roots);
    spreads_root(roots, blocks);
}

/* Fills the next row of the picture's blocks and what belongs to it. */
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
    /* How mild blocks are that are not smooth, their luma, and where somebody asks how far their colours are
     * skin's. */
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

double canvas_mean(const struct canvas *canvas, const float *values)
{
    double sum = 0;
    for (unsigned row = 0; row < canvas->rows; row++)
        for (unsigned i = 0; i < canvas->columns; i++)
            sum += (double)canvas_picture_row(canvas, values, row)[i];
    return sum / ((double)canvas->rows * canvas->columns);
}

/* Of how far samples may move, the share that is left out where a drawing is shaded. */
static const float shaded_less = 0.7f;

void canvas_peaks(const struct canvas *canvas, const struct canvas_peaks *peaks,
                  const struct canvas_masks *masks, uint8_t *levels)
{
    const size_t columns = canvas_picture_blocks(canvas->image->width_px);
    const size_t rows = canvas_picture_blocks(canvas->image->height_px);
    const unsigned left = canvas->left_px / canvas_block_px, top = canvas->top_px / canvas_block_px;
    const float drawn = shaded_less * (1 - masks->taken);
    for (size_t row = 0; row < rows; row++) {
        const float *spread = canvas_picture_row(canvas, masks->spread, top + (unsigned)row) + left,
                    *grained = canvas_picture_row(canvas, masks->grained, top + (unsigned)row) + left;
        for (size_t i = 0; i < columns; i++) {
            const float level = least_of(peaks->least + peaks->times * 255 * spread[i], peaks->most);
            *levels++ = (uint8_t)(level * (1 - drawn * grained[i]) + .5f);
        }
    }
}

size_t canvas_count_above(const struct canvas *canvas, const float *values, float value)
{
    size_t above = 0;
    for (unsigned row = 0; row < canvas->rows; row++)
        for (unsigned i = 0; i < canvas->columns; i++)
            above += canvas_picture_row(canvas, values, row)[i] > value;
    return above;
}

/* A row of the mask; those further out are as the outermost. */
static const float *mask_at(const struct canvas *canvas, const float *mask, int64_t row)
{
    int64_t at = clamped(row + canvas_mask_margin, (int64_t)canvas_mask_rows(canvas));
    return mask + (size_t)at * canvas_mask_columns(canvas);
}

/* Values of count blocks of a row; those further out are as the outermost. */
static void blocks_of(const struct canvas *canvas, const float *row, int64_t column, size_t count,
                      float *blocks)
{
    const int64_t columns = (int64_t)canvas_mask_columns(canvas), first = column + canvas_mask_margin;
    if (first >= 0 && first + (int64_t)count <= columns)
        memcpy(blocks, row + first, count * sizeof *blocks);
    else
        for (size_t i = 0; i < count; i++)
            blocks[i] = row[clamped(first + (int64_t)i, columns)];
}

/* Of one row of pixels, what each block comes to in its middle, and what beside it on the left and on the
 * right. */
struct between {
    float middle[run_blocks], left[run_blocks], right[run_blocks];
};

/* How much a neighbour of a block may count for, at most: times the block's own value and more. */
struct bound {
    float times, more;
};
static const struct bound unbounded = {0, FLT_MAX};
/* So that nothing is drawn where it is flat beside an edge. */
static const struct bound mask_bound = {4, 0};

/* From a row of blocks, begun one block before the first, and the one above or below; weight: how much of
 * their own row the pixels take. */
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

/* How much of its own block's mask a pixel takes, from the block's edge on. */
static const float own_weights[canvas_block_px] = {.625f, .875f, .875f, .625f},
                   own_weights_halved[canvas_block_px / 2] = {.75f, .75f};

/*
 * The pixels of a row between blocks, each of which stands between two others.  side is known when this is
 * compiled.
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
