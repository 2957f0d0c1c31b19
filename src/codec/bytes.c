#include "codec/bytes.h"

#include <stdlib.h>
#include <string.h>

bool bytes_append(struct codec_bytes *bytes, size_t *capacity, const void *data, size_t size)
{
    enum { first_bytes = 64 * 1024 };
    if (size > *capacity - bytes->size) {
        size_t wanted = *capacity + *capacity / 2 + first_bytes;
        if (wanted < bytes->size + size)
            wanted = bytes->size + size;
        unsigned char *grown = realloc(bytes->data, wanted);
        if (grown == NULL)
            return false;
        bytes->data = grown;
        *capacity = wanted;
    }
    memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
    return true;
}

void bytes_free(struct codec_bytes *bytes)
{
    free(bytes->data);
    bytes->data = NULL;
    bytes->size = 0;
}
