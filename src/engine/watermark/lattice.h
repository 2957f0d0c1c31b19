/*
 * The pattern of the watermark, as the secret key draws it.
 *
 * The pattern repeats after LATTICE_PERIOD chips both ways, so that its
 * spectrum lives on the points k / LATTICE_PERIOD cycles a chip of a lattice.
 * Tones, of known phase, are for finding the pose; every other point of a band
 * carries two coded bits, in the sign of its real and of its imaginary part.
 * Knows no picture.
 */
#ifndef ENGINE_WATERMARK_LATTICE_H
#define ENGINE_WATERMARK_LATTICE_H

#include <stdint.h>

#include "engine/watermark/polar.h"
#include "engine/watermark/workspace.h"

#define LATTICE_PERIOD     101 /* chips; not a multiple of 8, where JPEG has its grid */
#define LATTICE_REACH      34  /* the greatest coordinate of a point in use */
#define LATTICE_TONES      24
#define LATTICE_POINTS_MAX 2048
#define LATTICE_RINGS      5

struct lattice_point {
    int16_t kx; /* 1 .. LATTICE_REACH: the other half plane mirrors it */
    int16_t ky;
    float amplitude;
    uint16_t bit[2]; /* which coded bits the real and the imaginary part carry */
    int8_t sign[2];  /* the keyed sign of each */
    uint8_t ring;    /* 0 .. LATTICE_RINGS - 1, by frequency */
};

/* The data points of luma or of chroma; the pattern has a variance of 1. */
struct lattice_band {
    unsigned count;
    struct lattice_point points[LATTICE_POINTS_MAX];
};

struct lattice_tone {
    int16_t kx;
    int16_t ky;
    float amplitude;
    float cosine; /* of its phase */
    float sine;
};

struct lattice {
    struct lattice_band luma;
    struct lattice_band chroma;
    struct lattice_tone tones[LATTICE_TONES]; /* together of a variance of 1 */
    uint64_t number_mask;                     /* added to the number, so that every number looks alike */
};

/*
 * Two patterns of a key that know nothing of each other: the one of luma and Cb,
 * and the underlay, of Cb (as luma) and Cr (as chroma) at low frequencies.
 */
enum lattice_form { LATTICE_OVERLAY, LATTICE_UNDERLAY };

/* Draws the pattern of a key. */
void lattice_init(struct lattice *lattice, const uint8_t key[32], enum lattice_form form);

/* What a tile shows: a word in a band with a weight, tones with another. */
struct lattice_content {
    const struct lattice_band *band;
    const int8_t *word;
    float band_weight;
    float tone_weight;
};

/*
 * One period of the pattern as side_px by side_px samples; a sample lies at the
 * middle of its pixel.  NULL when there is no memory.  The workspace's.
 */
float *lattice_tile(const struct lattice *lattice, const struct lattice_content *content, int side_px,
                    struct workspace *workspace);

#endif
