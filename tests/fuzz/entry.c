/* libFuzzer's way into one target, which the build names. */
#include "targets.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    return FUZZ_TARGET(data, size);
}
