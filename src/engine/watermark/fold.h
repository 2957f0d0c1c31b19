/*
 * Spectrum of a plane that is aligned with the pattern, at one chip a pixel. All periods are
 * summed first; the transform is computed only on the lattice's points and half-way between
 * them.
 */
#ifndef ENGINE_WATERMARK_FOLD_H
#define ENGINE_WATERMARK_FOLD_H

#include "engine/watermark/lattice.h"
#include "engine/watermark/soft.h"
#include "engine/watermark/workspace.h"

enum {
    fold_side = 2 * lattice_period, /* half points repeat after two periods */
    fold_lanes = 40                 /* lattice_reach + 1 frequencies, padded to whole vectors of 8 floats */
};

/* Cosines and sines of even and odd multiples of half a lattice step, at the middles of a period's pixels. */
struct fold_basis {
    float cosine[2][lattice_period][fold_lanes];
    float sine[2][lattice_period][fold_lanes];
};

struct fold {
    float cells[fold_side * fold_side];
};

/* Scratch: a period with its spectrum along x. */
struct fold_scratch {
    float period[lattice_period * lattice_period];
    float real[lattice_period][fold_lanes];
    float imaginary[lattice_period][fold_lanes];
};

void fold_basis_fill(struct fold_basis *basis);

/* Adds row y of a plane to the fold, which starts as zeros. */
void fold_row(struct fold *fold, int y, const float *row, int width);

/* Computes the spectrum within radius (lattice units) of the origin. */
void fold_field(const struct fold *fold, const struct fold_basis *basis, double radius,
                struct fold_scratch *scratch, struct soft_field *field);

#endif
