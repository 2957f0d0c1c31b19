/*
 * A plane of one chip a pixel that lies as the pattern does: all its periods
 * are laid over each other, and the spectrum of that is taken where the lattice
 * needs it, on its points and half-way between.
 */
#ifndef ENGINE_WATERMARK_FOLD_H
#define ENGINE_WATERMARK_FOLD_H

#include "engine/watermark/lattice.h"
#include "engine/watermark/soft.h"
#include "engine/watermark/workspace.h"

#define FOLD_SIDE  (2 * LATTICE_PERIOD) /* two periods: what half points see */
#define FOLD_LANES 40                   /* LATTICE_REACH + 1 frequencies, and room to fill vectors */

/* Cosines and sines of even and odd multiples of half a lattice step, at the middles of a period's pixels. */
struct fold_basis {
    float cosine[2][LATTICE_PERIOD][FOLD_LANES];
    float sine[2][LATTICE_PERIOD][FOLD_LANES];
};

struct fold {
    float cells[FOLD_SIDE * FOLD_SIDE];
};

/* The fold's scratch: a period with its spectrum along x. */
struct fold_scratch {
    float period[LATTICE_PERIOD * LATTICE_PERIOD];
    float real[LATTICE_PERIOD][FOLD_LANES];
    float imaginary[LATTICE_PERIOD][FOLD_LANES];
};

void fold_basis_fill(struct fold_basis *basis);

/* Lays row y of a plane over the others; the fold begins as zeros. */
void fold_row(struct fold *fold, int y, const float *row, int width);

/* The spectrum within radius (lattice units) of the middle. */
void fold_field(const struct fold *fold, const struct fold_basis *basis, double radius,
                struct fold_scratch *scratch, struct soft_field *field);

#endif
