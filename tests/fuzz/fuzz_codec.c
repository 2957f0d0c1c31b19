/* Bytes that claim to be a picture: decoded under tight limits, marked, encoded, decoded again. */
#include <stdlib.h>

#include "worker/codec.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static const struct codec_limits limits = {.pixels_max = 1 << 20, .side_max_px = 4096, .side_min_px = 1};

/* What we encode ourselves must decode; anything else is our mistake. */
static void again(struct context *context, struct codec_picture *picture)
{
    struct codec_bytes bytes = {0};
    struct codec_picture second = {0};
    if (codec_encode(context, picture, &bytes) != IW_OK)
        return;
    if (codec_decode(context, bytes.data, bytes.size, &limits, &second) != IW_OK)
        abort();
    codec_picture_free(&second);
    codec_bytes_free(&bytes);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct context context;
    struct codec_picture picture = {0};
    struct arena *arena = arena_new(0);
    context_init(&context, arena, NULL);
    if (codec_decode(&context, data, size, &limits, &picture) == IW_OK) {
        if (codec_opt_out(&context, &picture) == IW_OK)
            again(&context, &picture);
        codec_picture_free(&picture);
    }
    arena_free(arena);
    return 0;
}
