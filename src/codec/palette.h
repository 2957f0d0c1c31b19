/* Pictures with few colours. */
#ifndef CODEC_PALETTE_H
#define CODEC_PALETTE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/image.h"

enum { palette_colors_max = 256, palette_slot_bits = 10, palette_slots = 1 << palette_slot_bits };

struct palette {
    unsigned count;
    uint32_t colors[palette_colors_max]; /* red, green, blue, alpha; red highest */
    uint16_t slots[palette_slots];       /* hash table: number of the colour + 1; 0 if empty */
};

/* False if the picture has more colours than a palette holds, or 16 bits. */
bool palette_collect(const struct image *image, struct palette *palette);

/* Sorts colours that are not opaque to the front. */
void palette_order(struct palette *palette);

/* Writes the indices of row y; the palette must hold all colours of the row. */
void palette_row(const struct palette *palette, const struct image *image, uint32_t y,
                 unsigned char *indices);

#endif
