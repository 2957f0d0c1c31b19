#include <string.h>

#include "engine/watermark/clones.h"
#include "engine/image.h"
#include "engine/protect/protect_measure.h"
#include "engine/protect/protect_plan.h"

enum { clip_samples = 64 /* moved together unless one of them would be clipped */ };

/* The change of a sample by each unit of a row; the middle is unit 0, the ends -unit_peak and unit_peak. */
struct deltas {
    int values[2 * unit_peak + 1];
    int odd, steps;              /* for 8-bit samples: the arguments of delta_of8 */
    uint8_t fitting[room_count]; /* the largest unit that fits into each room */
};

static void deltas_fill_row(const struct protect_plan *plan, double scale, int odd, struct deltas *deltas)
{
    deltas->odd = odd;
    deltas->steps = steps_of(scale);
    for (int unit = 0; unit <= unit_peak; unit++) {
        double delta = delta_of(plan, unit, odd, scale);
        int rounded = (int)lrint(plan->depth_bits == 8 ? delta : delta * levels_16bit);
        deltas->values[unit_peak + unit] = rounded;
        deltas->values[unit_peak - unit] = -rounded;
    }
    for (int room = 0, unit = 0; room < room_count; room++) {
        while (unit < unit_peak && delta_of(plan, unit + 1, odd, scale) <= room)
            unit++;
        deltas->fitting[room] = (uint8_t)unit;
    }
}

static void deltas_fill(const struct protect_plan *plan, double scale, struct deltas deltas[unit_rows])
{
    for (uint32_t y = 0; y < unit_rows; y++)
        deltas_fill_row(plan, scale, unit_odd(y), &deltas[y]);
}

static int unit_delta(const struct deltas *deltas, int unit)
{
    return deltas->values[unit_peak + unit];
}

/*
 * Moves a sample by its unit.  Where it would be clipped, the unit is reduced until it fits, so that undo is
 * exact.
 */
static int sample_moved(const struct deltas *deltas, int sample, int8_t *unit, int top)
{
    int moved = sample + unit_delta(deltas, *unit);
    while (moved < 0 || moved > top) {
        *unit = (int8_t)(*unit - (*unit > 0 ? 1 : -1));
        moved = sample + unit_delta(deltas, *unit);
    }
    return moved;
}

static void row_render_any(const struct protect_plan *plan, const struct image *image, void *row,
                           int8_t *units, const struct deltas *deltas)
{
    for (uint32_t x = 0; x < plan->width_px; x++) {
        for (unsigned color = 0; color < plan->colors; color++, units++) {
            size_t at = (size_t)x * image->channels + color;
            if (plan->depth_bits == 8)
                ((uint8_t *)row)[at] = (uint8_t)sample_moved(deltas, ((uint8_t *)row)[at], units, 255);
            else
                ((uint16_t *)row)[at] = (uint16_t)sample_moved(deltas, ((uint16_t *)row)[at], units, 65535);
        }
    }
}

/* Moves samples by their units; any may leave the range.  false: at least one does. */
ENGINE_CLONES static bool samples_moved8(const uint8_t *samples, const int8_t *units, size_t count,
                                         const struct deltas *deltas, uint8_t *moved)
{
    const int odd = deltas->odd, steps = deltas->steps;
    int all = 0;
    for (size_t i = 0; i < count; i++) {
        int delta = delta_of8(units[i] < 0 ? -units[i] : units[i], odd, steps);
        int value = samples[i] + (units[i] < 0 ? -delta : delta);
        moved[i] = (uint8_t)value;
        all |= value;
    }
    return (all & ~255) == 0;
}

/* The same as sample_moved for at most clip_samples, in whole vectors except for the lookup of the fitting
 * unit. */
ENGINE_CLONES static void samples_fitted8(uint8_t *restrict samples, int8_t *restrict units, size_t count,
                                          const struct deltas *deltas)
{
    uint8_t most[clip_samples];
    const int odd = deltas->odd, steps = deltas->steps;
    for (size_t i = 0; i < count; i++) {
        int room = units[i] < 0 ? samples[i] : 255 - samples[i];
        most[i] = (uint8_t)(room < delta_peak ? room : delta_peak);
    }
    for (size_t i = 0; i < count; i++)
        most[i] = deltas->fitting[most[i]];
    for (size_t i = 0; i < count; i++) {
        int unit = units[i], size = unit < 0 ? -unit : unit;
        size = size < most[i] ? size : most[i];
        int delta = delta_of8(size, odd, steps);
        units[i] = (int8_t)(unit < 0 ? -size : size);
        samples[i] = (uint8_t)(samples[i] + (unit < 0 ? -delta : delta));
    }
}

