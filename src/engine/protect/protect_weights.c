#include "engine/protect/protect_weights.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    file_version = 10,
    file_header_bytes = 20,
    file_entry_bytes = 32,
    file_layers = net_drawer_count * net_layer_count,
    file_digest_bytes = 32,
    file_name_bytes = 16,
    file_slopes = 5, /* of one drawer */
    taps_max = 9,
    raw_values = 12 /* of the last layer, in the framework's layout */
};

_Static_assert((int)net_down2_channels <= (int)conv_channels_max &&
                   (int)net_look2_channels <= (int)conv_channels_max &&
                   (int)net_down4_channels <= (int)conv_channels_max &&
                   (int)net_look4_channels <= (int)conv_channels_max &&
                   (int)net_down8_channels <= (int)conv_channels_max &&
                   (int)net_answer_channels <= (int)conv_channels_max,
               "the kernels have room for every 3x3 convolution");

/* The 32-bit numbers of the file before the layers. */
enum file_number {
    NUMBER_SLOPES, /* of the gates of the coarse drawer, then of the fine one */
    NUMBER_CHANGE_GAINS = NUMBER_SLOPES + net_drawer_count * file_slopes, /* of both drawers */
    NUMBER_COARSE_GAINS = NUMBER_CHANGE_GAINS + net_drawer_count,
    NUMBER_SHARES = NUMBER_COARSE_GAINS + 2,
    NUMBER_SHOWN = NUMBER_SHARES + model_levels * model_planes,
    NUMBER_THRESHOLDS,
    NUMBER_MASKING = NUMBER_THRESHOLDS + (model_levels + 1) * model_planes,
    NUMBER_BUDGETS = NUMBER_MASKING + 6,
    NUMBER_SLACK = NUMBER_BUDGETS + protect_strength_count,
    file_numbers
};

static const char file_magic[8] = {'I', 'W', 'P', 'R', 'O', 'T', 'E', 'C'};

struct layer_shape {
    const char *name;
    enum conv_shape shape;
    uint16_t inputs, outputs;
    int slope; /* index of its gate's slope in the file; -1: no gate */
};

/* The prefixes of the names of a drawer's layers, in the order of the file. */
static const char *const drawers[net_drawer_count] = {[DRAWER_COARSE] = "coarse.", [DRAWER_FINE] = "fine."};

/* The layers of a drawer in the order of the file.  Outputs of CONV_UP are those of one of the four
 * places. */
static const struct layer_shape shapes[net_layer_count] = {
    [LAYER_DOWN2] = {"down2", CONV_DOWN, net_color_channels, net_down2_channels, 0},
    [LAYER_LOOK2] = {"look2", CONV_3X3, net_down2_channels, net_look2_channels, 1},
    [LAYER_DOWN4] = {"down4", CONV_DOWN, net_look2_channels, net_down4_channels, 2},
    [LAYER_LOOK4] = {"look4", CONV_3X3, net_down4_channels, net_look4_channels, 3},
    [LAYER_DOWN8] = {"down8", CONV_DOWN, net_look4_channels, net_down8_channels, 4},
    [LAYER_ANSWER8] = {"answer8", CONV_3X3, net_down8_channels, net_answer_channels, -1},
    [LAYER_SEED8] = {"seed8", CONV_3X3, net_answer_channels, net_down8_channels, -1},
    [LAYER_UP4] = {"up4", CONV_UP, net_down8_channels, net_look4_channels, -1},
    [LAYER_DRAW4] = {"draw4", CONV_3X3, net_look4_channels, net_down4_channels, -1},
    [LAYER_UP2] = {"up2", CONV_UP, net_down4_channels, net_look2_channels, -1},
    [LAYER_DRAW2] = {"draw2", CONV_3X3, net_look2_channels, net_down2_channels, -1},
    [LAYER_DRAW1] = {"draw1", CONV_3X3, net_down2_channels, raw_values, -1},
};

/* The name of each shape in the file. */
static const struct {
    uint16_t kernel, stride;
    unsigned parts; /* outputs in the file for each output here */
} kinds[] = {
    [CONV_3X3] = {3, 1, 1},
    [CONV_DOWN] = {2, 2, 1},
    [CONV_UP] = {1, 1, 4},
};

