#include "engine/protect/protect_net.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/watermark/clones.h"
#include "engine/protect/protect_step.h"

enum { colors = net_color_channels, row_slack = 2 /* values that are written beyond the end of some rows */ };

/*
 * Measured: wider bands leave the cache.  At this width rows of every resolution are whole blocks of the
 * widest kernel's sums.
 */
enum { band_blocks_usual = 24 };

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

struct step {
    unsigned char *rings[rings_each];
    unsigned kept[rings_each]; /* last rows of a line buffer that later steps still read */
    size_t row_values;
    unsigned channels;
    struct stretch columns; /* computed for the band, relative to its first column */
    struct step_overlap overlap;
    unsigned char *edges[rings_each]; /* columns for the next band, of all rows */
    int64_t edge_rows;
    struct stretch rows; /* computed, and up to a row of tiles more at the end */
    int64_t next;        /* the first row not yet computed */
};

/* The state of one band of columns in its run through the steps. */
struct run {
    const struct net *net;
    const struct net_weights *weights;
    const struct net_ends *ends;
    struct step steps[step_count];
    bool is_rehearsal;        /* computes nothing; records in kept the rows that are read */
    bool has_left, has_right; /* neighbouring bands exist */
    bool is_whole;            /* a single band: no other band needs its columns */
    float *scratch;           /* scratch of the kernels */
    void *nothing;            /* a row of zeros, as long as the longest */
    float *wide, *between;    /* scratch rows of pixels */
    int64_t first_px;
};

static void rows_plan(struct run *run, unsigned rows)
{
    struct stretch planned[step_count];
    step_rows_plan(rows, planned);
    for (int at = 0; at < step_count; at++)
        run->steps[at].rows = planned[at];
}

static void overlaps_plan(struct run *run)
{
    struct step_overlap planned[step_count];
    step_overlaps_plan(planned);
    for (int at = 0; at < step_count; at++)
        run->steps[at].overlap = planned[at];
}

static size_t ring_value_bytes(int ring)
{
    return ring % rings_each == STEP_GATE(0) ? sizeof(uint16_t) : sizeof(float);
}

/* The columns of the band before with which the rows of a step's line buffers begin. */
static unsigned step_left(const struct step *step)
{
    return step->overlap.left[0] > step->overlap.left[1] ? step->overlap.left[0] : step->overlap.left[1];
}

/* A row that is still in the line buffer or is being computed, from a column; NULL: no such line buffer. */
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
    const int64_t first = step->columns.first - step_left(step);
    assert(column >= first);
    const size_t place = (size_t)(row - step->rows.first) % *kept * step->row_values +
                         (size_t)(column - first) * step->channels;
    return step->rings[ring % rings_each] + place * ring_value_bytes(ring);
}

/* A row to read; a row of zeros where the step computes none. */
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
    *bytes = step->overlap.left[ring % rings_each] * step->channels * ring_value_bytes(ring);
    assert(row - step->rows.first < step->edge_rows);
    return step->edges[ring % rings_each] + (size_t)(row - step->rows.first) * *bytes;
}

