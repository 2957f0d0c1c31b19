/*
 * The patterns in cells of few levels, for drawings whose file must stay small. Deflate and lossless WebP
 * code runs and repeats, so a cell has several pixels and a level that does not depend on the picture.
 *
 * `./dev bench watermark --drawings N` measures robustness, `./dev bench watermark --growth` size and
 * visibility.
 */
#ifndef ENGINE_WATERMARK_CELLS_H
#define ENGINE_WATERMARK_CELLS_H

#include "engine/image.h"
#include "engine/watermark/lattice.h"
#include "engine/watermark/workspace.h"

/* The word to add, and the word of an old mark to remove (NULL if there is no old mark). */
struct cells_words {
    const int8_t *added;
    const int8_t *removed;
};

/*
 * Makes one period of a band of the underlay with a variance of 1, side_px by side_px samples. The samples
 * have three levels, or five if a word is removed. is_toned includes the tones. Returns NULL if there is no
 * memory.
 */
float *cells_underlay(const struct lattice *lattice, const struct lattice_band *band,
                      struct cells_words words, bool is_toned, int side_px, struct workspace *workspace);

/*
 * Makes two by two periods of the overlay in luma, side_px by side_px samples in grey levels. Returns NULL if
 * there is no memory.
 */
float *cells_overlay(const struct lattice *lattice, struct cells_words words, int side_px,
                     struct workspace *workspace);

/*
 * The overlay is in stripes of rows, because a strong stripe costs fewer bytes than the same energy
 * everywhere. The stripes do not repeat with the tile, so that each part of the pattern lies in some stripe.
 */
struct cells_stripes {
    uint32_t high_px;
    uint32_t step_px; /* from one stripe to the next */
};

/* The smaller the file, the fewer stripes. A picture without an underlay has the most stripes. */
enum cells_density { CELLS_SPARSE, CELLS_USUAL, CELLS_DENSE };
struct cells_stripes cells_stripes(const struct image *image, int period_px, enum cells_density density);

#endif
