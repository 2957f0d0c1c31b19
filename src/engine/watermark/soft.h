/*
 * Soft decoding: from a spectrum on the lattice to the number. The noise is measured between the lattice's
 * points, the signal by the excess on the points. Both determine the weights of the coded bits.
 */
#ifndef ENGINE_WATERMARK_SOFT_H
#define ENGINE_WATERMARK_SOFT_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/watermark/candidates.h"
#include "engine/watermark/lattice.h"
#include "engine/watermark/polar.h"
#include "engine/watermark/spectrum.h"

enum { soft_side = 2 * lattice_reach + 2 };

/* A spectrum on the lattice and between its points, with phases relative to the pattern's origin. */
struct soft_field {
    struct value on[lattice_reach + 1][soft_side]; /* at (kx, ky - lattice_reach) */
    float between[lattice_reach + 1][soft_side];   /* power half a step further in both directions */
    float noise[lattice_reach + 1][soft_side]; /* at each point: the mean power of the half points around */
};

struct soft_reader;

struct soft_reader *soft_new(struct workspace *workspace);

/* Returns true if a band of this radius needs the point or the half point after it. */
bool soft_is_needed(int kx, int ky, double radius);

/* Computes the noise of a field from the powers between its points. Powers of 0 are not known. */
void soft_noise_fill(struct soft_field *field);

/* A field and its band. */
struct soft_source {
    const struct lattice_band *band;
    const struct soft_field *field;
    bool is_same; /* same parts as the source before, from other pixels */
};

/*
 * Decodes the sources together. Returns true if the CRC passes and the correlation of the word exceeds the
 * threshold, or if the word of a candidate exceeds that of candidates. candidates may be NULL.
 */
bool soft_read(struct soft_reader *reader, const struct soft_source *sources, unsigned count,
               uint64_t number_mask, struct polar *polar, struct candidates *candidates, uint64_t *number,
               double *correlation);

#endif
