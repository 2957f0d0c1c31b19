#include "engine/protect_net.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/protect_step.h"

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

struct step {
    unsigned char *rings[rings_each];
    unsigned kept[rings_each]; /* how many of the last rows of a ring later steps still look at */
    size_t row_values;
    unsigned channels;
    struct stretch columns; /* computed for the band, counted from its first one on */
    struct step_overlap overlap;
    unsigned char *edges[rings_each]; /* what is left of all rows, one after the other */
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
    bool is_whole;            /* one band is all: nothing is left to others */
    float *scratch;           /* of the kernels */
    void *nothing;            /* a row of zeros, as long as the longest */
    int64_t first_px;
};

static void rows_plan(struct run *run, unsigned rows)
{
    struct stretch planned[step_count];
    step_rows_plan(&run->net->weights, rows, planned);
    for (int at = 0; at < step_count; at++)
        run->steps[at].rows = planned[at];
}

static void overlaps_plan(struct run *run)
{
    struct step_overlap planned[step_count];
    step_overlaps_plan(&run->net->weights, planned);
    for (int at = 0; at < step_count; at++)
        run->steps[at].overlap = planned[at];
}

static size_t ring_value_bytes(int ring)
{
    return ring % rings_each == STEP_GATE(0) ? sizeof(uint16_t) : sizeof(float);
}

/* How many columns of the band before the rows of a step's rings begin with. */
static unsigned step_left(const struct step *step)
{
    return step->overlap.left[0] > step->overlap.left[1] ? step->overlap.left[0] : step->overlap.left[1];
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
    *bytes = step->overlap.left[ring % rings_each] * step->channels * ring_value_bytes(ring);
    assert(row - step->rows.first < step->edge_rows);
    return step->edges[ring % rings_each] + (size_t)(row - step->rows.first) * *bytes;
}

/* Takes what the band before left of rows that were computed, and leaves the same to the next. */
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

/* Everything that a step reads and writes to compute the rows from one on. */
static struct conv_rows step_rows(struct run *run, int at, int64_t row)
{
    const struct step_plan *plan = &step_plans[at];
    const int64_t column = run->steps[at].columns.first;
    const struct step_grid *counts = &step_grids[step_shape(&run->net->weights, at)];
    const struct stretch own = {row, counts->rows},
                         above = step_input(step_shape(&run->net->weights, at), own);
    const struct stretch beside = step_input(step_shape(&run->net->weights, at), run->steps[at].columns);
    struct conv_rows rows = {0};
    ring_ensure(run, plan->input, above.first + above.count - 1);
    ring_ensure(run, plan->met, row + own.count - 1);
    for (int i = 0; i < (int)counts->inputs; i++)
        rows.inputs[i] = row_read(run, plan->input, above.first + i, beside.first);
    for (int i = 0; i < (int)counts->rows; i++) {
        void *met = row_read(run, plan->met, row + i, column);
        rows.before[i] = plan->end == CONV_CHANGE ? met : NULL;
        rows.factors[i] = plan->end == CONV_FACTOR ? met : NULL;
        rows.outputs[i] = ring_row(run, STEP_MAIN(at), row + i, column);
        rows.gates[i] = ring_row(run, STEP_GATE(at), row + i, column);
    }
    return rows;
}

static void step_shown(struct run *run, int at, const struct conv_rows *rows, int64_t row)
{
    const struct stretch columns = run->steps[at].columns;
    run->ends->shown(run->ends->data, row, run->first_px + columns.first, columns.count / 2, rows->inputs[0],
                     rows->outputs);
}

