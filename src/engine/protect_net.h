/*
 * The run of the anti-AI network over a picture.
 *
 * The network goes from the pixels down to an eighth of the resolution, where it
 * answers with what an encoder would make of the picture, and up again, drawing;
 * at every resolution what is drawn passes the gates of what was seen there.
 * It does so in two passes: first it draws from noise; then it looks at the
 * picture with that laid over it, and draws from how far its answer moved.
 *
 * A picture is run in bands of columns, and within a band from the top down: every
 * step of both passes keeps the last rows of its output in a ring and computes the
 * next ones when a later step asks for one of them.  What a band has computed beyond
 * its end is left to the next one.  So nothing is computed twice, the result does
 * not depend on the bands, and memory grows with the height by a few columns alone.
 */
#ifndef ENGINE_PROTECT_NET_H
#define ENGINE_PROTECT_NET_H

#include <stdint.h>

#include <imgward/error.h>

#include "engine/protect_weights.h"

enum {
    net_block_px = 8,   /* what a picture is counted in, and one place of the noise */
    net_draw_px = 4,    /* how wide a piece what is drawn comes in */
    net_reach_px = 96,  /* how far beyond the picture's left and right what is shown is asked for */
    net_band_blocks = 4 /* bands begin at multiples of so many blocks */
};

struct net {
    struct net_weights weights;
    const struct conv_kernels *kernels;
    unsigned
        band_blocks; /* the widest band, a multiple of net_band_blocks; changes the speed, not the result */
};

/* What <imgward/protect.h> hands out; open here so that tests run it with other kernels. */
struct protect {
    struct net net;
};

/* Reads a weights file; WEIGHTS_INVALID with a sentence in *why, or NO_MEMORY.  Freed by net_fini. */
enum iw_error net_init(struct net *net, const uint8_t *bytes, size_t size, const char **why) IW_MUST_USE;
void net_fini(struct net *net);

/*
 * Where a run takes what it looks at from, and puts what it draws.  All but sink
 * are asked for what lies beyond the picture, too.  What is drawn comes as count
 * places of two rows of net_raw_row values, of which the first six are two pixels
 * of RGB, unbounded: y_px, the row of the upper ones, is even, and x_px a multiple
 * of net_draw_px, count of half as many.
 */
struct net_ends {
    /* Fills count pixels of RGB 0..1 of row y_px from x_px on. */
    void (*pixels)(void *data, int64_t y_px, int64_t x_px, unsigned count, float *values);

    /* Fills count places of net_noise_channels of a row of blocks from column on. */
    void (*noise)(void *data, int64_t row, int64_t column, unsigned count, float *values);

    /*
     * Fills two rows of pixels of the picture that a pass has drawn on; up
     * to two values more of each may be written.
     */
    void (*shown)(void *data, int64_t y_px, int64_t x_px, unsigned count, const float *values,
                  float *const rows[2]);

    /* Takes what the last pass drew. */
    void (*sink)(void *data, int64_t y_px, int64_t x_px, unsigned count, const float *values);
    void *data;
};

/* Runs the network over rows x columns blocks.  NO_MEMORY. */
enum iw_error net_run(const struct net *net, unsigned rows, unsigned columns,
                      const struct net_ends *ends) IW_MUST_USE;

#endif
