/*
 * The run of the anti-AI network over a picture.
 *
 * Two drawers look at the picture, the coarse one at half of its size.  Each goes from
 * the pixels down to an eighth of their resolution, where it answers with what an encoder
 * would make of them, and up again, drawing; at every resolution what is drawn passes
 * the gates of what was seen there.  First the coarse one draws from noise; then it looks
 * at the small picture with that laid over it, and draws from how far its answer moved.
 * What that makes at twice the size is laid over the picture, the fine one looks at it
 * with and without, and draws from how far its answer moved.  Brought nearer to the spectrum
 * of what hides it, that is the result.
 *
 * A picture is run in bands of columns, and within a band from the top down: every
 * step of these keeps the last rows of its output in a ring and computes the
 * next ones when a later step asks for one of them.  What a band has computed beyond
 * its end is left to the next one.  So nothing is computed twice, the result does
 * not depend on the bands, and memory grows with the height by a few columns alone.
 */
#ifndef ENGINE_PROTECT_PROTECT_NET_H
#define ENGINE_PROTECT_PROTECT_NET_H

#include <stdint.h>

#include <imgward/error.h>

#include "engine/protect/protect_spectra.h"
#include "engine/protect/protect_weights.h"

enum {
    net_block_px = 16,   /* what a picture is counted in, and one place of the noise */
    net_mask_px = 4,     /* a row of the mask is asked for in whole pieces of so many pixels */
    net_reach_px = 256,  /* how far left of the picture and above it the ends are asked, at most */
    net_band_blocks = 4, /* bands begin at multiples of so many blocks */
    net_small_px = 2     /* what a pixel of the small picture is, each way */
};

struct net {
    struct net_weights weights[net_network_count];
    struct grain grain; /* of the same file; not run here */
    struct spectra spectra;
    struct spectra_table tables[spectra_tables];
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
 * Where a run takes what it looks at from, and puts what it draws.  All but sink are
 * asked for what lies beyond the picture, too.  Pixels are three values; cell_px is 1, or
 * net_small_px where those of the small picture are meant, and what is counted in them.
 */
struct net_ends {
    /* Fills count pixels of RGB 0..1 of row y from x on. */
    void (*pixels)(void *data, unsigned cell_px, int64_t y, int64_t x, unsigned count, float *values);

    /* Fills how much count pixels hide, 0..1. */
    void (*mask)(void *data, unsigned cell_px, int64_t y, int64_t x, unsigned count, float *values);

    /* Fills count places of net_noise_channels of a row of blocks from column on. */
    void (*noise)(void *data, int64_t row, int64_t column, unsigned count, float *values);

    /* Takes a row of the unit perturbation, count pixels; it may change the values. */
    void (*sink)(void *data, int64_t y_px, int64_t x_px, unsigned count, float *values);
    void *data;
    enum net_network network; /* which one is run */
    float amplitude;          /* how far what is drawn moves what is looked at next, where the mask is 1 */
    float blue;     /* how many times as much is drawn of blue against yellow where the mask is low */
    float pale;     /* how much of colour along rows is left out */
    float level;    /* how much is left of level lines */
    unsigned table; /* of gains, below spectra_tables */
};

/* Runs a network over rows x columns blocks.  NO_MEMORY. */
enum iw_error net_run(const struct net *net, unsigned rows, unsigned columns,
                      const struct net_ends *ends) IW_MUST_USE;

#endif
