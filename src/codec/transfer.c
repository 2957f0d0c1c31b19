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

/* True if every line feed has a carriage return before it. A repeated pattern has few followers. */
static bool has_only_pairs(const struct transfer_bytes *bytes)
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
 * True if the bytes are text and as different as random ones are. The last character may be incomplete,
 * because a frame has a length in bytes. A JPEG has bytes of 0xFF, which no text has.
 */
static bool is_text(const struct transfer_bytes *bytes)
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

/* True if all values but CR and LF occur often. A flat or repeated picture compresses to few values. */
static bool is_random(const struct transfer_bytes *bytes)
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

/* True if a byte or pair is missing that a transfer removes and of which random bytes have many. */
static bool lacks_lines(const struct transfer_bytes *bytes)
{
    bool has_both =
        memchr(bytes->data, '\r', bytes->size) != NULL && memchr(bytes->data, '\n', bytes->size) != NULL;
    if (bytes->size < (size_t)expected_least * (has_both ? 65536 : 256) ||
        memmem(bytes->data, bytes->size, "\r\n", 2) != NULL)
        return false;
    return is_random(bytes);
}

static enum iw_error transfer_fail(struct context *context, const char *title, const char *cause)
{
    context->reason = "text_transfer";
    return context_fail(context, IW_IMAGE_CORRUPT, "This %s file was changed %s", title, cause);
}

enum iw_error transfer_check(struct context *context, const struct transfer_bytes *bytes, const char *title)
{
    if (is_text(bytes))
        return transfer_fail(context, title,
                             "because a program read it as text. Read and send it as binary data.");
    if (has_only_pairs(bytes) || lacks_lines(bytes))
        return transfer_fail(context, title,
                             "by a transfer in text mode. Transfer it in binary mode and upload it again.");
    return IW_OK;
}
