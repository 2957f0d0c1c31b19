#include "engine/protect/flat.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    slot_bits = 16,
    slots_count = 1 << slot_bits, /* of the table of colours, half of them used */
    kinds = 4,                    /* changes of a colour, at most */
    colors_max = UINT8_MAX / kinds,
    samples_max = 1024, /* of a colour; more move the means by less than rounding */
    split_rounds = 10,
    planes = 3,
    tile_most = 1024, /* pixels of a tile */
    tile_wide = 64,
    unset = kinds
};

/* A colour of a smaller share is left as it is: its further colours would take entries of the palette. */
static const uint32_t share_least = 1024;

/* Below this share of flat pixels the picture is no drawing of flat colours. */
static const double flat_least = 0.75;

/*
 * The weight of a colour difference, if that of luma is 1. With 1/4, less is left after JPEG; with 1/12, sd15
 * moves less (tests/bench/protect.py --drawing-seed 0).
 */
static const float color_weight = 1 / 6.F;

/*
 * Dithering reaches what lies between the changes, and means of groups lie inside of their groups. Of 1, 1.2
 * and 1.4, 1.2 keeps most after JPEG and WebP (measured alike).
 */
static const float stretch = 1.2F;

/* Levels that a dithering error may have. Errors of changes that a colour has no room for would add up. */
static const float error_most = 6;

/*
 * Sizes of tiles and changes of a colour, from the form that costs most. Widths are multiples of the cells of
 * encoders (32 and 8 px). A height of 1 means that each row is another one. With two changes a picture more
 * often keeps at most 256 colours, which counts for WebP.
 */
static const struct {
    unsigned width_px, height_px, kinds;
} forms[flat_forms] = {{tile_wide, 1, 4}, {32, 1, 4}, {tile_wide, 1, 2}, {32, 32, 2}, {16, 16, 2}};

struct flat_color {
    uint32_t key;
    uint32_t count, seen; /* pixels; of them so far given to flat_sample */
    unsigned samples;
    float values[kinds][planes]; /* changes at scale 1 */
    double scale, best;          /* of the next measurement, and the largest within the budget so far */
    double budget;               /* of visibility; 0 if it was not measured */
    double power;                /* sum of a measurement, over cells */
    unsigned cells;
};

struct flat_slot {
    uint32_t key, count; /* count is 0 if the slot is empty */
};

struct flat {
    const struct image *image; /* borrowed */
    unsigned planes;           /* 1 or 3 */
    unsigned count;            /* of colours */
    unsigned form;
    struct flat_color colors[colors_max];
    float (*samples)[planes]; /* samples_max for each colour */
    uint8_t (*tiles)[tile_most];
    float (*errors[2])[tile_wide][planes]; /* of dithering, for each colour: of this row and the next one */
    uint8_t *indices;                      /* of pixels: 0, or 1 + kinds * colour + which change */
    float values[kinds * colors_max + 1][planes];
};

/* ---- the colours */

static uint32_t pixel_key(const struct image *image, uint32_t x, uint32_t y)
{
    const uint8_t *pixel = (const uint8_t *)image_row(image, y) + (size_t)x * image->channels;
    uint32_t key = 0;
    for (unsigned i = 0; i < image->channels; i++)
        key = key << 8 | pixel[i];
    return key;
}

/* Returns whether the block of 2x2 px has one colour and can be seen. */
static bool is_block(const struct image *image, uint32_t x, uint32_t y)
{
    if (x + 1 >= image->width_px || y + 1 >= image->height_px)
        return false;
    const uint32_t key = pixel_key(image, x, y);
    return key == pixel_key(image, x + 1, y) && key == pixel_key(image, x, y + 1) &&
           key == pixel_key(image, x + 1, y + 1) && (!image_has_alpha(image) || (key & UINT8_MAX) != 0);
}

/* Marks the pixels of all flat blocks. */
static void pixels_mark(struct flat *flat)
{
    const struct image *image = flat->image;
    for (uint32_t y = 0; y < image->height_px; y++) {
        uint8_t *row = flat->indices + (size_t)y * image->width_px;
        for (uint32_t x = 0; x < image->width_px; x++)
            if (is_block(image, x, y))
                row[x] = row[x + 1] = row[x + image->width_px] = row[x + image->width_px + 1] = 1;
    }
}

/* Returns the slot of a colour, or an empty one; NULL if the table is full. */
static struct flat_slot *slot_of(struct flat_slot *slots, uint32_t key, unsigned *used)
{
    const uint32_t golden = 0x9E3779B1; /* Knuth, The Art of Computer Programming, volume 3, section 6.4 */
    unsigned at = (key * golden) >> (32 - slot_bits);
    while (slots[at].count != 0 && slots[at].key != key)
        at = (at + 1) % slots_count;
    if (slots[at].count == 0 && (*used)++ >= slots_count / 2)
        return NULL;
    slots[at].key = key;
    return &slots[at];
}

