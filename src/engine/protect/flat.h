/*
 * The change of a drawing, in a form that PNG and WebP code in few bits.
 *
 * Deflate codes what repeats. A pixel of a flat colour has one of two changes, and along a row the choice
 * repeats after the width of a tile. So a flat colour becomes two colours, and a row of a flat area costs one
 * tile. Other pixels, outlines and texture, do not change.
 *
 * For each colour, the two changes are the means of the wanted change in two groups (Lloyd: Least squares
 * quantization in PCM, IEEE Trans. Information Theory 28(2), 1982).
 */
#ifndef ENGINE_PROTECT_FLAT_H
#define ENGINE_PROTECT_FLAT_H

#include "base/error.h"
#include "engine/image.h"

enum { flat_forms = 4 };

struct flat;

/*
 * Finds the flat colours of a picture of 8 bits. *flat is NULL if most of the picture is not flat.
 * NO_MEMORY. The caller frees it.
 */
enum iw_error flat_new(struct flat **flat, const struct image *image) IW_MUST_USE;
void flat_free(struct flat *flat);

/* Takes the wanted changes of a row, in levels, a value for each colour. After all rows, flat_split. */
void flat_sample(struct flat *flat, uint32_t y, const float *wanted);
void flat_split(struct flat *flat);

/* Starts a form of the change: 0 repeats least and costs most. Then flat_lay takes each row, from the top. */
void flat_begin(struct flat *flat, unsigned form);
void flat_lay(struct flat *flat, uint32_t y, const float *wanted);

/*
 * Rounds the changes to whole levels, within the range and the room beyond the nearer end, in levels. After
 * it, a measurement passes the power of each cell to flat_seen, by a pixel of the cell. Then flat_adjust
 * brings the visibility of each colour closer to the budget. flat_choose takes the best scales so far, times
 * a factor.
 */
void flat_round(struct flat *flat, float room);
void flat_seen(struct flat *flat, uint32_t x, uint32_t y, float power);
void flat_adjust(struct flat *flat, double budget);
void flat_choose(struct flat *flat, double factor);

/* Writes the changes of a row. */
void flat_row(const struct flat *flat, uint32_t y, float *changes);

#endif
