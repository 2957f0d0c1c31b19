/*
 * The underlay repeats the number in colour only and at low frequencies, for pictures that are
 * mostly flat. Codecs keep low frequencies where they remove texture, and the eye hardly sees
 * them in colour. It uses a separate lattice with chips of twice the size.
 */
#ifndef ENGINE_WATERMARK_UNDERLAY_H
#define ENGINE_WATERMARK_UNDERLAY_H

#include <imgward/error.h>
#include <imgward/image.h>
#include <imgward/watermark.h>

#include "engine/watermark/reader.h"

struct underlay {
    const struct image *image;
    bool is_marked; /* the picture has an underlay of this key */
    struct reader reader;
    struct plane plane; /* of colour, one chip a pixel */
    int period_px;
    float gain; /* of the pattern */
    const float *blue_tile;
    const float *red_tile;
};

/* True for a colour picture that is mostly flat, by the activity of its luma. */
bool underlay_is_for(const struct image *image, const struct plane *plane, const float *activity,
                     struct workspace *workspace);

/*
 * Prepare the underlay of a number, over an existing one or none. False: no memory. Call
 * underlay_fini in any case.
 */
bool underlay_prepare(struct underlay *underlay, const uint8_t key[32], uint64_t number,
                      struct workspace *workspace);
void underlay_fini(struct underlay *underlay);

/* Add row y of the underlay to a row of changes of Cb and Cr. */
void underlay_add(const struct underlay *underlay, uint32_t y, float *blue, float *red);

/* Prepare a reader of the underlay and the plane of a colour picture, or of its first rows. */
bool underlay_open(struct reader *reader, const struct image *image, uint32_t height_px,
                   const uint8_t key[32], struct plane *plane);

#endif
