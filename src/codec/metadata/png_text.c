#include "codec/metadata/png_text.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define TAG_ITXT KEEP_TAG('i', 'T', 'X', 't')
#define TAG_TEXT KEEP_TAG('t', 'E', 'X', 't')
#define TAG_ZTXT KEEP_TAG('z', 'T', 'X', 't')

unsigned char *png_text_inflate(struct arena *arena, const unsigned char *data, size_t size, size_t size_max,
                                size_t *size_out)
{
    unsigned char *out = malloc(size_max);
    unsigned char *kept = NULL;
    uLongf got = (uLongf)size_max;
    if (out != NULL && uncompress(out, &got, data, (uLong)size) == Z_OK) {
        kept = (unsigned char *)arena_text_n(arena, (const char *)out, got);
        *size_out = got;
    }
    free(out);
    return kept;
}

/* Offset of the text in a chunk, after keyword and flags; 0 if the chunk is invalid. */
static size_t text_offset(const struct keep_chunk *chunk, bool *is_compressed)
{
    const unsigned char *zero = memchr(chunk->data, 0, chunk->size);
    size_t offset = zero == NULL ? chunk->size : (size_t)(zero - chunk->data) + 1;
    *is_compressed = chunk->tag == TAG_ZTXT;
    if (chunk->tag == TAG_TEXT)
        return zero == NULL ? 0 : offset;
    if (chunk->tag == TAG_ITXT && chunk->size > offset)
        *is_compressed = chunk->data[offset] != 0;
    /* zTXt: the method; iTXt: whether it is compressed, and the method. */
    offset += chunk->tag == TAG_ZTXT ? 1 : 2;
    for (int i = 0; chunk->tag == TAG_ITXT && i < 2; i++) {
        zero = offset >= chunk->size ? NULL : memchr(chunk->data + offset, 0, chunk->size - offset);
        if (zero == NULL)
            return 0;
        offset = (size_t)(zero - chunk->data) + 1;
    }
    return offset > chunk->size ? 0 : offset;
}

const unsigned char *png_text_read(struct arena *arena, const struct keep_chunk *chunk, size_t max,
                                   size_t *size)
{
    bool is_compressed = false;
    size_t offset = text_offset(chunk, &is_compressed);
    if (offset == 0)
        return NULL;
    *size = chunk->size - offset;
    return is_compressed ? png_text_inflate(arena, chunk->data + offset, *size, max, size)
                         : chunk->data + offset;
}

bool png_text_is(const struct keep_chunk *chunk)
{
    return chunk->tag == TAG_ITXT || chunk->tag == TAG_TEXT || chunk->tag == TAG_ZTXT;
}

/* "\nname\n  length\nhexadecimal digits in lines\n", as ImageMagick writes it. */
unsigned char *png_text_profile(struct arena *arena, const struct keep_chunk *chunk, size_t *size)
{
    static const char keyword[] = "Raw profile type ";
    size_t text_size = 0;
    if (!png_text_is(chunk) || !keep_starts_with(chunk, keyword, sizeof keyword - 1))
        return NULL;
    const unsigned char *text = png_text_read(arena, chunk, keep_bytes_max, &text_size);
    const unsigned char *end = text == NULL ? NULL : text + text_size;
    const unsigned char *at = text;
    for (int lines = 0; at != NULL && lines < 3; lines++) {
        at = memchr(at, '\n', (size_t)(end - at));
        if (at != NULL)
            at++;
    }
    if (at == NULL)
        return NULL;
    unsigned char *out = arena_alloc(arena, (size_t)(end - at) / 2 + 1);
    size_t digits = 0;
    for (; at < end; at++) {
        static const char hexadecimal[] = "0123456789abcdefABCDEF";
        const char *digit = *at == 0 ? NULL : strchr(hexadecimal, *at);
        if (digit == NULL)
            continue;
        unsigned value = (unsigned)(digit - hexadecimal);
        value -= value > 15 ? 6 : 0;
        out[digits / 2] |= (unsigned char)(value << (digits % 2 == 0 ? 4 : 0));
        digits++;
    }
    *size = digits / 2;
    return out;
}

void png_text_profile_put(struct codec_keep *keep, struct keep_chunk *chunk, const unsigned char *data,
                          size_t size)
{
    enum { line_digits = 72, head_max = 200 };
    static const char digits[] = "0123456789abcdef";
    size_t keyword_bytes = strnlen((const char *)chunk->data, 79);
    const char *name = (const char *)chunk->data + sizeof "Raw profile type " - 1;
    size_t room = keyword_bytes + head_max + 2 * size + 2 * size / line_digits + 2;
    char *text = arena_alloc(keep->arena, room);
    memcpy(text, chunk->data, keyword_bytes);
    const char *head = arena_printf(keep->arena, "\n%.*s\n%8zu\n",
                                    (int)(keyword_bytes - (sizeof "Raw profile type " - 1)), name, size);
    char *at = text + keyword_bytes + 1;
    at = (char *)memcpy(at, head, strlen(head)) + strlen(head);
    for (size_t i = 0; i < size; i++) {
        *at++ = digits[data[i] >> 4];
        *at++ = digits[data[i] & 15];
        if ((i + 1) % (line_digits / 2) == 0)
            *at++ = '\n';
    }
    *at++ = '\n';
    chunk->tag = TAG_TEXT;
    chunk->data = (unsigned char *)text;
    chunk->size = (size_t)(at - text);
}
