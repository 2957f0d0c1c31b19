/*
 * The steps of a run of the anti-AI network: what each reads of the others, and
 * which columns and rows of its own it has to compute for that.  All of it follows
 * from the layers' shapes; of memory, of values and of what a band has computed
 * already nothing is known here.
 */
#ifndef ENGINE_PROTECT_STEP_H
#define ENGINE_PROTECT_STEP_H

#include <stdint.h>

#include "engine/protect_weights.h"

/*
 * The steps: the noise, and for every pass what is looked at and the layers.  Each
 * stands after all that it reads.
 */
enum { STEP_NOISE, steps_of_pass = net_layer_count + 1, pass_count = 2 };

#define STEP_LOOKED(pass)       (STEP_NOISE + 1 + (pass)*steps_of_pass)
#define STEP_LAYER(pass, layer) (STEP_LOOKED(pass) + 1 + (layer))

enum { STEP_PIXELS = STEP_LOOKED(0), step_count = STEP_LOOKED(pass_count), last_step = step_count - 1 };

/* Every step writes one or two rings of rows: outputs and gates of struct conv_rows. */
enum { no_ring = -1, rings_each = 2 };

#define STEP_MAIN(step) ((step)*rings_each)
#define STEP_GATE(step) ((step)*rings_each + 1)

/*
 * What a step computes: its layer of input, and at the end what that meets, the
 * factor or what was before (enum conv_end).  cell_px: how many pixels one of its
 * places is wide and high.
 */
struct step_plan {
    enum conv_end end;
    int input, met;
    unsigned cell_px;
};

extern const struct step_plan step_plans[step_count];

/*
 * How many rows a step of a shape computes at once, and which input rows it reads
 * for them; how many columns it computes at once, and from multiples of what on.
 */
struct step_grid {
    unsigned rows, inputs, columns, grid;
};

extern const struct step_grid step_grids[];

/* A stretch of columns or of rows, counted from the picture's or the band's first one. */
struct stretch {
    int64_t first;
    unsigned count;
};

/* The layer of a step; NULL: it is none. */
const struct conv *step_conv(const struct net_weights *weights, int at);

unsigned step_channels(const struct net_weights *weights, int at);

/* Of a step that has an input.  What is shown is made row by row as a layer that goes up makes its own. */
enum conv_shape step_shape(const struct net_weights *weights, int at);

unsigned step_rows_at_once(const struct net_weights *weights, int at);

/* What a step of a shape reads of its input to compute a stretch of its own. */
struct stretch step_input(enum conv_shape shape, struct stretch own);

/*
 * The columns every step has to have for a band that stands alone: what its readers
 * look at, filled up to whole tiles.  Tiles are computed from true values alone, for
 * what cancels out of an output still decides how it is rounded.
 */
void step_columns_plan(const struct net_weights *weights, unsigned band_blocks,
                       struct stretch columns[step_count]);

/*
 * What bands leave one another.  Each computes as far to the right as it has to,
 * which is beyond its end; the next one goes on where that ended, with the last few
 * columns of it at hand.  So no column is computed twice.
 */
struct step_overlap {
    int64_t ahead;             /* how many columns of the next band are computed with a band */
    unsigned left[rings_each]; /* how many columns of the band before are still looked at */
};

void step_overlaps_plan(const struct net_weights *weights, struct step_overlap overlaps[step_count]);

/*
 * The rows every step computes, from what the last one is asked for, which is rows
 * of blocks.  Rows of tiles that reach beyond what is looked at are fed with nothing
 * there, which is the same for all bands.  Where a step begins is such that its rows
 * of tiles end where what is asked for first ends: so less is kept.
 */
void step_rows_plan(const struct net_weights *weights, unsigned rows, struct stretch planned[step_count]);

#endif