static void colors_count(const struct flat *flat, struct flat_slot *slots)
{
    const struct image *image = flat->image;
    unsigned used = 0;
    for (uint32_t y = 0; y < image->height_px; y++)
        for (uint32_t x = 0; x < image->width_px; x++) {
            struct flat_slot *slot = flat->indices[(size_t)y * image->width_px + x] == 0
                                         ? NULL
                                         : slot_of(slots, pixel_key(image, x, y), &used);
            if (slot != NULL)
                slot->count++;
        }
}

static int slots_compare(const void *left, const void *right)
{
    const struct flat_slot *one = left, *other = right;
    if (one->count != other->count)
        return one->count < other->count ? 1 : -1;
    return one->key < other->key ? -1 : one->key > other->key;
}

/* Returns the number of pixels that can be seen. */
static uint64_t pixels_seen(const struct image *image)
{
    uint64_t seen = 0;
    for (uint32_t y = 0; y < image->height_px; y++)
        for (uint32_t x = 0; x < image->width_px; x++)
            seen += !image_has_alpha(image) || (pixel_key(image, x, y) & UINT8_MAX) != 0;
    return seen;
}

/* Takes the largest colours. Returns their share of the pixels that can be seen. */
static double colors_choose(struct flat *flat, struct flat_slot *slots)
{
    const uint64_t pixels = pixels_seen(flat->image);
    uint64_t covered = 0;
    qsort(slots, slots_count, sizeof *slots, slots_compare);
    while (flat->count < colors_max && (uint64_t)slots[flat->count].count * share_least >= pixels &&
           slots[flat->count].count > 0) {
        flat->colors[flat->count] =
            (struct flat_color){.key = slots[flat->count].key, .count = slots[flat->count].count};
        covered += slots[flat->count++].count;
    }
    return pixels > 0 ? (double)covered / (double)pixels : 0;
}

static unsigned color_find(const struct flat *flat, uint32_t key)
{
    unsigned i = 0;
    while (i < flat->count && flat->colors[i].key != key)
        i++;
    return i;
}

/* Replaces the marks by the indices of the colours. */
static void pixels_index(struct flat *flat)
{
    const struct image *image = flat->image;
    unsigned color = 0;
    for (uint32_t y = 0; y < image->height_px; y++)
        for (uint32_t x = 0; x < image->width_px; x++) {
            uint8_t *index = &flat->indices[(size_t)y * image->width_px + x];
            const uint32_t key = pixel_key(image, x, y);
            if (*index == 0)
                continue;
            if (color >= flat->count || flat->colors[color].key != key)
                color = color_find(flat, key);
            *index = color < flat->count ? (uint8_t)(1 + kinds * color) : 0;
        }
}

static enum iw_error colors_find(struct flat *flat, double *covered)
{
    struct flat_slot *slots = calloc(slots_count, sizeof *slots);
    if (slots == NULL)
        return IW_NO_MEMORY;
    pixels_mark(flat);
    colors_count(flat, slots);
    *covered = colors_choose(flat, slots);
    free(slots);
    pixels_index(flat);
    flat->samples = calloc(flat->count + 1, samples_max * sizeof *flat->samples);
    flat->tiles = calloc(flat->count + 1, sizeof *flat->tiles);
    for (unsigned i = 0; i < 2; i++)
        flat->errors[i] = calloc(flat->count + 1, sizeof *flat->errors[i]);
    return flat->samples != NULL && flat->tiles != NULL && flat->errors[0] != NULL && flat->errors[1] != NULL
               ? IW_OK
               : IW_NO_MEMORY;
}

enum iw_error flat_new(struct flat **flat, const struct image *image)
{
    double covered = 0;
    *flat = NULL;
    struct flat *new = calloc(1, sizeof *new);
    if (new == NULL)
        return IW_NO_MEMORY;
    new->image = image;
    new->planes = image_has_color(image) ? planes : 1;
    new->indices = calloc(image->height_px, image->width_px);
    enum iw_error error = new->indices != NULL ? colors_find(new, &covered) : IW_NO_MEMORY;
    if (error != IW_OK || covered < flat_least)
        flat_free(new);
    else
        *flat = new;
    return error;
}

void flat_free(struct flat *flat)
{
    if (flat == NULL)
        return;
    free(flat->samples);
    free(flat->tiles);
    free(flat->errors[0]);
    free(flat->errors[1]);
    free(flat->indices);
    free(flat);
}

/* ---- the changes of a colour */

