/*
 * The spectrum of a plane at any frequency, not only at the bins of an FFT: one
 * padded FFT, then a few taps a frequency.
 *
 * A. Dutt and V. Rokhlin, "Fast Fourier Transforms for Nonequispaced Data",
 * SIAM J. Sci. Comput. 14(6), 1993; the kernel's width: P. J. Beatty et al.,
 * "Rapid Gridding Reconstruction with a Minimal Oversampling Ratio", IEEE
 * Trans. Med. Imaging 24(6), 2005.
 */
#ifndef ENGINE_WATERMARK_SPECTRUM_H
#define ENGINE_WATERMARK_SPECTRUM_H

#include <stdbool.h>

#include <fftw3.h>

#include "engine/watermark/workspace.h"

#define SPECTRUM_TAPS 4

struct value {
    float real;
    float imaginary;
};

struct spectrum {
    int width;
    int height;
    int columns; /* of the padded FFT */
    int rows;
    fftwf_complex *grid; /* rows * (columns / 2 + 1) */
    const float *kernel;
    double scale; /* from sums over the kernel to the spectrum */
};

/* Transforms samples (which are scaled on the way).  False when there is no memory. */
bool spectrum_make(float *samples, int width, int height, struct workspace *workspace,
                   struct spectrum *spectrum);

/* The sum of samples * exp(-2 pi j f x), x from the middle of the plane, f in cycles a sample, |f| <= 1/2. */
struct value spectrum_at(const struct spectrum *spectrum, double fx, double fy);

/* Its squared magnitude, for less. */
float spectrum_power_at(const struct spectrum *spectrum, double fx, double fy);

#endif
