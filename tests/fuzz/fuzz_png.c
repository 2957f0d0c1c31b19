/* Decodes bytes as a PNG picture. */
#include "codec_harness.h"
#include "targets.h"

int fuzz_png(const unsigned char *data, size_t size)
{
    harness_picture(FORMAT_PNG, data, size);
    return 0;
}
