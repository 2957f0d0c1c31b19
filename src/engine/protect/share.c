#include "engine/protect/share.h"

#include <math.h>
#include <string.h>

#include "engine/clones.h"
#include "engine/protect/share_fitted.h"
#include "engine/protect/visibility.h"

enum { sum_lanes = 8 }; /* of sums that the compiler keeps in a vector */

/* Of the rest, relative to the part with the form. Beyond 4 the error falls little (protection_fit.py). */
static const double rest_most = 4;

/* ---- memory */

static float *rows_lay(struct share_level *level, unsigned planes, float *memory)
{
    for (unsigned plane = 0; plane < planes; plane++) {
        level->wanted[plane] = memory;
        level->change[plane] = memory + level->width;
        memory += 2 * level->width;
    }
    return memory;
}

size_t share_floats(size_t width_px, unsigned colors)
{
    return 2 * (size_t)colors * 2 * width_px;
}

void share_begin(struct share_run *run, size_t width_px, unsigned colors, float *memory)
{
    *run = (struct share_run){.planes = colors};
    for (unsigned at = 0; at < share_octaves; at++) {
        run->levels[at].width = width_px >> at;
        memory = rows_lay(&run->levels[at], colors, memory);
    }
}

/* ---- rows */

static void row_put(float *const planes[share_planes], const float *values, size_t count, unsigned colors)
{
    if (colors == 1)
        memcpy(planes[0], values, count * sizeof *values);
    else
        visibility_opponent(values, count, planes[0], planes[1], planes[2]);
}

/* Adds the sums of two rows' products: squares of the wanted row, products, squares of the change. */
ENGINE_CLONES static void products_add(const float *restrict wanted, const float *restrict change,
                                       size_t count, double *squares, double *form, double *others)
{
    float lanes[3][sum_lanes] = {{0}};
    for (size_t i = 0; i + sum_lanes <= count; i += sum_lanes)
        for (unsigned k = 0; k < sum_lanes; k++) {
            const float one = wanted[i + k], other = change[i + k];
            lanes[0][k] += one * one;
            lanes[1][k] += one * other;
            lanes[2][k] += other * other;
        }
    for (size_t i = count / sum_lanes * sum_lanes; i < count; i++) {
        lanes[0][0] += wanted[i] * wanted[i];
        lanes[1][0] += wanted[i] * change[i];
        lanes[2][0] += change[i] * change[i];
    }
    for (unsigned k = 0; k < sum_lanes; k++) {
        *squares += (double)lanes[0][k];
        *form += (double)lanes[1][k];
        *others += (double)lanes[2][k];
    }
}

/* Writes sums of neighbours, or adds them. */
ENGINE_CLONES static void row_halved(const float *restrict values, size_t count, float share,
                                     float *restrict half)
{
    for (size_t i = 0; i < count; i++)
        half[i] = share * half[i] + .25f * (values[2 * i] + values[2 * i + 1]);
}

/* Takes a row of a level. Two rows are a row of the next level. */
static void level_row(struct share_run *run, unsigned at)
{
    struct share_level *level = &run->levels[at], *next = level + 1;
    for (unsigned plane = 0; plane < run->planes; plane++) {
        const unsigned kind = plane > 0;
        products_add(level->wanted[plane], level->change[plane], level->width, &run->sums.wanted[at][kind],
                     &run->sums.form[at][kind], &run->sums.squares[at][kind]);
    }
    if (at + 1 == share_octaves)
        return;
    const float share = level->rows++ % 2 == 0 ? 0 : 1;
    for (unsigned plane = 0; plane < run->planes; plane++) {
        row_halved(level->wanted[plane], next->width, share, next->wanted[plane]);
        row_halved(level->change[plane], next->width, share, next->change[plane]);
    }
    if (share > 0)
        level_row(run, at + 1);
}

void share_wanted(struct share_run *run, const float *wanted)
{
    row_put(run->levels[0].wanted, wanted, run->levels[0].width, run->planes);
}

void share_change(struct share_run *run, const float *change)
{
    row_put(run->levels[0].change, change, run->levels[0].width, run->planes);
    level_row(run, 0);
}

/* ---- the share */

/* A sample of an octave stands for four samples of the finer one. */
static void bands_of(double sums[share_octaves][share_kinds])
{
    for (unsigned at = 0; at < share_octaves; at++)
        for (unsigned kind = 0; kind < share_kinds; kind++) {
            const double coarser = at + 1 < share_octaves ? 4 * sums[at + 1][kind] : 0;
            sums[at][kind] = ldexp(sums[at][kind] - coarser, 2 * (int)at);
        }
}

struct share_sums share_end(const struct share_run *run)
{
    struct share_sums sums = run->sums;
    bands_of(sums.wanted);
    bands_of(sums.form);
    bands_of(sums.squares);
    memcpy(sums.bounded, sums.form, sizeof sums.bounded);
    return sums;
}

/*
 * Returns the product of the first change and the wanted change without limits, relative to that with the
 * bounded one. The bounded one is known later, too.
 */
static double bound_lift(double form, double bounded)
{
    return bounded > 0 ? form / bounded : 1;
}

double share_estimate(const struct share_sums *sums, double scale, const struct share_sums *whole,
                      double whole_scale)
{
    double wanted = 0, form = 0, rest = 0;
    for (unsigned at = 0; at < share_octaves; at++)
        for (unsigned kind = 0; kind < share_kinds; kind++) {
            const double factor = share_factors[at] * (kind > 0 ? share_colour : 1);
            const double squares = whole_scale * whole_scale,
                         lift = bound_lift(whole->form[at][kind], whole->bounded[at][kind]),
                         own = squares * whole->wanted[at][kind],
                         shared = scale * sums->form[at][kind] * lift,
                         alike = own > 0 ? shared * shared / own : 0;
            wanted += factor * own;
            form += factor * shared;
            rest += factor * fmin(fmax(sums->squares[at][kind] - alike, 0), rest_most * alike);
        }
    if (wanted <= 0)
        return 0;
    const double part = fmax(form / wanted, 0);
    return fmin(sqrt(part * part + share_rest * rest / wanted), 1);
}
