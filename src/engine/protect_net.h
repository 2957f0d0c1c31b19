/*
 * The anti-AI network: its weights and its run over a picture.
 *
 * The network works on blocks of 4x4 pixels ("columns" and "rows" here count
 * blocks).  A picture is run in bands of columns, and within a band from the top
 * down: every layer keeps the last few rows of its output in a ring and computes
 * the next four when a later layer asks for one of them (the input and the layer
 * that skips rows: the next one).  So memory does not grow with the height, no
 * row is computed twice, and the result does not depend on the bands.
 */
#ifndef ENGINE_PROTECT_NET_H
#define ENGINE_PROTECT_NET_H

#include <stddef.h>
#include <stdint.h>

#include <imgward/error.h>

#include "engine/protect_conv.h"

enum {
    net_block_px = 4,
    net_noise_channels = 8,
    net_color_values = 48, /* 4 rows of 4 pixels of RGB */
    net_input_channels = net_color_values + net_noise_channels,
    net_width = 32,
    net_layer_count = 10,
    net_stage_count = net_layer_count + 1,
    net_margin_blocks = 64 /* a source is asked for at most so many more than the picture's columns */
};

struct net {
    struct conv layers[net_layer_count];
    const struct conv_kernels *kernels;
    float *memory;         /* of all layers */
    unsigned band_columns; /* of a band, a multiple of 16; changes the speed, not the result */
};

/* What <imgward/protect.h> hands out; open here so that tests run it with other kernels. */
struct protect {
    struct net net;
};

/* Reads a weights file; WEIGHTS_INVALID with a sentence in *why, or NO_MEMORY.  Freed by net_fini. */
enum iw_error net_init(struct net *net, const uint8_t *bytes, size_t size, const char **why) IW_MUST_USE;
void net_fini(struct net *net);

/*
 * Fills count blocks of one input row from column first on (both may lie
 * beyond the picture): net_input_channels values a block, the pixels as
 * [row][column][RGB] minus a half, then the noise.
 */
typedef void (*net_source)(void *data, int64_t row, int64_t first, unsigned count, float *values);

/* Takes one output row of count blocks from column first on: net_color_values a block, unbounded. */
typedef void (*net_sink)(void *data, int64_t row, int64_t first, unsigned count, const float *values);

/* Runs the network over rows x columns blocks.  NO_MEMORY. */
enum iw_error net_run(const struct net *net, unsigned rows, unsigned columns, net_source source,
                      net_sink sink, void *data) IW_MUST_USE;

#endif
