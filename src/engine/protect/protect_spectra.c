#include "engine/protect/protect_spectra.h"

#include <math.h>
#include <string.h>

#include "engine/watermark/clones.h"

/* tools/spectra.py has the same. */
static const double just_seen = 0.008, finer = 36;
static const float nothing = 1e-7f;
static const double rings[spectra_rings - 1] = {1.8, 3.2, 5.2}; /* bounds between them in cycles a window */
static const double turns[spectra_turns - 1] = {30, 60};        /* bounds in degrees from upright strokes */
static const float light_nodes[spectra_nodes] = {.05f, .15f, .35f, .7f};
static const float hides_nodes[spectra_nodes] = {.02f, .035f, .07f, .14f};
static const float drawn_nodes[spectra_nodes] = {.006f, .03f, .12f, .4f};

static const double pi = 3.14159265358979323846;

/* The number of bounds below a value. */
static unsigned part_of(const double *bounds, unsigned count, double value)
{
    unsigned part = 0;
    while (part < count && bounds[part] < value)
        part++;
    return part;
}

static unsigned group_of(double down, double across)
{
    const unsigned ring = part_of(rings, spectra_rings - 1, sqrt(down * down + across * across));
    return ring * spectra_turns + part_of(turns, spectra_turns - 1, atan2(down, across) * 180 / pi);
}

static void table_init(struct spectra *spectra)
{
    for (unsigned down = 0; down < spectra_bins; down++)
        for (unsigned across = 0; across < spectra_bins; across++)
            spectra->groups[down][across] = (unsigned char)group_of(down + .5, across + .5);
    for (unsigned node = 0; node < spectra_nodes; node++) {
        spectra->light[node] = light_nodes[node];
        spectra->hides[node] = logf(hides_nodes[node]);
        spectra->drawn[node] = logf(drawn_nodes[node]);
    }
}

void spectra_init(struct spectra *spectra)
{
    table_init(spectra);
    for (unsigned bin = 0; bin < spectra_bins; bin++) {
        for (unsigned place = 0; place < spectra_step; place++) {
            const double phase = (bin + .5) * (place + .5 - spectra_step) * (2 * pi / spectra_side);
            const double bell = sqrt(2. / spectra_side) * sin(pi * (place + .5) / spectra_side);
            spectra->waves[bin][place] = (float)(cos(phase) * bell);
            spectra->waves[spectra_bins + bin][place] = (float)(sin(phase) * bell);
        }
        for (unsigned across = 0; across < spectra_bins; across++) {
            const double cycles = (bin + .5) * (bin + .5) + (across + .5) * (across + .5);
            spectra->just_seen[bin][across] = (float)(just_seen * (1 + cycles / finer));
        }
    }
    for (unsigned place = 0; place < spectra_step; place++)
        spectra->shares[place] = (float)pow(sin(pi * (place + .5) / spectra_side), 2);
}

/* Half of a window's line, and its place in memory. */
typedef float half_line __attribute__((vector_size(spectra_step * sizeof(float))));
typedef float half_place
    __attribute__((vector_size(spectra_step * sizeof(float)), aligned(sizeof(float)), may_alias));

struct window {
    half_line left[spectra_side], right[spectra_side];
};

#define SPECTRA_INLINE         static inline __attribute__((always_inline))
#define SPECTRA_MIRRORED(line) __builtin_shufflevector(line, line, 7, 6, 5, 4, 3, 2, 1, 0)

/* The transform along columns: the rows above the middle and their mirror images are sums of even and odd
 * waves. */
SPECTRA_INLINE void waves_down(const struct spectra *spectra, struct window *window)
{
    half_line even[spectra_step][2], odd[spectra_step][2];
    for (unsigned row = 0; row < spectra_step; row++) {
        const unsigned mirrored = spectra_side - 1 - row;
        even[row][0] = window->left[row] + window->left[mirrored];
        even[row][1] = window->right[row] + window->right[mirrored];
        odd[row][0] = window->left[row] - window->left[mirrored];
        odd[row][1] = window->right[row] - window->right[mirrored];
    }
    for (unsigned bin = 0; bin < spectra_bins; bin++) {
        const float *cosine = spectra->waves[bin], *sine = spectra->waves[spectra_bins + bin];
        half_line sums[4] = {0};
        for (unsigned row = 0; row < spectra_step; row++) {
            sums[0] += even[row][0] * cosine[row];
            sums[1] += even[row][1] * cosine[row];
            sums[2] += odd[row][0] * sine[row];
            sums[3] += odd[row][1] * sine[row];
        }
        window->left[bin] = sums[0];
        window->right[bin] = sums[1];
        window->left[spectra_bins + bin] = sums[2];
        window->right[spectra_bins + bin] = sums[3];
    }
}

