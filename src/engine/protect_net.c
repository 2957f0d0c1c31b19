#include "engine/protect_net.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/*
 * Measured: wider bands leave the cache.  At this width rows of every resolution are
 * whole blocks of the widest kernel's sums.
 */
enum { band_blocks_usual = 48 };

enum iw_error net_init(struct net *net, const uint8_t *bytes, size_t size, const char **why)
{
    net->kernels = conv_kernels_at(0);
    net->band_blocks = band_blocks_usual;
    return weights_init(&net->weights, bytes, size, why);
}

void net_fini(struct net *net)
{
    weights_fini(&net->weights);
}

/* ---- the plan */

/*
 * The steps of a run: the noise, and twice what is looked at and the layers.  Each
 * stands after all that it reads.
 */
enum {
    STEP_NOISE,
    STEP_PIXELS,
    first_pass,
    STEP_SHOWN = first_pass + net_layer_count,
    second_pass,
    step_count = second_pass + net_layer_count,
    last_step = step_count - 1
};

/* Every step writes one or two rings of rows: outputs and gates of struct conv_rows. */
enum { no_ring = -1, rings_each = 2 };

#define MAIN(step) ((step)*rings_each)
#define GATE(step) ((step)*rings_each + 1)

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

/*
 * The layers of a pass: the step it looks at, how its answer ends and what that
 * meets, and the ring it draws from.
 */
#define PASS(pass, looked, answer_end, answer_met, drawn)                                                    \
    [pass + LAYER_DOWN2] = {CONV_SPLIT, MAIN(looked), no_ring, 2},                                           \
            [pass + LAYER_LOOK2] = {CONV_SPLIT, MAIN(pass + LAYER_DOWN2), no_ring, 2},                       \
            [pass + LAYER_DOWN4] = {CONV_SPLIT, MAIN(pass + LAYER_LOOK2), no_ring, 4},                       \
            [pass + LAYER_LOOK4] = {CONV_SPLIT, MAIN(pass + LAYER_DOWN4), no_ring, 4},                       \
            [pass + LAYER_DOWN8] = {CONV_SPLIT, MAIN(pass + LAYER_LOOK4), no_ring, 8},                       \
            [pass + LAYER_ANSWER8] = {answer_end, MAIN(pass + LAYER_DOWN8), answer_met, 8},                  \
            [pass + LAYER_SEED8] = {CONV_FACTOR, drawn, GATE(pass + LAYER_DOWN8), 8},                        \
            [pass + LAYER_UP4] = {CONV_FACTOR, MAIN(pass + LAYER_SEED8), GATE(pass + LAYER_LOOK4), 4},       \
            [pass + LAYER_DRAW4] = {CONV_FACTOR, MAIN(pass + LAYER_UP4), GATE(pass + LAYER_DOWN4), 4},       \
            [pass + LAYER_UP2] = {CONV_FACTOR, MAIN(pass + LAYER_DRAW4), GATE(pass + LAYER_LOOK2), 2},       \
            [pass + LAYER_DRAW2] = {CONV_FACTOR, MAIN(pass + LAYER_UP2), GATE(pass + LAYER_DOWN2), 2},       \
            [pass + LAYER_DRAW1] = {CONV_PLAIN, MAIN(pass + LAYER_DRAW2), no_ring, 2}

static const struct step_plan plans[step_count] = {
    [STEP_NOISE] = {CONV_PLAIN, no_ring, no_ring, 8},
    [STEP_PIXELS] = {CONV_PLAIN, no_ring, no_ring, 1},
    PASS(first_pass, STEP_PIXELS, CONV_PLAIN, no_ring, MAIN(STEP_NOISE)),
    [STEP_SHOWN] = {CONV_PLAIN, MAIN(first_pass + LAYER_DRAW1), no_ring, 1},
    PASS(second_pass, STEP_SHOWN, CONV_CHANGE, MAIN(first_pass + LAYER_ANSWER8),
         MAIN(second_pass + LAYER_ANSWER8)),
};

/* The layer of a step; NULL: it is none. */
static const struct conv *step_conv(const struct net *net, int at)
{
    if (at == STEP_NOISE || at == STEP_PIXELS || at == STEP_SHOWN)
        return NULL;
    return &net->weights.layers[at < STEP_SHOWN ? at - first_pass : at - second_pass];
}

static unsigned step_channels(const struct net *net, int at)
{
    const struct conv *conv = step_conv(net, at);
    if (conv != NULL)
        return conv->outputs;
    return at == STEP_NOISE ? net_noise_channels : net_color_channels;
}

