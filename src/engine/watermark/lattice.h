/*
 * The pattern of the watermark. It is derived from the secret key and does not depend on the picture.
 *
 * The pattern repeats after lattice_period chips both ways, so its spectrum lies on the points k /
 * lattice_period (cycles a chip) of a lattice. Tones of known phase serve to find the pose. Each point of a
 * band that is not a tone carries two coded bits, in the signs of the real and the imaginary part.
 */
#ifndef ENGINE_WATERMARK_LATTICE_H
#define ENGINE_WATERMARK_LATTICE_H

#include <stdint.h>

#include "engine/watermark/polar.h"
#include "engine/watermark/workspace.h"

/* No published source; `./dev bench watermark` measures the effect. */
enum {
    lattice_period = 101, /* chips; not a multiple of 8, the period of JPEG's grid */
    lattice_reach = 34,   /* the greatest coordinate of a point in use */
    lattice_tones = 24,
    lattice_points_max = 2048,
    lattice_rings = 5
};

struct lattice_point {
    int16_t kx; /* 1 .. lattice_reach; the other half plane is the conjugate */
    int16_t ky;
    float amplitude;
    uint16_t bit[2]; /* coded bits in the real and in the imaginary part */
    int8_t sign[2];  /* keyed, of each part */
    uint8_t ring;    /* 0 .. lattice_rings - 1, by frequency */
};

/* The data points of luma or of chroma. The pattern's variance is 1. */
struct lattice_band {
    unsigned count;
    struct lattice_point points[lattice_points_max];
};

struct lattice_tone {
    int16_t kx;
    int16_t ky;
    float amplitude;
    float cosine; /* of the tone's phase */
    float sine;
};

struct lattice {
    struct lattice_band luma;
    struct lattice_band chroma;
    struct lattice_tone tones[lattice_tones]; /* total variance 1 */
    uint64_t number_mask;                     /* XORed with the number, so that all numbers look alike */
};

/*
 * Two independent patterns of a key. The overlay uses luma and Cb. The underlay uses low
 * frequencies of Cb (as luma) and Cr (as chroma).
 */
enum lattice_form { LATTICE_OVERLAY, LATTICE_UNDERLAY };

/* Derives the pattern of a key. */
void lattice_init(struct lattice *lattice, const uint8_t key[32], enum lattice_form form);

/* Content of a tile: a word in a band, and tones, each with a weight. */
struct lattice_content {
    const struct lattice_band *band;
    const int8_t *word;
    float band_weight;
    float tone_weight;
};

/*
 * Makes one period of the pattern as side_px by side_px samples; each sample lies at the centre of a pixel.
 * Returns NULL if memory is short. The tile belongs to the workspace.
 */
float *lattice_tile(const struct lattice *lattice, const struct lattice_content *content, int side_px,
                    struct workspace *workspace);

#endif
