/* Decodes bytes as a JPEG picture. */
#include "codec_harness.h"
#include "targets.h"

int fuzz_jpeg(const unsigned char *data, size_t size)
{
    harness_picture(FORMAT_JPEG, data, size);
    return 0;
}