/*
 * How many rows a step of a shape computes at once, and which input rows it reads
 * for them; how many columns it computes at once, and from multiples of what on.
 */
static const struct shape_grid {
    unsigned rows, inputs, columns, grid;
} shape_grids[] = {
    [CONV_3X3] = {conv_tile_side, conv_tile_reads, conv_tile_side, 1},
    [CONV_DOWN] = {1, 2, 1, 1},
    [CONV_UP] = {2, 1, 2, 2},
};

/* Of a step that has an input.  What is shown is made row by row as a layer that goes up makes its own. */
static enum conv_shape step_shape(const struct net *net, int at)
{
    return at == STEP_SHOWN ? CONV_UP : step_conv(net, at)->shape;
}

static unsigned step_rows_at_once(const struct net *net, int at)
{
    return plans[at].input == no_ring ? 1 : shape_grids[step_shape(net, at)].rows;
}

/* A stretch of columns or of rows, counted from the picture's or the band's first one. */
struct stretch {
    int64_t first;
    unsigned count;
};

/* What a step reads of its input to compute a stretch of its own. */
static struct stretch input_stretch(enum conv_shape shape, struct stretch own)
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
static struct stretch step_reads(const struct net *net, int reader, int ring, struct stretch own)
{
    const struct step_plan *plan = &plans[reader];
    if (plan->input == ring)
        return input_stretch(step_shape(net, reader), own);
    if (plan->met == ring)
        return own;
    return (struct stretch){0, 0};
}

/* ---- the run */

struct step {
    unsigned char *rings[rings_each];
    unsigned kept[rings_each]; /* how many of the last rows of a ring later steps still look at */
    size_t row_values;
    unsigned channels;
    struct stretch columns;           /* computed for the band, counted from its first one on */
    int64_t ahead;                    /* how many columns of the next band are computed with a band */
    unsigned left[rings_each];        /* how many columns of the band before are still looked at */
    unsigned char *edges[rings_each]; /* those of all rows, one after the other */
    int64_t edge_rows;
    struct stretch rows; /* computed, and up to a row of tiles more at the end */
    int64_t next;        /* the first row not yet computed */
};

/* One band of columns on its way through the steps. */
struct run {
    const struct net *net;
    const struct net_ends *ends;
    struct step steps[step_count];
    bool is_rehearsal;        /* nothing is computed: what is asked for is noted in kept */
    bool has_left, has_right; /* bands beside this one */
    float *scratch;           /* of the kernels */
    void *nothing;            /* a row of zeros, as long as the longest */
    int64_t first_px;
};

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
static struct stretch stretch_read(const struct net *net, int at, const struct stretch own[step_count])
{
    struct stretch read = {0, 0};
    for (int reader = at + 1; reader < step_count; reader++)
        for (int ring = MAIN(at); ring <= GATE(at); ring++)
            read = stretch_of(read, step_reads(net, reader, ring, own[reader]));
    return read;
}

/*
 * The columns every step has to have for a band that stands alone: what its readers
 * look at, filled up to whole tiles.  Tiles are computed from true values alone, for
 * what cancels out of an output still decides how it is rounded.
 */
static void columns_plan(const struct net *net, unsigned band_blocks, struct stretch columns[step_count])
{
    for (int at = last_step; at >= 0; at--) {
        columns[at] = stretch_read(net, at, columns);
        if (at == last_step)
            columns[at].count = band_blocks * net_block_px / plans[at].cell_px;
        if (at == STEP_SHOWN)
            columns[at] = stretch_filled(columns[at], net_draw_px, net_draw_px);
        else if (plans[at].input != no_ring)
            columns[at] = stretch_filled(columns[at], shape_grids[step_shape(net, at)].grid,
                                         shape_grids[step_shape(net, at)].columns);
    }
    assert(columns[STEP_SHOWN].first >= -(int64_t)net_reach_px);
    assert(columns[STEP_SHOWN].first + columns[STEP_SHOWN].count <=
           (int64_t)band_blocks * net_block_px + net_reach_px);
}

/*
 * What bands leave one another.  Each computes as far to the right as it has to,
 * which is beyond its end; the next one goes on where that ended, with the last few
 * columns of it at hand.  So no column is computed twice.
 */