/* The transform along rows: cosines become the left half, sines the right one. */
SPECTRA_INLINE void waves_across(const half_line waves[spectra_side], struct window *window)
{
    for (unsigned row = 0; row < spectra_side; row++) {
        const half_line mirrored = SPECTRA_MIRRORED(window->right[row]);
        const half_line even = window->left[row] + mirrored, odd = window->left[row] - mirrored;
        half_line cosines = {0}, sines = {0};
        for (unsigned place = 0; place < spectra_step; place++) {
            cosines += waves[place] * even[place];
            sines += waves[spectra_step + place] * odd[place];
        }
        window->left[row] = cosines;
        window->right[row] = sines;
    }
}

/* The inverse transform along rows. */
SPECTRA_INLINE void lines_across(const struct spectra *spectra, struct window *window)
{
    for (unsigned row = 0; row < spectra_side; row++) {
        half_line even = {0}, odd = {0};
        for (unsigned bin = 0; bin < spectra_bins; bin++) {
            even += *(const half_place *)spectra->waves[bin] * window->left[row][bin];
            odd += *(const half_place *)spectra->waves[spectra_bins + bin] * window->right[row][bin];
        }
        const half_line mirrored = even - odd;
        window->left[row] = even + odd;
        window->right[row] = SPECTRA_MIRRORED(mirrored);
    }
}

/* The inverse transform along columns, added to sums. */
SPECTRA_INLINE void lines_down(const struct spectra *spectra, const struct window *window, size_t stride,
                               float *sums)
{
    for (unsigned row = 0; row < spectra_step; row++) {
        half_line even[2] = {0}, odd[2] = {0};
        for (unsigned bin = 0; bin < spectra_bins; bin++) {
            const float cosine = spectra->waves[bin][row], sine = spectra->waves[spectra_bins + bin][row];
            even[0] += window->left[bin] * cosine;
            even[1] += window->right[bin] * cosine;
            odd[0] += window->left[spectra_bins + bin] * sine;
            odd[1] += window->right[spectra_bins + bin] * sine;
        }
        half_place *upper = (half_place *)(sums + row * stride);
        half_place *lower = (half_place *)(sums + (spectra_side - 1 - row) * stride);
        for (unsigned half = 0; half < 2; half++) {
            *(half_place *)((float *)upper + half * spectra_step) += even[half] + odd[half];
            *(half_place *)((float *)lower + half * spectra_step) += even[half] - odd[half];
        }
    }
}

SPECTRA_INLINE void window_take(const struct spectra *spectra, const half_line waves[spectra_side],
                                const float *plane, size_t stride, struct window *window)
{
    for (unsigned row = 0; row < spectra_side; row++) {
        window->left[row] = *(const half_place *)(plane + row * stride);
        window->right[row] = *(const half_place *)(plane + row * stride + spectra_step);
    }
    waves_down(spectra, window);
    waves_across(waves, window);
}

/* The power of each frequency, cosines and sines together, so that it is independent of the phase. */
SPECTRA_INLINE void window_power(const struct window *window, half_line power[spectra_bins])
{
    for (unsigned bin = 0; bin < spectra_bins; bin++) {
        const half_line *left = window->left + bin, *right = window->right + bin;
        power[bin] = (left[0] * left[0] + right[0] * right[0]) +
                     (left[spectra_bins] * left[spectra_bins] + right[spectra_bins] * right[spectra_bins]);
    }
}

SPECTRA_INLINE void line_root(half_line *line)
{
    float values[spectra_step];
    memcpy(values, line, sizeof values);
    for (unsigned i = 0; i < spectra_step; i++)
        values[i] = sqrtf(values[i]);
    memcpy(line, values, sizeof values);
}

