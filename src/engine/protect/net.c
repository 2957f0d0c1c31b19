#include "engine/protect/net.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/clones.h"

enum { colors = net_color_channels, row_slack = 2 /* values that are written beyond the end of some rows */ };

enum iw_error net_init(struct net *net, const uint8_t *bytes, size_t size, const char **why)
{
    net->kernels = conv_kernels_at(0);
    return weights_init(&net->weights, bytes, size, why);
}

void net_fini(struct net *net)
{
    weights_fini(&net->weights);
}

/* ---- steps: inputs of each, and the columns and rows that it must compute */

/* The passes: the coarse drawer from noise, then from the change of its answer; the fine drawer from the
 * change of its answer. */
enum net_pass { PASS_NOISE, PASS_COARSE, PASS_FINE, net_pass_count };

/*
 * The steps, each after all its inputs: the noise, the picture, and the fine drawer's encoder layers on the
 * picture. Then for every pass the input picture, the layers, and the drawing as rows of pixels.
 */
enum { STEP_NOISE, STEP_PIXELS, steps_of_pass = 1 + net_layer_count + 1 };

#define STEP_PLAIN(layer)       (STEP_PIXELS + 1 + (layer))
#define STEP_LOOKED(pass)       (STEP_PLAIN(LAYER_ANSWER8) + 1 + (pass)*steps_of_pass)
#define STEP_LAYER(pass, layer) (STEP_LOOKED(pass) + 1 + (layer))
#define STEP_DRAWN(pass)        STEP_LAYER(pass, net_layer_count)

enum { STEP_SMALL = STEP_LOOKED(PASS_NOISE), last_step = STEP_DRAWN(PASS_FINE), step_count };

/* Every step writes one or two line buffers, for outputs and gates of struct conv_rows. */
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
    SHAPE_SOURCE   /* no input, because the places come from outside the run */
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

/* A stretch of columns or rows, relative to the first of the picture. */
struct stretch {
    int64_t first;
    unsigned count;
};

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

/* The answer, and its change from an earlier answer. */
#define ANSWER(STEP, px)                                                                                     \
    [STEP(LAYER_ANSWER8)] = {SHAPE_3X3, CONV_PLAIN, OUT(STEP, LAYER_DOWN8), no_ring, 8 * (px)}
#define CHANGE(STEP, BEFORE, px)                                                                             \
    [STEP(LAYER_ANSWER8)] = {SHAPE_3X3, CONV_CHANGE, OUT(STEP, LAYER_DOWN8), OUT(BEFORE, LAYER_ANSWER8),     \
                             8 * (px)}

