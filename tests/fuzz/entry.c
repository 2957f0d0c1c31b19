/* libFuzzer's entry point for one target, selected by the build. */
#include "targets.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    return FUZZ_TARGET(data, size);
}
