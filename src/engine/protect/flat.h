/*
 * The change of a drawing, in a form that PNG and WebP code in few bits.
 *
 * Deflate codes what repeats. A pixel of a flat colour has one of four changes (or two), and along a row
 * the choice repeats after the width of a tile. So a flat colour becomes four colours, and a row of a flat
 * area costs one tile. Other pixels, outlines and texture, do not change.
 *
 * The changes of a colour stand for its wanted changes (Linde, Buzo, Gray: An algorithm for vector
 * quantizer design, IEEE Trans. Communications 28(1), 1980). Error diffusion (Floyd, Steinberg: An adaptive
 * algorithm for spatial grey scale, Proc. SID 17(2), 1976) chooses among them, so that their means over some
 * pixels are those of the wanted changes. JPEG keeps means of blocks and removes most of the rest.
 */
#ifndef ENGINE_PROTECT_FLAT_H
#define ENGINE_PROTECT_FLAT_H

#include "base/error.h"
#include "engine/image.h"

enum { flat_forms = 5 };

struct flat;

/*
 * Finds the flat colours of a picture of 8 bits. *flat is NULL if most of the picture is not flat.
 * NO_MEMORY. The caller frees it.
 */
enum iw_error flat_new(struct flat **flat, const struct image *image) IW_MUST_USE;
void flat_free(struct flat *flat);

/* Takes the wanted changes of a row, in levels, a value for each colour. */
void flat_sample(struct flat *flat, uint32_t y, const float *wanted);

/* Starts a form of the change, after the samples of all rows: 0 repeats least and costs most. */
void flat_begin(struct flat *flat, unsigned form);

/*
 * Rounds the changes of the colours to whole levels, within the range and the room beyond the nearer end, in
 * levels. Then flat_lay takes the wanted changes of each row, from the top, and flat_row writes those of the
 * form.
 */
void flat_round(struct flat *flat, float room);
void flat_lay(struct flat *flat, uint32_t y, const float *wanted);
void flat_row(const struct flat *flat, uint32_t y, float *changes);

/*
 * A measurement passes the power of each cell to flat_seen, by a pixel of the cell. If it was that of the
 * wanted changes, flat_budget makes it the budget of each colour, or the geometric mean of it and of the
 * budget so far. Otherwise flat_adjust brings the visibility of each colour closer to its budget. flat_choose
 * takes the best scales so far, times a factor.
 */
void flat_seen(struct flat *flat, uint32_t x, uint32_t y, float power);
void flat_budget(struct flat *flat);
void flat_adjust(struct flat *flat);
void flat_choose(struct flat *flat, double factor);

#endif
