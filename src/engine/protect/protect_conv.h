/*
 * Layers over rows of interleaved features, the inner loop of the anti-AI
 * network.  Written with GCC's vector extensions, once for each width of
 * vector; no code is generated at run time.
 *
 * Convolutions of 3x3 go tile by tile of 4x4 outputs by minimal filtering
 * F(4x4,3x3), a quarter of the multiplications of the direct way (Winograd 1980;
 * the matrices are those of Lavin and Gray, Fast Algorithms for Convolutional
 * Neural Networks, 2016, arXiv 1509.09308): the 6x6 inputs of a tile become 36
 * values a channel, each of which meets its own weights, and the 36 products
 * become the 16 outputs.  Layers that change the resolution see every input
 * once and are plain products of matrices.
 *
 * What follows a layer's sums (activation, gate, difference) is done where they
 * are, before they leave the registers: conv_end says what.
 */
#ifndef ENGINE_PROTECT_PROTECT_CONV_H
#define ENGINE_PROTECT_PROTECT_CONV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    conv_slack = 32,        /* columns that may be read and written beyond the last one */
    conv_tile_side = 4,     /* outputs of a tile, each way */
    conv_tile_reads = 6,    /* inputs of a tile, each way */
    conv_slice = 16,        /* outputs whose weights lie together; outputs come in multiples of it */
    conv_channels_max = 64, /* of a 3x3 convolution, inputs and outputs */
    conv_rows_read = 24,    /* the most rows that any step of the network reads at once, */
    conv_rows_written = 8   /* and writes: windows of 16x16 pixels */
};

enum conv_shape {
    CONV_3X3,  /* by tiles */
    CONV_DOWN, /* 2x2 of stride 2: two input rows become one of half as many columns */
    CONV_UP    /* 1x1, each column becomes 2x2: an input row becomes two of twice as many columns */
};

/* What becomes of a sum, its bias added. */
enum conv_end {
    CONV_PLAIN,  /* output = sum */
    CONV_CHANGE, /* output = sum - before */
    CONV_LEAKY,  /* output = leaky relu of the sum */
    CONV_SPLIT,  /* the same, and gate = gate of the sum */
    CONV_FACTOR  /* output = sum * factor */
};

/*
 * One layer.  The gate of p is .5 + slope * p, between .01 and 1, kept in 16 bits:
 * gates wait long for what they let through, and halved they wait nearer.
 */
struct conv {
    enum conv_shape shape;
    unsigned inputs;  /* channels: a multiple of 16, or the 3 of the picture */
    unsigned outputs; /* channels, filled up to a multiple of conv_slice */
    float slope;
    float *weights; /* conv_weights_fill */
    float *bias;    /* of the outputs; of CONV_UP for each of the 2x2 places */
};

/* The rows of one row of tiles, or those that a layer that changes the resolution takes and gives. */
struct conv_rows {
    const float *inputs[conv_rows_read]; /* each from the leftmost input of column 0 on */
    const float *before[conv_rows_written];
    const uint16_t *factors[conv_rows_written];
    float *outputs[conv_rows_written];
    uint16_t *gates[conv_rows_written];
};

struct conv_kernels {
    const char *name; /* of the processor's instructions */

    /* A row of tiles of CONV_3X3, as many tiles as count; scratch: conv_scratch_values, aligned to 64 bytes.
     */
    void (*tiles)(const struct conv *conv, enum conv_end end, const struct conv_rows *rows, unsigned count,
                  float *scratch);

    /* CONV_DOWN: one output row of count columns, from two input rows; ends with CONV_LEAKY or CONV_SPLIT. */
    void (*down)(const struct conv *conv, enum conv_end end, const struct conv_rows *rows, unsigned count);

    /* CONV_UP: two output rows, from count columns of one input row; ends with CONV_FACTOR. */
    void (*up)(const struct conv *conv, const struct conv_rows *rows, unsigned count);
};

/* What the kernels of tiles need beside rows and weights. */
size_t conv_scratch_values(void);

/* The kernels that this processor runs, the fastest first, the last for every processor; NULL: no more. */
const struct conv_kernels *conv_kernels_at(unsigned place);

/* How many values a layer's weights and its bias are; both in multiples of 16. */
size_t conv_weights_count(const struct conv *conv);
size_t conv_bias_count(const struct conv *conv);

/*
 * Writes the weights of one output and input in the layout of the kernels.
 * taps: [3 rows][3 columns] of CONV_3X3, [2][2] of CONV_DOWN; of CONV_UP the one
 * of each of the 2x2 places that a column becomes.
 */
void conv_weights_fill(struct conv *conv, unsigned output, unsigned input, const float *taps);

#endif
