#include "engine/protect_net.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { band_blocks_usual = 256 /* measured: narrower ones repeat more, wider ones leave the cache */ };

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

/* The steps of a run: what comes from outside, then each layer. */
enum { STEP_PIXELS, STEP_NOISE, first_layer_step, step_count = first_layer_step + net_layer_count };

/* Every step writes up to three rings of rows: outputs, also and gates of struct conv_rows. */
enum { no_ring = -1, rings_each = 3 };

#define LAYER(layer) (first_layer_step + LAYER_##layer)
#define MAIN(step)   ((step)*rings_each)
#define ALSO(step)   ((step)*rings_each + 1)
#define GATE(step)   ((step)*rings_each + 2)

/*
 * What a step computes: end(layer(input) + residual, factor).  cell_px: how many
 * pixels one of its places is wide and high.  reach: how many columns beyond the
 * picture later steps ask for; above: how many rows.  Where above is more than
 * reach asks for, rows of tiles end where the next step's need ends, and less is
 * kept.  kept: how many of the last rows of its rings later steps still look at,
 * the fewer, the more stays in the cache.  Assertions hold every run to all three.
 */
struct step_plan {
    enum conv_end end;
    int input, residual, factor;
    unsigned cell_px, reach, above;
    unsigned kept[rings_each];
};

static const struct step_plan plans[step_count] = {
    [STEP_PIXELS] = {CONV_PLAIN, no_ring, no_ring, no_ring, 1, 38, 78, {2, 0, 0}},
    [STEP_NOISE] = {CONV_PLAIN, no_ring, no_ring, no_ring, 8, 4, 9, {6, 0, 0}},
    [LAYER(DOWN2)] = {CONV_SPLIT, MAIN(STEP_PIXELS), no_ring, no_ring, 2, 19, 39, {6, 0, 36}},
    [LAYER(LOOK2)] = {CONV_SPLIT, MAIN(LAYER(DOWN2)), no_ring, no_ring, 2, 18, 38, {4, 0, 32}},
    [LAYER(DOWN4)] = {CONV_SPLIT, MAIN(LAYER(LOOK2)), no_ring, no_ring, 4, 9, 19, {6, 0, 16}},
    [LAYER(LOOK4)] = {CONV_SPLIT, MAIN(LAYER(DOWN4)), no_ring, no_ring, 4, 8, 18, {4, 0, 14}},
    [LAYER(DOWN8)] = {CONV_SPLIT, MAIN(LAYER(LOOK4)), no_ring, no_ring, 8, 4, 9, {7, 0, 7}},
    [LAYER(CHOOSE8A)] = {CONV_GATE, MAIN(LAYER(DOWN8)), no_ring, no_ring, 8, 3, 8, {0, 0, 4}},
    [LAYER(CHOOSE8B)] = {CONV_GATE, MAIN(LAYER(DOWN8)), no_ring, no_ring, 8, 2, 5, {0, 0, 4}},
    [LAYER(SEED8)] = {CONV_KEEP, MAIN(STEP_NOISE), no_ring, GATE(LAYER(CHOOSE8A)), 8, 3, 8, {5, 6, 0}},
    [LAYER(MIX8A)] =
        {CONV_KEEP, ALSO(LAYER(SEED8)), MAIN(LAYER(SEED8)), GATE(LAYER(CHOOSE8B)), 8, 2, 5, {5, 6, 0}},
    [LAYER(MIX8B)] =
        {CONV_FACTOR, ALSO(LAYER(MIX8A)), MAIN(LAYER(MIX8A)), GATE(LAYER(DOWN8)), 8, 1, 2, {4, 0, 0}},
    [LAYER(UP4)] = {CONV_FACTOR, MAIN(LAYER(MIX8B)), no_ring, GATE(LAYER(LOOK4)), 4, 2, 2, {6, 0, 0}},
    [LAYER(DRAW4)] = {CONV_FACTOR, MAIN(LAYER(UP4)), no_ring, GATE(LAYER(DOWN4)), 4, 1, 1, {4, 0, 0}},
    [LAYER(UP2)] = {CONV_FACTOR, MAIN(LAYER(DRAW4)), no_ring, GATE(LAYER(LOOK2)), 2, 2, 2, {6, 0, 0}},
    [LAYER(DRAW2)] = {CONV_FACTOR, MAIN(LAYER(UP2)), no_ring, GATE(LAYER(DOWN2)), 2, 1, 1, {8, 0, 0}},
    [LAYER(DRAW1)] = {CONV_PLAIN, MAIN(LAYER(DRAW2)), no_ring, no_ring, 2, 0, 0, {4, 0, 0}},
};

static bool step_is_layer(int at)
{
    return at >= first_layer_step;
}

static const struct conv *step_conv(const struct net *net, int at)
{
    return &net->weights.layers[at - first_layer_step];
}

