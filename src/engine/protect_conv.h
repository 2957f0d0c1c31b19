/*
 * 3x3 convolutions over rows of interleaved features, the inner loop of the
 * anti-AI network.  Written with GCC's vector extensions, once for each width
 * of vector; no code is generated at run time.
 *
 * Layers of stride 1 go four columns at a time by minimal filtering F(4,3) along
 * the row, half the multiplications of the direct way (Winograd 1980; the
 * matrices are those of Lavin and Gray, Fast Algorithms for Convolutional Neural
 * Networks, 2015): a row is transformed once and used for three output rows.
 */
#ifndef ENGINE_PROTECT_CONV_H
#define ENGINE_PROTECT_CONV_H

#include <stddef.h>

enum {
    conv_slack = 16,        /* columns, or groups, that may be read and written beyond the last one */
    conv_group_columns = 4, /* outputs of one group */
    conv_group_planes = 6   /* values that stand for the six inputs of one group */
};

/* One layer. */
struct conv {
    unsigned inputs;
    unsigned outputs; /* 32 or 48 */
    unsigned stride;  /* 1: by groups; 2: direct, of the columns; the caller picks the rows */
    float *weights;   /* conv_weights_fill */
    float *bias;
};

struct conv_kernels {
    /*
     * Direct: out[column][outputs] from three input rows, each at the leftmost
     * input of column 0.  No activation.
     */
    void (*row)(const struct conv *conv, const float *const rows[3], float *out, unsigned columns);

    /*
     * Transforms groups groups of a row that begins at the leftmost input of
     * column 0 into planes[plane][group][channels], plane_values apart.
     */
    void (*transform)(const float *row, unsigned channels, unsigned groups, float *planes,
                      size_t plane_values);

    /* out[column][outputs] from three transformed rows.  No activation. */
    void (*groups)(const struct conv *conv, const float *const rows[3], size_t plane_values, float *out,
                   unsigned groups);
};

/* The fastest kernels that this processor runs. */
const struct conv_kernels *conv_kernels_pick(void);

/* Those that every processor runs, for comparison. */
const struct conv_kernels *conv_kernels_plain(void);

/* How many values conv_weights_fill writes. */
size_t conv_weights_count(const struct conv *conv);

/*
 * Writes the weights of one output and input in the layout of the kernels:
 * taps[3 rows][3 columns].
 */
void conv_weights_fill(struct conv *conv, unsigned output, unsigned input, const float taps[9]);

#endif
