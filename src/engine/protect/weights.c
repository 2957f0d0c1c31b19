#include "engine/protect/weights.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The file: a header, the table of the layers, the numbers, the layers as halves, and a digest. */
enum {
    file_version = 10,
    header_bytes = 20,
    entry_bytes = 32,
    name_bytes = 16,
    digest_bytes = 32,
    layer_count = net_drawer_count * net_layer_count,
    table_bytes = layer_count * entry_bytes,
    number_count = sizeof(struct net_model) / sizeof(float),
    numbers_bytes = number_count * sizeof(float),
    first_positive = offsetof(struct net_model, thresholds) / sizeof(float),
    adaptation = offsetof(struct net_model, adaptation) / sizeof(float),
    taps_max = 9,
    raw_values = 12 /* of the last layer, in the framework's layout */
};

_Static_assert(number_count == 2 * 5 + 2 + 2 + 12 + 1 + 15 + 6 + 3 + 1, "the model is the file's numbers");
_Static_assert((int)net_down8_channels <= (int)conv_channels_max, "kernels have room for the widest layer");

static const char file_magic[8] = {'I', 'W', 'P', 'R', 'O', 'T', 'E', 'C'};

/* The prefixes of the names of a drawer's layers, in the order of the file. */
static const char *const drawers[net_drawer_count] = {[DRAWER_COARSE] = "coarse.", [DRAWER_FINE] = "fine."};

/* The layers of a drawer in the order of the file.  Outputs of CONV_UP are those of one of the four places.
 */
static const struct layer_shape {
    const char *name;
    enum conv_shape shape;
    uint16_t inputs, outputs;
} shapes[net_layer_count] = {
    [LAYER_DOWN2] = {"down2", CONV_DOWN, net_color_channels, net_down2_channels},
    [LAYER_LOOK2] = {"look2", CONV_3X3, net_down2_channels, net_look2_channels},
    [LAYER_DOWN4] = {"down4", CONV_DOWN, net_look2_channels, net_down4_channels},
    [LAYER_LOOK4] = {"look4", CONV_3X3, net_down4_channels, net_look4_channels},
    [LAYER_DOWN8] = {"down8", CONV_DOWN, net_look4_channels, net_down8_channels},
    [LAYER_ANSWER8] = {"answer8", CONV_3X3, net_down8_channels, net_answer_channels},
    [LAYER_SEED8] = {"seed8", CONV_3X3, net_answer_channels, net_down8_channels},
    [LAYER_UP4] = {"up4", CONV_UP, net_down8_channels, net_look4_channels},
    [LAYER_DRAW4] = {"draw4", CONV_3X3, net_look4_channels, net_down4_channels},
    [LAYER_UP2] = {"up2", CONV_UP, net_down4_channels, net_look2_channels},
    [LAYER_DRAW2] = {"draw2", CONV_3X3, net_look2_channels, net_down2_channels},
    [LAYER_DRAW1] = {"draw1", CONV_3X3, net_down2_channels, raw_values},
};

/* The shapes in the file; parts is the number of outputs in the file for each output here. */
static const struct shape_kind {
    uint16_t kernel, stride;
    unsigned taps, parts;
} kinds[] = {[CONV_3X3] = {3, 1, 9, 1}, [CONV_DOWN] = {2, 2, 4, 1}, [CONV_UP] = {1, 1, 1, 4}};

static uint16_t u16_at(const uint8_t *bytes)
{
    return (uint16_t)(bytes[0] | bytes[1] << 8);
}

static uint32_t u32_at(const uint8_t *bytes)
{
    return u16_at(bytes) | (uint32_t)u16_at(bytes + 2) << 16;
}

