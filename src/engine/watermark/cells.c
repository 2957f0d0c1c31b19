#include "engine/watermark/cells.h"

#include <math.h>

/*
 * No published source; tests/bench/watermark_growth measures the effect of each constant on bytes,
 * butteraugli and readings.
 *
 * The highest frequency of the underlay has 14 cycles a period, so 34 cells take 2.4 samples a cycle. A cell
 * of the overlay is two chips wide, because the full amplitude of the overlay ends at 0.2 cycles a chip.
 */
enum {
    underlay_cells = 34,            /* a side of a period */
    overlay_cells = lattice_period, /* a side of two periods */
    stripe_chips = 8,
    step_chips = 32, /* from one stripe to the next */
    step_grey_chips = 16,
    stripe_dense_chips = 12,
    /* Sparse stripes lie within the stripes of a second mark, which removes them. */
    step_sparse_chips = 64,
    stripe_small_chips = 6,
    small_chips = 500000
};

/*
 * J. Max 1960, "Quantizing for minimum distortion": the best quantiser of a Gaussian with three levels
 * returns 0 below 0.612 standard deviations, so that 54 % of the cells are not 0.
 */
static const float underlay_threshold = 0.612f;
static const float underlay_level = 1.36f; /* 1 / sqrt(0.54), for a variance of 1 */

/* Sparser than Max's cells: a cell that is not 0 costs as many bytes, and fewer cells are as strong. */
static const float overlay_threshold = 1.2f; /* standard deviations of a cell's mean */
static const float overlay_level = 2.0f;     /* grey levels */

/* Share of luma's energy in the tones, as in watermark.c and underlay.c. */
static const double tone_share = 0.25;

static float *tile_of(const struct lattice *lattice, const struct lattice_band *band, const int8_t *word,
                      bool is_toned, int side_px, struct workspace *workspace)
{
    struct lattice_content content = {.band = band,
                                      .word = word,
                                      .band_weight = is_toned ? (float)sqrt(1 - tone_share) : 1,
                                      .tone_weight = is_toned ? (float)sqrt(tone_share) : 0};

    return lattice_tile(lattice, &content, side_px, workspace);
}

static float level_of(float value, float threshold)
{
    return value > threshold ? 1.0f : value < -threshold ? -1.0f : 0.0f;
}

/* Enlarges cells by cells values to side_px by side_px. */
static float *enlarged(const float *values, int cells, int side_px, struct workspace *workspace)
{
    float *tile = workspace_take_unset(workspace, (size_t)side_px * (size_t)side_px, sizeof *tile);

    for (int y = 0; tile != NULL && y < side_px; y++)
        for (int x = 0; x < side_px; x++)
            tile[(size_t)y * (size_t)side_px + (size_t)x] =
                values[(size_t)(y * cells / side_px) * (size_t)cells + (size_t)(x * cells / side_px)];
    return tile;
}

float *cells_underlay(const struct lattice *lattice, const struct lattice_band *band,
                      struct cells_words words, bool is_toned, int side_px, struct workspace *workspace)
{
    const int count = underlay_cells * underlay_cells;
    float *added = tile_of(lattice, band, words.added, is_toned, underlay_cells, workspace);
    const float *removed = words.removed == NULL
                               ? NULL
                               : tile_of(lattice, band, words.removed, is_toned, underlay_cells, workspace);

    if (workspace->failed)
        return NULL;
    for (int i = 0; i < count; i++) {
        float old = removed == NULL ? 0 : level_of(removed[i], underlay_threshold);

        added[i] = underlay_level * (level_of(added[i], underlay_threshold) - old);
    }
    return enlarged(added, underlay_cells, side_px, workspace);
}

/*
 * Returns the means of two by two chips of the tile, which wraps, in units of the means' standard deviation.
 */
static float *means(const float *tile, struct workspace *workspace)
{
    const int cells = overlay_cells;
    float *means = workspace_take_unset(workspace, (size_t)(cells * cells), sizeof *means);
    double squares = 0;

    for (int i = 0; means != NULL && i < cells * cells; i++) {
        int y = i / cells * 2, x = i % cells * 2;
        const float *upper = tile + y % lattice_period * lattice_period;
        const float *lower = tile + (y + 1) % lattice_period * lattice_period;
        int left = x % lattice_period, right = (x + 1) % lattice_period;

        means[i] = upper[left] + upper[right] + lower[left] + lower[right];
        squares += (double)(means[i] * means[i]);
    }
    for (int i = 0; means != NULL && i < cells * cells; i++)
        means[i] /= (float)sqrt(squares / (cells * cells));
    return means;
}

static float *overlay_means(const struct lattice *lattice, const int8_t *word, struct workspace *workspace)
{
    const float *tile = tile_of(lattice, &lattice->luma, word, true, lattice_period, workspace);

    return tile == NULL ? NULL : means(tile, workspace);
}

float *cells_overlay(const struct lattice *lattice, struct cells_words words, int side_px,
                     struct workspace *workspace)
{
    float *added = overlay_means(lattice, words.added, workspace);
    const float *removed = words.removed == NULL ? NULL : overlay_means(lattice, words.removed, workspace);

    if (workspace->failed)
        return NULL;
    for (int i = 0; i < overlay_cells * overlay_cells; i++) {
        float old = removed == NULL ? 0 : level_of(removed[i], overlay_threshold);

        added[i] = overlay_level * (level_of(added[i], overlay_threshold) - old);
    }
    return enlarged(added, overlay_cells, side_px, workspace);
}

static uint32_t px_of(uint32_t chips, int period_px)
{
    return chips * (uint32_t)period_px / lattice_period;
}

static bool is_small(const struct image *image, int period_px)
{
    uint64_t across_chips = (uint64_t)image->width_px * lattice_period / (uint64_t)period_px;
    uint64_t down_chips = (uint64_t)image->height_px * lattice_period / (uint64_t)period_px;

    return across_chips * down_chips < small_chips;
}

struct cells_stripes cells_stripes(const struct image *image, int period_px, enum cells_density density)
{
    struct cells_stripes stripes = {px_of(stripe_chips, period_px), px_of(step_chips, period_px)};

    if (!image_has_color(image))
        stripes.step_px = px_of(step_grey_chips, period_px);
    else if (density == CELLS_DENSE)
        stripes.high_px = px_of(stripe_dense_chips, period_px);
    else if (density == CELLS_SPARSE && is_small(image, period_px))
        stripes.high_px = px_of(stripe_small_chips, period_px);
    else if (density == CELLS_SPARSE)
        stripes.step_px = px_of(step_sparse_chips, period_px);
    return stripes;
}
