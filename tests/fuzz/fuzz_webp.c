/* Decodes bytes as a WebP picture. */
#include "codec_harness.h"
#include "targets.h"

int fuzz_webp(const unsigned char *data, size_t size)
{
    harness_picture(FORMAT_WEBP, data, size);
    return 0;
}