static uint32_t u32_at(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static uint16_t u16_at(const uint8_t *bytes)
{
    return (uint16_t)(bytes[0] | bytes[1] << 8);
}

static float float_at(const uint8_t *bytes)
{
    uint32_t bits = u32_at(bytes);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* IEEE 754 binary16.  Infinities and NaN do not occur in a weights file and become 0. */
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

/* ---- the file's layout: the table of the layers, then the numbers, then the layers */

static unsigned file_outputs(const struct layer_shape *shape)
{
    return shape->outputs * kinds[shape->shape].parts;
}

static unsigned file_taps(const struct layer_shape *shape)
{
    return (unsigned)kinds[shape->shape].kernel * kinds[shape->shape].kernel;
}

static size_t layer_values(const struct layer_shape *shape)
{
    return ((size_t)shape->inputs * file_taps(shape) + 1) * file_outputs(shape);
}

enum { table_bytes = file_layers * file_entry_bytes, numbers_bytes = file_numbers * sizeof(float) };

static size_t network_bytes(void)
{
    size_t bytes = numbers_bytes;
    for (unsigned i = 0; i < file_layers; i++)
        bytes += layer_values(&shapes[i % net_layer_count]) * 2;
    return bytes;
}

static float number_at(const uint8_t *network, unsigned number)
{
    return float_at(network + number * sizeof(float));
}

static const char *entry_check(const uint8_t *entry, unsigned layer, size_t offset)
{
    const struct layer_shape *shape = &shapes[layer % net_layer_count];
    char name[file_name_bytes] = {0};
    const size_t begun = strlen(drawers[layer / net_layer_count]);
    memcpy(name, drawers[layer / net_layer_count], begun);
    memcpy(name + begun, shape->name, strlen(shape->name));
    if (memcmp(entry, name, file_name_bytes) != 0)
        return "the weights file names other layers";
    if (u16_at(entry + 16) != shape->inputs || u16_at(entry + 18) != file_outputs(shape) ||
        u16_at(entry + 20) != kinds[shape->shape].kernel || u16_at(entry + 22) != kinds[shape->shape].stride)
        return "the weights file holds layers of another shape";
    if (u32_at(entry + 24) != offset || u32_at(entry + 28) != layer_values(shape))
        return "the layer table of the weights file does not fit its data";
    return NULL;
}

static const char *table_check(const uint8_t *table)
{
    size_t offset = numbers_bytes;
    for (unsigned i = 0; i < file_layers; i++) {
        const char *why = entry_check(table + i * file_entry_bytes, i, offset);
        if (why != NULL)
            return why;
        offset += layer_values(&shapes[i % net_layer_count]) * 2;
    }
    return NULL;
}

/* All numbers are finite, and those that the engine divides by are above 0. */
static const char *numbers_check(const uint8_t *network)
{
    for (unsigned i = 0; i < file_numbers; i++) {
        const bool is_divisor = i >= NUMBER_THRESHOLDS;
        const float number = number_at(network, i);
        if (!isfinite(number) || (is_divisor && number <= 0))
            return "a number in the weights file is out of its range";
    }
    return NULL;
}

/* NULL when the file is valid, otherwise a sentence. */
static const char *file_check(const uint8_t *bytes, size_t size)
{
    if (size < file_header_bytes || memcmp(bytes, file_magic, sizeof file_magic) != 0)
        return "it is not a weights file of the anti-AI engine";
    if (u32_at(bytes + 8) != file_version)
        return "the weights file is of another version";
    if (u32_at(bytes + 12) != file_layers)
        return "the weights file holds another number of layers";
    if (u32_at(bytes + 16) != network_bytes() ||
        size != file_header_bytes + table_bytes + network_bytes() + file_digest_bytes)
        return "the weights file is cut or too long";
    const char *why = table_check(bytes + file_header_bytes);
    return why != NULL ? why : numbers_check(bytes + file_header_bytes + table_bytes);
}

/* ---- into the layout of the kernels */

/* The index of a colour value in the framework's channel order: two rows of two pixels. */
static unsigned raw_place(unsigned color, unsigned row, unsigned column)
{
    return color * 4 + row * 2 + column;
}

/* The index here of an output of the last layer; the two values at the end of each row stay 0. */
static unsigned raw_ours(unsigned theirs)
{
    for (unsigned at = 0; at < raw_values; at++)
        if (raw_place(at % 3, at / 6, at / 3 % 2) == theirs)
            return at / 6 * net_raw_row + at % 6;
    return 0;
}

/* The taps of one output and input in the order of the kernels. */
static void taps_read(const struct layer_shape *shape, const uint8_t *weights, unsigned output,
                      unsigned input, float taps[taps_max])
{
    const unsigned count = file_taps(shape), parts = kinds[shape->shape].parts;
    for (unsigned part = 0; part < parts; part++)
        for (unsigned tap = 0; tap < count; tap++)
            taps[part + tap] =
                half_at(weights + (((size_t)output * parts + part) * shape->inputs + input) * count * 2 +
                        (size_t)tap * 2);
}

/*
 * The first layer was trained on pixels of -1..1 and gets pixels of 0..1: the weights are doubled and the
 * bias is reduced.
 */
static void picture_shift(struct conv *conv, unsigned output, float taps[taps_max])
{
    for (unsigned tap = 0; tap < 4; tap++) {
        conv->bias[output] -= taps[tap];
        taps[tap] *= 2;
    }
}

static void layer_read(struct conv *conv, const struct layer_shape *shape, const uint8_t *bytes)
{
    const uint8_t *biases = bytes + (layer_values(shape) - file_outputs(shape)) * 2;
    const unsigned parts = kinds[shape->shape].parts;
    const bool is_raw = shape->outputs == raw_values, is_picture = shape->inputs == net_color_channels;
    for (unsigned output = 0; output < shape->outputs; output++) {
        const unsigned ours = is_raw ? raw_ours(output) : output;
        for (unsigned part = 0; part < parts; part++)
            conv->bias[part * conv->outputs + ours] = half_at(biases + ((size_t)output * parts + part) * 2);
        for (unsigned input = 0; input < shape->inputs; input++) {
            float taps[taps_max];
            taps_read(shape, bytes, output, input, taps);
            if (is_picture)
                picture_shift(conv, ours, taps);
            conv_weights_fill(conv, ours, input, taps);
        }
    }
}

/* Multiplies all outputs of a layer. */
static void layer_scale(const struct conv *conv, float gain)
{
    for (size_t i = 0; i < conv_weights_count(conv); i++)
        conv->weights[i] *= gain;
    for (size_t i = 0; i < conv_bias_count(conv); i++)
        conv->bias[i] *= gain;
}

static struct conv conv_of(enum net_drawer drawer, const struct layer_shape *shape, const uint8_t *network)
{
    struct conv conv = {.shape = shape->shape, .inputs = shape->inputs};
    conv.outputs = shape->outputs == raw_values ? net_raw_channels : shape->outputs;
    if (shape->slope >= 0)
        conv.slope = number_at(network, NUMBER_SLOPES + drawer * file_slopes + (unsigned)shape->slope);
    return conv;
}

/* Reads the layers of both drawers from their data into their memory. */
static void layers_read(struct net_weights *weights, const uint8_t *network)
{
    const uint8_t *data = network + numbers_bytes;
    float *at = weights->memory;
    for (unsigned i = 0; i < file_layers; i++) {
        const struct layer_shape *shape = &shapes[i % net_layer_count];
        struct conv *conv = &weights->layers[i / net_layer_count][i % net_layer_count];
        conv->weights = at;
        conv->bias = at + conv_weights_count(conv);
        layer_read(conv, shape, data);
        at = conv->bias + conv_bias_count(conv);
        data += layer_values(shape) * 2;
    }
}

static void numbers_fill(const uint8_t *network, unsigned number, float *values, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        values[i] = number_at(network, number + i);
}

static void numbers_read(struct net_weights *weights, const uint8_t *network)
{
    struct visibility_model *model = &weights->model;
    float *const masking[] = {&model->adaptation, &model->light, &model->dark,
                              &model->masking,    &model->calm,  &model->line};
    numbers_fill(network, NUMBER_COARSE_GAINS, weights->coarse_gains, 2);
    numbers_fill(network, NUMBER_SHARES, &model->shares[0][0], model_levels * model_planes);
    numbers_fill(network, NUMBER_SHOWN, &weights->shown, 1);
    numbers_fill(network, NUMBER_THRESHOLDS, &model->thresholds[0][0], (model_levels + 1) * model_planes);
    for (unsigned i = 0; i < sizeof masking / sizeof masking[0]; i++)
        *masking[i] = number_at(network, NUMBER_MASKING + i);
    numbers_fill(network, NUMBER_BUDGETS, weights->budgets, protect_strength_count);
    numbers_fill(network, NUMBER_SLACK, &weights->slack, 1);
}

enum iw_error weights_init(struct net_weights *weights, const uint8_t *bytes, size_t size, const char **why)
{
    *why = file_check(bytes, size);
    if (*why != NULL)
        return IW_WEIGHTS_INVALID;
    const uint8_t *network = bytes + file_header_bytes + table_bytes;
    size_t values = 0;
    for (unsigned drawer = 0; drawer < net_drawer_count; drawer++) {
        for (unsigned layer = 0; layer < net_layer_count; layer++) {
            const struct conv conv = conv_of((enum net_drawer)drawer, &shapes[layer], network);
            weights->layers[drawer][layer] = conv;
            values += conv_weights_count(&conv) + conv_bias_count(&conv);
        }
    }
    weights->memory = aligned_alloc(64, values * sizeof(float));
    if (weights->memory == NULL)
        return IW_NO_MEMORY;
    memset(weights->memory, 0, values * sizeof(float));
    layers_read(weights, network);
    for (unsigned drawer = 0; drawer < net_drawer_count; drawer++)
        layer_scale(&weights->layers[drawer][LAYER_ANSWER8],
                    number_at(network, NUMBER_CHANGE_GAINS + drawer));
    numbers_read(weights, network);
    return IW_OK;
}

void weights_fini(struct net_weights *weights)
{
    free(weights->memory);
    weights->memory = NULL;
}
