/*
 * Protects a generated picture and writes the samples to standard output: protect_raw WEIGHTS KERNELS.
 * KERNELS is a name of struct conv_kernels. test_arm.py compiles this program for several processors and
 * compares the samples.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/protect/plan.h"

enum { width = 320, height = 240, weights_max = 1 << 20, seed = 7 };

static uint8_t samples[height][width][3];
static uint8_t weights[weights_max];

/* Fills the picture with gradients, waves and edges. */
static void picture_make(void)
{
    for (unsigned y = 0; y < height; y++)
        for (unsigned x = 0; x < width; x++)
            for (unsigned c = 0; c < 3; c++)
                samples[y][x][c] =
                    (uint8_t)(50 + x * (2 + c) / 10 + y / 8 + (x * x * 13 + y * y * 31) % (7 + 2 * c) +
                              ((x / 40 + y / 30) % 2) * 20);
}

static const struct conv_kernels *kernels_by_name(const char *name)
{
    const struct conv_kernels *kernels = conv_kernels_at(0);
    for (unsigned place = 1; kernels != NULL && strcmp(kernels->name, name) != 0; place++)
        kernels = conv_kernels_at(place);
    return kernels;
}

static size_t weights_read(const char *path)
{
    FILE *file = fopen(path, "rb");
    const size_t size = file != NULL ? fread(weights, 1, sizeof weights, file) : 0;
    if (file != NULL)
        fclose(file);
    return size;
}

int main(int argc, char **argv)
{
    struct image image = {width, height, 3, 8, sizeof samples[0], samples};
    struct protect *protect = NULL;
    struct protect_report report;
    const char *why = NULL;
    const struct conv_kernels *kernels = argc == 3 ? kernels_by_name(argv[2]) : NULL;
    if (kernels == NULL || protect_new(&protect, weights, weights_read(argv[1]), &why) != IW_OK) {
        fprintf(stderr, "protect_raw: %s\n",
                why != NULL ? why : "the processor does not support these kernels");
        return 2;
    }
    protect->net.kernels = kernels;
    picture_make();
    const enum iw_error error = protect_apply(protect, &image, PROTECT_STANDARD, seed, &report);
    protect_free(protect);
    return error == IW_OK && fwrite(samples, sizeof samples, 1, stdout) == 1 ? 0 : 1;
}
