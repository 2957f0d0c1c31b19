#include "engine/protect/protect_plan.h"

#include <string.h>

#include "engine/watermark/clones.h"
#include "engine/image.h"
#include "engine/protect/protect_measure.h"

enum { run_samples = 256 /* counted together */ };

void plan_line(const struct protect_plan *plan, uint32_t y, const uint8_t values[room_count])
{
    const size_t blocks = canvas_picture_blocks(plan->width_px), samples = canvas_block_px * plan->colors;
    const uint8_t *peaks = plan->peaks + y / canvas_block_px * blocks;
    for (size_t block = 0; block < blocks; block++)
        memset(plan->line + block * samples, values[peaks[block]], samples);
}

/* The peaks of the samples of a row. */
static const uint8_t *peaks_line(const struct protect_plan *plan, uint32_t y)
{
    uint8_t levels[room_count];
    for (unsigned level = 0; level < room_count; level++)
        levels[level] = (uint8_t)level;
    plan_line(plan, y, levels);
    return plan->line;
}

/* Clears the units of invisible pixels; these stay unchanged. */
static void units_clear_hidden(struct protect_plan *plan, const struct image *image, uint32_t y)
{
    const void *row = image_row(image, y);
    for (uint32_t x = 0; x < plan->width_px; x++)
        if (sample_at(image, row, (size_t)x * image->channels + plan->colors) == 0)
            memset(plan_row(plan, y) + (size_t)x * plan->colors, 0, plan->colors);
}

static void histogram_add(struct protect_plan *plan, const struct image *image, uint32_t y,
                          const uint8_t *peaks)
{
    const void *row = image_row(image, y);
    const int8_t *units = plan_row(plan, y);
    const unsigned top = image->depth_bits == 8 ? 255 : 65535,
                   level = image->depth_bits == 8 ? 1 : levels_16bit;
    for (uint32_t x = 0; x < plan->width_px; x++) {
        for (unsigned color = 0; color < plan->colors; color++) {
            const int unit = *units++, peak = *peaks++;
            const unsigned sample = sample_at(image, row, (size_t)x * image->channels + color);
            const int room = (int)((unit > 0 ? top - sample : sample) / level);
            plan->histogram[y % unit_rows][histogram_place(room < peak ? room : peak, unit)]++;
        }
    }
}

/* The histogram places of 8-bit samples. */
ENGINE_CLONES static void places_find(const uint8_t *samples, const int8_t *units, const uint8_t *peaks,
                                      size_t count, uint16_t *places)
{
    for (size_t i = 0; i < count; i++) {
        const int unit = units[i], room = unit > 0 ? 255 - samples[i] : samples[i];
        places[i] = (uint16_t)histogram_place(room < peaks[i] ? room : peaks[i], unit);
    }
}

/*
 * The same for 8-bit samples without alpha, the usual case.  Even and odd samples use separate counters, so
 * that an increment need not wait for the one before.
 */
static void histogram_add8(struct protect_plan *plan, const uint8_t *samples, uint32_t y,
                           const uint8_t *peaks, uint64_t *others)
{
    const int8_t *units = plan_row(plan, y);
    const size_t count = plan_row_samples(plan);
    uint64_t *histogram = plan->histogram[y % unit_rows];
    uint16_t places[run_samples];
    for (size_t first = 0; first < count; first += run_samples) {
        const size_t here = count - first < run_samples ? count - first : run_samples;
        places_find(samples + first, units + first, peaks + first, here, places);
        for (size_t i = 0; i + 1 < here; i += 2) {
            histogram[places[i]]++;
            others[places[i + 1]]++;
        }
        if (here % 2 != 0)
            histogram[places[here - 1]]++;
    }
}

static void peaks_histogram_add(struct protect_plan *plan, uint32_t y, const uint8_t *peaks)
{
    const int8_t *units = plan_row(plan, y);
    for (size_t i = 0; i < plan_row_samples(plan); i++)
        plan->peaks_histogram[histogram_place(peaks[i], units[i])]++;
}

/* Sums the counts of each room to counts of that room or more. */
static void histogram_add_up(uint64_t *histogram)
{
    for (int room = delta_peak - 1; room >= 0; room--)
        for (int unit = 0; unit <= unit_peak; unit++)
            histogram[histogram_place(room, unit)] += histogram[histogram_place(room + 1, unit)];
}

static void rows_count(struct protect_plan *plan, const struct image *image, uint32_t first_row)
{
    uint64_t others[histogram_places] = {0}, *histogram = plan->histogram[first_row];
    for (uint32_t y = first_row; y < image->height_px; y += unit_rows) {
        const uint8_t *peaks = peaks_line(plan, y);
        if (image_has_alpha(image))
            units_clear_hidden(plan, image, y);
        if (sample_is_plain8(image))
            histogram_add8(plan, image_row(image, y), y, peaks, others);
        else
            histogram_add(plan, image, y, peaks);
        if (first_row == 0)
            peaks_histogram_add(plan, y, peaks);
    }
    for (unsigned place = 0; place < histogram_places; place++)
        histogram[place] += others[place];
    histogram_add_up(histogram);
}

void plan_count(struct protect_plan *plan, const struct image *image)
{
    for (uint32_t first_row = 0; first_row < unit_rows; first_row++)
        rows_count(plan, image, first_row);
}

/* Computes the change of a sample by the largest unit that fits into each room. */
static void fitting_fill(const double deltas[unit_peak + 1], double fitting[room_count])
{
    int unit = 0;
    for (unsigned room = 0; room < room_count; room++) {
        while (unit < unit_peak && deltas[unit + 1] <= room)
            unit++;
        fitting[room] = deltas[unit];
    }
}

/* Over every eighth row, starting at first_row. */
static double rows_squares(const struct protect_plan *plan, uint32_t first_row, double scale)
{
    double squares = 0, deltas[unit_peak + 1], fitting[room_count];
    for (int unit = 0; unit <= unit_peak; unit++)
        deltas[unit] = delta_of(plan, unit, unit_odd(first_row), scale);
    fitting_fill(deltas, fitting);
    for (int unit = 1; unit <= unit_peak; unit++) {
        double before = 0;
        for (int room = 0; room < room_count && before < deltas[unit]; room++) {
            const double moved = fmin(deltas[unit], fitting[room]);
            const double more = moved * moved - before * before;
            squares += (double)plan->histogram[first_row][histogram_place(room, unit)] * more;
            before = moved;
        }
    }
    return squares;
}

double plan_squares(const struct protect_plan *plan, double scale)
{
    double squares = 0;
    for (uint32_t first_row = 0; first_row < unit_rows; first_row++)
        squares += rows_squares(plan, first_row, scale);
    return squares;
}

double plan_share_at_peak(const struct protect_plan *plan, double scale)
{
    const int odd = unit_odd(0);
    double all = 0, at_peak = 0;
    for (int unit = 1; unit <= unit_peak; unit++) {
        const double root = sqrt(unit_mantissa(unit, odd) << unit_octave(unit));
        const double delta = delta_of(plan, unit, odd, scale);
        for (int peak = 0; peak < room_count; peak++) {
            const double roots = (double)plan->peaks_histogram[histogram_place(peak, unit)] * root;
            all += roots;
            at_peak += delta >= peak ? roots : 0;
        }
    }
    return all > 0 ? at_peak / all : 0;
}