static void edges_plan(struct run *run)
{
    struct stretch columns[step_count];
    columns_plan(run->net, net_band_blocks, columns);
    for (int at = 0; at < step_count; at++) {
        const unsigned band = net_band_blocks * net_block_px / plans[at].cell_px;
        run->steps[at].ahead = columns[at].first + columns[at].count - band;
    }
    for (int ring = 0; ring < step_count * rings_each; ring++) {
        struct step *step = &run->steps[ring / rings_each];
        int64_t first = step->ahead;
        for (int reader = ring / rings_each + 1; reader < step_count; reader++) {
            const struct stretch own = {run->steps[reader].ahead, conv_tile_side};
            const struct stretch read = step_reads(run->net, reader, ring, own);
            first = read.count > 0 && read.first < first ? read.first : first;
        }
        step->left[ring % rings_each] = (unsigned)(step->ahead - first);
    }
}

/*
 * The rows every step computes, from what the last one is asked for.  Rows of tiles
 * that reach beyond what is looked at are fed with nothing there, which is the same
 * for all bands.  Where a step begins is such that its rows of tiles end where what
 * is asked for first ends: so less is kept.
 */
static void rows_plan(struct run *run, unsigned rows)
{
    struct stretch first[step_count], all[step_count];
    for (int at = last_step; at >= 0; at--) {
        const unsigned at_once = step_rows_at_once(run->net, at);
        const bool is_paired = plans[at].input != no_ring && step_shape(run->net, at) == CONV_UP;
        first[at] = stretch_read(run->net, at, first);
        all[at] = stretch_read(run->net, at, all);
        if (at == last_step) {
            first[at].count = at_once;
            all[at].count = rows * net_block_px / plans[at].cell_px;
        }
        if (is_paired) {
            first[at] = stretch_filled(first[at], at_once, at_once);
            all[at] = stretch_filled(all[at], at_once, at_once);
        }
        const unsigned more = (at_once - first[at].count % at_once) % at_once;
        run->steps[at].rows = (struct stretch){all[at].first - more, all[at].count + more};
    }
}

static size_t ring_value_bytes(int ring)
{
    return ring % rings_each == GATE(0) ? sizeof(uint16_t) : sizeof(float);
}

/* How many columns of the band before the rows of a step's rings begin with. */
static unsigned step_left(const struct step *step)
{
    return step->left[0] > step->left[1] ? step->left[0] : step->left[1];
}

/* A row that was computed and is still there, or is being computed, from a column on; NULL: no such ring. */
static void *ring_row(struct run *run, int ring, int64_t row, int64_t column)
{
    struct step *step = ring == no_ring ? NULL : &run->steps[ring / rings_each];
    if (step == NULL || step->kept[ring % rings_each] == 0)
        return NULL;
    unsigned *kept = &step->kept[ring % rings_each];
    if (run->is_rehearsal) {
        *kept = row < step->next - *kept ? (unsigned)(step->next - row) : *kept;
        return NULL;
    }
    assert(row >= step->next - *kept && row < step->next + conv_tile_side);
    const int64_t first = step->columns.first - step_left(step);
    assert(column >= first);
    const size_t place = (size_t)(row - step->rows.first) % *kept * step->row_values +
                         (size_t)(column - first) * step->channels;
    return step->rings[ring % rings_each] + place * ring_value_bytes(ring);
}

/* A row to look at; one of zeros where a step computes none. */
static void *row_read(struct run *run, int ring, int64_t row, int64_t column)
{
    const struct step *step = ring == no_ring ? NULL : &run->steps[ring / rings_each];
    if (step != NULL && (row < step->rows.first || row >= step->next)) {
        assert(row < step->rows.first || step->next >= step->rows.first + step->rows.count);
        return run->nothing;
    }
    return ring_row(run, ring, row, column);
}

/* The columns of a row that a band leaves to the next one. */
static unsigned char *edge_row(const struct step *step, int ring, int64_t row, size_t *bytes)
{
    *bytes = step->left[ring % rings_each] * step->channels * ring_value_bytes(ring);
    assert(row - step->rows.first < step->edge_rows);
    return step->edges[ring % rings_each] + (size_t)(row - step->rows.first) * *bytes;
}

/* Takes what the band before left of rows that were computed, and leaves the same to the next. */
static void edges_pass(struct run *run, int at, int64_t row, unsigned count)
{
    const struct step *step = &run->steps[at];
    for (int ring = MAIN(at); ring <= GATE(at); ring++) {
        const int64_t left = step->left[ring % rings_each];
        for (int64_t here = row; left > 0 && here < row + count; here++) {
            const int64_t first = step->columns.first - left;
            size_t bytes;
            unsigned char *edge = edge_row(step, ring, here, &bytes);
            if (run->has_left)
                memcpy(ring_row(run, ring, here, first), edge, bytes);
            if (run->has_right)
                memcpy(edge, ring_row(run, ring, here, first + step->columns.count), bytes);
        }
    }
}

