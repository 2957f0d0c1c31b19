/*
 * Runs the anti-AI network over a picture.
 *
 * Two drawers read the picture, the coarse one at half size.  Each encodes the pixels down to an eighth of
 * their resolution, where it predicts an encoder's features (the answer).  Then it decodes up again and
 * draws.  At every resolution the encoder's features gate the decoder's.  The coarse drawer first draws from
 * noise.  Then it reads the small picture with that perturbation added, and draws from the change of its
 * answer.  The result is upsampled and added to the picture.  The fine drawer reads the picture with and
 * without it, and draws from the change of its answer.
 *
 * A picture runs from the top down. Every step keeps the last rows of its output in a line buffer. The next
 * rows are computed when a later step reads one of them, so nothing is computed twice.
 */
#ifndef ENGINE_PROTECT_NET_H
#define ENGINE_PROTECT_NET_H

#include <stdint.h>

#include "base/error.h"
#include "engine/protect/weights.h"

enum {
    net_block_px = 16,  /* the unit of a picture's size, and one place of the noise */
    net_reach_px = 256, /* largest distance left of the picture and above it for which the ends are asked */
    net_small_px = 2    /* side of a pixel of the small picture */
};

struct net {
    struct net_weights weights;
    const struct conv_kernels *kernels;
};

/* Reads a weights file.  Errors: WEIGHTS_INVALID with a sentence in *why, or NO_MEMORY.  Freed by
 * net_fini. */
enum iw_error net_init(struct net *net, const uint8_t *bytes, size_t size, const char **why) IW_MUST_USE;
void net_fini(struct net *net);

/*
 * The sources that a run reads and the sink of its result. All except sink are also asked for places beyond
 * the picture. A pixel is three values. The parameter cell_px is 1 or, for the small picture, net_small_px;
 * coordinates and counts are in pixels of that picture.
 */
struct net_ends {
    /* Fills count pixels of RGB 0..1 of row y, from x. */
    void (*pixels)(void *data, unsigned cell_px, int64_t y, int64_t x, unsigned count, float *values);

    /* Fills count places of net_noise_channels of a row of blocks, from column. */
    void (*noise)(void *data, int64_t row, int64_t column, unsigned count, float *values);

    /* Takes the next row of the result, of any scale; it may change the values. */
    void (*sink)(void *data, unsigned y_px, float *values);
    void *data;
};

/* Runs the network over rows x columns blocks.  NO_MEMORY. */
enum iw_error net_run(const struct net *net, unsigned rows, unsigned columns,
                      const struct net_ends *ends) IW_MUST_USE;

#endif
