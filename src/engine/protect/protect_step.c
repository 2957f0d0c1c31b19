#include "engine/protect/protect_step.h"

#include <assert.h>
#include <stdbool.h>

#include "engine/protect/protect_net.h"

/* The layers of the encoders (LOOK) and of the passes. */
#define PLAIN(layer)  STEP_PLAIN(layer)
#define NOISE(layer)  STEP_LAYER(PASS_NOISE, layer)
#define COARSE(layer) STEP_LAYER(PASS_COARSE, layer)
#define FINE(layer)   STEP_LAYER(PASS_FINE, layer)

/* The line buffers of these layers. */
#define OUT(STEP, layer)  STEP_MAIN(STEP(layer))
#define GATE(STEP, layer) STEP_GATE(STEP(layer))

/* clang-format off */

/* The encoder layers of a step whose places are px pixels wide, and the decoder layers; both read from a line
 * buffer. */
#define LOOK(STEP, seen, px, end)                                                                            \
    [STEP(LAYER_DOWN2)] = {SHAPE_DOWN, end, STEP_MAIN(seen), no_ring, 2 * (px)},                             \
    [STEP(LAYER_LOOK2)] = {SHAPE_3X3, end, OUT(STEP, LAYER_DOWN2), no_ring, 2 * (px)},                       \
    [STEP(LAYER_DOWN4)] = {SHAPE_DOWN, end, OUT(STEP, LAYER_LOOK2), no_ring, 4 * (px)},                      \
    [STEP(LAYER_LOOK4)] = {SHAPE_3X3, end, OUT(STEP, LAYER_DOWN4), no_ring, 4 * (px)},                       \
    [STEP(LAYER_DOWN8)] = {SHAPE_DOWN, end, OUT(STEP, LAYER_LOOK4), no_ring, 8 * (px)}
#define DRAW(STEP, ring, px)                                                                                 \
    [STEP(LAYER_SEED8)] = {SHAPE_3X3, CONV_FACTOR, ring, GATE(STEP, LAYER_DOWN8), 8 * (px)},                 \
    [STEP(LAYER_UP4)] = {SHAPE_UP, CONV_FACTOR, OUT(STEP, LAYER_SEED8), GATE(STEP, LAYER_LOOK4), 4 * (px)},  \
    [STEP(LAYER_DRAW4)] = {SHAPE_3X3, CONV_FACTOR, OUT(STEP, LAYER_UP4), GATE(STEP, LAYER_DOWN4), 4 * (px)}, \
    [STEP(LAYER_UP2)] = {SHAPE_UP, CONV_FACTOR, OUT(STEP, LAYER_DRAW4), GATE(STEP, LAYER_LOOK2), 2 * (px)},  \
    [STEP(LAYER_DRAW2)] = {SHAPE_3X3, CONV_FACTOR, OUT(STEP, LAYER_UP2), GATE(STEP, LAYER_DOWN2), 2 * (px)}, \
    [STEP(LAYER_DRAW1)] = {SHAPE_3X3, CONV_PLAIN, OUT(STEP, LAYER_DRAW2), no_ring, 2 * (px)}

/* The answer, and its change from an earlier one. */
#define ANSWER(STEP, px)                                                                                     \
    [STEP(LAYER_ANSWER8)] = {SHAPE_3X3, CONV_PLAIN, OUT(STEP, LAYER_DOWN8), no_ring, 8 * (px)}
#define CHANGE(STEP, BEFORE, px)                                                                             \
    [STEP(LAYER_ANSWER8)] = {SHAPE_3X3, CONV_CHANGE, OUT(STEP, LAYER_DOWN8), OUT(BEFORE, LAYER_ANSWER8),     \
                             8 * (px)}

