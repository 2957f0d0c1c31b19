/*
 * Decodes thousands of damaged pictures. Each result is a picture that can be encoded, or an
 * image error, and neither ASan nor UBSan reports a fault. The number of a mutation is the seed,
 * so a run can be repeated. `test_codec_mutations N [FIRST]` runs N of them (default 4000, at most 60 s).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "codec/thumbnail.h"
#include "mutation.h"
#include "picture_maker.h"

static const struct made_spec corpus[] = {
    {"JPEG grey", FORMAT_JPEG, 33, 29, 1, true, .quality = 85},
    {"JPEG 4:2:0", FORMAT_JPEG, 33, 29, 3, true, .sampling = 22, .quality = 75},
    {"JPEG 4:4:4 bare", FORMAT_JPEG, 33, 29, 3, false, .sampling = 11, .quality = 75},
    {"JPEG progressive", FORMAT_JPEG, 33, 29, 3, false, .sampling = 22, .quality = 85,
     .is_progressive = true},
    {"JPEG arithmetic", FORMAT_JPEG, 33, 29, 3, false, .sampling = 21, .quality = 85, .is_arithmetic = true},
    {"JPEG CMYK", FORMAT_JPEG, 33, 29, 4, false, .quality = 75},
    {"JPEG of 64 blocks a unit", FORMAT_JPEG, 33, 29, 3, false, .factors = {44, 41, 14}, .quality = 75,
     .is_split = true},
    {"PNG grey 2", FORMAT_PNG, 33, 29, 1, false, .depth_bits = 2},
    {"PNG palette", FORMAT_PNG, 33, 29, 1, true, .depth_bits = 4, .is_palette = true,
     .has_transparency = true},
    {"PNG RGB interlaced", FORMAT_PNG, 33, 29, 3, true, .depth_bits = 8, .is_progressive = true},
    {"PNG RGBA 16", FORMAT_PNG, 33, 29, 4, false, .depth_bits = 16},
    {"PNG RGB key", FORMAT_PNG, 33, 29, 3, true, .depth_bits = 8, .has_transparency = true},
    {"WebP lossy", FORMAT_WEBP, 33, 29, 3, true, .quality = 75},
    {"WebP lossy alpha", FORMAT_WEBP, 33, 29, 4, false, .quality = 75},
    {"WebP lossless", FORMAT_WEBP, 33, 29, 4, true, .is_lossless = true, .quality = 50},
};
enum { corpus_count = sizeof corpus / sizeof corpus[0], seconds_max = 60 };

static const struct codec_limits limits = {
    .pixels_max = 1 << 20, .side_max_px = 4096, .side_min_px = 1, .memory_max_bytes = (uint64_t)64 << 20};

static const struct codec_limits partial = {.pixels_max = 1 << 20,
                                            .side_max_px = 4096,
                                            .side_min_px = 1,
                                            .memory_max_bytes = (uint64_t)64 << 20,
                                            .engine.is_read_only = true,
                                            .is_partial_allowed = true};

/* An extraction accepts each picture that a delivery accepts. */
static enum iw_error decode_partial(struct context *context, const unsigned char *data, size_t size,
                                    bool is_taken)
{
    struct codec_picture picture;
    struct codec_bytes bytes = {NULL, 0};
    context_clear(context);
    enum iw_error error = codec_decode(context, data, size, &partial, &picture);
    if (error != IW_OK)
        return is_taken ? IW_SERVER_INTERNAL_ERROR : error;
    error = thumbnail_webp(context, &picture, 16, &bytes);
    bytes_free(&bytes);
    codec_picture_free(&picture);
    return error;
}

static enum iw_error decode_and_encode(struct context *context, const unsigned char *data, size_t size)
{
    struct codec_picture picture;
    struct codec_bytes bytes = {NULL, 0};
    enum iw_error error = codec_decode(context, data, size, &limits, &picture);
    if (error != IW_OK)
        return error;
    error = thumbnail_webp(context, &picture, 16, &bytes);
    bytes_free(&bytes);
    if (error == IW_OK)
        error = codec_opt_out(context, &picture);
    if (error == IW_OK)
        error = codec_encode(context, &picture, &bytes);
    codec_picture_free(&picture);
    struct codec_header header;
    if (error == IW_OK)
        error = codec_probe(context, bytes.data, bytes.size, &limits, &header);
    bytes_free(&bytes);
    if (error != IW_OK)
        printf("decoded, but then %s: %s\n", iw_error_code(error), context->sentence);
    return error == IW_OK ? IW_OK : IW_SERVER_INTERNAL_ERROR;
}

static bool is_fair(enum iw_error error)
{
    return error == IW_OK || error == IW_IMAGE_CORRUPT || error == IW_IMAGE_FORMAT_UNSUPPORTED ||
           error == IW_IMAGE_TOO_LARGE || error == IW_IMAGE_TOO_SMALL;
}

/* Decodes a damaged copy and counts the outcome. */
static bool run_one(struct context *context, const struct codec_bytes *file, enum format format,
                    unsigned seed, unsigned counts[IW_ERROR_COUNT])
{
    struct codec_bytes damaged = mutation_make(file, format, seed);
    arena_reset(context->arena);
    context->notes = NULL;
    context_clear(context);
    enum iw_error error = decode_and_encode(context, damaged.data, damaged.size);
    enum iw_error read = decode_partial(context, damaged.data, damaged.size, error == IW_OK);
    bytes_free(&damaged);
    counts[error]++;
    if (!is_fair(error) || !is_fair(read))
        printf("mutation %u: %s, partial %s: %s\n", seed, iw_error_code(error), iw_error_code(read),
               context->sentence == NULL ? "" : context->sentence);
    return is_fair(error) && is_fair(read);
}

int main(int argc, char **argv)
{
    unsigned count = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 4000;
    unsigned first = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    unsigned counts[IW_ERROR_COUNT] = {0};
    struct codec_bytes files[corpus_count];
    struct context context;
    unsigned unfair = 0;
    unsigned done = 0;
    time_t start = time(NULL);
    context_init(&context, arena_new(0), NULL);
    for (size_t i = 0; i < corpus_count; i++)
        files[i] = make_picture(&corpus[i]);
    for (; done < count && time(NULL) - start < seconds_max; done++) {
        unsigned which = (first + done) % corpus_count;
        unfair += !run_one(&context, &files[which], corpus[which].format, first + done, counts);
    }
    printf("%u mutations:", done);
    for (int error = 0; error < IW_ERROR_COUNT; error++)
        if (counts[error] > 0)
            printf(" %s %u", iw_error_code((enum iw_error)error), counts[error]);
    printf("\n");
    for (size_t i = 0; i < corpus_count; i++)
        bytes_free(&files[i]);
    arena_free(context.arena);
    return unfair != 0;
}
