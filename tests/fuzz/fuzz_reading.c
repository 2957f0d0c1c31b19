/* Decodes bytes as a picture of a format that only extractions read. */
#include "codec_harness.h"
#include "targets.h"

int fuzz_reading(const unsigned char *data, size_t size)
{
    harness_reading(data, size);
    return 0;
}