const struct step_plan step_plans[step_count] = {
    [STEP_NOISE] = {SHAPE_SOURCE, CONV_PLAIN, no_ring, no_ring, 16},
    [STEP_PIXELS] = {SHAPE_SOURCE, CONV_PLAIN, no_ring, no_ring, 1},
    LOOK(PLAIN, STEP_PIXELS, 1, CONV_LEAKY),
    ANSWER(PLAIN, 1),

    [STEP_SMALL] = {SHAPE_SOURCE, CONV_PLAIN, no_ring, no_ring, 2},
    LOOK(NOISE, STEP_SMALL, 2, CONV_SPLIT),
    ANSWER(NOISE, 2),
    DRAW(NOISE, STEP_MAIN(STEP_NOISE), 2),
    [STEP_DRAWN(PASS_NOISE)] = {SHAPE_UP, CONV_PLAIN, OUT(NOISE, LAYER_DRAW1), no_ring, 2},

    [STEP_LOOKED(PASS_COARSE)] = {SHAPE_SAME, CONV_PLAIN, STEP_MAIN(STEP_DRAWN(PASS_NOISE)), no_ring, 2},
    LOOK(COARSE, STEP_LOOKED(PASS_COARSE), 2, CONV_SPLIT),
    CHANGE(COARSE, NOISE, 2),
    DRAW(COARSE, OUT(COARSE, LAYER_ANSWER8), 2),
    [STEP_DRAWN(PASS_COARSE)] = {SHAPE_UP, CONV_PLAIN, OUT(COARSE, LAYER_DRAW1), no_ring, 2},

    [STEP_LOOKED(PASS_FINE)] = {SHAPE_DOUBLED, CONV_PLAIN, STEP_MAIN(STEP_DRAWN(PASS_COARSE)), no_ring, 1},
    LOOK(FINE, STEP_LOOKED(PASS_FINE), 1, CONV_SPLIT),
    CHANGE(FINE, PLAIN, 1),
    DRAW(FINE, OUT(FINE, LAYER_ANSWER8), 1),
    [STEP_DRAWN(PASS_FINE)] = {SHAPE_UP, CONV_PLAIN, OUT(FINE, LAYER_DRAW1), no_ring, 1},
};
/* clang-format on */

const struct conv *step_conv(const struct net_weights *weights, int at)
{
    const bool is_plain = at > STEP_PIXELS && at < STEP_SMALL;
    const int place = is_plain ? at - STEP_PLAIN(0) : (at - STEP_SMALL) % steps_of_pass - 1;
    const bool is_layer = at > STEP_PIXELS && place >= 0 && place < net_layer_count;
    const bool is_coarse = !is_plain && at < STEP_LOOKED(PASS_FINE);
    return is_layer ? &weights->layers[is_coarse ? DRAWER_COARSE : DRAWER_FINE][place] : NULL;
}

unsigned step_channels(const struct net_weights *weights, int at)
{
    const struct conv *conv = step_conv(weights, at);
    if (conv != NULL)
        return conv->outputs;
    return at == STEP_NOISE ? net_noise_channels : net_color_channels;
}

const struct step_grid step_grids[] = {
    [SHAPE_3X3] = {conv_tile_side, conv_tile_reads, conv_tile_side, 1},
    [SHAPE_DOWN] = {1, 2, 1, 1},
    [SHAPE_UP] = {2, 1, 2, 2},
    [SHAPE_SAME] = {1, 1, 1, 1},
    [SHAPE_DOUBLED] = {2, 3, 2, 2},
    [SHAPE_SOURCE] = {1, 0, 1, 1},
};

unsigned step_rows_at_once(int at)
{
    return step_grids[step_plans[at].shape].rows;
}

struct stretch step_input(enum step_shape shape, struct stretch own)
{
    switch (shape) {
    case SHAPE_DOWN:
        return (struct stretch){own.first * 2, own.count * 2};
    case SHAPE_UP:
        return (struct stretch){own.first / 2, own.count / 2};
    case SHAPE_DOUBLED:
        return (struct stretch){own.first / 2 - 1, own.count / 2 + 2};
    case SHAPE_3X3:
        return (struct stretch){own.first - 1, own.count + 2};
    case SHAPE_SAME:
    case SHAPE_SOURCE:
    default:
        return own;
    }
}

enum step_shape step_met_shape(int at)
{
    const int met = step_plans[at].met;
    const bool is_same = met == no_ring || step_plans[met / rings_each].cell_px == step_plans[at].cell_px;
    return is_same ? SHAPE_SAME : SHAPE_DOUBLED;
}

