#include "engine/watermark/lattice.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <fftw3.h>

#include "engine/watermark/keystream.h"

/* The key has a separate stream for each purpose. */
enum purpose { PURPOSE_TONES = 1, PURPOSE_LUMA, PURPOSE_CHROMA, PURPOSE_NUMBER, PURPOSES };

/* Amplitude of a band over frequency, in cycles a chip. */
struct band_shape {
    double low;  /* zero below */
    double rise; /* full from here */
    double fall; /* full up to here */
    double high; /* zero above */
};

/* Parameters that differ between the forms. No published source; `./dev bench watermark` measures them. */
static const struct form {
    struct band_shape luma;
    struct band_shape chroma;
    double tone_radius[2];     /* lattice units, of the first and the last tone */
    int tone_distance_squared; /* minimum between two tones, lattice units squared */
} forms[] = {
    [LATTICE_OVERLAY] = {{0.05, 0.085, 0.20, 0.30}, {0.02, 0.04, 0.10, 0.20}, {6.0, 24.0}, 8},
    [LATTICE_UNDERLAY] = {{0.022, 0.03, 0.10, 0.14}, {0.022, 0.03, 0.10, 0.14}, {3.5, 12.0}, 4},
};

static double shape_amplitude(const struct band_shape *shape, double frequency)
{
    double way = 1;

    if (frequency <= shape->low || frequency >= shape->high)
        return 0;
    if (frequency < shape->rise)
        way = (frequency - shape->low) / (shape->rise - shape->low);
    if (frequency > shape->fall)
        way = (shape->high - frequency) / (shape->high - shape->fall);
    return 0.15 + 0.85 * way;
}

static int radius_squared(int kx, int ky)
{
    return kx * kx + ky * ky;
}

static bool tone_fits(const struct lattice *lattice, unsigned count, int distance_squared, int kx, int ky)
{
    if (kx < 2 || abs(ky) < 2)
        return false;
    for (unsigned i = 0; i < count; i++)
        if (radius_squared(kx - lattice->tones[i].kx, ky - lattice->tones[i].ky) < distance_squared)
            return false;
    return true;
}

static double uniform(struct keystream *stream)
{
    return keystream_word(stream) / 4294967296.0;
}

/*
 * Draws tones uniformly over the logarithm of the frequency and over the angle. If no free point fits a
 * tone, the range of radii widens, so the search ends for every key.
 */
static void tones_draw(struct lattice *lattice, const struct form *form, const uint8_t key[32],
                       uint32_t purpose)
{
    struct keystream stream;
    unsigned tries = 0;
    unsigned i = 0;

    keystream_init(&stream, key, purpose);
    while (i < lattice_tones) {
        double spread = 1 + tries / 16.0;
        double way = (i + 0.5 + spread * (uniform(&stream) - 0.5)) / lattice_tones;
        double radius =
            form->tone_radius[0] * pow(form->tone_radius[1] / form->tone_radius[0], fmin(fmax(way, 0), 1));
        double angle = M_PI * (uniform(&stream) - 0.5);
        double phase = 2 * M_PI * uniform(&stream);
        int kx = (int)lround(radius * cos(angle));
        int ky = (int)lround(radius * sin(angle));

        tries++;
        if (!tone_fits(lattice, i, form->tone_distance_squared, kx, ky))
            continue;
        tries = 0;
        lattice->tones[i].kx = (int16_t)kx;
        lattice->tones[i].ky = (int16_t)ky;
        lattice->tones[i].amplitude = (float)sqrt(0.5 / lattice_tones);
        lattice->tones[i].cosine = (float)cos(phase);
        lattice->tones[i].sine = (float)sin(phase);
        i++;
    }
}

static bool is_tone(const struct lattice *lattice, int kx, int ky)
{
    for (unsigned i = 0; i < lattice_tones; i++)
        if (lattice->tones[i].kx == kx && lattice->tones[i].ky == ky)
            return true;
    return false;
}

static int point_compare(const void *left, const void *right)
{
    const struct lattice_point *a = left;
    const struct lattice_point *b = right;
    int by_radius = radius_squared(a->kx, a->ky) - radius_squared(b->kx, b->ky);

    if (by_radius != 0)
        return by_radius;
    return a->kx != b->kx ? a->kx - b->kx : a->ky - b->ky;
}

/*
 * Lists the points of a band. The axes are excluded, because the edges of pictures and of JPEG's blocks lie
 * there.
 */
static void points_list(const struct lattice *lattice, const struct band_shape *shape,
                        struct lattice_band *band)
{
    double energy = 0;

