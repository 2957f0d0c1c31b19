/*
 * The underlay: the number once more, in colour alone and at low frequencies,
 * for pictures that are flat in most places.  A codec keeps there what it wipes
 * off as texture, and the eye hardly sees it.  Its pattern is that of a lattice
 * of its own with chips of twice the size.
 */
#ifndef ENGINE_WATERMARK_UNDERLAY_H
#define ENGINE_WATERMARK_UNDERLAY_H

#include <imgward/error.h>
#include <imgward/image.h>
#include <imgward/watermark.h>

#include "engine/watermark/reader.h"

struct underlay {
    const struct image *image;
    bool is_marked; /* there is an underlay of the key already */
    struct reader reader;
    struct plane plane; /* of colour, a chip a pixel */
    int period_px;
    float gain; /* of the pattern */
    const float *blue_tile;
    const float *red_tile;
};

/* Whether a picture is one for the underlay: in colour, and flat in most places by the activity of its luma.
 */
bool underlay_is_for(const struct image *image, const struct plane *plane, const float *activity);

/*
 * Makes the underlay of a number ready, over one that is there already or not.
 * False when there is no memory; underlay_fini is due in any case.
 */
bool underlay_prepare(struct underlay *underlay, const uint8_t key[32], uint64_t number,
                      struct workspace *workspace);
void underlay_fini(struct underlay *underlay);

/* Adds row y of the underlay to a row of changes of Cb and Cr. */
void underlay_add(const struct underlay *underlay, uint32_t y, float *blue, float *red);

/* Makes a reader of the underlay ready and takes the plane of a picture in colour, or of its first rows. */
bool underlay_open(struct reader *reader, const struct image *image, uint32_t height_px,
                   const uint8_t key[32], struct plane *plane);

#endif
