/*
 * The steps of a run of the anti-AI network: the inputs of each, and the columns and rows that it must
 * compute.  All follow from the steps' shapes.  Memory, values and the progress of a band belong to
 * protect_net.c.
 */
#ifndef ENGINE_PROTECT_PROTECT_STEP_H
#define ENGINE_PROTECT_PROTECT_STEP_H

#include <stdint.h>

#include "engine/protect/protect_weights.h"

/* The passes: the coarse drawer from noise, then from the change of its answer; the fine drawer from the
 * change of its answer. */
enum net_pass { PASS_NOISE, PASS_COARSE, PASS_FINE, net_pass_count };

/*
 * The steps, each after all its inputs: the noise; the picture, and the fine drawer's encoder layers on it.
 * For every pass: its input picture, its layers, and its drawing as rows of pixels.
 */
enum { STEP_NOISE, STEP_PIXELS, steps_of_pass = 1 + net_layer_count + 1 };

#define STEP_PLAIN(layer)       (STEP_PIXELS + 1 + (layer))
#define STEP_LOOKED(pass)       (STEP_PLAIN(LAYER_ANSWER8) + 1 + (pass)*steps_of_pass)
#define STEP_LAYER(pass, layer) (STEP_LOOKED(pass) + 1 + (layer))
#define STEP_DRAWN(pass)        STEP_LAYER(pass, net_layer_count)

enum { STEP_SMALL = STEP_LOOKED(PASS_NOISE), last_step = STEP_DRAWN(PASS_FINE), step_count };

/* Every step writes one or two line buffers: outputs and gates of struct conv_rows. */
enum { no_ring = -1, rings_each = 2 };

#define STEP_MAIN(step) ((step)*rings_each)
#define STEP_GATE(step) ((step)*rings_each + 1)

/* The position of a step's output places relative to its input places. */
enum step_shape {
    SHAPE_3X3 = CONV_3X3,
    SHAPE_DOWN = CONV_DOWN,
    SHAPE_UP = CONV_UP,
    SHAPE_SAME,    /* each from the place at the same position */
    SHAPE_DOUBLED, /* as SHAPE_UP, and from the neighbouring places */
    SHAPE_SOURCE   /* no input: the places come from outside the run */
};

/*
 * A step: its input line buffer, and the second operand of the end, a factor or subtrahend (enum conv_end).
 * cell_px: the width and height of one of its places in pixels of the picture.
 */
struct step_plan {
    enum step_shape shape;
    enum conv_end end;
    int input, met;
    unsigned cell_px;
};

extern const struct step_plan step_plans[step_count];

/*
 * For a shape: the rows that a step computes together, and the input rows that it reads for them.  Then the
 * columns that it computes together, and the multiple at which they begin.
 */
struct step_grid {
    unsigned rows, inputs, columns, grid;
};

extern const struct step_grid step_grids[];

/* A stretch of columns or rows, relative to the picture's or the band's first one. */
struct stretch {
    int64_t first;
    unsigned count;
};

/* The layer of a step; NULL: the step has none. */
const struct conv *step_conv(const struct net_weights *weights, int at);

unsigned step_channels(const struct net_weights *weights, int at);

unsigned step_rows_at_once(int at);

/* The stretch of its input that a step of a shape reads to compute a stretch of its output. */
struct stretch step_input(enum step_shape shape, struct stretch own);

/* The position of a step's places relative to its second operand's: the same, or at half size. */
enum step_shape step_met_shape(int at);

/*
 * The columns that every step must compute for a single band: those that its readers read, padded to whole
 * tiles.  Tiles are computed only from true values: inputs that cancel out of an output still affect its
 * rounding.
 */
void step_columns_plan(unsigned band_blocks, struct stretch columns[step_count]);

/*
 * The columns that bands share.  Each band computes the columns that it needs on the right, beyond its end.
 * The next band continues there and keeps the last few columns.  So no column is computed twice.
 */
struct step_overlap {
    int64_t ahead;             /* columns of the next band that are computed with a band */
    unsigned left[rings_each]; /* columns of the band before that are still read */
};

void step_overlaps_plan(struct step_overlap overlaps[step_count]);

/*
 * The rows that every step must compute for the rows of blocks of the last step.  Tiles beyond the rows that
 * are read get zeros as input, the same for all bands.  A step's first row is chosen so that its rows of
 * tiles end at the end of the first request; this keeps fewer rows.
 */
void step_rows_plan(unsigned rows, struct stretch planned[step_count]);

#endif
