/*
 * The underlay repeats the number in colour only and at low frequencies. Codecs and small copies keep low
 * frequencies where they remove texture, and the eye hardly sees them in colour. The underlay uses a
 * separate lattice with chips of twice the size.
 */
#ifndef ENGINE_WATERMARK_UNDERLAY_H
#define ENGINE_WATERMARK_UNDERLAY_H

#include "base/error.h"
#include "engine/image.h"
#include "engine/watermark/reader.h"
#include "engine/watermark/watermark.h"

/*
 * Strength: FULL for pictures that are mostly flat or almost without colour, FAINT for other colour
 * pictures.
 */
enum underlay_level { UNDERLAY_NONE, UNDERLAY_FAINT, UNDERLAY_FULL };

struct underlay {
    const struct image *image;
    enum underlay_level level;
    bool is_compact; /* in cells, see cells.h; set by the caller */
    bool is_marked;  /* the picture has an underlay of this key */
    struct reader reader;
    struct plane plane; /* of colour, one chip a pixel */
    int period_px;
    float gain; /* of the pattern */
    const float *blue_tile;
    const float *red_tile;
};

/* Returns the level for a picture, by the activity of luma and of Cb. */
enum underlay_level underlay_level(const struct image *image, const struct plane *plane,
                                   const float *activity, struct workspace *workspace);

/*
 * Prepares the underlay of a number, which may replace an existing underlay. Over a full underlay the level
 * becomes FULL, because a marked drawing is no longer flat. Returns false if memory is short. Call
 * underlay_fini in any case.
 */
bool underlay_prepare(struct underlay *underlay, const uint8_t key[32], uint64_t number,
                      struct workspace *workspace);
void underlay_fini(struct underlay *underlay);

/* Adds row y of the underlay to a row of changes of Cb and Cr. */
void underlay_add(const struct underlay *underlay, uint32_t y, float *blue, float *red);

/* Prepares a reader of the underlay and the plane of a colour picture, or of the first rows. */
bool underlay_open(struct reader *reader, const struct image *image, uint32_t height_px,
                   const uint8_t key[32], struct plane *plane);

#endif