static void ring_ensure(struct run *run, int ring, int64_t row);

/* Everything that a step reads and writes to compute the rows from one on. */
static struct conv_rows step_rows(struct run *run, int at, int64_t row)
{
    const struct step_plan *plan = &plans[at];
    const int64_t column = run->steps[at].columns.first;
    const struct shape_grid *counts = &shape_grids[step_shape(run->net, at)];
    const struct stretch own = {row, counts->rows}, above = input_stretch(step_shape(run->net, at), own);
    const struct stretch beside = input_stretch(step_shape(run->net, at), run->steps[at].columns);
    struct conv_rows rows = {0};
    ring_ensure(run, plan->input, above.first + above.count - 1);
    ring_ensure(run, plan->met, row + own.count - 1);
    for (int i = 0; i < (int)counts->inputs; i++)
        rows.inputs[i] = row_read(run, plan->input, above.first + i, beside.first);
    for (int i = 0; i < (int)counts->rows; i++) {
        void *met = row_read(run, plan->met, row + i, column);
        rows.before[i] = plan->end == CONV_CHANGE ? met : NULL;
        rows.factors[i] = plan->end == CONV_FACTOR ? met : NULL;
        rows.outputs[i] = ring_row(run, MAIN(at), row + i, column);
        rows.gates[i] = ring_row(run, GATE(at), row + i, column);
    }
    return rows;
}

static void step_shown(struct run *run, const struct conv_rows *rows, int64_t row)
{
    const struct stretch columns = run->steps[STEP_SHOWN].columns;
    run->ends->shown(run->ends->data, row, run->first_px + columns.first, columns.count / 2, rows->inputs[0],
                     rows->outputs);
}

static void step_layer(struct run *run, int at, int64_t row)
{
    const struct conv *conv = step_conv(run->net, at);
    const struct conv_kernels *kernels = run->net->kernels;
    const unsigned columns = run->steps[at].columns.count;
    const struct conv_rows rows = step_rows(run, at, row);
    if (run->is_rehearsal)
        return;
    if (conv == NULL)
        step_shown(run, &rows, row);
    else if (conv->shape == CONV_DOWN)
        kernels->down(conv, &rows, columns);
    else if (conv->shape == CONV_UP)
        kernels->up(conv, &rows, columns / 2);
    else
        kernels->tiles(conv, plans[at].end, &rows, columns / conv_tile_side, run->scratch);
}

/* A row of pixels, or of noise as loud as the first pass wants it. */
static void step_source(struct run *run, int at, int64_t row)
{
    const struct net_ends *ends = run->ends;
    const struct stretch columns = run->steps[at].columns;
    float *out = ring_row(run, MAIN(at), row, columns.first);
    if (run->is_rehearsal)
        return;
    if (at == STEP_PIXELS) {
        ends->pixels(ends->data, row, run->first_px + columns.first, columns.count, out);
        return;
    }
    ends->noise(ends->data, row, run->first_px / net_block_px + columns.first, columns.count, out);
    for (size_t i = 0; i < (size_t)columns.count * net_noise_channels; i++)
        out[i] *= run->net->weights.noise_gain;
}

/* Computes rows of a ring up to and with row, or a few more. */
static void ring_ensure(struct run *run, int ring, int64_t row)
{
    const int at = ring / rings_each;
    if (ring == no_ring)
        return;
    struct step *step = &run->steps[at];
    const int64_t end = step->rows.first + step->rows.count;
    while (step->next <= row && step->next < end) {
        if (plans[at].input == no_ring)
            step_source(run, at, step->next);
        else
            step_layer(run, at, step->next);
        if (!run->is_rehearsal)
            edges_pass(run, at, step->next, step_rows_at_once(run->net, at));
        step->next += step_rows_at_once(run->net, at);
    }
}

static void run_begin(struct run *run, unsigned first_block, unsigned band_blocks)
{
    struct stretch columns[step_count];
    columns_plan(run->net, band_blocks, columns);
    run->has_left = first_block > 0;
    run->first_px = (int64_t)first_block * net_block_px;
    for (int at = 0; at < step_count; at++) {
        struct step *step = &run->steps[at];
        const int64_t end = columns[at].first + columns[at].count;
        const int64_t first = run->has_left ? step->ahead : columns[at].first;
        step->columns = (struct stretch){first, (unsigned)(end - first)};
        step->next = step->rows.first;
    }
}

