#include "engine/protect/protect_calm.h"

#include <string.h>

#include "engine/watermark/clones.h"
#include "engine/protect/protect_around.h"
#include "engine/protect/protect_skin.h"
#include "engine/protect/ramp.h"

/* A photograph's flat blocks get grain if enough blocks around them are not flat. */
enum { clear_around = 4, clear_rows = 2 * clear_around + 1 };

/* The luma from which a block counts as light. */
static const struct ramp light = {0.3f, 0.2f};
/* Flat blocks near black or white get no grain. */
static const struct ramp black = {0.02f, 0.02f}, white = {0.96f, 0.02f};
/* The share of the blocks around a flat block that are not flat. */
static const struct ramp cleared = {0.02f, 0.08f};

/* The mean product of two masks over the blocks of the picture. */
static double mean_of_products(const struct canvas *canvas, const float *one, const float *other)
{
    double sum = 0;
    for (unsigned row = 0; row < canvas->rows; row++) {
        const float *of_one = canvas_picture_row(canvas, one, row),
                    *of_other = canvas_picture_row(canvas, other, row);
        for (unsigned i = 0; i < canvas->columns; i++)
            sum += (double)(of_one[i] * of_other[i]);
    }
    return sum / ((double)canvas->rows * canvas->columns);
}

/* The weight of the mild places of a picture: high where much of it is smooth and some of that is not flat,
 * as in drawings. */
static float mild_counts(const struct canvas *canvas, const struct canvas_hiding *hiding,
                         const struct canvas_masks *masks)
{
    static const struct ramp photographed = {0.05f, 0.05f};
    const struct ramp smooth_enough = {hiding->calm_from, 0.1f};
    if (hiding->calm_from <= 0)
        return 1;
    return ramped(smooth_enough, (float)canvas_mean(canvas, masks->calm)) *
           ramped(photographed, (float)mean_of_products(canvas, masks->calm, masks->grained));
}

/* The share of the plain area of a picture that is not flat: high in photographs, near 0 in drawings. */
static float share_taken(const struct canvas *canvas, float half_plain, const struct canvas_masks *masks)
{
    double all = 0, grained = 0;
    for (unsigned row = 0; row < canvas->rows; row++) {
        const float *spreads = canvas_picture_row(canvas, masks->spread, row),
                    *grains = canvas_picture_row(canvas, masks->grained, row);
        for (unsigned i = 0; i < canvas->columns; i++) {
            const float plain = nearness(spreads[i], half_plain);
            all += (double)plain;
            grained += (double)(plain * grains[i]);
        }
    }
    return (float)(grained / (all + 1e-6 * canvas->rows * canvas->columns));
}

/* Weights of a picture: of mild places, of skin and plain places (high in photographs), and of flat places as
 * a clear sky. */
struct calm_counts {
    float mild, taken, clear;
};

static struct calm_counts calm_counts_of(const struct canvas *canvas, const struct canvas_hiding *hiding,
                                         const struct canvas_masks *masks)
{
    static const struct ramp taken = {0.06f, 0.06f}, clear = {0.25f, 0.25f};
    const float share = share_taken(canvas, hiding->plain, masks);
    return (struct calm_counts){mild_counts(canvas, hiding, masks), ramped(taken, share),
                                ramped(clear, share)};
}

/* More inputs for the blocks of a row: those of calm_told, the skin weight, and the share of blocks around
 * that are not flat. */
struct calm_blocks {
    const float *milds, *luma, *spread, *skins, *around;
};

/* Computes the attenuation of smooth blocks and, by their weights, of mild blocks, plain blocks and skin.
 * Plain blocks that are not smooth count in drawings too: shaded areas and the edges of outlines.  Computes
 * their grain as well.  A clear sky between two levels of 255 has flat spots; grain that skips them would
 * reveal them. */
ENGINE_CLONES static void calm_row(const struct canvas_hiding *hiding, const struct calm_counts *counts,
                                   const struct calm_blocks *blocks, size_t count, float *calm,
                                   float *grained)
{
    const float more_plain = hiding->light_plain - hiding->plain,
                more_eased = hiding->light_eased - hiding->eased;
    for (size_t i = 0; i < count; i++) {
        const float luma = blocks->luma[i], lightness = ramped(light, luma);
        const float smooth = calm[i], mild = counts->mild * blocks->milds[i];
        const float skin = counts->taken * blocks->skins[i];
        const float half_plain = hiding->plain + lightness * more_plain;
        const float counted = counts->taken + (1 - counts->taken) * (1 - smooth);
        const float plain = counted * nearness(blocks->spread[i], half_plain);
        const float eased = hiding->eased + lightness * more_eased;
        const float left = 1 - hiding->calm * smooth - hiding->eased * mild;
        const float clear = counts->clear * ramped(cleared, blocks->around[i]) * ramped(black, luma) *
                            (1 - ramped(white, luma));
        calm[i] = 1 - left * (1 - most_of(hiding->skin * skin, eased * plain));
        grained[i] = (grained[i] + (1 - grained[i]) * clear) * most_of(smooth + mild, most_of(skin, plain));
    }
}

static size_t row_within(const struct canvas *canvas, size_t row, size_t i, size_t around)
{
    const size_t last = canvas_mask_rows(canvas) - 1, at = row + i < around ? 0 : row + i - around;
    return at < last ? at : last;
}

/* The skin weight of the blocks of a row of the masks. */
static void skins_row(const struct canvas *canvas, const float *warm, const float *spread, size_t row,
                      float *room, float *skins)
{
    const size_t columns = canvas_mask_columns(canvas);
    const float *rows[skin_rows];
    for (size_t i = 0; i < skin_rows; i++)
        rows[i] = warm + row_within(canvas, row, i, skin_around) * columns;
    skin_row(rows, spread, columns, room, skins);
}

/* The share of blocks that are not flat around each block of a row.  before: the rows above, which the masks
 * no longer hold; the index is the row number modulo clear_around. */
static void around_row(const struct canvas *canvas, const float *grained, const float *before, size_t row,
                       float *room, float *around)
{
    const size_t columns = canvas_mask_columns(canvas);
    const float *rows[clear_rows];
    for (size_t i = 0; i < clear_rows; i++) {
        const size_t at = row_within(canvas, row, i, clear_around);
        rows[i] = at < row ? before + at % clear_around * columns : grained + at * columns;
    }
    around_means(rows, clear_around, columns, room, around);
}

void calm_masks(const struct canvas *canvas, const struct canvas_hiding *hiding, const struct calm_told *told,
                float *room, struct canvas_masks *masks)
{
    const size_t columns = canvas_mask_columns(canvas), rows = canvas_mask_rows(canvas);
    const struct calm_counts counts = calm_counts_of(canvas, hiding, masks);
    masks->taken = counts.taken;
    float *before = room, *skins = before + clear_around * columns, *around = skins + columns,
          *sums = around + columns;
    memset(skins, 0, 2 * columns * sizeof *skins);
    for (size_t row = 0, first = 0; row < rows; row++, first += columns) {
        const struct calm_blocks blocks = {told->milds + first, told->luma + first, masks->spread + first,
                                           skins, around};
        if (told->warm != NULL)
            skins_row(canvas, told->warm, masks->spread + first, row, sums, skins);
        if (counts.clear > 0)
            around_row(canvas, masks->grained, before, row, sums, around);
        memcpy(before + row % clear_around * columns, masks->grained + first, columns * sizeof *before);
        calm_row(hiding, &counts, &blocks, columns, masks->calm + first, masks->grained + first);
    }
}