static const struct step_plan step_plans[step_count] = {
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

static const struct conv *step_conv(const struct net_weights *weights, int at)
{
    const bool is_plain = at > STEP_PIXELS && at < STEP_SMALL;
    const int place = is_plain ? at - STEP_PLAIN(0) : (at - STEP_SMALL) % steps_of_pass - 1;
    const bool is_layer = at > STEP_PIXELS && place >= 0 && place < net_layer_count;
    const bool is_coarse = !is_plain && at < STEP_LOOKED(PASS_FINE);
    return is_layer ? &weights->layers[is_coarse ? DRAWER_COARSE : DRAWER_FINE][place] : NULL;
}

/*
 * For each shape: the rows that a step computes together and the input rows that it reads for them, then the
 * columns that it computes together and the multiple at which they begin. Last, the number of input places
 * for that many output places, and how many neighbours of the input places are read.
 */
static const struct step_grid {
    unsigned rows, inputs, columns, grid, from, to, reach;
} step_grids[] = {
    [SHAPE_3X3] = {conv_tile_side, conv_tile_reads, conv_tile_side, 1, 1, 1, 1},
    [SHAPE_DOWN] = {1, 2, 1, 1, 2, 1, 0},
    [SHAPE_UP] = {2, 1, 2, 2, 1, 2, 0},
    [SHAPE_SAME] = {1, 1, 1, 1, 1, 1, 0},
    [SHAPE_DOUBLED] = {2, 3, 2, 2, 1, 2, 1},
    [SHAPE_SOURCE] = {1, 0, 1, 1, 1, 1, 0},
};

static unsigned step_rows_at_once(int at)
{
    return step_grids[step_plans[at].shape].rows;
}

/* Returns the stretch of the input that a step of a shape reads to compute a stretch of its output. */
static struct stretch step_input(enum step_shape shape, struct stretch own)
{
    const struct step_grid *grid = &step_grids[shape];
    return (struct stretch){own.first * grid->from / grid->to - grid->reach,
                            own.count * grid->from / grid->to + 2 * grid->reach};
}

/*
 * Returns the stretch of a line buffer that a step reads to compute one of its stretches; the count is 0 if
 * it reads nothing.
 */
static struct stretch step_reads(int reader, int ring, struct stretch own)
{
    const struct step_plan *plan = &step_plans[reader];
    if (plan->input == ring)
        return step_input(plan->shape, own);
    if (plan->met == ring)
        return own;
    return (struct stretch){0, 0};
}

/* Returns the union of two stretches. */
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

/* Returns the union of the readers' stretches in both line buffers of a step. */
static struct stretch stretch_read(int at, const struct stretch own[step_count])
{
    struct stretch read = {0, 0};
    for (int reader = at + 1; reader < step_count; reader++)
        for (int ring = STEP_MAIN(at); ring <= STEP_GATE(at); ring++)
            read = stretch_of(read, step_reads(reader, ring, own[reader]));
    return read;
}

/* ---- a run */

/*
 * The state of a step. Columns and rows are those that it computes, with up to a row of tiles more at the
 * end. Tiles are computed only from real values, because inputs that cancel out of an output still affect its
 * rounding.
 */
struct step {
    unsigned char *rings[rings_each];
    unsigned kept[rings_each]; /* last rows of a line buffer that later steps still read */
    size_t row_values;
    unsigned channels;
    struct stretch columns, rows;
    int64_t next; /* the first row not yet computed */
};

/* The state of a run through the steps, from the top of the picture. */
struct run {
    const struct net *net;
    const struct net_weights *weights;
    const struct net_ends *ends;
    struct step steps[step_count];
    bool is_rehearsal;     /* computes nothing; records in kept the rows that are read */
    float *scratch;        /* of the kernels */
    void *nothing;         /* a row of zeros, as long as the longest row */
    float *wide, *between; /* scratch rows of pixels */
};

/* Finds the columns that every step must compute: those that its readers read, padded to whole tiles. */
static void columns_plan(unsigned blocks, struct step steps[step_count])
{
    struct stretch columns[step_count] = {{0, 0}};
    for (int at = last_step; at >= 0; at--) {
        const struct step_grid *grid = &step_grids[step_plans[at].shape];
        columns[at] = stretch_read(at, columns);
        if (at == last_step)
            columns[at].count = blocks * net_block_px;
        columns[at] = stretch_filled(columns[at], grid->grid, grid->columns);
        steps[at].columns = columns[at];
        assert(columns[at].first * step_plans[at].cell_px >= -(int64_t)net_reach_px);
    }
}

/*
 * Finds the rows that every step must compute for the rows of blocks of the last step. Tiles beyond the rows
 * that are read get zeros as input. A step's first row is chosen so that its rows of tiles end at the end of
 * the first request, because fewer rows must then be kept.
 */
static void rows_plan(unsigned rows, struct step steps[step_count])
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
        steps[at].rows = (struct stretch){all[at].first - more, all[at].count + more};
        assert(steps[at].rows.first * step_plans[at].cell_px >= -(int64_t)net_reach_px);
    }
}

static size_t ring_value_bytes(int ring)
{
    return ring % rings_each == STEP_GATE(0) ? sizeof(uint16_t) : sizeof(float);
}

