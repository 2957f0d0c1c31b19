/*
 * From the spectrum of a suspect on the lattice to the number: the noise is
 * read between the lattice's points, the signal's strength from how much more
 * there is on them, and the coded bits are weighed by both.
 */
#ifndef ENGINE_WATERMARK_SOFT_H
#define ENGINE_WATERMARK_SOFT_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/watermark/lattice.h"
#include "engine/watermark/polar.h"
#include "engine/watermark/spectrum.h"

#define SOFT_SIDE (2 * LATTICE_REACH + 2)

/* A spectrum on the lattice and between its points, phases relative to the pattern's origin. */
struct soft_field {
    struct value on[LATTICE_REACH + 1][SOFT_SIDE]; /* at (kx, ky - LATTICE_REACH) */
    float between[LATTICE_REACH + 1][SOFT_SIDE];   /* power half a step further both ways */
};

struct soft_reader;

struct soft_reader *soft_new(struct workspace *workspace);

/* Whether the point, or the half point after it, is of use to a band that ends at radius. */
bool soft_is_needed(int kx, int ky, double radius);

/* The noise at a point of the lattice: the mean power of the half points around it. */
float soft_noise_around(const struct soft_field *field, int kx, int ky);

/* A field with the band that it is of. */
struct soft_source {
    const struct lattice_band *band;
    const struct soft_field *field;
    bool is_same; /* another part of the picture: what it says adds to the source before, which has the same
                     band */
};

/*
 * Decodes what so many sources say together.  True when the check passes and the
 * correlation of the word with the picture is beyond chance.
 */
bool soft_read(struct soft_reader *reader, const struct soft_source *sources, unsigned count,
               uint64_t number_mask, struct polar *polar, uint64_t *number, double *correlation);

/* Measured energy to noise, in dB a bit of 88, when the word is known: for tests and for the embedder. */
double soft_quality_db(struct soft_reader *reader, const int8_t word[POLAR_LENGTH]);

#endif
