/*
 * Layers over rows of interleaved features: the inner loop of the anti-AI network.  Written with GCC's vector
 * extensions, once for each vector width.  No code is generated at run time.
 *
 * 3x3 convolutions use minimal filtering F(4x4,3x3) on tiles of 4x4 outputs, a quarter of the multiplications
 * of a direct convolution. Sources: Winograd 1980; Lavin and Gray, Fast Algorithms for Convolutional Neural
 * Networks, 2016, arXiv 1509.09308 (the matrices). The 6x6 inputs of a tile are transformed to 36 values a
 * channel. Each value is multiplied by separate weights. The 36 products are transformed to the 16 outputs.
 * Layers that change the resolution read every input once and are plain matrix products.
 *
 * The operation after a layer's sums (activation, gate, difference) is applied while the sums are in
 * registers; see conv_end.
 */
#ifndef ENGINE_PROTECT_CONV_H
#define ENGINE_PROTECT_CONV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    conv_slack = 32,        /* columns that may be read and written beyond the last column */
    conv_tile_side = 4,     /* outputs of a tile in each direction */
    conv_tile_reads = 6,    /* inputs of a tile in each direction */
    conv_slice = 16,        /* outputs with contiguous weights; the number of outputs is a multiple of this */
    conv_channels_max = 64, /* of a 3x3 convolution, inputs and outputs */
    conv_rows_read = 6,     /* the largest number of rows that a step of the network reads */
    conv_rows_written = 4   /* and writes together */
};

enum conv_shape {
    CONV_3X3,  /* in tiles */
    CONV_DOWN, /* 2x2 of stride 2: two input rows give one row of half as many columns */
    CONV_UP    /* 1x1, each column gives 2x2: an input row gives two rows of twice as many columns */
};

/* The operation on a sum after its bias is added. */
enum conv_end {
    CONV_PLAIN,  /* output = sum */
    CONV_CHANGE, /* output = sum - before */
    CONV_LEAKY,  /* output = leaky ReLU of the sum */
    CONV_SPLIT,  /* as CONV_LEAKY, and gate = gate of the sum */
    CONV_FACTOR  /* output = sum * factor */
};

/*
 * One layer. The gate of p is .5 + slope * p, clamped to .01..1 and stored in 16 bits. Gates are used long
 * after they were computed, and the smaller size keeps more of them in the cache.
 */
struct conv {
    enum conv_shape shape;
    unsigned inputs;  /* channels: a multiple of 16, or the 3 of the picture */
    unsigned outputs; /* channels, padded to a multiple of conv_slice */
    float slope;
    float *weights; /* filled by conv_weights_fill */
    float *bias;    /* of the outputs; for CONV_UP, of each of the 2x2 places */
};

/* The rows of one row of tiles, or the input and output rows of a layer that changes the resolution. */
struct conv_rows {
    const float *inputs[conv_rows_read]; /* each from the leftmost input of column 0 */
    const float *before[conv_rows_written];
    const uint16_t *factors[conv_rows_written];
    float *outputs[conv_rows_written];
    uint16_t *gates[conv_rows_written];
};

struct conv_kernels {
    const char *name; /* of the instruction set */

    /* CONV_3X3: a row of count tiles.  scratch: conv_scratch_values values, aligned to 64 bytes. */
    void (*tiles)(const struct conv *conv, enum conv_end end, const struct conv_rows *rows, unsigned count,
                  float *scratch);

    /* CONV_DOWN: one output row of count columns from two input rows.  Supports CONV_LEAKY and CONV_SPLIT. */
    void (*down)(const struct conv *conv, enum conv_end end, const struct conv_rows *rows, unsigned count);

    /* CONV_UP: two output rows from count columns of one input row.  Supports CONV_FACTOR. */
    void (*up)(const struct conv *conv, const struct conv_rows *rows, unsigned count);
};

/* The size of the scratch of the tile kernels. */
size_t conv_scratch_values(void);

/*
 * Returns the kernels that this processor supports, the fastest first; the last kernel runs on every
 * processor. Returns NULL after the last.
 */
const struct conv_kernels *conv_kernels_at(unsigned place);

/* The numbers of values in a layer's weights and bias; both are multiples of 16. */
size_t conv_weights_count(const struct conv *conv);
size_t conv_bias_count(const struct conv *conv);

/*
 * Writes the weights of one output and input in the layout of the kernels.  taps: [3 rows][3 columns] for
 * CONV_3X3, [2][2] for CONV_DOWN.  For CONV_UP: one tap for each of the 2x2 places of a column.
 */
void conv_weights_fill(struct conv *conv, unsigned output, unsigned input, const float *taps);

#endif
