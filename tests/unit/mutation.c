#include "mutation.h"

#include <stdlib.h>
#include <string.h>

#include <zlib.h>

static uint64_t state;

static uint32_t random_below(uint32_t bound)
{
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)((state >> 33) % bound);
}

/* Recomputes the checksums of a PNG, so that a decoder accepts the damaged chunks. */
static void png_checksums(unsigned char *data, size_t size)
{
    size_t at = 8;
    while (size - at >= 12) {
        size_t length =
            (size_t)data[at] << 24 | (size_t)data[at + 1] << 16 | (size_t)data[at + 2] << 8 | data[at + 3];
        if (length > size - at - 12)
            return;
        uint32_t sum = (uint32_t)crc32(0, data + at + 4, (uInt)length + 4);
        for (int i = 0; i < 4; i++)
            data[at + 8 + length + (size_t)i] = (unsigned char)(sum >> (24 - 8 * i));
        at += 12 + length;
    }
}

static void mutate_once(unsigned char *data, size_t *size)
{
    static const unsigned char interesting[] = {0, 1, 0x7f, 0x80, 0xfe, 0xff, 0xd8, 0xd9, 0xda, 0xc2};
    /* Half of the damage is in the headers, which control the decoders. */
    uint32_t reach = (uint32_t)*size;
    if (random_below(2) == 0 && reach > 200)
        reach = 200;
    uint32_t at = random_below(reach);
    uint32_t from = random_below((uint32_t)*size);
    uint32_t room = (uint32_t)*size - (at > from ? at : from);
    switch (random_below(5)) {
    case 0:
        data[at] ^= (unsigned char)(1U << random_below(8));
        break;
    case 1:
        data[at] = interesting[random_below(sizeof interesting)];
        break;
    case 2:
        data[at] = (unsigned char)random_below(256);
        break;
    case 3:
        memmove(data + at, data + from, random_below(room < 64 ? room : 64));
        break;
    default:
        if (random_below(8) == 0)
            *size = 1 + random_below((uint32_t)*size);
    }
}

struct codec_bytes mutation_make(const struct codec_bytes *file, enum format format, unsigned seed)
{
    struct codec_bytes copy = {malloc(file->size), file->size};
    memcpy(copy.data, file->data, copy.size);
    state = seed;
    random_below(2);
    for (uint32_t i = 1 + random_below(6); i > 0 && copy.size > 0; i--)
        mutate_once(copy.data, &copy.size);
    if (format == FORMAT_PNG && copy.size > 20 && random_below(8) != 0)
        png_checksums(copy.data, copy.size);
    /* An exact copy, so that a sanitizer sees reads past the end. */
    unsigned char *exact = realloc(copy.data, copy.size);
    copy.data = exact != NULL ? exact : copy.data;
    return copy;
}