static float float_at(const uint8_t *bytes)
{
    const uint32_t bits = u32_at(bytes);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* IEEE 754 binary16.  Infinities and NaN do not occur in a weights file and become 0. */
static float half_at(const uint8_t *bytes)
{
    const uint16_t half = u16_at(bytes);
    const uint32_t exponent = half >> 10 & 31, fraction = half & 1023u;
    float value = 0;
    if (exponent == 0)
        value = (float)fraction * 0x1p-24f;
    else if (exponent < 31)
        value = (float)(fraction | 1024u) * (float)(1u << (exponent - 1)) * 0x1p-24f;
    return half & 0x8000 ? -value : value;
}

/* ---- checks */

static unsigned file_outputs(const struct layer_shape *shape)
{
    return shape->outputs * kinds[shape->shape].parts;
}

static size_t layer_values(const struct layer_shape *shape)
{
    return ((size_t)shape->inputs * kinds[shape->shape].taps + 1) * file_outputs(shape);
}

/*
 * Returns the place of a layer behind the table, in bytes. For the layer after the last, this is the size of
 * all layers.
 */
static size_t layer_offset(unsigned layer)
{
    size_t bytes = numbers_bytes;
    for (unsigned i = 0; i < layer; i++)
        bytes += layer_values(&shapes[i % net_layer_count]) * 2;
    return bytes;
}

static const char *entry_check(const uint8_t *entry, unsigned layer)
{
    const struct layer_shape *shape = &shapes[layer % net_layer_count];
    const struct shape_kind *kind = &kinds[shape->shape];
    const char *prefix = drawers[layer / net_layer_count];
    char name[name_bytes] = {0};
    memcpy(name, prefix, strlen(prefix));
    memcpy(name + strlen(prefix), shape->name, strlen(shape->name));
    if (memcmp(entry, name, name_bytes) != 0)
        return "the weights file names other layers";
    if (u16_at(entry + 16) != shape->inputs || u16_at(entry + 18) != file_outputs(shape) ||
        u16_at(entry + 20) != kind->kernel || u16_at(entry + 22) != kind->stride)
        return "the weights file has layers of another shape";
    if (u32_at(entry + 24) != layer_offset(layer) || u32_at(entry + 28) != layer_values(shape))
        return "the layer table of the weights file does not fit its data";
    return NULL;
}

/* Returns NULL if the file is valid, otherwise a sentence. */
static const char *file_check(const uint8_t *bytes, size_t size)
{
    const size_t network_bytes = layer_offset(layer_count);
    const uint8_t *numbers = bytes + header_bytes + table_bytes;
    const char *why = NULL;
    if (size < header_bytes || memcmp(bytes, file_magic, sizeof file_magic) != 0)
        return "it is not a weights file of the anti-AI engine";
    if (u32_at(bytes + 8) != file_version)
        return "the weights file is of another version";
    if (u32_at(bytes + 12) != layer_count)
        return "the weights file has another number of layers";
    if (u32_at(bytes + 16) != network_bytes ||
        size != header_bytes + table_bytes + network_bytes + digest_bytes)
        return "the weights file is cut off or too long";
    for (unsigned layer = 0; why == NULL && layer < layer_count; layer++)
        why = entry_check(bytes + header_bytes + layer * entry_bytes, layer);
    /*
     * Rejects non-finite numbers. Parameters from the thresholds onwards must be positive, except the
     * exponent of the adaptation.
     */
    for (unsigned i = 0; why == NULL && i < number_count; i++) {
        const float number = float_at(numbers + i * sizeof(float));
        const bool is_positive = i >= first_positive && i != adaptation;
        if (!isfinite(number) || (is_positive && number <= 0))
            why = "a number in the weights file is out of range";
    }
    return why;
}

/* ---- into the layout of the kernels */

/*
 * Reads the taps of all inputs of one output. The first layer was trained on pixels of -1..1 but gets pixels
 * of 0..1, so its weights are doubled and its bias is reduced.
 */
static void output_read(struct conv *conv, const struct layer_shape *shape, const uint8_t *bytes,
                        unsigned theirs, unsigned ours)
{
    const struct shape_kind *kind = &kinds[shape->shape];
    const uint8_t *biases = bytes + (layer_values(shape) - file_outputs(shape)) * 2;
    for (unsigned part = 0; part < kind->parts; part++)
        conv->bias[part * conv->outputs + ours] = half_at(biases + ((size_t)theirs * kind->parts + part) * 2);
    for (unsigned input = 0; input < shape->inputs; input++) {
        float taps[taps_max];
        for (unsigned tap = 0; tap < kind->taps * kind->parts; tap++) {
            const size_t output = (size_t)theirs * kind->parts + tap / kind->taps;
            taps[tap] =
                half_at(bytes + ((output * shape->inputs + input) * kind->taps + tap % kind->taps) * 2);
            if (shape->inputs == net_color_channels) {
                conv->bias[ours] -= taps[tap];
                taps[tap] *= 2;
            }
        }
        conv_weights_fill(conv, ours, input, taps);
    }
}

/* Reads a layer, with the outputs multiplied by a gain. */
static void layer_read(struct conv *conv, const struct layer_shape *shape, const uint8_t *bytes, float gain)
{
    for (unsigned output = 0; output < shape->outputs; output++) {
        /*
         * Reads the last layer, which has another order here; the two values at the end of each of its rows
         * stay 0.
         */
        const unsigned color = output / 4, row = output / 2 % 2, column = output % 2;
        const unsigned raw = row * net_raw_row + column * net_color_channels + color;
        output_read(conv, shape, bytes, output, shape->outputs == raw_values ? raw : output);
    }
    for (size_t i = 0; i < conv_weights_count(conv); i++)
        conv->weights[i] *= gain;
    for (size_t i = 0; i < conv_bias_count(conv); i++)
        conv->bias[i] *= gain;
}

/* Describes all layers. Returns the number of values of their weights and biases. */
static size_t layers_describe(struct net_weights *weights)
{
    size_t values = 0;
    for (unsigned i = 0; i < layer_count; i++) {
        const unsigned drawer = i / net_layer_count, layer = i % net_layer_count;
        const struct layer_shape *shape = &shapes[layer];
        struct conv *conv = &weights->layers[drawer][layer];
        *conv = (struct conv){.shape = shape->shape, .inputs = shape->inputs, .outputs = shape->outputs};
        if (shape->outputs == raw_values)
            conv->outputs = net_raw_channels;
        if (layer < net_gate_count)
            conv->slope = weights->model.slopes[drawer][layer];
        values += conv_weights_count(conv) + conv_bias_count(conv);
    }
    return values;
}

enum iw_error weights_init(struct net_weights *weights, const uint8_t *bytes, size_t size, const char **why)
{
    *why = file_check(bytes, size);
    if (*why != NULL)
        return IW_WEIGHTS_INVALID;
    const uint8_t *network = bytes + header_bytes + table_bytes;
    for (unsigned i = 0; i < number_count; i++) {
        const float number = float_at(network + i * sizeof number);
        memcpy((char *)&weights->model + i * sizeof number, &number, sizeof number);
    }
    const size_t values = layers_describe(weights);
    weights->memory = aligned_alloc(64, values * sizeof(float));
    if (weights->memory == NULL)
        return IW_NO_MEMORY;
    memset(weights->memory, 0, values * sizeof(float));
    float *at = weights->memory;
    for (unsigned i = 0; i < layer_count; i++) {
        const unsigned drawer = i / net_layer_count, layer = i % net_layer_count;
        struct conv *conv = &weights->layers[drawer][layer];
        conv->weights = at;
        conv->bias = at + conv_weights_count(conv);
        at = conv->bias + conv_bias_count(conv);
        layer_read(conv, &shapes[layer], network + layer_offset(i),
                   layer == LAYER_ANSWER8 ? weights->model.change_gains[drawer] : 1);
    }
    return IW_OK;
}

void weights_fini(struct net_weights *weights)
{
    free(weights->memory);
    weights->memory = NULL;
}