/*
 * Returns a row that is still in the line buffer or is being computed, from a column; NULL if there is no
 * such line buffer.
 */
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
    assert(row >= step->next - *kept && row < step->next + conv_rows_written);
    assert(column >= step->columns.first);
    const size_t place = (size_t)(row - step->rows.first) % *kept * step->row_values +
                         (size_t)(column - step->columns.first) * step->channels;
    return step->rings[ring % rings_each] + place * ring_value_bytes(ring);
}

/* Returns a row to read, or a row of zeros if the step does not compute it. */
static void *row_read(struct run *run, int ring, int64_t row, int64_t column)
{
    const struct step *step = ring == no_ring ? NULL : &run->steps[ring / rings_each];
    if (step != NULL && (row < step->rows.first || row >= step->next)) {
        assert(row < step->rows.first || step->next >= step->rows.first + step->rows.count);
        return run->nothing;
    }
    return ring_row(run, ring, row, column);
}

static void ring_ensure(struct run *run, int ring, int64_t row);

/* Collects everything that a step reads and writes to compute the rows from a first row. */
static struct conv_rows step_rows(struct run *run, int at, int64_t row)
{
    const struct step_plan *plan = &step_plans[at];
    const struct stretch columns = run->steps[at].columns, own = {row, step_rows_at_once(at)};
    const struct stretch above = step_input(plan->shape, own), beside = step_input(plan->shape, columns);
    struct conv_rows rows = {0};
    ring_ensure(run, plan->input, above.first + above.count - 1);
    ring_ensure(run, plan->met, row + own.count - 1);
    for (unsigned i = 0; i < step_grids[plan->shape].inputs; i++)
        rows.inputs[i] = row_read(run, plan->input, above.first + i, beside.first);
    for (unsigned i = 0; i < own.count; i++) {
        void *met = row_read(run, plan->met, row + i, columns.first);
        rows.before[i] = plan->end == CONV_CHANGE ? met : NULL;
        rows.factors[i] = plan->end == CONV_FACTOR ? met : NULL;
        rows.outputs[i] = ring_row(run, STEP_MAIN(at), row + i, columns.first);
        rows.gates[i] = ring_row(run, STEP_GATE(at), row + i, columns.first);
    }
    return rows;
}

/* ---- rows of pixels between the layers; counts are of values */

/*
 * Unpacks one of the two rows of pixels of the last layer's places: the first six of each net_raw_row values.
 * Writes row_slack more.
 */
ENGINE_CLONES static void row_unpacked(const float *raw, size_t places, float *values)
{
    for (size_t place = 0; place < places; place++)
        memcpy(values + place * 2 * colors, raw + place * net_raw_channels, net_raw_row * sizeof *values);
}

/* Adds a drawing times a gain, bounded to -most..most: most * v / sqrt(1 + v²). */
ENGINE_CLONES static void row_shown(const float *restrict drawn, float gain, float most, size_t count,
                                    float *restrict values)
{
    for (size_t i = 0; i < count; i++) {
        const float value = drawn[i] * gain;
        values[i] += most * value / sqrtf(1 + value * value);
    }
}

/*
 * Returns a value of the row of twice the size: three quarters of the near value and one quarter of the far
 * value.
 */
static inline float doubled(float near, float far)
{
    return 0.75f * near + 0.25f * far;
}

/*
 * Computes a row of twice the size, bilinear. The row own has the weight three quarters, and beside, the row
 * above or below, one quarter. Both rows begin with the pixel before and end with the pixel after. between
 * and values have room for count and row_slack more.
 */
ENGINE_CLONES static void row_doubled(const float *restrict own, const float *restrict beside, size_t count,
                                      float *restrict between, float *restrict values)
{
    enum { lanes = 4 };
    const size_t pixels = count / (2 * colors);
    for (size_t i = 0; i < (pixels + 2) * colors; i++)
        between[i] = doubled(own[i], beside[i]);
    for (size_t pixel = 0; pixel < pixels; pixel++, between += colors, values += 2 * colors) {
        float left[lanes], right[lanes];
        for (unsigned k = 0; k < lanes; k++)
            left[k] = doubled(between[colors + k], between[k]);
        for (unsigned k = 0; k < lanes; k++)
            right[k] = doubled(between[colors + k], between[2 * colors + k]);
        memcpy(values, left, sizeof left);
        memcpy(values + colors, right, sizeof right);
    }
}