static unsigned step_channels(const struct net *net, int at)
{
    if (step_is_layer(at))
        return step_conv(net, at)->outputs;
    return at == STEP_PIXELS ? net_color_channels : net_noise_channels;
}

/* A stretch of columns of a ring, counted from the picture's or the band's first one. */
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

/* What a step reads of the rings of another one; count 0: nothing. */
static struct stretch step_reads(const struct net *net, int reader, int at, struct stretch own)
{
    const struct step_plan *plan = &plans[reader];
    if (step_is_layer(reader) && plan->input / rings_each == at)
        return input_stretch(step_conv(net, reader)->shape, own);
    if ((plan->residual != no_ring && plan->residual / rings_each == at) ||
        (plan->factor != no_ring && plan->factor / rings_each == at))
        return own;
    return (struct stretch){0, 0};
}

/*
 * The columns every step computes for a band: what its readers look at, filled
 * up to whole tiles.  Tiles are computed from true values alone, for what
 * cancels out of an output still decides how it is rounded.
 */
static void columns_plan(const struct net *net, unsigned band_blocks, unsigned columns[step_count])
{
    for (int at = step_count - 1; at >= 0; at--) {
        int64_t end = at == step_count - 1 ? (int64_t)band_blocks * net_block_px / plans[at].cell_px : 0;
        for (int reader = at + 1; reader < step_count; reader++) {
            struct stretch read =
                step_reads(net, reader, at, (struct stretch){-(int64_t)plans[reader].reach, columns[reader]});
            assert(read.count == 0 || read.first >= -(int64_t)plans[at].reach);
            end = read.first + read.count > end ? read.first + read.count : end;
        }
        columns[at] =
            (unsigned)(end + plans[at].reach + conv_tile_side - 1) / conv_tile_side * conv_tile_side;
    }
}

/* ---- the run */

struct step {
    unsigned char *rings[rings_each];
    size_t row_values;
    unsigned channels;
    unsigned columns; /* computed, reach on both sides included */
    int64_t next;     /* the first row not yet computed */
};

/* One band of columns on its way through the steps. */
struct run {
    const struct net *net;
    const struct net_ends *ends;
    struct step steps[step_count];
    float *scratch; /* of the kernels */
    int64_t first_px;
};

static size_t ring_value_bytes(int ring)
{
    return ring % rings_each == GATE(0) ? sizeof(uint16_t) : sizeof(float);
}

/* A row that was computed and is still there, or is being computed, from a column on; NULL: there is none. */
static void *ring_row(const struct run *run, int ring, int64_t row, int64_t column)
{
    if (ring == no_ring || plans[ring / rings_each].kept[ring % rings_each] == 0)
        return NULL;
    const struct step *step = &run->steps[ring / rings_each];
    const struct step_plan *plan = &plans[ring / rings_each];
    const unsigned kept = plan->kept[ring % rings_each];
    assert(row >= step->next - kept && row < step->next + conv_tile_side);
    const size_t place = (size_t)(row + plan->above) % kept * step->row_values +
                         (size_t)(column + plan->reach) * step->channels;
    return step->rings[ring % rings_each] + place * ring_value_bytes(ring);
}

static void ring_ensure(struct run *run, int ring, int64_t row);

/* Everything of count rows that a layer reads and writes, from the step's first column on. */
static struct conv_rows step_rows(struct run *run, int at, int64_t row, unsigned count)
{
    const struct step_plan *plan = &plans[at];
    const int64_t column = -(int64_t)plan->reach;
    struct conv_rows rows = {0};
    for (int i = 0; i < (int)count; i++) {
        rows.residuals[i] = ring_row(run, plan->residual, row + i, column);
        rows.factors[i] = ring_row(run, plan->factor, row + i, column);
        rows.outputs[i] = ring_row(run, MAIN(at), row + i, column);
        rows.also[i] = ring_row(run, ALSO(at), row + i, column);
        rows.gates[i] = ring_row(run, GATE(at), row + i, column);
    }
    return rows;
}

/* How many rows a layer computes at once, and which input rows it reads for them. */
static const struct layer_rows {
    int outputs, inputs;
} layer_rows[] = {
    [CONV_3X3] = {conv_tile_side, conv_tile_reads},
    [CONV_DOWN] = {1, 2},
    [CONV_UP] = {2, 1},
};

