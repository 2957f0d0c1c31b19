/*
 * CMYK for the engines: an sRGB rendition, and a change of it applied to the inks.
 *
 * The conversion is a grid of nodes over the four inks, linear in each ink between the nodes.
 * lcms2 fills it from the profile. Without a profile it is (1 - ink)(1 - black), as in
 * browsers; linear interpolation is exact for that.
 *
 * Nodes are not clipped to sRGB, so changes of colours outside sRGB are carried too.
 */
#include "codec/cmyk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codec/conversion.h"
#include "codec/metadata/keep.h"

/* 17 nodes per ink, as in lcms2 for four channels (cmspcs.c, _cmsReasonableGridpointsByColorspace). */
enum { inks = 4, colors = 3, nodes = 17, node_count = nodes * nodes * nodes * nodes, full = 255 };

/* Index distance to the next node of each ink. */
static const unsigned node_step[inks] = {nodes * nodes * nodes, nodes *nodes, nodes, 1};

/* An sRGB colour, 0..1 inside the gamut, as one SIMD vector. The fourth lane is padding. */
typedef float color __attribute__((vector_size(16)));

struct cmyk_grid {
    color node[node_count];
    unsigned lower[full + 1]; /* per ink value: the node below, and the distance above it */
    float above[full + 1];
};

/*
 * Limit on the change of an ink per unit of colour. Near full black the other inks have no
 * visible effect; a change there costs ink and bits. With damped least squares the largest gain
 * is 1 / (2 sqrt(damping)).
 */
static const float ink_gain_max = 4;

/* The second step corrects errors of the first: damping, curvature, clipped inks. */
enum { carry_steps = 2 };

/* ---- the grid ---- */

static void node_inks(unsigned node, float percent[inks])
{
    for (int ink = 0; ink < inks; ink++)
        percent[ink] = (float)(node / node_step[ink] % nodes) * 100 / (nodes - 1);
}

static void grid_fill_plain(struct cmyk_grid *grid)
{
    for (unsigned node = 0; node < node_count; node++) {
        float percent[inks];
        node_inks(node, percent);
        for (int c = 0; c < colors; c++)
            grid->node[node][c] = (1 - percent[c] / 100) * (1 - percent[3] / 100);
    }
}

/*
 * Fills one slice of the first ink at a time to save memory. False if the profile gives values
 * that are not finite.
 */
static bool grid_fill_by(struct cmyk_grid *grid, cmsHTRANSFORM transform)
{
    enum { slice = nodes * nodes * nodes };
    float *percent = malloc(sizeof *percent * slice * inks), *rgb = malloc(sizeof *rgb * slice * colors);
    bool is_sound = percent != NULL && rgb != NULL;
    for (unsigned first = 0; is_sound && first < node_count; first += slice) {
        for (unsigned i = 0; i < slice; i++)
            node_inks(first + i, percent + (size_t)i * inks);
        cmsDoTransform(transform, percent, rgb, slice);
        for (unsigned i = 0; i < slice * colors; i++) {
            is_sound = is_sound && isfinite(rgb[i]);
            grid->node[first + i / colors][i % colors] = fminf(fmaxf(rgb[i], -1), 2);
        }
    }
    free(percent);
    free(rgb);
    return is_sound;
}

/* Relative colorimetric with black point compensation, Photoshop's default. */
static bool grid_fill_profile(struct cmyk_grid *grid, const void *icc, size_t size)
{
    struct conversion conversion;
    if (conversion_open(&conversion, icc, size) && cmsGetColorSpace(conversion.from) == cmsSigCmykData)
        conversion.transform = cmsCreateTransformTHR(
            conversion.lcms, conversion.from, TYPE_CMYK_FLT, conversion.to, TYPE_RGB_FLT,
            INTENT_RELATIVE_COLORIMETRIC, cmsFLAGS_BLACKPOINTCOMPENSATION | cmsFLAGS_NOCACHE);
    bool is_filled = conversion.transform != NULL && grid_fill_by(grid, conversion.transform);
    conversion_close(&conversion);
    return is_filled;
}

struct cmyk_grid *cmyk_grid_new(const void *icc, size_t size)
{
    struct cmyk_grid *grid = calloc(1, sizeof *grid);
    if (grid == NULL)
        return NULL;
    for (unsigned ink = 0; ink <= full; ink++) {
        unsigned lower = ink * (nodes - 1) / full;
        grid->lower[ink] = lower < nodes - 1 ? lower : nodes - 2;
        grid->above[ink] = (float)ink * (nodes - 1) / full - (float)grid->lower[ink];
    }
    if (icc == NULL || size > keep_bytes_max || !grid_fill_profile(grid, icc, size))
        grid_fill_plain(grid);
    return grid;
}

/* ---- inks to colours ---- */

/* A colour and its derivatives by each ink. */
struct slope {
    color here;
    color by_ink[inks];
};

static inline color color_mix(color a, color b, float t)
{
    return a + t * (b - a);
}

static inline color color_step(color a, color b)
{
    return (b - a) * (float)(nodes - 1);
}

/* The 16 nodes around a point; the last ink varies fastest. */
static inline const color *cell_of(const struct cmyk_grid *grid, const unsigned char *ink)
{
    unsigned node = 0;
    for (int i = 0; i < inks; i++)
        node += grid->lower[ink[i]] * node_step[i];
    return &grid->node[node];
}

static inline color corner(const color *cell, unsigned which)
{
    return cell[(which >> 3 & 1) * node_step[0] + (which >> 2 & 1) * node_step[1] +
                (which >> 1 & 1) * node_step[2] + (which & 1) * node_step[3]];
}