/* ---- the steps without layers; their rows have three values a pixel */

static size_t step_values(const struct run *run, int at)
{
    return (size_t)run->steps[at].columns.count * colors;
}

static void make_noise(struct run *run, int at, const struct conv_rows *rows, int64_t row)
{
    run->ends->noise(run->ends->data, row, run->steps[at].columns.first, run->steps[at].columns.count,
                     rows->outputs[0]);
}

static void pixels_read(struct run *run, int at, int64_t row, float *values)
{
    const struct stretch columns = run->steps[at].columns;
    run->ends->pixels(run->ends->data, step_plans[at].cell_px, row, columns.first, columns.count, values);
}

static void make_pixels(struct run *run, int at, const struct conv_rows *rows, int64_t row)
{
    pixels_read(run, at, row, rows->outputs[0]);
}

/* Computes two rows of pixels from places of the last layer. */
static void make_drawn(struct run *run, int at, const struct conv_rows *rows, int64_t row)
{
    (void)row;
    for (unsigned i = 0; i < 2; i++)
        row_unpacked(rows->inputs[0] + i * net_raw_row, run->steps[at].columns.count / 2, rows->outputs[i]);
}

/* Computes the picture with the drawing of the previous pass. */
static void make_looked_coarse(struct run *run, int at, const struct conv_rows *rows, int64_t row)
{
    const struct net_model *model = &run->weights->model;
    pixels_read(run, at, row, rows->outputs[0]);
    row_shown(rows->inputs[0], model->coarse_gains[0], model->shown, step_values(run, at), rows->outputs[0]);
}

static void make_looked_fine(struct run *run, int at, const struct conv_rows *rows, int64_t row)
{
    const struct net_model *model = &run->weights->model;
    for (unsigned i = 0; i < 2; i++) {
        pixels_read(run, at, row + i, rows->outputs[i]);
        row_doubled(rows->inputs[1], rows->inputs[2 * i], step_values(run, at), run->between, run->wide);
        row_shown(run->wide, model->coarse_gains[1], model->shown, step_values(run, at), rows->outputs[i]);
    }
}

/* Computes the rows that a step computes together, from a first row. */
typedef void make_function(struct run *run, int at, const struct conv_rows *rows, int64_t row);

static make_function *const makers[step_count] = {
    [STEP_NOISE] = make_noise,
    [STEP_PIXELS] = make_pixels,
    [STEP_SMALL] = make_pixels,
    [STEP_DRAWN(PASS_NOISE)] = make_drawn,
    [STEP_LOOKED(PASS_COARSE)] = make_looked_coarse,
    [STEP_DRAWN(PASS_COARSE)] = make_drawn,
    [STEP_LOOKED(PASS_FINE)] = make_looked_fine,
    [STEP_DRAWN(PASS_FINE)] = make_drawn,
};

/* ---- the run */

static void step_layer(struct run *run, int at, const struct conv_rows *rows)
{
    const struct conv *conv = step_conv(run->weights, at);
    const struct conv_kernels *kernels = run->net->kernels;
    const unsigned columns = run->steps[at].columns.count;
    assert((int)conv->shape == (int)step_plans[at].shape);
    if (conv->shape == CONV_DOWN)
        kernels->down(conv, step_plans[at].end, rows, columns);
    else if (conv->shape == CONV_UP)
        kernels->up(conv, rows, columns / 2);
    else
        kernels->tiles(conv, step_plans[at].end, rows, columns / conv_tile_side, run->scratch);
}

static void step_compute(struct run *run, int at, int64_t row)
{
    const struct conv_rows rows = step_rows(run, at, row);
    if (run->is_rehearsal)
        return;
    if (makers[at] != NULL)
        makers[at](run, at, &rows, row);
    else
        step_layer(run, at, &rows);
}