static void step_layer(struct run *run, int at, int64_t row)
{
    const struct step_plan *plan = &plans[at];
    const struct conv *conv = step_conv(run->net, at);
    const struct conv_kernels *kernels = run->net->kernels;
    const struct layer_rows *counts = &layer_rows[conv->shape];
    const unsigned columns = run->steps[at].columns;
    const struct stretch above = input_stretch(conv->shape, (struct stretch){row, 0});
    const struct stretch beside = input_stretch(conv->shape, (struct stretch){-(int64_t)plan->reach, 0});
    ring_ensure(run, plan->input, above.first + counts->inputs - 1);
    ring_ensure(run, plan->residual, row + counts->outputs - 1);
    ring_ensure(run, plan->factor, row + counts->outputs - 1);
    struct conv_rows rows = step_rows(run, at, row, (unsigned)counts->outputs);
    for (int i = 0; i < counts->inputs; i++)
        rows.inputs[i] = ring_row(run, plan->input, above.first + i, beside.first);
    if (conv->shape == CONV_DOWN)
        kernels->down(conv, &rows, columns);
    else if (conv->shape == CONV_UP)
        kernels->up(conv, &rows, columns / 2);
    else
        kernels->tiles(conv, plan->end, &rows, columns / conv_tile_side, run->scratch);
}

/* Computes a step's next rows; how many. */
static int64_t step_compute(struct run *run, int at, int64_t row)
{
    const struct net_ends *ends = run->ends;
    const int64_t column = -(int64_t)plans[at].reach;
    if (step_is_layer(at)) {
        step_layer(run, at, row);
        return layer_rows[step_conv(run->net, at)->shape].outputs;
    }
    float *out = ring_row(run, MAIN(at), row, column);
    if (at == STEP_PIXELS)
        ends->pixels(ends->data, row, run->first_px + column, run->steps[at].columns, out);
    else
        ends->noise(ends->data, row, run->first_px / net_block_px + column, run->steps[at].columns, out);
    return 1;
}

/* Computes rows of a ring up to and with row, or a few more. */
static void ring_ensure(struct run *run, int ring, int64_t row)
{
    if (ring == no_ring)
        return;
    struct step *step = &run->steps[ring / rings_each];
    while (step->next <= row)
        step->next += step_compute(run, ring / rings_each, step->next);
}

static void run_begin(struct run *run, unsigned first_block, unsigned band_blocks)
{
    unsigned columns[step_count];
    columns_plan(run->net, band_blocks, columns);
    run->first_px = (int64_t)first_block * net_block_px;
    for (int at = 0; at < step_count; at++) {
        run->steps[at].columns = columns[at];
        run->steps[at].next = -(int64_t)plans[at].above;
    }
}

static size_t ring_bytes(const struct step *step, int ring)
{
    return plans[ring / rings_each].kept[ring % rings_each] * step->row_values * ring_value_bytes(ring);
}

/*
 * The rings of all steps and the kernels' scratch, zeroed, in one piece; NULL: no
 * memory.  A row is an odd number of lines of the cache long, lest the rows of a
 * tile meet in one place of it.
 */
static void *run_memory(struct run *run, unsigned band_blocks)
{
    unsigned columns[step_count];
    size_t bytes = (conv_scratch_values() * sizeof(float) + 63) / 64 * 64, scratch = bytes;
    columns_plan(run->net, band_blocks, columns);
    for (int ring = 0; ring < step_count * rings_each; ring++) {
        const int at = ring / rings_each;
        struct step *step = &run->steps[at];
        step->channels = step_channels(run->net, at);
        step->row_values = ((((size_t)columns[at] + conv_slack) * step->channels + 31) / 32 | 1) * 32;
        bytes += ring_bytes(step, ring);
    }
    unsigned char *memory = aligned_alloc(64, bytes), *here = memory + scratch;
    if (memory == NULL)
        return NULL;
    memset(memory, 0, bytes);
    run->scratch = (float *)(void *)memory;
    for (int ring = 0; ring < step_count * rings_each; ring++) {
        struct step *step = &run->steps[ring / rings_each];
        step->rings[ring % rings_each] = here;
        here += ring_bytes(step, ring);
    }
    return memory;
}

/* Bands of about the same width, so that none is little else than what it repeats of the next. */
static unsigned band_of(const struct net *net, unsigned columns)
{
    unsigned bands = (columns + net->band_blocks - 1) / net->band_blocks;
    return ((columns + bands - 1) / bands + net_band_blocks - 1) / net_band_blocks * net_band_blocks;
}

enum iw_error net_run(const struct net *net, unsigned rows, unsigned columns, const struct net_ends *ends)
{
    enum { last = LAYER(DRAW1) };
    struct run run = {.net = net, .ends = ends};
    const unsigned band = band_of(net, columns), cell_px = plans[last].cell_px;
    void *memory = run_memory(&run, band);
    if (memory == NULL)
        return IW_NO_MEMORY;
    for (unsigned first = 0; first < columns; first += band) {
        unsigned count = columns - first < band ? columns - first : band;
        run_begin(&run, first, count);
        for (int64_t row = 0; row < (int64_t)rows * net_block_px / cell_px; row++) {
            ring_ensure(&run, MAIN(last), row);
            ends->sink(ends->data, row * cell_px, run.first_px, count * net_block_px / cell_px,
                       ring_row(&run, MAIN(last), row, 0));
        }
    }
    free(memory);
    return IW_OK;
}