/*
 * The masking of each frequency: the root of the mean power there and in its neighbours, plus the threshold
 * of visibility.  The brightness of a window does not mask.
 */
SPECTRA_INLINE void window_hides(const struct spectra *spectra, const struct window *picture,
                                 half_line hides[spectra_bins])
{
    half_line power[spectra_bins];
    window_power(picture, power);
    power[0][0] = 0;
    for (unsigned bin = 0; bin < spectra_bins; bin++) {
        const half_line above = power[bin > 0 ? bin - 1 : 0], own = power[bin];
        const half_line sum = above + own + power[bin + 1 < spectra_bins ? bin + 1 : bin];
        const half_line before = __builtin_shufflevector(sum, sum, 0, 0, 1, 2, 3, 4, 5, 6);
        const half_line after = __builtin_shufflevector(sum, sum, 1, 2, 3, 4, 5, 6, 7, 7);
        hides[bin] = (before + sum + after) * (1 / 9.f);
        line_root(&hides[bin]);
        hides[bin] += *(const half_place *)spectra->just_seen[bin];
    }
}

/* Companding: 15/16 of the exponent is the amplitude's, 1/16 the masking's: the 32nd root of a ratio of
 * powers.  Level lines have the lowest horizontal frequency and any vertical frequency except the lowest.
 * They are the most visible. */
SPECTRA_INLINE void window_compand(const struct spectra *spectra, const half_line hides[spectra_bins],
                                   const half_line power[spectra_bins], float level,
                                   const float gains[spectra_lanes], struct window *drawn)
{
    enum { roots = 5 };
    for (unsigned bin = 0; bin < spectra_bins; bin++) {
        half_line gain = hides[bin] * hides[bin] / (power[bin] + nothing);
        for (unsigned root = 0; root < roots; root++)
            line_root(&gain);
        gain[0] *= bin > 0 ? level : 1;
        for (unsigned across = 0; across < spectra_bins; across++)
            gain[across] *= gains[spectra->groups[bin][across]];
        drawn->left[bin] *= gain;
        drawn->right[bin] *= gain;
        drawn->left[spectra_bins + bin] *= gain;
        drawn->right[spectra_bins + bin] *= gain;
    }
}

/* The first of two nodes around a value, and the value's relative distance to the second. */
struct between {
    unsigned first;
    float share;
};

SPECTRA_INLINE struct between between_of(const float nodes[spectra_nodes], float value)
{
    unsigned first = 0;
    while (first < spectra_nodes - 2 && nodes[first + 1] < value)
        first++;
    const float share = (value - nodes[first]) / (nodes[first + 1] - nodes[first]);
    return (struct between){first, share < 0 ? 0 : share > 1 ? 1 : share};
}

SPECTRA_INLINE float lines_sum(const half_line *lines, unsigned count)
{
    half_line sums = {0};
    float sum = 0;
    for (unsigned i = 0; i < count; i++)
        sums += lines[i];
    for (unsigned i = 0; i < spectra_step; i++)
        sum += sums[i];
    return sum;
}

/* The logarithm of the root mean square; the lines hold partial sums of squares. */
SPECTRA_INLINE float lines_level(const half_line lines[spectra_bins])
{
    return .5f * logf(lines_sum(lines, spectra_bins) / (spectra_bins * spectra_bins) + nothing);
}

/* The mean luma of a window of the picture. */
SPECTRA_INLINE float window_light(const float *plane, size_t stride)
{
    half_line sums = {0};
    for (unsigned row = 0; row < spectra_side; row++)
        sums += *(const half_place *)(plane + row * stride) +
                *(const half_place *)(plane + row * stride + spectra_step);
    return lines_sum(&sums, 1) / (spectra_side * spectra_side);
}

