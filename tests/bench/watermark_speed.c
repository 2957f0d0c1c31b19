/*
 * Measures the watermark engine: CPU milliseconds on one core and peak memory, on generated
 * pictures. Run by tests/bench/watermark.
 */
#include "engine/watermark/watermark.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const uint8_t key[WATERMARK_KEY_BYTES] = {1, 2, 3};
static const uint64_t number = 0x0123456789abcdef;

/* Draws smooth shapes under three octaves of noise, with about as much texture as a photo. */
static struct image picture_make(uint32_t width, uint32_t height)
{
    struct image image = {width, height, 3, 8, (size_t)width * 3, malloc((size_t)width * height * 3)};
    uint8_t *to = image.pixels;
    uint32_t seed = 1;
    if (to == NULL)
        exit(2);
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++)
            for (uint32_t c = 0; c < 3; c++) {
                uint32_t coarse = ((x >> 5) * 2654435761u ^ (y >> 5) * 40503u) >> 13 & 63;
                uint32_t fine = ((x >> 2) * 2246822519u ^ (y >> 2) * 3266489917u) >> 17 & 31;
                seed = seed * 1664525u + 1013904223u;
                *to++ = (uint8_t)(60 + coarse + fine + (seed >> 28) + (x * 40 / width) + 10 * c);
            }
    return image;
}

static double cpu_ms(void)
{
    return (double)clock() * 1000 / CLOCKS_PER_SEC;
}

static void line_print(const char *what, double ms, double bound, double aim)
{
    printf("%-46s %8.0f %8.0f %8.0f   %s\n", what, ms, bound, aim,
           ms <= aim     ? "aim"
           : ms <= bound ? "bar"
                         : "MISSED");
}

/* Returns the minimum of several runs, because other programs disturb it least. */
static double embed_ms(const struct image *picture, struct image *marked, int runs)
{
    double least = 1e9;
    for (int run = 0; run < runs; run++) {
        memcpy(marked->pixels, picture->pixels, picture->stride_bytes * picture->height_px);
        double begin = cpu_ms();
        if (watermark_embed(marked, key, number, NULL, NULL) != IW_OK)
            exit(2);
        double took = cpu_ms() - begin;
        least = took < least ? took : least;
    }
    return least;
}

static double extract_ms(const struct image *picture, enum iw_error wanted, int runs)
{
    double least = 1e9;
    for (int run = 0; run < runs; run++) {
        struct watermark_numbers seen;
        double begin = cpu_ms();
        if (watermark_extract(picture, NULL, key, NULL, &seen, NULL) != wanted ||
            (wanted == IW_OK && seen.numbers[0] != number))
            exit(2);
        double took = cpu_ms() - begin;
        least = took < least ? took : least;
    }
    return least;
}

static void size_measure(uint32_t width, uint32_t height, const double bounds[3][2], int runs)
{
    struct image picture = picture_make(width, height);
    struct image marked = picture_make(width, height);
    char what[80];
    snprintf(what, sizeof what, "embed %u x %u, CPU ms", width, height);
    line_print(what, embed_ms(&picture, &marked, runs), bounds[0][0], bounds[0][1]);
    snprintf(what, sizeof what, "extract %u x %u, marked, CPU ms", width, height);
    line_print(what, extract_ms(&marked, IW_OK, runs), bounds[1][0], bounds[1][1]);
    snprintf(what, sizeof what, "extract %u x %u, unmarked, CPU ms", width, height);
    line_print(what, extract_ms(&picture, IW_WATERMARK_NOT_FOUND, runs), bounds[2][0], bounds[2][1]);
    free(picture.pixels);
    free(marked.pixels);
}

/* Measures in a child process, which has a separate peak of memory. */
static void memory_measure(uint32_t width, uint32_t height, double bound_mib)
{
    int status = 0;
    struct rusage usage;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct image picture = picture_make(width, height);
        struct watermark_numbers seen;
        bool is_done = watermark_embed(&picture, key, number, NULL, NULL) == IW_OK &&
                       watermark_extract(&picture, NULL, key, NULL, &seen, NULL) == IW_OK &&
                       seen.numbers[0] == number;
        _exit(is_done ? 0 : 2);
    }
    if (child < 0 || wait4(child, &status, 0, &usage) < 0 || status != 0)
        exit(2);
    char what[80];
    snprintf(what, sizeof what, "peak memory, %.0f megapixels, MiB", (double)width * height / 1e6);
    line_print(what, (double)usage.ru_maxrss / 1024, bound_mib, bound_mib);
}

int main(void)
{
    static const double small[3][2] = {{60, 25}, {60, 20}, {2000, 400}};
    static const double large[3][2] = {{900, 400}, {600, 150}, {2000, 400}};
    printf("%-46s %8s %8s %8s\n", "cost", "measured", "bar", "aim");
    memory_measure(9487, 6325, 600);
    memory_measure(12000, 8334, 1024);
    size_measure(768, 512, small, 5);
    size_measure(4000, 3000, large, 2);
    return 0;
}
