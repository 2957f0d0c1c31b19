/* Mutates PNG pictures for libFuzzer and corrects their checksums, so that decoders read the damaged data. */
#include <stddef.h>
#include <stdint.h>

#include <zlib.h>

size_t LLVMFuzzerCustomMutator(unsigned char *data, size_t size, size_t size_max, unsigned seed);
size_t LLVMFuzzerMutate(unsigned char *data, size_t size, size_t size_max);

static void checksums_set(unsigned char *data, size_t size)
{
    for (size_t at = 8; size >= 8 && size - at >= 12;) {
        size_t length =
            (size_t)data[at] << 24 | (size_t)data[at + 1] << 16 | (size_t)data[at + 2] << 8 | data[at + 3];
        if (length > size - at - 12)
            return;
        uint32_t sum = (uint32_t)crc32(0, data + at + 4, (uInt)length + 4);
        for (size_t i = 0; i < 4; i++)
            data[at + 8 + length + i] = (unsigned char)(sum >> (24 - 8 * i));
        at += 12 + length;
    }
}

size_t LLVMFuzzerCustomMutator(unsigned char *data, size_t size, size_t size_max, unsigned seed)
{
    size_t mutated = LLVMFuzzerMutate(data, size, size_max);
    /* Sometimes the checksum stays wrong. */
    if (seed % 16 != 0)
        checksums_set(data, mutated);
    return mutated;
}
