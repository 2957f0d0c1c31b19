/*
 * The spectrum of a plane at any frequency, by one padded FFT and a few taps per frequency.
 *
 * Method: A. Dutt and V. Rokhlin, "Fast Fourier Transforms for Nonequispaced Data", SIAM J.
 * Sci. Comput. 14(6), 1993.
 * Kernel width: P. J. Beatty et al., "Rapid Gridding Reconstruction with a Minimal Oversampling
 * Ratio", IEEE Trans. Med. Imaging 24(6), 2005.
 */
#ifndef ENGINE_WATERMARK_SPECTRUM_H
#define ENGINE_WATERMARK_SPECTRUM_H

#include <stdbool.h>

#include <fftw3.h>

#include "engine/watermark/workspace.h"

enum {
    spectrum_taps = 4,
    spectrum_batch = 40 /* frequencies that are read together */
};

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
    double scale; /* from kernel sums to the spectrum */
};

/* Transforms samples and modifies them. Returns false if memory is short. */
bool spectrum_make(float *samples, int width, int height, struct workspace *workspace,
                   struct spectrum *spectrum);

/*
 * Returns the sum of samples * exp(-2 pi j f x). x is relative to the plane's centre; f is in cycles a
 * sample, |f| <= 1/2.
 */
struct value spectrum_at(const struct spectrum *spectrum, double fx, double fy);

/*
 * The same at up to spectrum_batch frequencies, relative to the sample at place 0, and the phase from that
 * sample to the centre. The centre of a plane of even width lies half a sample after it.
 */
void spectrum_corners_take(const struct spectrum *spectrum, const double *fx, const double *fy,
                           unsigned count, struct value *values);
double spectrum_corner_turn(const struct spectrum *spectrum, double fx, double fy);

#endif
