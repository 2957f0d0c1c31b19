/*
 * The share of a protection: how far a change moves an encoder's latent code, relative to the wanted change
 * without limits.  Only both changes are known.  Encoders follow coarse changes more than fine
 * ones, so that the sums of each octave have a factor.  Octaves are means of 2x2 samples (Haar 1910).
 *
 * An encoder follows the part of a change that has the form of the wanted change, and a little the rest:
 *     share^2 = (sum of factor * form / sum of factor * wanted)^2
 *             + share_rest * sum of factor * rest / sum of factor * wanted
 * The rest of an octave counts up to four times its part with the form. The squares of an encoding without a
 * change are not in it, because its noise is no protection.
 * tools/train/protection_fit.py fits the factors, and states the error.
 */
#ifndef ENGINE_PROTECT_SHARE_H
#define ENGINE_PROTECT_SHARE_H

#include <stddef.h>

enum { share_octaves = 7, share_planes = 3, share_kinds = 2 };

/* Sums of the products of two changes, by octave, of luma and of colour. */
struct share_sums {
    double wanted[share_octaves][share_kinds];  /* squares of the wanted change */
    double form[share_octaves][share_kinds];    /* products of the wanted change and the change */
    double squares[share_octaves][share_kinds]; /* of the change */
    double bounded[share_octaves][share_kinds]; /* form, with the wanted change after it was limited */
};

/* Rows of both changes, of a run over a picture. */
struct share_level {
    size_t width;
    unsigned rows; /* so far */
    float *wanted[share_planes], *change[share_planes];
};

struct share_run {
    unsigned planes; /* 1 or 3 */
    struct share_level levels[share_octaves];
    struct share_sums sums;
};

/* Floats of memory that a run needs, and the start of a run in this memory, which has finite values. */
size_t share_floats(size_t width_px, unsigned colors);
void share_begin(struct share_run *run, size_t width_px, unsigned colors, float *memory);

/* Adds a row of both changes, from the top: first the wanted one.  One or three colours, in the same unit. */
void share_wanted(struct share_run *run, const float *wanted);
void share_change(struct share_run *run, const float *change);

/* Returns the sums of the bands: each is an octave without the coarser ones. */
struct share_sums share_end(const struct share_run *run);

/*
 * Returns the share of a change, 0..1.  The wanted change of sums may be limited; whole has it without
 * limits. The strength's wanted change is scale times that of sums, and whole_scale times that of whole.
 */
double share_estimate(const struct share_sums *sums, double scale, const struct share_sums *whole,
                      double whole_scale);

#endif