/* Computes rows of a line buffer up to and including row, or a few more. */
static void ring_ensure(struct run *run, int ring, int64_t row)
{
    const int at = ring / rings_each;
    if (ring == no_ring)
        return;
    struct step *step = &run->steps[at];
    const int64_t end = step->rows.first + step->rows.count;
    while (step->next <= row && step->next < end) {
        step_compute(run, at, step->next);
        step->next += step_rows_at_once(at);
    }
}

static void run_begin(struct run *run, unsigned rows, unsigned columns)
{
    rows_plan(rows, run->steps);
    columns_plan(columns, run->steps);
    for (int at = 0; at < step_count; at++)
        run->steps[at].next = run->steps[at].rows.first;
}

/*
 * Finds the number of rows that each line buffer must keep, because a short buffer stays in the cache. The
 * rehearsal runs the steps without computing. The access pattern repeats every four rows of blocks, so a few
 * periods cover every case.
 */
static void run_rehearse(struct run *run)
{
    enum { rows = 8 * conv_tile_side };
    run_begin(run, rows, 1);
    for (int at = 0; at < step_count; at++) {
        run->steps[at].kept[0] = step_rows_at_once(at);
        run->steps[at].kept[1] = step_plans[at].end == CONV_SPLIT ? step_rows_at_once(at) : 0;
    }
    run->is_rehearsal = true;
    for (int64_t row = 0; row < rows * net_block_px; row++) {
        ring_ensure(run, STEP_MAIN(last_step), row);
        ring_row(run, STEP_MAIN(last_step), row, 0);
    }
    run->is_rehearsal = false;
}

/* Takes the next size bytes of memory, rounded up to whole cache lines. If memory is NULL, only measures. */
static void *piece_take(unsigned char *memory, size_t *size, size_t bytes)
{
    enum { line_bytes = 64 };
    void *piece = memory == NULL ? NULL : memory + *size;
    *size += (bytes + line_bytes - 1) / line_bytes * line_bytes;
    return piece;
}

/*
 * Lays out the kernels' scratch and the line buffers of all steps in one block of memory. Returns the size of
 * the block. A row is an odd number of cache lines long, because otherwise the rows of a tile would map to
 * the same cache sets.
 */
static size_t run_lay(struct run *run, unsigned char *memory)
{
    size_t size = 0, longest = 0;
    run->scratch = piece_take(memory, &size, conv_scratch_values() * sizeof(float));
    for (int ring = 0; ring < step_count * rings_each; ring++) {
        struct step *step = &run->steps[ring / rings_each];
        const int which = ring % rings_each;
        const struct conv *conv = step_conv(run->weights, ring / rings_each);
        step->channels = conv != NULL                      ? conv->outputs
                         : ring / rings_each == STEP_NOISE ? net_noise_channels
                                                           : net_color_channels;
        step->row_values = (((step->columns.count + conv_slack) * step->channels + 31) / 32 | 1) * 32;
        longest = step->row_values > longest ? step->row_values : longest;
        step->rings[which] =
            piece_take(memory, &size, step->kept[which] * step->row_values * ring_value_bytes(ring));
    }
    run->nothing = piece_take(memory, &size, longest * sizeof(float));
    run->wide = piece_take(memory, &size, longest * sizeof(float));
    run->between = piece_take(memory, &size, longest * sizeof(float));
    return size;
}

enum iw_error net_run(const struct net *net, unsigned rows, unsigned columns, const struct net_ends *ends)
{
    struct run run = {.net = net, .weights = &net->weights, .ends = ends};
    run_rehearse(&run);
    run_begin(&run, rows, columns);
    const size_t size = run_lay(&run, NULL);
    unsigned char *memory = aligned_alloc(64, size);
    if (memory == NULL)
        return IW_NO_MEMORY;
    memset(memory, 0, size);
    run_lay(&run, memory);
    for (unsigned row = 0; row < rows * net_block_px; row++) {
        ring_ensure(&run, STEP_MAIN(last_step), row);
        ends->sink(ends->data, row, ring_row(&run, STEP_MAIN(last_step), row, 0));
    }
    free(memory);
    return IW_OK;
}
