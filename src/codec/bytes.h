/* Growing bytes: the output of an encoder. */
#ifndef CODEC_BYTES_H
#define CODEC_BYTES_H

#include <stdbool.h>
#include <stddef.h>

/* Encoded bytes; freed by bytes_free. */
struct codec_bytes {
    unsigned char *data;
    size_t size;
};

/* Appends. False if there is no memory. The caller keeps the capacity. */
bool bytes_append(struct codec_bytes *bytes, size_t *capacity, const void *data, size_t size);

void bytes_free(struct codec_bytes *bytes);

#endif
