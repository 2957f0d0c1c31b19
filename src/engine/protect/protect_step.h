/*
 * The steps of a run of the anti-AI network: what each reads of the others, and
 * which columns and rows of its own it has to compute for that.  All of it follows
 * from the steps' shapes; of memory, of values and of what a band has computed
 * already nothing is known here.
 */
#ifndef ENGINE_PROTECT_PROTECT_STEP_H
#define ENGINE_PROTECT_PROTECT_STEP_H

#include <stdint.h>

#include "engine/protect/protect_weights.h"

/* What draws: the coarse drawer from noise, the same from how its answer moved, the fine one from that. */
enum net_pass { PASS_NOISE, PASS_COARSE, PASS_FINE, net_pass_count };

/*
 * The steps: the noise; the picture, and the layers with which the fine drawer looks at
 * it as it is; for every pass what it looks at, the layers, and what it drew as
 * rows of pixels; and that hidden in the picture.  Each stands after all that it reads.
 */
enum { STEP_NOISE, STEP_PIXELS, steps_of_pass = 1 + net_layer_count + 1 };

#define STEP_PLAIN(layer)       (STEP_PIXELS + 1 + (layer))
#define STEP_LOOKED(pass)       (STEP_PLAIN(LAYER_ANSWER8) + 1 + (pass)*steps_of_pass)
#define STEP_LAYER(pass, layer) (STEP_LOOKED(pass) + 1 + (layer))
#define STEP_DRAWN(pass)        STEP_LAYER(pass, net_layer_count)

enum {
    STEP_SMALL = STEP_LOOKED(PASS_NOISE),
    STEP_HIDDEN = STEP_DRAWN(PASS_FINE) + 1,
    last_step = STEP_HIDDEN,
    step_count
};

/* Every step writes one or two rings of rows: outputs and gates of struct conv_rows. */
enum { no_ring = -1, rings_each = 2 };

#define STEP_MAIN(step) ((step)*rings_each)
#define STEP_GATE(step) ((step)*rings_each + 1)

/* How the places that a step computes lie to those of its input. */
enum step_shape {
    SHAPE_3X3 = CONV_3X3,
    SHAPE_DOWN = CONV_DOWN,
    SHAPE_UP = CONV_UP,
    SHAPE_SAME,    /* each from the one where it is */
    SHAPE_DOUBLED, /* as SHAPE_UP, and from the places beside, too */
    SHAPE_WINDOWS, /* from all windows of spectra_side that it lies in */
    SHAPE_SOURCE   /* there is no input: they come from outside */
};

/*
 * What a step computes: its ring of input, and at the end what that meets, the factor or
 * what was before (enum conv_end).  cell_px: how many pixels of the picture one of its
 * places is wide and high.
 */
struct step_plan {
    enum step_shape shape;
    enum conv_end end;
    int input, met;
    unsigned cell_px;
};

extern const struct step_plan step_plans[step_count];

/*
 * How many rows a step of a shape computes at once, and how many input rows it reads
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

unsigned step_rows_at_once(int at);

/* What a step of a shape reads of its input to compute a stretch of its own. */
struct stretch step_input(enum step_shape shape, struct stretch own);

/* How the places of a step lie to those of what its input meets: where they are, or at half of the size. */
enum step_shape step_met_shape(int at);

/*
 * The columns every step has to have for a band that stands alone: what its readers
 * look at, filled up to whole tiles.  Tiles are computed from true values alone, for
 * what cancels out of an output still decides how it is rounded.
 */
void step_columns_plan(unsigned band_blocks, struct stretch columns[step_count]);

/*
 * What bands leave one another.  Each computes as far to the right as it has to,
 * which is beyond its end; the next one goes on where that ended, with the last few
 * columns of it at hand.  So no column is computed twice.
 */
struct step_overlap {
    int64_t ahead;             /* how many columns of the next band are computed with a band */
    unsigned left[rings_each]; /* how many columns of the band before are still looked at */
};

void step_overlaps_plan(struct step_overlap overlaps[step_count]);

/*
 * The rows every step computes, from what the last one is asked for, which is rows
 * of blocks.  Rows of tiles that reach beyond what is looked at are fed with nothing
 * there, which is the same for all bands.  Where a step begins is such that its rows
 * of tiles end where what is asked for first ends: so less is kept.
 */
void step_rows_plan(unsigned rows, struct stretch planned[step_count]);

#endif