/* 8-bit samples without alpha: many together where none would be clipped. */
static void row_render8(uint8_t *samples, int8_t *units, size_t count, const struct deltas *deltas)
{
    uint8_t moved[clip_samples];
    for (size_t first = 0; first < count; first += clip_samples) {
        const size_t here = count - first < clip_samples ? count - first : clip_samples;
        if (samples_moved8(samples + first, units + first, here, deltas, moved))
            memcpy(samples + first, moved, here);
        else
            samples_fitted8(samples + first, units + first, here, deltas);
    }
}

/* Limits each unit to its sample's peak. */
ENGINE_CLONES static void units_bound(int8_t *restrict units, const uint8_t *restrict most, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const int8_t end = (int8_t)most[i], unit = units[i] < end ? units[i] : end;
        units[i] = unit > -end ? unit : (int8_t)-end;
    }
}

/* y: the number of the row in the picture. */
static void row_render(const struct protect_plan *plan, const struct image *image, void *row, int8_t *units,
                       uint32_t y, const struct deltas *deltas)
{
    plan_line(plan, y, deltas->fitting);
    units_bound(units, plan->line, plan_row_samples(plan));
    if (sample_is_plain8(image))
        row_render8(row, units, plan_row_samples(plan), deltas);
    else
        row_render_any(plan, image, row, units, deltas);
}

void protect_render(struct protect_plan *plan, struct image *image, double scale)
{
    struct deltas deltas[unit_rows];
    plan->scale = scale;
    deltas_fill(plan, scale, deltas);
    for (uint32_t y = 0; y < plan->height_px; y++)
        row_render(plan, image, image_row(image, y), plan_row(plan, y), y, &deltas[y % unit_rows]);
}

void protect_preview(struct protect_plan *plan, double scale, uint32_t first_row_px, struct image *strip)
{
    struct deltas deltas[unit_rows];
    int8_t *units = plan_row(plan, plan->height_px);
    deltas_fill(plan, scale, deltas);
    for (uint32_t i = 0; i < strip->height_px; i++) {
        const uint32_t y = first_row_px + i;
        memcpy(units, plan_row(plan, y), plan_row_samples(plan));
        row_render(plan, strip, image_row(strip, i), units, y, &deltas[y % unit_rows]);
    }
}

static void row_undo(const struct protect_plan *plan, const struct image *image, void *row,
                     const int8_t *units, const struct deltas *deltas)
{
    for (uint32_t x = 0; x < plan->width_px; x++) {
        for (unsigned color = 0; color < plan->colors; color++, units++) {
            size_t at = (size_t)x * image->channels + color;
            if (plan->depth_bits == 8)
                ((uint8_t *)row)[at] = (uint8_t)(((uint8_t *)row)[at] - unit_delta(deltas, *units));
            else
                ((uint16_t *)row)[at] = (uint16_t)(((uint16_t *)row)[at] - unit_delta(deltas, *units));
        }
    }
}

/* Reverses samples_moved8. */
ENGINE_CLONES static void row_undo8(uint8_t *samples, const int8_t *units, size_t count,
                                    const struct deltas *deltas)
{
    const int odd = deltas->odd, steps = deltas->steps;
    for (size_t i = 0; i < count; i++) {
        int delta = delta_of8(units[i] < 0 ? -units[i] : units[i], odd, steps);
        samples[i] = (uint8_t)(samples[i] - (units[i] < 0 ? -delta : delta));
    }
}

void protect_undo(const struct protect_plan *plan, struct image *image)
{
    struct deltas deltas[unit_rows];
    deltas_fill(plan, plan->scale, deltas);
    for (uint32_t y = 0; y < plan->height_px; y++) {
        const struct deltas *here = &deltas[y % unit_rows];
        if (sample_is_plain8(image))
            row_undo8(image_row(image, y), plan_row(plan, y), plan_row_samples(plan), here);
        else
            row_undo(plan, image, image_row(image, y), plan_row(plan, y), here);
    }
}