/*
 * Finds out how many rows each ring has to keep, the fewer, the more stays in the
 * cache: by a run that computes nothing.  It repeats itself every four rows of
 * blocks, so after a few times that it has seen everything.
 */
static void run_rehearse(struct run *run)
{
    enum { rows = 8 * conv_tile_side };
    rows_plan(run, rows);
    edges_plan(run);
    for (int at = 0; at < step_count; at++) {
        run->steps[at].kept[0] = step_rows_at_once(run->net, at);
        run->steps[at].kept[1] = plans[at].end == CONV_SPLIT ? step_rows_at_once(run->net, at) : 0;
    }
    run_begin(run, 0, net_band_blocks);
    run->is_rehearsal = true;
    for (int64_t row = 0; row < rows * net_block_px / (int64_t)plans[last_step].cell_px; row++) {
        ring_ensure(run, MAIN(last_step), row);
        ring_row(run, MAIN(last_step), row, 0);
    }
    run->is_rehearsal = false;
}

/*
 * The next piece of memory of which size bytes are taken, of whole lines of the
 * cache; where memory is NULL it is only measured.
 */
static void *piece_take(unsigned char *memory, size_t *size, size_t bytes)
{
    enum { line_bytes = 64 };
    void *piece = memory == NULL ? NULL : memory + *size;
    *size += (bytes + line_bytes - 1) / line_bytes * line_bytes;
    return piece;
}

/*
 * The kernels' scratch, the rings of all steps and what bands leave one another, in
 * one piece of memory; its size.  A row is an odd number of lines of the cache long,
 * lest the rows of a tile meet in one place of it.
 */
static size_t memory_lay(struct run *run, const struct stretch columns[step_count], unsigned char *memory)
{
    size_t size = 0, longest = 0;
    run->scratch = piece_take(memory, &size, conv_scratch_values() * sizeof(float));
    for (int ring = 0; ring < step_count * rings_each; ring++) {
        const int at = ring / rings_each, which = ring % rings_each;
        struct step *step = &run->steps[at];
        const size_t places = (size_t)step_left(step) + columns[at].count + conv_slack;
        step->channels = step_channels(run->net, at);
        step->row_values = ((places * step->channels + 31) / 32 | 1) * 32;
        longest = step->row_values > longest ? step->row_values : longest;
        step->edge_rows = step->rows.count + conv_tile_side;
        const size_t value_bytes = ring_value_bytes(ring);
        const size_t edge_bytes = step->left[which] * step->channels * value_bytes;
        step->rings[which] = piece_take(memory, &size, step->kept[which] * step->row_values * value_bytes);
        step->edges[which] = piece_take(memory, &size, edge_bytes * (size_t)step->edge_rows);
    }
    run->nothing = piece_take(memory, &size, longest * sizeof(float));
    return size;
}

/* Memory for bands of a width, zeroed; NULL: there is none. */
static void *run_memory(struct run *run, unsigned band_blocks)
{
    struct stretch columns[step_count];
    columns_plan(run->net, band_blocks, columns);
    const size_t size = memory_lay(run, columns, NULL);
    unsigned char *memory = aligned_alloc(64, size);
    if (memory == NULL)
        return NULL;
    memset(memory, 0, size);
    memory_lay(run, columns, memory);
    return memory;
}

enum iw_error net_run(const struct net *net, unsigned rows, unsigned columns, const struct net_ends *ends)
{
    struct run run = {.net = net, .ends = ends};
    const unsigned cell_px = plans[last_step].cell_px;
    const unsigned whole = (columns + net_band_blocks - 1) / net_band_blocks * net_band_blocks;
    const unsigned band = net->band_blocks < whole ? net->band_blocks : whole;
    run_rehearse(&run);
    rows_plan(&run, rows);
    void *memory = run_memory(&run, band);
    if (memory == NULL)
        return IW_NO_MEMORY;
    for (unsigned first = 0; first < columns; first += band) {
        unsigned count = columns - first < band ? columns - first : band;
        run_begin(&run, first, count);
        run.has_right = first + count < columns;
        for (int64_t row = 0; row < (int64_t)rows * net_block_px / cell_px; row++) {
            ring_ensure(&run, MAIN(last_step), row);
            ends->sink(ends->data, row * cell_px, run.first_px, count * net_block_px / cell_px,
                       ring_row(&run, MAIN(last_step), row, 0));
        }
    }
    free(memory);
    return IW_OK;
}