static color grid_color(const struct cmyk_grid *grid, const unsigned char *ink)
{
    const color *cell = cell_of(grid, ink);
    color at[8];
    for (unsigned i = 0; i < 8; i++)
        at[i] = color_mix(corner(cell, 2 * i), corner(cell, 2 * i + 1), grid->above[ink[3]]);
    for (unsigned count = 4, dimension = 2; count > 0; count /= 2, dimension--)
        for (unsigned i = 0; i < count; i++)
            at[i] = color_mix(at[2 * i], at[2 * i + 1], grid->above[ink[dimension]]);
    return at[0];
}

static void grid_slope(const struct cmyk_grid *grid, const unsigned char *ink, struct slope *slope)
{
    const color *cell = cell_of(grid, ink);
    color at[8], by[inks][8];
    for (unsigned i = 0; i < 8; i++) {
        at[i] = color_mix(corner(cell, 2 * i), corner(cell, 2 * i + 1), grid->above[ink[3]]);
        by[3][i] = color_step(corner(cell, 2 * i), corner(cell, 2 * i + 1));
    }
    for (unsigned count = 4, dimension = 2; count > 0; count /= 2, dimension--)
        for (unsigned i = 0; i < count; i++) {
            float t = grid->above[ink[dimension]];
            by[dimension][i] = color_step(at[2 * i], at[2 * i + 1]);
            for (unsigned done = dimension + 1; done < inks; done++)
                by[done][i] = color_mix(by[done][2 * i], by[done][2 * i + 1], t);
            at[i] = color_mix(at[2 * i], at[2 * i + 1], t);
        }
    slope->here = at[0];
    for (int i = 0; i < inks; i++)
        slope->by_ink[i] = by[i][0];
}

void cmyk_to_rgb(const struct cmyk_grid *grid, const unsigned char *ink, uint32_t count, unsigned char *rgb)
{
    for (; count > 0; count--, ink += inks, rgb += colors) {
        color here = grid_color(grid, ink);
        for (int c = 0; c < colors; c++)
            rgb[c] = (unsigned char)lrintf(fminf(fmaxf(here[c], 0), 1) * full);
    }
}

/* ---- colours to inks ---- */

/* Solves (J J' + damping) w = wanted, a symmetric 3x3 system, by Cramer's rule. */
static void solve(const struct slope *slope, const float wanted[colors], float w[colors])
{
    float m[colors][colors];
    for (int i = 0; i < colors; i++)
        for (int j = 0; j < colors; j++) {
            m[i][j] = i == j ? 1 / (4 * ink_gain_max * ink_gain_max) : 0;
            for (int ink = 0; ink < inks; ink++)
                m[i][j] += slope->by_ink[ink][i] * slope->by_ink[ink][j];
        }
    float minor[colors][colors];
    for (int i = 0; i < colors; i++)
        for (int j = 0; j < colors; j++) {
            int a = (i + 1) % colors, b = (i + 2) % colors, c = (j + 1) % colors, d = (j + 2) % colors;
            minor[i][j] = m[a][c] * m[b][d] - m[a][d] * m[b][c];
        }
    float determinant = m[0][0] * minor[0][0] + m[0][1] * minor[0][1] + m[0][2] * minor[0][2];
    for (int i = 0; i < colors; i++)
        w[i] = (minor[0][i] * wanted[0] + minor[1][i] * wanted[1] + minor[2][i] * wanted[2]) / determinant;
}

/*
 * The smallest change of the inks that gives the wanted change of colour: damped least squares
 * (Levenberg, 1944).
 */
static void inks_move(const struct slope *slope, const float wanted[colors], float moved[inks])
{
    float w[colors];
    solve(slope, wanted, w);
    for (int ink = 0; ink < inks; ink++) {
        float move = 0;
        for (int c = 0; c < colors; c++)
            move += slope->by_ink[ink][c] * w[c];
        moved[ink] = fminf(fmaxf(moved[ink] + move * full, 0), full);
    }
}

static void pixel_carry(const struct cmyk_grid *grid, const unsigned char *ink, const float change[colors],
                        unsigned char *out)
{
    struct slope slope;
    color before = grid_color(grid, ink);
    float exact[inks];
    for (int i = 0; i < inks; i++)
        exact[i] = out[i] = ink[i];
    for (int step = 0; step < carry_steps; step++) {
        float wanted[colors];
        grid_slope(grid, out, &slope);
        /* The slope is that of the rounded inks, which differ from the exact inks by less than one step. */
        for (int c = 0; c < colors; c++) {
            wanted[c] = change[c] - (slope.here[c] - before[c]);
            for (int i = 0; i < inks; i++)
                wanted[c] -= slope.by_ink[i][c] * (exact[i] - out[i]) / full;
        }
        inks_move(&slope, wanted, exact);
        for (int i = 0; i < inks; i++)
            out[i] = (unsigned char)lrintf(exact[i]);
    }
}

void cmyk_carry(const struct cmyk_grid *grid, const unsigned char *ink, const unsigned char *rgb,
                uint32_t count, unsigned char *out)
{
    for (; count > 0; count--, ink += inks, rgb += colors, out += inks) {
        unsigned char before[colors];
        float change[colors];
        cmyk_to_rgb(grid, ink, 1, before);
        if (memcmp(before, rgb, colors) == 0) {
            memcpy(out, ink, inks);
            continue;
        }
        for (int c = 0; c < colors; c++)
            change[c] = (float)(rgb[c] - before[c]) / full;
        pixel_carry(grid, ink, change, out);
    }
}
