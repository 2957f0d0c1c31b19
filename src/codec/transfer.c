/*
 * Traces of a transfer as text in the compressed bytes of a JPEG or WebP. The signature of a PNG
 * shows this damage (PNG specification, 5.2; src/model/sniff.c). Here statistics show it:
 * compressed bytes are almost random.
 */
#include "codec/transfer.h"

#include <string.h>

#include "base/text.h"

/* Enough random bytes that a rule below holds by chance with less than 1e-9. */
enum { text_values_least = 48, pairs_least = 8, expected_least = 24 };

struct compressed {
    const unsigned char *data;
    size_t size;
};

/* JPEG: from the first scan on. WebP: the frame. Empty: none was found. */
static struct compressed compressed_find(const unsigned char *data, size_t size)
{
    enum { riff_head_bytes = 12, chunk_head_bytes = 8 };
    bool is_webp = size > riff_head_bytes && memcmp(data, "RIFF", 4) == 0;
    const unsigned char *at = memmem(data, size, is_webp ? "VP8 " : "\xff\xda", is_webp ? 4 : 2);
    if (at == NULL && is_webp)
        at = memmem(data, size, "VP8L", 4);
    size_t left = at == NULL ? 0 : size - (size_t)(at - data);
    if (left <= chunk_head_bytes)
        return (struct compressed){data, 0};
    size_t said = at[4] | (size_t)at[5] << 8 | (size_t)at[6] << 16 | (size_t)at[7] << 24;
    left -= chunk_head_bytes;
    return (struct compressed){at + chunk_head_bytes, is_webp && said < left ? said : left};
}

/* True when every line feed has a carriage return before it. A repeated pattern has few followers. */
static bool has_only_pairs(const struct compressed *bytes)
{
    bool followers[256] = {false};
    unsigned count = 0;
    for (size_t at = 0; at + 1 < bytes->size; at++) {
        if (bytes->data[at] != '\n')
            continue;
        if (at == 0 || bytes->data[at - 1] != '\r')
            return false;
        count += !followers[bytes->data[at + 1]];
        followers[bytes->data[at + 1]] = true;
    }
    return count >= pairs_least;
}

/*
 * True when the bytes are text and as different as random ones are. The last character may be incomplete,
 * because a frame has a length in bytes. A JPEG has bytes of 0xFF, which no text has.
 */
static bool is_text(const struct compressed *bytes)
{
    bool values[256] = {false};
    size_t size = bytes->size;
    unsigned count = 0;
    while (size > 0 && bytes->size - size < 3 && bytes->data[size - 1] >= 0x80)
        size--;
    if (!text_is_utf8((const char *)bytes->data, size))
        return false;
    for (size_t at = 0; at < size; at++) {
        count += !values[bytes->data[at]];
        values[bytes->data[at]] = true;
    }
    return count >= text_values_least;
}

/* True when all values but CR and LF occur often. A flat or repeated picture compresses to few values. */
static bool is_random(const struct compressed *bytes)
{
    enum { occurrences_least = 4 };
    size_t counts[256] = {0};
    for (size_t at = 0; at < bytes->size; at++)
        counts[bytes->data[at]]++;
    for (int value = 0; value < 256; value++)
        if (value != '\r' && value != '\n' && counts[value] < occurrences_least)
            return false;
    return true;
}

/* True when a byte or pair is missing that a transfer removes and of which random bytes have many. */
static bool lacks_lines(const struct compressed *bytes)
{
    bool has_both =
        memchr(bytes->data, '\r', bytes->size) != NULL && memchr(bytes->data, '\n', bytes->size) != NULL;
    if (bytes->size < (size_t)expected_least * (has_both ? 65536 : 256) ||
        memmem(bytes->data, bytes->size, "\r\n", 2) != NULL)
        return false;
    return is_random(bytes);
}

static enum iw_error transfer_fail(struct context *context, const unsigned char *data, bool is_read_as_text)
{
    const char *format = data[0] == 'R' ? "WebP" : "JPEG";
    context->reason = "text_transfer";
    if (is_read_as_text)
        return context_fail(context, IW_IMAGE_CORRUPT,
                            "This %s file was changed because a program read it as text. Read and send it as "
                            "binary data.",
                            format);
    return context_fail(context, IW_IMAGE_CORRUPT,
                        "This %s file was changed by a transfer in text mode. Transfer it in binary mode and "
                        "upload it again.",
                        format);
}

enum iw_error transfer_check(struct context *context, const unsigned char *data, size_t size)
{
    struct compressed bytes = compressed_find(data, size);
    if (data[0] == 'R' && is_text(&bytes))
        return transfer_fail(context, data, true);
    return has_only_pairs(&bytes) || lacks_lines(&bytes) ? transfer_fail(context, data, false) : IW_OK;
}
