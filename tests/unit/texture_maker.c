#include "texture_maker.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t random_next(uint64_t *seed)
{
    uint64_t z = *seed += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

double random_uniform(uint64_t *seed)
{
    return (double)(random_next(seed) >> 11) / 9007199254740992.0;
}

double random_gauss(uint64_t *seed)
{
    double u = 1 - random_uniform(seed);

    return sqrt(-2 * log(u)) * cos(2 * M_PI * random_uniform(seed));
}

struct image image_make(uint32_t width_px, uint32_t height_px, uint32_t channels, uint32_t depth_bits)
{
    size_t stride = (size_t)width_px * channels * (depth_bits / 8);

    return (struct image){width_px, height_px, channels, depth_bits, stride, calloc(height_px, stride)};
}

struct image image_copy(const struct image *image)
{
    struct image copy = *image;

    copy.pixels = malloc(image->stride_bytes * image->height_px);
    memcpy(copy.pixels, image->pixels, image->stride_bytes * image->height_px);
    return copy;
}

static unsigned char *sample_place(const struct image *image, uint32_t x, uint32_t y, uint32_t channel)
{
    return (unsigned char *)image->pixels + y * image->stride_bytes +
           ((size_t)x * image->channels + channel) * (image->depth_bits / 8);
}

static double sample_get(const struct image *image, uint32_t x, uint32_t y, uint32_t channel)
{
    uint16_t wide;

    if (image->depth_bits == 8)
        return *sample_place(image, x, y, channel);
    memcpy(&wide, sample_place(image, x, y, channel), sizeof wide);
    return wide / 257.0;
}

static void sample_set(const struct image *image, uint32_t x, uint32_t y, uint32_t channel, double value)
{
    double limited = fmin(fmax(value, 0), 255);
    uint16_t wide = (uint16_t)lround(limited * 257);

    if (image->depth_bits == 8)
        *sample_place(image, x, y, channel) = (unsigned char)lround(limited);
    else
        memcpy(sample_place(image, x, y, channel), &wide, sizeof wide);
}

enum { waves = 14 };

struct wave {
    double fx, fy, phase, size, tint;
};

/* Adds the waves along row y by rotating phasors, which is cheaper than a cosine per pixel. */
static void waves_row(const struct wave *wave, uint32_t y, double *row, uint32_t width)
{
    memset(row, 0, width * sizeof *row);
    for (int i = 0; i < waves; i++) {
        double real = wave[i].size * cos(wave[i].fy * y + wave[i].phase);
        double imaginary = wave[i].size * sin(wave[i].fy * y + wave[i].phase);
        double cosine = cos(wave[i].fx), sine = sin(wave[i].fx);

        for (uint32_t x = 0; x < width; x++) {
            double turned = real * cosine - imaginary * sine;

            row[x] += real;
            imaginary = real * sine + imaginary * cosine;
            real = turned;
        }
    }
}

/* Returns approximately Gaussian noise; cheaper than random_gauss. */
static double grain_next(uint64_t *seed)
{
    uint64_t bits = random_next(seed);
    double sum = (double)(bits & 0xffff) + (double)(bits >> 16 & 0xffff) + (double)(bits >> 32 & 0xffff) +
                 (double)(bits >> 48);

    return (sum / 65536 - 2) * 1.7320508;
}

struct image texture_make(uint32_t width_px, uint32_t height_px, uint32_t channels, uint32_t depth_bits,
                          uint64_t seed)
{
    struct image image = image_make(width_px, height_px, channels, depth_bits);
    uint32_t colors = channels >= 3 ? 3 : 1;
    double grain = 1 + 8 * random_uniform(&seed);
    double steps = random_uniform(&seed) < 0.5 ? 1 : 24;
    struct wave wave[waves];
    double *row = malloc(width_px * sizeof *row);

    for (int i = 0; i < waves; i++) {
        double frequency = 0.01 * pow(60, random_uniform(&seed));
        double angle = 2 * M_PI * random_uniform(&seed);

        wave[i] =
            (struct wave){frequency * cos(angle), frequency * sin(angle), 2 * M_PI * random_uniform(&seed),
                          0.6 / sqrt(frequency + 0.005), random_uniform(&seed)};
    }
    for (uint32_t y = 0; y < height_px; y++) {
        waves_row(wave, y, row, width_px);
        for (uint32_t x = 0; x < width_px; x++) {
            double value = floor(row[x] * 6 / steps) * steps + grain * grain_next(&seed);

            for (uint32_t c = 0; c < colors; c++)
                sample_set(&image, x, y, c, 118 + 20 * wave[c].tint + value * (0.8 + 0.3 * wave[c + 3].tint));
            if (channels % 2 == 0)
                sample_set(&image, x, y, channels - 1, 255);
        }
    }
    free(row);
    return image;
}

static double sample_between(const struct image *image, double x, double y, uint32_t channel)
{
    int left = (int)floor(x), top = (int)floor(y);
    double sum = 0;

    for (int j = -1; j <= 2; j++) {
        for (int i = -1; i <= 2; i++) {
            int column = left + i, row = top + j;
            double a = fabs(x - column), b = fabs(y - row);
            double across = a < 1 ? (1.5 * a - 2.5) * a * a + 1 : ((-0.5 * a + 2.5) * a - 4) * a + 2;
            double down = b < 1 ? (1.5 * b - 2.5) * b * b + 1 : ((-0.5 * b + 2.5) * b - 4) * b + 2;

            if (column >= 0 && row >= 0 && column < (int)image->width_px && row < (int)image->height_px)
                sum += across * down * sample_get(image, (uint32_t)column, (uint32_t)row, channel);
        }
    }
    return sum;
}

struct image image_warp(const struct image *source, const double matrix[4], const double shift[2],
                        uint32_t width_px, uint32_t height_px)
{
    struct image image = image_make(width_px, height_px, source->channels, source->depth_bits);

    for (uint32_t y = 0; y < height_px; y++) {
        for (uint32_t x = 0; x < width_px; x++) {
            double px = x + 0.5 - width_px / 2.0, py = y + 0.5 - height_px / 2.0;
            double sx = matrix[0] * px + matrix[1] * py + source->width_px / 2.0 + shift[0] - 0.5;
            double sy = matrix[2] * px + matrix[3] * py + source->height_px / 2.0 + shift[1] - 0.5;

            for (uint32_t c = 0; c < source->channels; c++)
                sample_set(&image, x, y, c, sample_between(source, sx, sy, c));
        }
    }
    return image;
}

struct image image_slant(const struct image *source, const double slant[2], uint32_t width_px,
                         uint32_t height_px)
{
    struct image image = image_make(width_px, height_px, source->channels, source->depth_bits);

    for (uint32_t y = 0; y < height_px; y++) {
        for (uint32_t x = 0; x < width_px; x++) {
            double px = x + 0.5 - width_px / 2.0, py = y + 0.5 - height_px / 2.0;
            double depth = 1 + slant[0] * px + slant[1] * py;
            double sx = px / depth + source->width_px / 2.0 - 0.5;
            double sy = py / depth + source->height_px / 2.0 - 0.5;

            for (uint32_t c = 0; c < source->channels; c++)
                sample_set(&image, x, y, c, sample_between(source, sx, sy, c));
        }
    }
    return image;
}

double image_error(const struct image *a, const struct image *b)
{
    uint32_t colors = a->channels >= 3 ? 3 : 1;
    double sum = 0;

    for (uint32_t y = 0; y < a->height_px; y++)
        for (uint32_t x = 0; x < a->width_px; x++)
            for (uint32_t c = 0; c < colors; c++) {
                double difference = sample_get(a, x, y, c) - sample_get(b, x, y, c);

                sum += difference * difference;
            }
    return sum / ((double)a->width_px * a->height_px * colors);
}
