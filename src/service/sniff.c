#include "service/sniff.h"

#include <string.h>

/* The WebP row leaves out bytes 4..7, which hold the size of the file. */
static const struct {
    enum sniff_format format;
    size_t size;
    const char *bytes;
    const char *mask;
} signatures[] = {
    {SNIFF_JPEG, 3, "\xff\xd8\xff", "\xff\xff\xff"},
    {SNIFF_PNG, 8, "\x89PNG\r\n\x1a\n", "\xff\xff\xff\xff\xff\xff\xff\xff"},
    {SNIFF_WEBP, 15, "RIFF\0\0\0\0WEBPVP8", "\xff\xff\xff\xff\0\0\0\0\xff\xff\xff\xff\xff\xff\xff"},
};

static int sniff_matches(const unsigned char *data, const char *bytes, const char *mask, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if ((data[i] & (unsigned char)mask[i]) != (unsigned char)bytes[i])
            return 0;
    return 1;
}

enum sniff_format sniff_format(const void *first_bytes, size_t n)
{
    for (size_t i = 0; i < sizeof signatures / sizeof signatures[0]; i++)
        if (n >= signatures[i].size &&
            sniff_matches(first_bytes, signatures[i].bytes, signatures[i].mask, signatures[i].size))
            return signatures[i].format;
    return SNIFF_NONE;
}