void flat_sample(struct flat *flat, uint32_t y, const float *wanted)
{
    const uint32_t width = flat->image->width_px;
    for (uint32_t x = 0; x < width; x++) {
        const unsigned index = flat->indices[(size_t)y * width + x];
        if (index == 0)
            continue;
        struct flat_color *color = &flat->colors[(index - 1) / kinds];
        const uint32_t step = color->count / samples_max + 1;
        if (color->seen++ % step != 0)
            continue;
        memcpy(flat->samples[(index - 1) / kinds * samples_max + color->samples++],
               wanted + (size_t)x * flat->planes, flat->planes * sizeof *wanted);
    }
}

/* Returns the distance of two changes, squared. */
static float apart(const float *one, const float *other)
{
    const float red = one[0] - other[0], green = one[1] - other[1], blue = one[2] - other[2];
    const float luma = .299F * red + .587F * green + .114F * blue; /* BT.601 */
    const float blueness = (blue - luma) / 1.772F, redness = (red - luma) / 1.402F;
    return luma * luma + color_weight * (blueness * blueness + redness * redness);
}

/* Returns the nearest of the first values, and its distance. */
static unsigned nearest(const float (*values)[planes], unsigned count, const float *change, float *distance)
{
    unsigned best = 0;
    *distance = INFINITY;
    for (unsigned i = 0; i < count; i++) {
        const float far = apart(values[i], change);
        best = far < *distance ? i : best;
        *distance = fminf(far, *distance);
    }
    return best;
}

/* Replaces the first values by the means of the samples that are nearest to them. */
static void values_improve(const float (*samples)[planes], struct flat_color *color, unsigned count)
{
    float sums[kinds][planes] = {{0}}, distance = 0;
    unsigned sizes[kinds] = {0};
    for (unsigned i = 0; i < color->samples; i++) {
        const unsigned kind = nearest((const float(*)[planes])color->values, count, samples[i], &distance);
        sizes[kind]++;
        for (unsigned k = 0; k < planes; k++)
            sums[kind][k] += samples[i][k];
    }
    for (unsigned kind = 0; kind < count; kind++)
        for (unsigned k = 0; k < planes && sizes[kind] > 0; k++)
            color->values[kind][k] = sums[kind][k] / (float)sizes[kind];
}

/* Makes two values from each, a little towards the sample that is farthest from it, and away from there. */
static void values_split(const float (*samples)[planes], struct flat_color *color, unsigned count)
{
    const float little = 0.125F;
    float most[kinds] = {0}, distance = 0;
    unsigned farthest[kinds] = {0};
    for (unsigned i = 0; i < color->samples; i++) {
        const unsigned kind = nearest((const float(*)[planes])color->values, count, samples[i], &distance);
        farthest[kind] = distance > most[kind] ? i : farthest[kind];
        most[kind] = fmaxf(distance, most[kind]);
    }
    for (unsigned kind = 0; kind < count; kind++)
        for (unsigned k = 0; k < planes; k++) {
            const float step = little * (samples[farthest[kind]][k] - color->values[kind][k]);
            color->values[count + kind][k] = color->values[kind][k] - step;
            color->values[kind][k] += step;
        }
}

/* Computes the changes of a colour: one, then twice as many. */
static void values_find(const float (*samples)[planes], struct flat_color *color, unsigned wanted)
{
    values_improve(samples, color, 1);
    for (unsigned count = 1; count < wanted; count *= 2) {
        values_split(samples, color, count);
        for (unsigned round = 0; round < split_rounds; round++)
            values_improve(samples, color, 2 * count);
    }
}

/* ---- the places */

static void tiles_clear(struct flat *flat)
{
    const size_t size = (size_t)forms[flat->form].width_px * forms[flat->form].height_px;
    for (unsigned i = 0; i < flat->count; i++)
        memset(flat->tiles[i], unset, size);
}

void flat_begin(struct flat *flat, unsigned form)
{
    flat->form = form;
    for (unsigned i = 0; i < flat->count; i++) {
        values_find((const float(*)[planes])flat->samples + (size_t)i * samples_max, &flat->colors[i],
                    forms[form].kinds);
        flat->colors[i].scale = 1;
        flat->colors[i].best = 0;
    }
}