    band->count = 0;
    for (int kx = 1; kx <= lattice_reach; kx++) {
        for (int ky = -lattice_reach; ky <= lattice_reach; ky++) {
            double amplitude = shape_amplitude(shape, sqrt(radius_squared(kx, ky)) / lattice_period);
            struct lattice_point *point = &band->points[band->count];

            if (ky == 0 || amplitude <= 0 || band->count == lattice_points_max || is_tone(lattice, kx, ky))
                continue;
            point->kx = (int16_t)kx;
            point->ky = (int16_t)ky;
            point->amplitude = (float)amplitude;
            energy += 2 * amplitude * amplitude;
            band->count++;
        }
    }
    qsort(band->points, band->count, sizeof *band->points, point_compare);
    for (unsigned i = 0; i < band->count; i++) {
        band->points[i].amplitude = (float)(band->points[i].amplitude / sqrt(energy));
        band->points[i].ring = (uint8_t)(i * lattice_rings / band->count);
    }
}

/*
 * Every run of polar_length parts, in order of frequency, holds each coded bit once, so all bits get the
 * same mixture of frequencies.
 */
static void bits_spread(struct lattice_band *band, const uint8_t key[32], uint32_t purpose)
{
    uint16_t order[polar_length];
    struct keystream stream;

    keystream_init(&stream, key, purpose);
    for (unsigned part = 0; part < 2 * band->count; part++) {
        struct lattice_point *point = &band->points[part / 2];

        if (part % polar_length == 0)
            keystream_permutation(&stream, order, polar_length);
        point->bit[part % 2] = order[part % polar_length];
        point->sign[part % 2] = keystream_word(&stream) & 1 ? -1 : 1;
    }
}

void lattice_init(struct lattice *lattice, const uint8_t key[32], enum lattice_form form)
{
    const uint32_t first = (uint32_t)form * PURPOSES;
    struct keystream stream;

    memset(lattice, 0, sizeof *lattice);
    tones_draw(lattice, &forms[form], key, first + PURPOSE_TONES);
    points_list(lattice, &forms[form].luma, &lattice->luma);
    points_list(lattice, &forms[form].chroma, &lattice->chroma);
    bits_spread(&lattice->luma, key, first + PURPOSE_LUMA);
    bits_spread(&lattice->chroma, key, first + PURPOSE_CHROMA);
    keystream_init(&stream, key,
                   PURPOSE_NUMBER); /* the same for both forms, because their evidence is added */
    lattice->number_mask = (uint64_t)keystream_word(&stream) << 32;
    lattice->number_mask |= keystream_word(&stream);
}

/* Adds a coefficient and rotates it for the half pixel between corner and centre. */
static void coefficient_add(fftwf_complex *spectrum, int side_px, const int k[2], double real,
                            double imaginary)
{
    int row = k[1] < 0 ? k[1] + side_px : k[1];
    float *to = spectrum[(size_t)row * (size_t)(side_px / 2 + 1) + (size_t)k[0]];
    double turn = M_PI * (k[0] + k[1]) / side_px;

    to[0] += (float)(real * cos(turn) - imaginary * sin(turn));
    to[1] += (float)(real * sin(turn) + imaginary * cos(turn));
}

static void content_add(const struct lattice *lattice, const struct lattice_content *content, int side_px,
                        fftwf_complex *spectrum)
{
    for (unsigned i = 0; content->band_weight != 0 && i < content->band->count; i++) {
        const struct lattice_point *point = &content->band->points[i];
        const int k[2] = {point->kx, point->ky};
        double amplitude = (double)(content->band_weight * point->amplitude) * sqrt(0.5);

        coefficient_add(spectrum, side_px, k, amplitude * point->sign[0] * content->word[point->bit[0]],
                        amplitude * point->sign[1] * content->word[point->bit[1]]);
    }
    for (unsigned i = 0; content->tone_weight != 0 && i < lattice_tones; i++) {
        const struct lattice_tone *tone = &lattice->tones[i];
        const int k[2] = {tone->kx, tone->ky};
        double amplitude = (double)(content->tone_weight * tone->amplitude);

        coefficient_add(spectrum, side_px, k, amplitude * (double)tone->cosine,
                        amplitude * (double)tone->sine);
    }
}

float *lattice_tile(const struct lattice *lattice, const struct lattice_content *content, int side_px,
                    struct workspace *workspace)
{
    size_t columns = (size_t)side_px / 2 + 1;
    float *tile = workspace_take(workspace, (size_t)side_px * (size_t)side_px, sizeof *tile);
    size_t mark = workspace_mark(workspace);
    fftwf_complex *spectrum = workspace_take(workspace, (size_t)side_px * columns, sizeof *spectrum);

    if (spectrum == NULL)
        return NULL;
    content_add(lattice, content, side_px, spectrum);
    fftwf_plan plan = fftwf_plan_dft_c2r_2d(side_px, side_px, spectrum, tile, FFTW_ESTIMATE);
    if (plan == NULL)
        return NULL;
    fftwf_execute(plan);
    fftwf_destroy_plan(plan);
    workspace_rewind(workspace, mark);
    return tile;
}
