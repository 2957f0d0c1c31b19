/*
 * Reads a picture in perspective, from a pose that fits only a part of it.
 *
 * The plane is divided into blocks. Reading starts from a few neighbouring blocks in which the tones agree.
 * From there the region grows, and a projection is fitted to the phases of all tones in the region. If the
 * region covers the plane, the plane is resampled without the perspective and decoded.
 *
 * Method: region growing with a parametric motion model, as in B. D. Lucas and T. Kanade 1981,
 * on the phases of known tones.
 */
#ifndef ENGINE_WATERMARK_BEND_H
#define ENGINE_WATERMARK_BEND_H

#include <stdbool.h>

#include <fftw3.h>

#include "engine/watermark/reader.h"

enum { bend_block_px = 64 };

/* A wave along a block. */
struct bend_wave {
    double frequency; /* cycles a pixel */
    bool is_filled;
    float cosines[bend_block_px];
    float sines[bend_block_px];
};

struct bend {
    struct reader *reader;
    const struct whitened *whitened;
    const struct plane *plane;
    int across; /* blocks */
    int down;
    struct value (*tones)[lattice_tones]; /* of each block, relative to the block's centre and keyed phases */
    struct bend_wave (*waves)[2];         /* of each tone, across and down, of the last block */
    bool *is_inside;                      /* of each block: in the region */
    fftwf_complex *fit;
    fftwf_plan fit_plan; /* owned */
};

/*
 * Returns false if memory is short or the plane is too small. Call bend_fini in any case. bend borrows the
 * other arguments.
 */
bool bend_init(struct bend *bend, struct reader *reader, const struct whitened *whitened,
               const struct plane *plane);
void bend_fini(struct bend *bend);

/*
 * Reads near a pose. Returns true if a number was read; the reader holds the number. weights is the inverse
 * of the noise's amplitude at each tone.
 */
bool bend_read(struct bend *bend, const struct pose *pose, const float weights[lattice_tones]);

#endif
