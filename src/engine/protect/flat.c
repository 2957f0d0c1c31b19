#include "engine/protect/flat.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    slot_bits = 16,
    slots_count = 1 << slot_bits, /* of the table of colours, half of them used */
    colors_max = 127,             /* two indices each, and 0 */
    samples_max = 1024,           /* of a colour; more move the means by less than rounding */
    split_rounds = 10,
    planes = 3,
    tile_most = 1024, /* pixels of a tile */
    unset = 2
};

/* A colour of a smaller share is left as it is: its two colours would take place in a palette. */
static const uint32_t share_least = 1024;

/* Below this share of flat pixels the picture is no drawing of flat colours. */
static const double flat_least = 0.75;

/*
 * Two changes of opposite sign divide the pixels in halves. Next to the end of the range one is cut off and
 * the groups are unequal. Then a quarter of the pixels changes: for a normal distribution that keeps nine
 * tenths of the correlation of a half. White becomes darker by two levels there, so its mean changes by half
 * a level.
 */
static const float unequal = 0.4F, unequal_share = 0.25F;

/*
 * Sizes of tiles, from the one that repeats least. Widths are multiples of the cells of encoders (32 and 8
 * px). A height of 1 means that each row is another one.
 */
static const struct {
    unsigned width_px, height_px;
} forms[flat_forms] = {{64, 1}, {32, 1}, {32, 32}, {16, 16}};

struct flat_color {
    uint32_t key;
    uint32_t count, seen; /* pixels; of them so far given to flat_sample */
    unsigned samples;
    float pair[2][planes]; /* changes at scale 1 */
    float axis[planes], limit;
    double scale, best; /* of the next measurement, and the largest within the budget so far */
    double power;       /* sum of a measurement, over cells */
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
    uint8_t *indices; /* of pixels: 0, or 1 + 2 * colour + which of both changes */
    float values[2 * colors_max + 1][planes];
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
            *index = color < flat->count ? (uint8_t)(1 + 2 * color) : 0;
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
    return flat->samples != NULL && flat->tiles != NULL ? IW_OK : IW_NO_MEMORY;
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
    free(flat->indices);
    free(flat);
}

/* ---- two changes of a colour */

void flat_sample(struct flat *flat, uint32_t y, const float *wanted)
{
    const uint32_t width = flat->image->width_px;
    for (uint32_t x = 0; x < width; x++) {
        const unsigned index = flat->indices[(size_t)y * width + x];
        if (index == 0)
            continue;
        struct flat_color *color = &flat->colors[(index - 1) / 2];
        const uint32_t step = color->count / samples_max + 1;
        if (color->seen++ % step != 0)
            continue;
        memcpy(flat->samples[(index - 1) / 2 * samples_max + color->samples++],
               wanted + (size_t)x * flat->planes, flat->planes * sizeof *wanted);
    }
}

static float product(const float *one, const float *other)
{
    return one[0] * other[0] + one[1] * other[1] + one[2] * other[2];
}

/* Computes the means of both groups: the samples on either side of a plane. Returns the size of the upper
 * one. */
static unsigned groups_mean(const float (*samples)[planes], struct flat_color *color)
{
    unsigned sizes[2] = {0};
    float sums[2][planes] = {{0}};
    for (unsigned i = 0; i < color->samples; i++) {
        const int group = product(samples[i], color->axis) > color->limit;
        sizes[group]++;
        for (unsigned k = 0; k < planes; k++)
            sums[group][k] += samples[i][k];
    }
    for (unsigned group = 0; group < 2; group++)
        for (unsigned k = 0; k < planes; k++)
            color->pair[group][k] = sums[group][k] / (float)(sizes[group] > 0 ? sizes[group] : 1);
    return sizes[1];
}

/* Sets the plane between both means. */
static void plane_set(struct flat_color *color)
{
    float middle[planes];
    for (unsigned k = 0; k < planes; k++) {
        color->axis[k] = color->pair[1][k] - color->pair[0][k];
        middle[k] = (color->pair[1][k] + color->pair[0][k]) / 2;
    }
    color->limit = product(color->axis, middle);
}

