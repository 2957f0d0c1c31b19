/*
 * 3x3 convolutions over rows of interleaved features, the inner loop of the
 * anti-AI network.  Written with GCC's vector extensions, once for each width
 * of vector; no code is generated at run time and every output is summed in
 * the same order wherever its column lies.
 */
#ifndef ENGINE_PROTECT_CONV_H
#define ENGINE_PROTECT_CONV_H

enum {
    conv_row_slack_px = 16 /* columns that may be read and written beyond the last one */
};

/* One layer: weights as [row of the kernel][column of the kernel, input][output]. */
struct conv {
    unsigned inputs;
    unsigned outputs; /* 32 or 48 */
    unsigned stride;  /* 1 or 2, of the columns; the caller picks the rows */
    float *weights;
    float *bias;
};

/*
 * Computes columns of one output row: out[column][outputs].  rows are the
 * three input rows, each at the leftmost input of column 0.  Without any
 * activation.  May write up to conv_row_slack_px columns more.
 */
typedef void (*conv_row_function)(const struct conv *conv, const float *const rows[3], float *out,
                                  unsigned columns);

/* The fastest that this processor runs. */
conv_row_function conv_row_pick(void);

#endif
