#include "engine/protect_net.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine/clones.h"

/* ---- the weights file (tools/README.md) */

enum {
    file_version = 1,
    file_header_bytes = 16,
    file_entry_bytes = 32,
    file_digest_bytes = 32,
    file_name_bytes = 16,
    kernel_taps = 9,
    band_columns_usual = 256 /* measured: narrower ones repeat more, wider ones leave the cache */
};

static const char file_magic[8] = {'I', 'W', 'P', 'R', 'O', 'T', 'E', 'C'};

struct layer_shape {
    const char *name;
    uint16_t inputs, outputs, stride;
};

/* The layers in the order of the file; the stages below name them by place. */
static const struct layer_shape shapes[net_layer_count] = {
    {"head", net_input_channels, net_width, 1}, {"down", net_width, net_width, 2},
    {"context", net_width, net_width, 1},       {"first0", net_width, net_width, 1},
    {"second0", net_width, net_width, 1},       {"first1", net_width, net_width, 1},
    {"second1", net_width, net_width, 1},       {"first2", net_width, net_width, 1},
    {"second2", net_width, net_width, 1},       {"tail", net_width, net_color_values, 1},
};

static uint32_t u32_at(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static uint16_t u16_at(const uint8_t *bytes)
{
    return (uint16_t)(bytes[0] | bytes[1] << 8);
}

/* IEEE 754 binary16; infinities and NaN do not occur in a weights file and become 0. */
static float half_at(const uint8_t *bytes)
{
    uint16_t half = u16_at(bytes);
    uint32_t exponent = half >> 10 & 31, fraction = half & 1023u;
    float value = 0;
    if (exponent == 0)
        value = (float)fraction * 0x1p-24f;
    else if (exponent < 31)
        value = (float)(fraction | 1024u) * (float)(1u << (exponent - 1)) * 0x1p-24f;
    return half & 0x8000 ? -value : value;
}

static size_t layer_values(const struct layer_shape *shape)
{
    return (size_t)shape->inputs * shape->outputs * kernel_taps + shape->outputs;
}

/* The framework's place of a colour value, channel by channel, for ours, pixel by pixel. */
static unsigned color_place(unsigned ours)
{
    return ours % 3 * 16 + ours / 12 * 4 + ours / 3 % 4;
}

static void layer_read(struct conv *conv, const struct layer_shape *shape, const uint8_t *bytes)
{
    bool is_head = shape->inputs == net_input_channels, is_tail = shape->outputs == net_color_values;
    for (unsigned output = 0; output < shape->outputs; output++) {
        unsigned from_output = is_tail ? color_place(output) : output;
        for (unsigned input = 0; input < shape->inputs; input++) {
            unsigned from_input = is_head && input < net_color_values ? color_place(input) : input;
            const uint8_t *taps =
                bytes + ((size_t)from_output * shape->inputs + from_input) * kernel_taps * 2;
            float values[kernel_taps];
            for (unsigned tap = 0; tap < kernel_taps; tap++)
                values[tap] = half_at(taps + (size_t)tap * 2);
            conv_weights_fill(conv, output, input, values);
        }
        size_t bias = (size_t)shape->inputs * shape->outputs * kernel_taps + from_output;
        conv->bias[output] = half_at(bytes + bias * 2);
    }
}

static const char *entry_check(const uint8_t *entry, const struct layer_shape *shape, size_t offset)
{
    char name[file_name_bytes] = {0};
    memcpy(name, shape->name, strlen(shape->name));
    if (memcmp(entry, name, file_name_bytes) != 0)
        return "the weights file names other layers";
    if (u16_at(entry + 16) != shape->inputs || u16_at(entry + 18) != shape->outputs ||
        u16_at(entry + 20) != 3 || u16_at(entry + 22) != shape->stride)
        return "the weights file holds layers of another shape";
    if (u32_at(entry + 24) != offset || u32_at(entry + 28) != layer_values(shape))
        return "the layer table of the weights file does not fit its data";
    return NULL;
}

/* NULL when the file is as expected, otherwise a sentence. */
static const char *file_check(const uint8_t *bytes, size_t size)
{
    size_t offset = file_header_bytes + net_layer_count * file_entry_bytes;
    if (size < offset || memcmp(bytes, file_magic, sizeof file_magic) != 0)
        return "it is not a weights file of the anti-AI engine";
    if (u32_at(bytes + 8) != file_version)
        return "the weights file is of another version";
    if (u32_at(bytes + 12) != net_layer_count)
        return "the weights file holds another number of layers";
    for (unsigned i = 0; i < net_layer_count; i++) {
        const char *why = entry_check(bytes + file_header_bytes + i * file_entry_bytes, &shapes[i], offset);
        if (why != NULL)
            return why;
        offset += layer_values(&shapes[i]) * 2;
    }
    return size == offset + file_digest_bytes ? NULL : "the weights file is cut or too long";
}

enum iw_error net_init(struct net *net, const uint8_t *bytes, size_t size, const char **why)
{
    *why = file_check(bytes, size);
    if (*why != NULL)
        return IW_WEIGHTS_INVALID;
    size_t values = 0, offset = file_header_bytes + net_layer_count * file_entry_bytes;
    for (unsigned i = 0; i < net_layer_count; i++) {
        net->layers[i] = (struct conv){shapes[i].inputs, shapes[i].outputs, shapes[i].stride, NULL, NULL};
        values += conv_weights_count(&net->layers[i]) + shapes[i].outputs;
    }
    net->memory = aligned_alloc(64, (values * sizeof(float) + 63) / 64 * 64);
    if (net->memory == NULL)
        return IW_NO_MEMORY;
    float *at = net->memory;
    for (unsigned i = 0; i < net_layer_count; i++) {
        net->layers[i].weights = at;
        net->layers[i].bias = at + conv_weights_count(&net->layers[i]);
        layer_read(&net->layers[i], &shapes[i], bytes + offset);
        at = net->layers[i].bias + shapes[i].outputs;
        offset += layer_values(&shapes[i]) * 2;
    }
    net->kernels = conv_kernels_at(0);
    net->band_columns = band_columns_usual;
    return IW_OK;
}

void net_fini(struct net *net)
{
    free(net->memory);
    net->memory = NULL;
}

/* ---- the run */

enum { no_stage = -1 };

enum {
    STAGE_INPUT,
    STAGE_HEAD,
    STAGE_DOWN,
    STAGE_CONTEXT,
    STAGE_FIRST0,
    STAGE_SECOND0,
    STAGE_FIRST1,
    STAGE_SECOND1,
    STAGE_FIRST2,
    STAGE_SECOND2,
    STAGE_TAIL
};

/*
 * What a stage computes: relu(layer(input) + residual) + wide, wide being of
 * half the resolution.  reach: how many rows and columns beyond the picture
 * later stages ask for, in the stage's own resolution.  kept: how many of its
 * last rows the later stages still look at; the fewer, the more stays in the cache.
 */
struct stage_plan {
    int input, residual, wide;
    int layer;
    unsigned channels, reach, kept;
    bool is_relu;
};

static const struct stage_plan plans[net_stage_count] = {
    [STAGE_INPUT] = {no_stage, no_stage, no_stage, -1, net_input_channels, 10, 6, false},
    [STAGE_HEAD] = {STAGE_INPUT, no_stage, no_stage, 0, net_width, 9, 12, true},
    [STAGE_DOWN] = {STAGE_HEAD, no_stage, no_stage, 1, net_width, 4, 6, true},
    [STAGE_CONTEXT] = {STAGE_DOWN, no_stage, no_stage, 2, net_width, 3, 4, true},
    [STAGE_FIRST0] = {STAGE_HEAD, no_stage, no_stage, 3, net_width, 6, 8, true},
    [STAGE_SECOND0] = {STAGE_FIRST0, STAGE_HEAD, STAGE_CONTEXT, 4, net_width, 5, 10, true},
    [STAGE_FIRST1] = {STAGE_SECOND0, no_stage, no_stage, 5, net_width, 4, 8, true},
    [STAGE_SECOND1] = {STAGE_FIRST1, STAGE_SECOND0, no_stage, 6, net_width, 3, 10, true},
    [STAGE_FIRST2] = {STAGE_SECOND1, no_stage, no_stage, 7, net_width, 2, 8, true},
    [STAGE_SECOND2] = {STAGE_FIRST2, STAGE_SECOND1, no_stage, 8, net_width, 1, 8, true},
    [STAGE_TAIL] = {STAGE_SECOND2, no_stage, no_stage, 9, net_color_values, 0, 4, false},
};

struct stage {
    const struct stage_plan *plan;
    float *ring;
    size_t row_values;
    unsigned columns; /* computed, reach on both sides included */
    int64_t next;     /* the first row not yet computed */
};

/* One band of columns on its way through the stages. */
struct run {
    const struct net *net;
    struct stage stages[net_stage_count];
    float *scratch; /* of the kernels */
    int64_t first_column;
    net_source source;
    void *data;
};

/* A row that was computed and is still there, or is being computed. */
static float *stage_row(const struct stage *stage, int64_t row)
{
    const struct stage_plan *plan = stage->plan;
    assert(row >= stage->next - plan->kept && row < stage->next + conv_tile_side);
    return stage->ring + (size_t)(row + plan->reach) % plan->kept * stage->row_values;
}

/* relu(row). */
ENGINE_CLONES static void row_activate(float *row, size_t values)
{
    for (size_t i = 0; i < values; i++)
        row[i] = row[i] > 0 ? row[i] : 0;
}

/* Adds a row of half the resolution, each column twice. */
ENGINE_CLONES static void row_add_wide(float *restrict row, const float *restrict wide, unsigned columns,
                                       unsigned odd)
{
    for (unsigned column = 0; column < columns; column++) {
        const float *other = wide + (size_t)((column + odd) / 2) * net_width;
        for (unsigned i = 0; i < net_width; i++)
            row[i] += other[i];
        row += net_width;
    }
}

static void stage_ensure(struct run *run, int at, int64_t row);

/* The column of its input at which a stage's first output begins to look. */
static unsigned input_column(const struct stage_plan *plan)
{
    return plans[plan->input].reach - plan->reach * shapes[plan->layer].stride - 1;
}

static size_t input_skip(const struct stage_plan *plan)
{
    return (size_t)input_column(plan) * plans[plan->input].channels;
}

/* The column of the row of half the resolution that belongs to a stage's first one. */
static unsigned wide_column(const struct stage_plan *plan)
{
    return plans[plan->wide].reach - (plan->reach + 1) / 2;
}

/* The row that a stage adds to its own, from its first column on; NULL: it adds none. */
static const float *residual_row(const struct run *run, const struct stage_plan *plan, int64_t row)
{
    if (plan->residual == no_stage)
        return NULL;
    return stage_row(&run->stages[plan->residual], row) +
           (size_t)(plans[plan->residual].reach - plan->reach) * net_width;
}

/* One row of a layer that skips some. */
static void stage_stride(struct run *run, int at, int64_t row)
{
    const struct stage_plan *plan = &plans[at];
    const struct conv *conv = &run->net->layers[plan->layer];
    const struct stage *from = &run->stages[plan->input], *stage = &run->stages[at];
    int64_t top = row * conv->stride - 1;
    size_t skip = input_skip(plan);
    stage_ensure(run, plan->input, top + 2);
    const float *const rows[3] = {stage_row(from, top) + skip, stage_row(from, top + 1) + skip,
                                  stage_row(from, top + 2) + skip};
    float *out = stage_row(stage, row);
    run->net->kernels->row(conv, rows, out, stage->columns);
    if (plan->is_relu)
        row_activate(out, (size_t)stage->columns * plan->channels);
}

/* Four rows of a layer of stride 1. */
static void stage_quad(struct run *run, int at, int64_t row)
{
    const struct stage_plan *plan = &plans[at];
    const struct stage *from = &run->stages[plan->input], *stage = &run->stages[at];
    struct conv_quad quad = {.is_relu = plan->is_relu};
    stage_ensure(run, plan->input, row + conv_tile_side);
    for (int i = 0; i < conv_tile_reads; i++)
        quad.inputs[i] = stage_row(from, row - 1 + i) + input_skip(plan);
    for (int i = 0; i < conv_tile_side; i++) {
        quad.residuals[i] = residual_row(run, plan, row + i);
        quad.outputs[i] = stage_row(stage, row + i);
    }
    run->net->kernels->tiles(&run->net->layers[plan->layer], &quad, stage->columns / conv_tile_side,
                             run->scratch);
}

static void stage_widen(struct run *run, int at, int64_t row)
{
    const struct stage_plan *plan = &plans[at];
    const struct stage *stage = &run->stages[at];
    /* Both the band and the picture begin at an even column, so column -reach decides the parity. */
    int64_t half = row >> 1;
    stage_ensure(run, plan->wide, half);
    row_add_wide(stage_row(stage, row),
                 stage_row(&run->stages[plan->wide], half) + (size_t)wide_column(plan) * net_width,
                 stage->columns, plan->reach & 1);
}

/* Computes a stage's next rows; how many. */
static int64_t stage_compute(struct run *run, int at, int64_t row)
{
    const struct stage_plan *plan = &plans[at];
    const struct stage *stage = &run->stages[at];
    if (at == STAGE_INPUT) {
        run->source(run->data, row, run->first_column - plan->reach, stage->columns, stage_row(stage, row));
        return 1;
    }
    if (run->net->layers[plan->layer].stride != 1) {
        stage_stride(run, at, row);
        return 1;
    }
    stage_quad(run, at, row);
    for (int i = 0; plan->wide != no_stage && i < conv_tile_side; i++)
        stage_widen(run, at, row + i);
    return conv_tile_side;
}

/* Computes rows of a stage up to and with row, or a few more. */
static void stage_ensure(struct run *run, int at, int64_t row)
{
    struct stage *stage = &run->stages[at];
    while (stage->next <= row)
        stage->next += stage_compute(run, at, stage->next);
}

/* How many columns of a stage another one reads to compute columns of its own. */
static unsigned columns_read(const struct stage_plan *reader, int at, unsigned columns)
{
    if (reader->residual == at)
        return plans[at].reach - reader->reach + columns;
    if (reader->wide == at)
        return wide_column(reader) + (columns + (reader->reach & 1) + 1) / 2;
    if (reader->input == at)
        return input_column(reader) + (columns - 1) * shapes[reader->layer].stride + 3;
    return 0;
}

/*
 * The columns every stage computes for a band: what its readers look at, filled
 * up to whole tiles.  Tiles are computed from true values alone, for what
 * cancels out of an output still decides how it is rounded.
 */
static void columns_plan(unsigned band, unsigned columns[net_stage_count])
{
    for (int at = STAGE_TAIL; at >= STAGE_INPUT; at--) {
        unsigned most = at == STAGE_TAIL ? band : 0;
        for (int reader = at + 1; reader < net_stage_count; reader++) {
            unsigned read = columns_read(&plans[reader], at, columns[reader]);
            most = read > most ? read : most;
        }
        columns[at] = (most + conv_tile_side - 1) / conv_tile_side * conv_tile_side;
    }
    assert(columns[STAGE_INPUT] <= band + net_margin_blocks);
}

static void run_begin(struct run *run, unsigned first, unsigned band)
{
    unsigned columns[net_stage_count];
    columns_plan(band, columns);
    run->first_column = first;
    for (int at = 0; at < net_stage_count; at++) {
        run->stages[at].columns = columns[at];
        run->stages[at].next = -(int64_t)plans[at].reach;
    }
}

/* The rings of all stages and the kernels' scratch, zeroed, in one piece; NULL: no memory. */
static float *run_memory(struct run *run, unsigned band)
{
    unsigned columns[net_stage_count];
    size_t values = (conv_scratch_values() + 15) / 16 * 16, scratch = values;
    columns_plan(band, columns);
    for (int at = 0; at < net_stage_count; at++) {
        run->stages[at].plan = &plans[at];
        run->stages[at].row_values = ((size_t)columns[at] + conv_slack) * plans[at].channels;
        values += plans[at].kept * run->stages[at].row_values;
    }
    float *memory = aligned_alloc(64, (values * sizeof(float) + 63) / 64 * 64);
    if (memory == NULL)
        return NULL;
    memset(memory, 0, values * sizeof(float));
    run->scratch = memory;
    float *ring = memory + scratch;
    for (int at = 0; at < net_stage_count; at++) {
        run->stages[at].ring = ring;
        ring += plans[at].kept * run->stages[at].row_values;
    }
    return memory;
}

enum iw_error net_run(const struct net *net, unsigned rows, unsigned columns, net_source source,
                      net_sink sink, void *data)
{
    struct run run = {.net = net, .source = source, .data = data};
    const unsigned band = net->band_columns;
    float *memory = run_memory(&run, columns < band ? columns : band);
    if (memory == NULL)
        return IW_NO_MEMORY;
    for (unsigned first = 0; first < columns; first += band) {
        unsigned count = columns - first < band ? columns - first : band;
        run_begin(&run, first, count);
        for (int64_t row = 0; row < rows; row++) {
            stage_ensure(&run, STAGE_TAIL, row);
            sink(data, row, first, count, stage_row(&run.stages[STAGE_TAIL], row));
        }
    }
    free(memory);
    return IW_OK;
}