/* Starts with the sample that is farthest from the mean, and its mirror image. */
static void pair_start(const float (*samples)[planes], struct flat_color *color)
{
    float mean[planes], most = -1;
    color->limit = INFINITY;
    groups_mean(samples, color);
    memcpy(mean, color->pair[0], sizeof mean);
    for (unsigned i = 0; i < color->samples; i++) {
        const float apart[planes] = {samples[i][0] - mean[0], samples[i][1] - mean[1],
                                     samples[i][2] - mean[2]};
        if (product(apart, apart) <= most)
            continue;
        most = product(apart, apart);
        for (unsigned k = 0; k < planes; k++) {
            color->pair[0][k] = mean[k] - apart[k];
            color->pair[1][k] = mean[k] + apart[k];
        }
    }
}

static int floats_compare(const void *left, const void *right)
{
    const float one = *(const float *)left, other = *(const float *)right;
    return (one > other) - (one < other);
}

/* Changes only the pixels that are to change most. */
static void pair_one_sided(const float (*samples)[planes], struct flat_color *color)
{
    float along[samples_max];
    for (unsigned i = 0; i < color->samples; i++)
        along[i] = product(samples[i], color->axis);
    qsort(along, color->samples, sizeof *along, floats_compare);
    color->limit = along[(unsigned)((1 - unequal_share) * (float)color->samples)];
    groups_mean(samples, color);
    memset(color->pair[0], 0, sizeof color->pair[0]);
}

static void pair_swap(struct flat_color *color)
{
    for (unsigned k = 0; k < planes; k++) {
        const float kept = color->pair[0][k];
        color->pair[0][k] = color->pair[1][k];
        color->pair[1][k] = kept;
    }
}

/* Computes the pair of a colour, the larger change second. */
static void color_split(const float (*samples)[planes], struct flat_color *color)
{
    unsigned upper = 0;
    pair_start(samples, color);
    for (unsigned round = 0; round < split_rounds; round++) {
        plane_set(color);
        upper = groups_mean(samples, color);
    }
    if (product(color->pair[0], color->pair[0]) > product(color->pair[1], color->pair[1])) {
        pair_swap(color);
        upper = color->samples - upper;
    }
    plane_set(color);
    if ((float)upper < unequal * (float)color->samples)
        pair_one_sided(samples, color);
}

void flat_split(struct flat *flat)
{
    for (unsigned i = 0; i < flat->count; i++)
        color_split((const float(*)[planes])flat->samples + (size_t)i * samples_max, &flat->colors[i]);
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
    tiles_clear(flat);
    for (unsigned i = 0; i < flat->count; i++) {
        flat->colors[i].scale = 1;
        flat->colors[i].best = 0;
    }
}

/* A place of a tile takes the choice of its first pixel. */
void flat_lay(struct flat *flat, uint32_t y, const float *wanted)
{
    const unsigned wide = forms[flat->form].width_px, high = forms[flat->form].height_px;
    const uint32_t width = flat->image->width_px;
    if (high == 1)
        tiles_clear(flat);
    for (uint32_t x = 0; x < width; x++) {
        uint8_t *index = &flat->indices[(size_t)y * width + x];
        if (*index == 0)
            continue;
        const unsigned number = (*index - 1U) / 2;
        const struct flat_color *color = &flat->colors[number];
        uint8_t *place = &flat->tiles[number][y % high * wide + x % wide];
        if (*place == unset) {
            float change[planes] = {0};
            memcpy(change, wanted + (size_t)x * flat->planes, flat->planes * sizeof *wanted);
            *place = product(change, color->axis) > color->limit;
        }
        *index = (uint8_t)(1 + 2 * number + *place);
    }
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
    for (unsigned i = 0; i < 2 * flat->count; i++) {
        struct flat_color *color = &flat->colors[i / 2];
        for (unsigned k = 0; k < flat->planes; k++) {
            const unsigned channel = channels - 1 - k;
            const float level = (float)(color->key >> (8 * channel) & UINT8_MAX);
            flat->values[1 + i][k] = level_limited((float)color->scale * color->pair[i % 2][k], level, room);
        }
        color->power = color->cells = 0;
    }
}

void flat_seen(struct flat *flat, uint32_t x, uint32_t y, float power)
{
    const unsigned index = flat->indices[(size_t)y * flat->image->width_px + x];
    if (index == 0)
        return;
    flat->colors[(index - 1) / 2].power += (double)power;
    flat->colors[(index - 1) / 2].cells++;
}

void flat_adjust(struct flat *flat, double budget)
{
    for (unsigned i = 0; i < flat->count; i++) {
        struct flat_color *color = &flat->colors[i];
        const double part = color->cells > 0 ? sqrt(sqrt(color->power / color->cells)) / budget : 1;
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
