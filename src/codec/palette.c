/* The palette of a picture with few colours. */
#include "codec/palette.h"

#include <string.h>

#include "codec/metadata/keep.h"

static uint32_t pixel_color(const struct image *image, const unsigned char *sample)
{
    unsigned alpha = image_has_alpha(image) ? sample[image->channels - 1] : 255;
    if (!image_has_color(image))
        return KEEP_TAG(sample[0], sample[0], sample[0], alpha);
    return KEEP_TAG(sample[0], sample[1], sample[2], alpha);
}

/* Finds the slot of a colour, or the empty slot for it. At most half of the slots are used. */
static unsigned slot_of(const struct palette *palette, uint32_t color)
{
    const uint32_t golden = 0x9E3779B1; /* Knuth, The Art of Computer Programming, volume 3, section 6.4 */
    unsigned slot = (color * golden) >> (32 - palette_slot_bits);
    while (palette->slots[slot] != 0 && palette->colors[palette->slots[slot] - 1] != color)
        slot = (slot + 1) % palette_slots;
    return slot;
}

bool palette_collect(const struct image *image, struct palette *palette)
{
    memset(palette, 0, sizeof *palette);
    for (uint32_t y = 0; image->depth_bits == 8 && y < image->height_px; y++) {
        const unsigned char *sample = (const unsigned char *)image->pixels + y * image->stride_bytes;
        for (uint32_t x = 0; x < image->width_px; x++, sample += image->channels) {
            uint32_t color = pixel_color(image, sample);
            unsigned slot = slot_of(palette, color);
            if (palette->slots[slot] != 0)
                continue;
            if (palette->count == palette_colors_max)
                return false;
            palette->colors[palette->count++] = color;
            palette->slots[slot] = (uint16_t)palette->count;
        }
    }
    return image->depth_bits == 8;
}

void palette_row(const struct palette *palette, const struct image *image, uint32_t y, unsigned char *indices)
{
    const unsigned char *sample = (const unsigned char *)image->pixels + y * image->stride_bytes;
    for (uint32_t x = 0; x < image->width_px; x++, sample += image->channels)
        indices[x] = (unsigned char)(palette->slots[slot_of(palette, pixel_color(image, sample))] - 1);
}

void palette_order(struct palette *palette)
{
    uint32_t colors[palette_colors_max];
    unsigned placed = 0;
    for (int is_opaque = 0; is_opaque <= 1; is_opaque++)
        for (unsigned i = 0; i < palette->count; i++)
            if (((palette->colors[i] & 0xFF) == 0xFF) == is_opaque)
                colors[placed++] = palette->colors[i];
    memset(palette->slots, 0, sizeof palette->slots);
    memset(palette->colors, 0, sizeof palette->colors);
    for (unsigned i = 0; i < placed; i++) {
        unsigned slot = slot_of(palette, colors[i]);
        palette->colors[i] = colors[i];
        palette->slots[slot] = (uint16_t)(i + 1);
    }
}
