/*
 * 3x3 convolutions over rows of interleaved features, the inner loop of the
 * anti-AI network.  Written with GCC's vector extensions, once for each width
 * of vector; no code is generated at run time.
 *
 * Layers of stride 1 go tile by tile of 4x4 outputs by minimal filtering
 * F(4x4,3x3), a quarter of the multiplications of the direct way (Winograd 1980;
 * the matrices are those of Lavin and Gray, Fast Algorithms for Convolutional
 * Neural Networks, 2016, arXiv 1509.09308): the 6x6 inputs of a tile become 36
 * values a channel, each of which meets its own 32x32 weights, and the 36
 * products become the 16 outputs.
 */
#ifndef ENGINE_PROTECT_CONV_H
#define ENGINE_PROTECT_CONV_H

#include <stdbool.h>
#include <stddef.h>

enum {
    conv_slack = 32,    /* columns that may be read and written beyond the last one */
    conv_tile_side = 4, /* outputs of a tile, each way */
    conv_tile_reads = 6 /* inputs of a tile, each way */
};

/* One layer. */
struct conv {
    unsigned inputs;  /* a multiple of 8, at most 56 */
    unsigned outputs; /* 32 or 48 */
    unsigned stride;  /* 1: by tiles; 2: direct, of the columns; the caller picks the rows */
    float *weights;   /* conv_weights_fill */
    float *bias;
};

/* The rows of one row of tiles. */
struct conv_quad {
    const float *inputs[conv_tile_reads];   /* each from the leftmost input of column 0 on */
    const float *residuals[conv_tile_side]; /* added to the outputs; all NULL: none */
    float *outputs[conv_tile_side];
    bool is_relu; /* negative outputs become 0 */
};

struct conv_kernels {
    const char *name; /* of the processor's instructions */

    /*
     * Direct: out[column][outputs] from three input rows, each at the leftmost
     * input of column 0.  No activation.
     */
    void (*row)(const struct conv *conv, const float *const rows[3], float *out, unsigned columns);

    /* A row of tiles; scratch: conv_scratch_values, aligned to 64 bytes. */
    void (*tiles)(const struct conv *conv, const struct conv_quad *quad, unsigned tiles, float *scratch);
};

/* What the kernels need beside rows and weights. */
size_t conv_scratch_values(void);

/* The kernels that this processor runs, the fastest first, the last for every processor; NULL: no more. */
const struct conv_kernels *conv_kernels_at(unsigned place);

/* How many values conv_weights_fill writes. */
size_t conv_weights_count(const struct conv *conv);

/*
 * Writes the weights of one output and input in the layout of the kernels:
 * taps[3 rows][3 columns].
 */
void conv_weights_fill(struct conv *conv, unsigned output, unsigned input, const float taps[9]);

#endif
