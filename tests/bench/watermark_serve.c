/*
 * The watermark engine for many pictures in one process, as imgwardctl runs it but without
 * files. Used by tests/bench/watermark.
 *
 * Requests on stdin are lines with data after them; responses are on stdout:
 *   key, 32 bytes                            no response
 *   candidates COUNT, 64-bit numbers         no response; for the extractions that follow
 *   extract WIDTH HEIGHT, the picture        a line: 16 hexadecimal digits, or - without a watermark;
 *                                            the highest correlation of all attempts; their count
 *   likeness WIDTH HEIGHT, the picture       a line: the count of marks; of each the number, and its
 * comparison with the picture in which it was embedded: match, wanted, answer embed 16HEX WIDTH HEIGHT, the
 * picture    a line: ok and the marked picture, or - for a failure
 *
 * Pictures are RGB, 8 bits per channel.
 */
#include "engine/watermark/likeness.h"
#include "engine/watermark/watermark.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIDE_MAX_PX 30000u

static uint8_t key[WATERMARK_KEY_BYTES];
static uint64_t numbers[WATERMARK_CANDIDATES_MOST];
static struct watermark_candidates candidates = {0, numbers};

/* The pictures that were embedded; an extraction compares with them. */
enum { marked_most = 4096 };
static struct {
    uint64_t number;
    struct watermark_view view;
} marked[marked_most];
static unsigned marked_count;

static void bytes_read(void *to, size_t size)
{
    if (fread(to, 1, size, stdin) != size)
        exit(2);
}

static void bytes_write(const void *from, size_t size)
{
    if (fwrite(from, 1, size, stdout) != size)
        exit(2);
}

static struct image picture_read(uint32_t width, uint32_t height)
{
    struct image image = {width, height, 3, 8, (size_t)width * 3, NULL};

    if (width == 0 || height == 0 || width > SIDE_MAX_PX || height > SIDE_MAX_PX)
        exit(2);
    image.pixels = malloc(image.stride_bytes * height);
    if (image.pixels == NULL)
        exit(2);
    bytes_read(image.pixels, image.stride_bytes * height);
    return image;
}

static void extract_answer(const struct image *image)
{
    struct watermark_numbers found;
    struct watermark_report report;
    enum iw_error error = watermark_extract(image, NULL, key, &candidates, &found, &report);

    if (error != IW_OK && error != IW_WATERMARK_NOT_FOUND)
        exit(2);
    if (error == IW_OK)
        printf("%016" PRIx64, found.numbers[0]);
    else
        printf("-");
    printf(" %.4f %u\n", report.correlation_most, report.attempts);
}

/* Returns the view of a number, without pixels if the number was not embedded before. */
static struct watermark_view *view_of(uint64_t number)
{
    for (unsigned i = 0; i < marked_count; i++)
        if (marked[i].number == number)
            return &marked[i].view;
    if (marked_count == marked_most)
        exit(2);
    marked[marked_count].number = number;
    return &marked[marked_count++].view;
}

static void likeness_answer(const struct image *image)
{
    static struct watermark_numbers found;
    enum iw_error error = watermark_extract(image, NULL, key, &candidates, &found, NULL);

    if (error != IW_OK && error != IW_WATERMARK_NOT_FOUND)
        exit(2);
    printf("%u", error == IW_OK ? found.count : 0);
    for (unsigned i = 0; error == IW_OK && i < found.count; i++) {
        struct watermark_likeness likeness;
        enum watermark_match match = likeness_match(view_of(found.numbers[i]), &found.views[i], &likeness);
        printf(" %016" PRIx64 " %.2f %.2f %d", found.numbers[i], likeness.match, likeness.wanted, match);
    }
    printf("\n");
}

static void embed_answer(struct image *image, uint64_t number)
{
    struct watermark_report report;
    enum iw_error error = watermark_embed(image, key, number, NULL, &report);

    if (error != IW_OK && error != IW_WATERMARK_NOT_EMBEDDABLE && error != IW_IMAGE_TOO_SMALL)
        exit(2);
    if (error == IW_OK)
        *view_of(number) = report.view;
    printf("%s\n", error == IW_OK ? "ok" : "-");
    if (error == IW_OK)
        bytes_write(image->pixels, image->stride_bytes * image->height_px);
}

static void line_answer(const char *line)
{
    struct image image;
    uint32_t width = 0;
    uint32_t height = 0;
    uint64_t number = 0;

    if (strcmp(line, "key\n") == 0) {
        bytes_read(key, sizeof key);
    } else if (sscanf(line, "candidates %zu", &candidates.count) == 1) {
        if (candidates.count > WATERMARK_CANDIDATES_MOST)
            exit(2);
        bytes_read(numbers, candidates.count * sizeof numbers[0]);
    } else if (sscanf(line, "extract %" SCNu32 " %" SCNu32, &width, &height) == 2) {
        image = picture_read(width, height);
        extract_answer(&image);
        free(image.pixels);
    } else if (sscanf(line, "likeness %" SCNu32 " %" SCNu32, &width, &height) == 2) {
        image = picture_read(width, height);
        likeness_answer(&image);
        free(image.pixels);
    } else if (sscanf(line, "embed %" SCNx64 " %" SCNu32 " %" SCNu32, &number, &width, &height) == 3) {
        image = picture_read(width, height);
        embed_answer(&image, number);
        free(image.pixels);
    } else {
        exit(2);
    }
    fflush(stdout);
}

int main(void)
{
    char line[100];

    while (fgets(line, sizeof line, stdin) != NULL)
        line_answer(line);
    return 0;
}