/* Copies in the columns of computed rows that the band before left, and saves those for the next band. */
static void edges_pass(struct run *run, int at, int64_t row, unsigned count)
{
    const struct step *step = &run->steps[at];
    if (run->is_whole)
        return;
    for (int ring = STEP_MAIN(at); ring <= STEP_GATE(at); ring++) {
        const int64_t left = step->overlap.left[ring % rings_each];
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

/* Everything that a step reads and writes to compute the rows from a first row. */
static struct conv_rows step_rows(struct run *run, int at, int64_t row)
{
    const struct step_plan *plan = &step_plans[at];
    const struct stretch columns = run->steps[at].columns, own = {row, step_rows_at_once(at)};
    const struct stretch above = step_input(plan->shape, own), beside = step_input(plan->shape, columns);
    const enum step_shape met_shape = step_met_shape(at);
    const struct stretch met = step_input(met_shape, own), met_beside = step_input(met_shape, columns);
    struct conv_rows rows = {0};
    ring_ensure(run, plan->input, above.first + above.count - 1);
    ring_ensure(run, plan->met, met.first + met.count - 1);
    for (unsigned i = 0; i < step_grids[plan->shape].inputs; i++)
        rows.inputs[i] = row_read(run, plan->input, above.first + i, beside.first);
    for (unsigned i = 0; i < met.count; i++) {
        void *there = row_read(run, plan->met, met.first + i, met_beside.first);
        rows.before[i] = plan->end == CONV_FACTOR ? NULL : there;
        rows.factors[i] = plan->end == CONV_FACTOR ? there : NULL;
    }
    for (unsigned i = 0; i < own.count; i++) {
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

/* Multiplies by a gain and bounds to -most..most: most * v / sqrt(1 + v²). */
ENGINE_CLONES static void row_softened(float *values, float gain, float most, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const float value = values[i] * gain;
        values[i] = most * value / sqrtf(1 + value * value);
    }
}

ENGINE_CLONES static void row_added(float *restrict values, const float *restrict added, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] += added[i];
}

/* A value of the row of twice the size: three quarters of the near value, one quarter of the far one. */
static inline float doubled(float near, float far)
{
    return 0.75f * near + 0.25f * far;
}

/*
 * A row of twice the size, bilinear.  own has the weight three quarters; beside, the row above or below, one
 * quarter.  Both rows begin with the pixel before and end with the pixel after.  between and values have room
 * for count and row_slack more.
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

/* The position of a step's first column, in its places. */
static int64_t step_x(const struct run *run, int at)
{
    return run->first_px / step_plans[at].cell_px + run->steps[at].columns.first;
}

static void make_noise(struct run *run, int at, const struct conv_rows *rows, int64_t row)
{
    run->ends->noise(run->ends->data, row, step_x(run, at), run->steps[at].columns.count, rows->outputs[0]);
}

static void make_pixels(struct run *run, int at, const struct conv_rows *rows, int64_t row)
{
    run->ends->pixels(run->ends->data, step_plans[at].cell_px, row, step_x(run, at),
                      run->steps[at].columns.count, rows->outputs[0]);
}

/* Two rows of pixels from places of the last layer. */
static void make_drawn(struct run *run, int at, const struct conv_rows *rows, int64_t row)
{
    (void)row;
    for (unsigned i = 0; i < 2; i++)
        row_unpacked(rows->inputs[0] + i * net_raw_row, run->steps[at].columns.count / 2, rows->outputs[i]);
}

static void make_looked_coarse(struct run *run, int at, const struct conv_rows *rows, int64_t row)
{
    memcpy(run->wide, rows->inputs[0], step_values(run, at) * sizeof *run->wide);
    row_softened(run->wide, run->weights->coarse_gains[0], run->weights->shown, step_values(run, at));
    make_pixels(run, at, rows, row);
    row_added(rows->outputs[0], run->wide, step_values(run, at));
}

static void make_looked_fine(struct run *run, int at, const struct conv_rows *rows, int64_t row)
{
    for (unsigned i = 0; i < 2; i++) {
        row_doubled(rows->inputs[1], rows->inputs[2 * i], step_values(run, at), run->between, run->wide);
        row_softened(run->wide, run->weights->coarse_gains[1], run->weights->shown, step_values(run, at));
        run->ends->pixels(run->ends->data, 1, row + i, step_x(run, at), run->steps[at].columns.count,
                          rows->outputs[i]);
        row_added(rows->outputs[i], run->wide, step_values(run, at));
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
    edges_pass(run, at, row, step_rows_at_once(at));
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

static void run_begin(struct run *run, unsigned first_block, unsigned band_blocks)
{
    struct stretch columns[step_count];
    step_columns_plan(band_blocks, columns);
    run->has_left = first_block > 0;
    run->first_px = (int64_t)first_block * net_block_px;
    for (int at = 0; at < step_count; at++) {
        struct step *step = &run->steps[at];
        const int64_t end = columns[at].first + columns[at].count;
        const int64_t first = run->has_left ? step->overlap.ahead : columns[at].first;
        step->columns = (struct stretch){first, (unsigned)(end - first)};
        step->next = step->rows.first;
    }
}

/*
 * Finds the number of rows that each line buffer must keep; fewer rows stay in the cache.  The rehearsal runs
 * the steps without computing.  Access repeats every four rows of blocks, so a few periods cover every case.
 */
static void run_rehearse(struct run *run)
{
    enum { rows = 8 * conv_tile_side };
    rows_plan(run, rows);
    overlaps_plan(run);
    for (int at = 0; at < step_count; at++) {
        run->steps[at].kept[0] = step_rows_at_once(at);
        run->steps[at].kept[1] = step_plans[at].end == CONV_SPLIT ? step_rows_at_once(at) : 0;
    }
    run_begin(run, 0, net_band_blocks);
    run->is_rehearsal = true;
    for (int64_t row = 0; row < rows * net_block_px; row++) {
        ring_ensure(run, STEP_MAIN(last_step), row);
        ring_row(run, STEP_MAIN(last_step), row, 0);
    }
    run->is_rehearsal = false;
}

/*
 * Takes the next size bytes of memory, rounded up to whole cache lines.  A NULL memory only measures.
 */
static void *piece_take(unsigned char *memory, size_t *size, size_t bytes)
{
    enum { line_bytes = 64 };
    void *piece = memory == NULL ? NULL : memory + *size;
    *size += (bytes + line_bytes - 1) / line_bytes * line_bytes;
    return piece;
}

/*
 * Lays out the kernels' scratch, the line buffers of all steps and the columns that bands share, in one block
 * of memory.  Returns its size.  A row is an odd number of cache lines long; otherwise the rows of a tile
 * would map to the same cache sets.
 */
static size_t memory_lay(struct run *run, const struct stretch columns[step_count], unsigned char *memory)
{
    size_t size = 0, longest = 0;
    run->scratch = piece_take(memory, &size, conv_scratch_values() * sizeof(float));
    for (int ring = 0; ring < step_count * rings_each; ring++) {
        const int at = ring / rings_each, which = ring % rings_each;
        struct step *step = &run->steps[at];
        const size_t places = (size_t)step_left(step) + columns[at].count + conv_slack;
        step->channels = step_channels(run->weights, at);
        step->row_values = ((places * step->channels + 31) / 32 | 1) * 32;
        longest = step->row_values > longest ? step->row_values : longest;
        step->edge_rows = step->rows.count + conv_tile_side;
        const size_t value_bytes = ring_value_bytes(ring);
        const size_t edge_bytes =
            run->is_whole ? 0 : step->overlap.left[which] * step->channels * value_bytes;
        step->rings[which] = piece_take(memory, &size, step->kept[which] * step->row_values * value_bytes);
        step->edges[which] = piece_take(memory, &size, edge_bytes * (size_t)step->edge_rows);
    }
    run->nothing = piece_take(memory, &size, longest * sizeof(float));
    run->wide = piece_take(memory, &size, longest * sizeof(float));
    run->between = piece_take(memory, &size, longest * sizeof(float));
    return size;
}

/* Zeroed memory for bands of a width; NULL: out of memory. */
static void *run_memory(struct run *run, unsigned band_blocks)
{
    struct stretch columns[step_count];
    step_columns_plan(band_blocks, columns);
    const size_t size = memory_lay(run, columns, NULL);
    unsigned char *memory = aligned_alloc(64, size);
    if (memory == NULL)
        return NULL;
    memset(memory, 0, size);
    memory_lay(run, columns, memory);
    return memory;
}

/*
 * The width of the bands.  A band's memory grows with its width.  The columns that bands share take half as
 * much per row of height: a tall picture is one band.
 */
static unsigned band_width(const struct net *net, unsigned rows, unsigned columns)
{
    const unsigned whole = (columns + net_band_blocks - 1) / net_band_blocks * net_band_blocks;
    return net->band_blocks < whole && columns > rows / 4 ? net->band_blocks : whole;
}

enum iw_error net_run(const struct net *net, unsigned rows, unsigned columns, const struct net_ends *ends)
{
    const unsigned band = band_width(net, rows, columns);
    struct run run = {.net = net, .weights = &net->weights, .ends = ends, .is_whole = band >= columns};
    run_rehearse(&run);
    rows_plan(&run, rows);
    void *memory = run_memory(&run, band);
    if (memory == NULL)
        return IW_NO_MEMORY;
    for (unsigned first = 0; first < columns; first += band) {
        unsigned count = columns - first < band ? columns - first : band;
        run_begin(&run, first, count);
        run.has_right = first + count < columns;
        for (int64_t row = 0; row < (int64_t)rows * net_block_px; row++) {
            ring_ensure(&run, STEP_MAIN(last_step), row);
            ends->sink(ends->data, row, run.first_px, count * net_block_px,
                       ring_row(&run, STEP_MAIN(last_step), row, 0));
        }
    }
    free(memory);
    return IW_OK;
}
