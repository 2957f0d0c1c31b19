#include "engine/protect_step.h"

#include <assert.h>
#include <stdbool.h>

#include "engine/protect_net.h"

/* A step's rings by pass and layer. */
#define OUT(pass, layer)  STEP_MAIN(STEP_LAYER(pass, layer))
#define GATE(pass, layer) STEP_GATE(STEP_LAYER(pass, layer))

/* clang-format off */

/* What every pass looks with, and what it draws with, from a ring. */
#define LOOK(pass)                                                                                           \
    [STEP_LAYER(pass, LAYER_DOWN2)] = {CONV_SPLIT, STEP_MAIN(STEP_LOOKED(pass)), no_ring, 2},                \
    [STEP_LAYER(pass, LAYER_LOOK2)] = {CONV_SPLIT, OUT(pass, LAYER_DOWN2), no_ring, 2},                      \
    [STEP_LAYER(pass, LAYER_DOWN4)] = {CONV_SPLIT, OUT(pass, LAYER_LOOK2), no_ring, 4},                      \
    [STEP_LAYER(pass, LAYER_LOOK4)] = {CONV_SPLIT, OUT(pass, LAYER_DOWN4), no_ring, 4},                      \
    [STEP_LAYER(pass, LAYER_DOWN8)] = {CONV_SPLIT, OUT(pass, LAYER_LOOK4), no_ring, 8}
#define DRAW(pass, ring)                                                                                     \
    [STEP_LAYER(pass, LAYER_SEED8)] = {CONV_FACTOR, ring, GATE(pass, LAYER_DOWN8), 8},                       \
    [STEP_LAYER(pass, LAYER_UP4)] = {CONV_FACTOR, OUT(pass, LAYER_SEED8), GATE(pass, LAYER_LOOK4), 4},       \
    [STEP_LAYER(pass, LAYER_DRAW4)] = {CONV_FACTOR, OUT(pass, LAYER_UP4), GATE(pass, LAYER_DOWN4), 4},       \
    [STEP_LAYER(pass, LAYER_UP2)] = {CONV_FACTOR, OUT(pass, LAYER_DRAW4), GATE(pass, LAYER_LOOK2), 2},       \
    [STEP_LAYER(pass, LAYER_DRAW2)] = {CONV_FACTOR, OUT(pass, LAYER_UP2), GATE(pass, LAYER_DOWN2), 2},       \
    [STEP_LAYER(pass, LAYER_DRAW1)] = {CONV_PLAIN, OUT(pass, LAYER_DRAW2), no_ring, 2}

/* A pass after the first: it looks at what the one before drew, and draws from how far its answer moved. */
#define FOLLOW(pass)                                                                                         \
    [STEP_LOOKED(pass)] = {CONV_PLAIN, OUT((pass)-1, LAYER_DRAW1), no_ring, 1}, LOOK(pass),                  \
    [STEP_LAYER(pass, LAYER_ANSWER8)] = {CONV_CHANGE, OUT(pass, LAYER_DOWN8), OUT(0, LAYER_ANSWER8), 8},     \
    DRAW(pass, OUT(pass, LAYER_ANSWER8))

const struct step_plan step_plans[step_count] = {
    [STEP_NOISE] = {CONV_PLAIN, no_ring, no_ring, 8},
    [STEP_PIXELS] = {CONV_PLAIN, no_ring, no_ring, 1},
    LOOK(0),
    [STEP_LAYER(0, LAYER_ANSWER8)] = {CONV_PLAIN, OUT(0, LAYER_DOWN8), no_ring, 8},
    DRAW(0, STEP_MAIN(STEP_NOISE)),
    FOLLOW(1),
};
/* clang-format on */

_Static_assert((int)pass_count == 2, "the table has every pass");

/* Whether a step is a picture with what was drawn laid over it. */
static bool step_is_shown(int at)
{
    return at != STEP_NOISE && at != STEP_PIXELS && (at - STEP_PIXELS) % steps_of_pass == 0;
}

const struct conv *step_conv(const struct net_weights *weights, int at)
{
    const int layer = (at - STEP_PIXELS) % steps_of_pass - 1;
    return at == STEP_NOISE || layer < 0 ? NULL : &weights->layers[layer];
}

unsigned step_channels(const struct net_weights *weights, int at)
{
    const struct conv *conv = step_conv(weights, at);
    if (conv != NULL)
        return conv->outputs;
    return at == STEP_NOISE ? net_noise_channels : net_color_channels;
}

const struct step_grid step_grids[] = {
    [CONV_3X3] = {conv_tile_side, conv_tile_reads, conv_tile_side, 1},
    [CONV_DOWN] = {1, 2, 1, 1},
    [CONV_UP] = {2, 1, 2, 2},
};

enum conv_shape step_shape(const struct net_weights *weights, int at)
{
    return step_is_shown(at) ? CONV_UP : step_conv(weights, at)->shape;
}

unsigned step_rows_at_once(const struct net_weights *weights, int at)
{
    return step_plans[at].input == no_ring ? 1 : step_grids[step_shape(weights, at)].rows;
}