/* The gains of a window, interpolated between the nodes around it. */
SPECTRA_INLINE void window_gains(const struct spectra *spectra, const struct spectra_table *table,
                                 float light, const half_line hides[spectra_bins],
                                 const half_line power[spectra_bins], float gains[spectra_lanes])
{
    half_line squares[spectra_bins];
    for (unsigned bin = 0; bin < spectra_bins; bin++)
        squares[bin] = hides[bin] * hides[bin];
    const struct between at[] = {between_of(spectra->light, light),
                                 between_of(spectra->hides, lines_level(squares)),
                                 between_of(spectra->drawn, lines_level(power))};
    memset(gains, 0, spectra_lanes * sizeof *gains);
    for (unsigned corner = 0; corner < 8; corner++) {
        unsigned node[3];
        float share = 1;
        for (unsigned way = 0; way < 3; way++) {
            const unsigned is_second = corner >> way & 1;
            node[way] = at[way].first + is_second;
            share *= is_second ? at[way].share : 1 - at[way].share;
        }
        const float *cell = table->cells[node[0]][node[1]][node[2]];
        for (unsigned i = 0; i < spectra_lanes; i++)
            gains[i] += share * cell[i];
    }
}

ENGINE_CLONES void spectra_compand(const struct spectra *spectra, const float *drawn, const float *picture,
                                   size_t stride, size_t windows, const struct spectra_way *way, float *sums,
                                   float *fields)
{
    half_line waves[spectra_side], hides[spectra_bins], power[spectra_bins];
    for (unsigned place = 0; place < spectra_step; place++) {
        for (unsigned bin = 0; bin < spectra_bins; bin++) {
            waves[place][bin] = spectra->waves[bin][place];
            waves[spectra_step + place][bin] = spectra->waves[spectra_bins + bin][place];
        }
    }
    for (size_t i = 0; i < windows; i++) {
        const size_t first = i * spectra_step;
        struct window window;
        float gains[spectra_lanes];
        window_take(spectra, waves, picture + first, stride, &window);
        window_hides(spectra, &window, hides);
        window_take(spectra, waves, drawn + first, stride, &window);
        window_power(&window, power);
        window_gains(spectra, way->table, window_light(picture + first, stride), hides, power, gains);
        memcpy(fields + i * spectra_field_count, gains + spectra_groups,
               spectra_field_count * sizeof *fields);
        window_compand(spectra, hides, power, way->level, gains, &window);
        lines_across(spectra, &window);
        lines_down(spectra, &window, stride, sums + first);
    }
}

static void plane_advance(const struct spectra_rows *rows, float *plane)
{
    memmove(plane, spectra_row(rows, plane, spectra_step), spectra_side * rows->stride * sizeof *plane);
}

void spectra_rows_advance(struct spectra_rows *rows)
{
    plane_advance(rows, rows->drawn);
    plane_advance(rows, rows->picture);
    plane_advance(rows, rows->companded);
    float *above = rows->upper;
    rows->upper = rows->lower;
    rows->lower = above;
}

/* Adds the windows that begin at a row of the current rows. */
static void windows_add(const struct spectra *spectra, const struct spectra_rows *rows, size_t windows,
                        unsigned place, const struct spectra_way *way, float *fields)
{
    spectra_compand(spectra, spectra_row(rows, rows->drawn, place), spectra_row(rows, rows->picture, place),
                    rows->stride, windows, way, spectra_row(rows, rows->companded, place), fields);
}

void spectra_rows_compand(const struct spectra *spectra, struct spectra_rows *rows, size_t windows,
                          const struct spectra_way *way, bool is_first)
{
    const size_t row_bytes = rows->stride * sizeof *rows->companded;
    memset(spectra_row(rows, rows->companded, spectra_side), 0, spectra_step * row_bytes);
    if (is_first) {
        memset(rows->companded, 0, spectra_side * row_bytes);
        windows_add(spectra, rows, windows, 0, way, rows->upper);
    }
    windows_add(spectra, rows, windows, spectra_step, way, rows->lower);
}

ENGINE_CLONES void spectra_rows_fields(const struct spectra *spectra, const struct spectra_rows *rows,
                                       size_t windows, unsigned row, float *fields)
{
    const float share = spectra->shares[row];
    for (unsigned field = 0; field < spectra_field_count; field++, fields += rows->stride) {
        const float *upper = rows->upper + field, *lower = rows->lower + field;
        float next = upper[0] + share * (lower[0] - upper[0]);
        for (size_t window = 0; window + 1 < windows; window++) {
            const size_t after = (window + 1) * spectra_field_count;
            const float here = next;
            next = upper[after] + share * (lower[after] - upper[after]);
            for (unsigned place = 0; place < spectra_step; place++)
                fields[window * spectra_step + place] = here + spectra->shares[place] * (next - here);
        }
    }
}