/* Chooses the change of a place of a tile: the nearest to the wanted one and the errors of places before. */
static uint8_t place_choose(struct flat *flat, unsigned number, unsigned at, const float *wanted)
{
    const unsigned wide = forms[flat->form].width_px, before = (at + wide - 1) % wide,
                   after = (at + 1) % wide;
    const float(*values)[planes] = (const float(*)[planes])flat->values + 1 + (size_t)number * kinds;
    float(*now)[planes] = flat->errors[0][number], (*next)[planes] = flat->errors[1][number];
    float change[planes] = {0}, distance = 0;
    for (unsigned k = 0; k < flat->planes; k++)
        change[k] = (float)flat->colors[number].scale * wanted[k] + now[at][k];
    const unsigned kind = nearest(values, forms[flat->form].kinds, change, &distance);
    for (unsigned k = 0; k < flat->planes; k++) {
        const float error = fminf(fmaxf(change[k] - values[kind][k], -error_most), error_most) / 16;
        now[after][k] += 7 * error;
        next[before][k] += 3 * error;
        next[at][k] += 5 * error;
        next[after][k] += error;
    }
    return (uint8_t)kind;
}

/* A place of a tile takes the choice of its first pixel. */
void flat_lay(struct flat *flat, uint32_t y, const float *wanted)
{
    const unsigned wide = forms[flat->form].width_px, high = forms[flat->form].height_px;
    const uint32_t width = flat->image->width_px;
    float(*laid)[tile_wide][planes] = flat->errors[0];
    if (high == 1)
        tiles_clear(flat);
    for (uint32_t x = 0; x < width; x++) {
        uint8_t *index = &flat->indices[(size_t)y * width + x];
        if (*index == 0)
            continue;
        const unsigned number = (*index - 1U) / kinds;
        uint8_t *place = &flat->tiles[number][y % high * wide + x % wide];
        if (*place == unset)
            *place = place_choose(flat, number, x % wide, wanted + (size_t)x * flat->planes);
        *index = (uint8_t)(1 + kinds * number + *place);
    }
    memset(laid, 0, flat->count * sizeof *laid);
    flat->errors[0] = flat->errors[1];
    flat->errors[1] = laid;
}

/* ---- the size of the changes */

/* Whole levels are steps: a colour may have this part of the budget. A scale rises by this much at a time. */
static const double slack = 1.05, step_most = 2;

static float level_limited(float change, float level, float room)
{
    const float above = 255 - level, most = floorf(fminf(level, above) + room);
    return fminf(fmaxf(roundf(change), -fminf(most, level)), fminf(most, above));
}

void flat_round(struct flat *flat, float room)
{
    const unsigned channels = flat->image->channels;
    tiles_clear(flat);
    for (unsigned i = 0; i < 2; i++)
        memset(flat->errors[i], 0, flat->count * sizeof *flat->errors[i]);
    for (unsigned i = 0; i < kinds * flat->count; i++) {
        struct flat_color *color = &flat->colors[i / kinds];
        for (unsigned k = 0; k < flat->planes; k++) {
            const unsigned channel = channels - 1 - k;
            const float level = (float)(color->key >> (8 * channel) & UINT8_MAX);
            flat->values[1 + i][k] =
                level_limited(stretch * (float)color->scale * color->values[i % kinds][k], level, room);
        }
        color->power = color->cells = 0;
    }
}

void flat_seen(struct flat *flat, uint32_t x, uint32_t y, float power)
{
    const unsigned index = flat->indices[(size_t)y * flat->image->width_px + x];
    if (index == 0)
        return;
    flat->colors[(index - 1) / kinds].power += (double)power;
    flat->colors[(index - 1) / kinds].cells++;
}

/* Returns the visibility of a colour's change in the last measurement. */
static double color_shown(const struct flat_color *color)
{
    return color->cells > 0 ? sqrt(sqrt(color->power / color->cells)) : 0;
}

void flat_budget(struct flat *flat)
{
    for (unsigned i = 0; i < flat->count; i++) {
        struct flat_color *color = &flat->colors[i];
        const double shown = color_shown(color);
        color->budget = color->budget > 0 ? sqrt(color->budget * shown) : shown;
    }
}

void flat_adjust(struct flat *flat)
{
    for (unsigned i = 0; i < flat->count; i++) {
        struct flat_color *color = &flat->colors[i];
        const double shown = color_shown(color), part = color->budget > 0 ? shown / color->budget : 1;
        if (part <= slack && color->scale > color->best)
            color->best = color->scale;
        color->scale *= fmin(part > 0 ? 1 / part : step_most, step_most);
    }
}

void flat_choose(struct flat *flat, double factor)
{
    for (unsigned i = 0; i < flat->count; i++) {
        if (flat->colors[i].best == 0)
            flat->colors[i].best = flat->colors[i].scale;
        flat->colors[i].best *= factor;
        flat->colors[i].scale = flat->colors[i].best;
    }
}

void flat_row(const struct flat *flat, uint32_t y, float *changes)
{
    const uint32_t width = flat->image->width_px;
    for (uint32_t x = 0; x < width; x++)
        memcpy(changes + (size_t)x * flat->planes, flat->values[flat->indices[(size_t)y * width + x]],
               flat->planes * sizeof *changes);
}