/* The stretch of a line buffer that a step reads to compute one of its stretches; count 0: nothing. */
static struct stretch step_reads(int reader, int ring, struct stretch own)
{
    const struct step_plan *plan = &step_plans[reader];
    if (plan->input == ring)
        return step_input(plan->shape, own);
    if (plan->met == ring)
        return step_input(step_met_shape(reader), own);
    return (struct stretch){0, 0};
}

/* The union of both stretches. */
static struct stretch stretch_of(struct stretch one, struct stretch other)
{
    if (one.count == 0 || other.count == 0)
        return one.count == 0 ? other : one;
    int64_t end = one.first + one.count, other_end = other.first + other.count;
    int64_t first = one.first < other.first ? one.first : other.first;
    return (struct stretch){first, (unsigned)((end > other_end ? end : other_end) - first)};
}

/* Extends a stretch: its start down to a multiple of grid, its length up to a multiple of tile. */
static struct stretch stretch_filled(struct stretch stretch, unsigned grid, unsigned tile)
{
    const unsigned more = (unsigned)(stretch.first & (int64_t)(grid - 1));
    stretch.first -= more;
    stretch.count = (stretch.count + more + tile - 1) / tile * tile;
    return stretch;
}

/* The union of the readers' stretches in both line buffers of a step. */
static struct stretch stretch_read(int at, const struct stretch own[step_count])
{
    struct stretch read = {0, 0};
    for (int reader = at + 1; reader < step_count; reader++)
        for (int ring = STEP_MAIN(at); ring <= STEP_GATE(at); ring++)
            read = stretch_of(read, step_reads(reader, ring, own[reader]));
    return read;
}

void step_columns_plan(unsigned band_blocks, struct stretch columns[step_count])
{
    for (int at = last_step; at >= 0; at--) {
        const struct step_grid *grid = &step_grids[step_plans[at].shape];
        columns[at] = stretch_read(at, columns);
        if (at == last_step)
            columns[at].count = band_blocks * net_block_px;
        columns[at] = stretch_filled(columns[at], grid->grid, grid->columns);
        assert(columns[at].first * step_plans[at].cell_px >= -(int64_t)net_reach_px);
    }
}

void step_overlaps_plan(struct step_overlap overlaps[step_count])
{
    struct stretch columns[step_count];
    step_columns_plan(net_band_blocks, columns);
    for (int at = 0; at < step_count; at++) {
        const unsigned band = net_band_blocks * net_block_px / step_plans[at].cell_px;
        overlaps[at].ahead = columns[at].first + columns[at].count - band;
    }
    for (int ring = 0; ring < step_count * rings_each; ring++) {
        struct step_overlap *overlap = &overlaps[ring / rings_each];
        int64_t first = overlap->ahead;
        for (int reader = ring / rings_each + 1; reader < step_count; reader++) {
            const struct stretch own = {overlaps[reader].ahead, conv_tile_side};
            const struct stretch read = step_reads(reader, ring, own);
            first = read.count > 0 && read.first < first ? read.first : first;
        }
        overlap->left[ring % rings_each] = (unsigned)(overlap->ahead - first);
    }
}

void step_rows_plan(unsigned rows, struct stretch planned[step_count])
{
    struct stretch first[step_count], all[step_count];
    for (int at = last_step; at >= 0; at--) {
        const unsigned at_once = step_rows_at_once(at), pair = at_once == 2 ? 2 : 1;
        first[at] = stretch_read(at, first);
        all[at] = stretch_read(at, all);
        if (at == last_step) {
            first[at].count = at_once;
            all[at].count = rows * net_block_px;
        }
        first[at] = stretch_filled(first[at], pair, pair);
        all[at] = stretch_filled(all[at], pair, pair);
        const unsigned more = (at_once - first[at].count % at_once) % at_once;
        planned[at] = (struct stretch){all[at].first - more, all[at].count + more};
        assert(planned[at].first * step_plans[at].cell_px >= -(int64_t)net_reach_px);
    }
}