struct stretch step_input(enum conv_shape shape, struct stretch own)
{
    switch (shape) {
    case CONV_DOWN:
        return (struct stretch){own.first * 2, own.count * 2};
    case CONV_UP:
        return (struct stretch){own.first / 2, own.count / 2};
    case CONV_3X3:
    default:
        return (struct stretch){own.first - 1, own.count + 2};
    }
}

/* What a step reads of a ring to compute a stretch of its own; count 0: nothing. */
static struct stretch step_reads(const struct net_weights *weights, int reader, int ring, struct stretch own)
{
    const struct step_plan *plan = &step_plans[reader];
    if (plan->input == ring)
        return step_input(step_shape(weights, reader), own);
    if (plan->met == ring)
        return own;
    return (struct stretch){0, 0};
}

/* Both stretches in one. */
static struct stretch stretch_of(struct stretch one, struct stretch other)
{
    if (one.count == 0 || other.count == 0)
        return one.count == 0 ? other : one;
    int64_t end = one.first + one.count, other_end = other.first + other.count;
    int64_t first = one.first < other.first ? one.first : other.first;
    return (struct stretch){first, (unsigned)((end > other_end ? end : other_end) - first)};
}

/* Drawn out at the beginning to a multiple of grid, and at the end to a multiple of tile in all. */
static struct stretch stretch_filled(struct stretch stretch, unsigned grid, unsigned tile)
{
    const unsigned more = (unsigned)(stretch.first & (int64_t)(grid - 1));
    stretch.first -= more;
    stretch.count = (stretch.count + more + tile - 1) / tile * tile;
    return stretch;
}

/* What the readers of both rings of a step look at, to compute stretches of their own. */
static struct stretch stretch_read(const struct net_weights *weights, int at,
                                   const struct stretch own[step_count])
{
    struct stretch read = {0, 0};
    for (int reader = at + 1; reader < step_count; reader++)
        for (int ring = STEP_MAIN(at); ring <= STEP_GATE(at); ring++)
            read = stretch_of(read, step_reads(weights, reader, ring, own[reader]));
    return read;
}

void step_columns_plan(const struct net_weights *weights, unsigned band_blocks,
                       struct stretch columns[step_count])
{
    for (int at = last_step; at >= 0; at--) {
        columns[at] = stretch_read(weights, at, columns);
        if (at == last_step)
            columns[at].count = band_blocks * net_block_px / step_plans[at].cell_px;
        if (step_is_shown(at))
            columns[at] = stretch_filled(columns[at], net_draw_px, net_draw_px);
        else if (step_plans[at].input != no_ring)
            columns[at] = stretch_filled(columns[at], step_grids[step_shape(weights, at)].grid,
                                         step_grids[step_shape(weights, at)].columns);
    }
    assert(columns[STEP_LOOKED(1)].first >= -(int64_t)net_reach_px);
    assert(columns[STEP_LOOKED(1)].first + columns[STEP_LOOKED(1)].count <=
           (int64_t)band_blocks * net_block_px + net_reach_px);
}

void step_overlaps_plan(const struct net_weights *weights, struct step_overlap overlaps[step_count])
{
    struct stretch columns[step_count];
    step_columns_plan(weights, net_band_blocks, columns);
    for (int at = 0; at < step_count; at++) {
        const unsigned band = net_band_blocks * net_block_px / step_plans[at].cell_px;
        overlaps[at].ahead = columns[at].first + columns[at].count - band;
    }
    for (int ring = 0; ring < step_count * rings_each; ring++) {
        struct step_overlap *overlap = &overlaps[ring / rings_each];
        int64_t first = overlap->ahead;
        for (int reader = ring / rings_each + 1; reader < step_count; reader++) {
            const struct stretch own = {overlaps[reader].ahead, conv_tile_side};
            const struct stretch read = step_reads(weights, reader, ring, own);
            first = read.count > 0 && read.first < first ? read.first : first;
        }
        overlap->left[ring % rings_each] = (unsigned)(overlap->ahead - first);
    }
}

void step_rows_plan(const struct net_weights *weights, unsigned rows, struct stretch planned[step_count])
{
    struct stretch first[step_count], all[step_count];
    for (int at = last_step; at >= 0; at--) {
        const unsigned at_once = step_rows_at_once(weights, at);
        const bool is_paired = step_plans[at].input != no_ring && step_shape(weights, at) == CONV_UP;
        first[at] = stretch_read(weights, at, first);
        all[at] = stretch_read(weights, at, all);
        if (at == last_step) {
            first[at].count = at_once;
            all[at].count = rows * net_block_px / step_plans[at].cell_px;
        }
        if (is_paired) {
            first[at] = stretch_filled(first[at], at_once, at_once);
            all[at] = stretch_filled(all[at], at_once, at_once);
        }
        const unsigned more = (at_once - first[at].count % at_once) % at_once;
        planned[at] = (struct stretch){all[at].first - more, all[at].count + more};
    }
}