static void step_layer(struct run *run, int at, int64_t row)
{
    const struct conv *conv = step_conv(&run->net->weights, at);
    const struct conv_kernels *kernels = run->net->kernels;
    const unsigned columns = run->steps[at].columns.count;
    const struct conv_rows rows = step_rows(run, at, row);
    if (run->is_rehearsal)
        return;
    if (conv == NULL)
        step_shown(run, at, &rows, row);
    else if (conv->shape == CONV_DOWN)
        kernels->down(conv, &rows, columns);
    else if (conv->shape == CONV_UP)
        kernels->up(conv, &rows, columns / 2);
    else
        kernels->tiles(conv, step_plans[at].end, &rows, columns / conv_tile_side, run->scratch);
}

/* A row of pixels, or of noise as loud as the first pass wants it. */
static void step_source(struct run *run, int at, int64_t row)
{
    const struct net_ends *ends = run->ends;
    const struct stretch columns = run->steps[at].columns;
    float *out = ring_row(run, STEP_MAIN(at), row, columns.first);
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
        if (step_plans[at].input == no_ring)
            step_source(run, at, step->next);
        else
            step_layer(run, at, step->next);
        if (!run->is_rehearsal)
            edges_pass(run, at, step->next, step_rows_at_once(&run->net->weights, at));
        step->next += step_rows_at_once(&run->net->weights, at);
    }
}

static void run_begin(struct run *run, unsigned first_block, unsigned band_blocks)
{
    struct stretch columns[step_count];
    step_columns_plan(&run->net->weights, band_blocks, columns);
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
 * Finds out how many rows each ring has to keep, the fewer, the more stays in the
 * cache: by a run that computes nothing.  It repeats itself every four rows of
 * blocks, so after a few times that it has seen everything.
 */
static void run_rehearse(struct run *run)
{
    enum { rows = 8 * conv_tile_side };
    rows_plan(run, rows);
    overlaps_plan(run);
    for (int at = 0; at < step_count; at++) {
        run->steps[at].kept[0] = step_rows_at_once(&run->net->weights, at);
        run->steps[at].kept[1] =
            step_plans[at].end == CONV_SPLIT ? step_rows_at_once(&run->net->weights, at) : 0;
    }
    run_begin(run, 0, net_band_blocks);
    run->is_rehearsal = true;
    for (int64_t row = 0; row < rows * net_block_px / (int64_t)step_plans[last_step].cell_px; row++) {
        ring_ensure(run, STEP_MAIN(last_step), row);
        ring_row(run, STEP_MAIN(last_step), row, 0);
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
        step->channels = step_channels(&run->net->weights, at);
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
    return size;
}

/* Memory for bands of a width, zeroed; NULL: there is none. */
static void *run_memory(struct run *run, unsigned band_blocks)
{
    struct stretch columns[step_count];
    step_columns_plan(&run->net->weights, band_blocks, columns);
    const size_t size = memory_lay(run, columns, NULL);
    unsigned char *memory = aligned_alloc(64, size);
    if (memory == NULL)
        return NULL;
    memset(memory, 0, size);
    memory_lay(run, columns, memory);
    return memory;
}

/*
 * How wide the bands are.  A band takes memory with its width, what bands leave one
 * another takes a quarter of that with the height: a tall picture is one band.
 */
static unsigned band_width(const struct net *net, unsigned rows, unsigned columns)
{
    const unsigned whole = (columns + net_band_blocks - 1) / net_band_blocks * net_band_blocks;
    return net->band_blocks < whole && columns > rows / 4 ? net->band_blocks : whole;
}

enum iw_error net_run(const struct net *net, unsigned rows, unsigned columns, const struct net_ends *ends)
{
    const unsigned band = band_width(net, rows, columns);
    struct run run = {.net = net, .ends = ends, .is_whole = band >= columns};
    const unsigned cell_px = step_plans[last_step].cell_px;
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
            ring_ensure(&run, STEP_MAIN(last_step), row);
            ends->sink(ends->data, row * cell_px, run.first_px, count * net_block_px / cell_px,
                       ring_row(&run, STEP_MAIN(last_step), row, 0));
        }
    }
    free(memory);
    return IW_OK;
}
