#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { room_first_bytes = 256 };

void text_init(struct text *text, struct arena *arena)
{
    text->arena = arena;
    text->room = room_first_bytes;
    text->data = arena_alloc(arena, text->room);
    text->length = 0;
}

/* Grows the buffer for more bytes and the terminating zero. */
static void text_reserve(struct text *text, size_t more)
{
    size_t needed = text->length + more + 1;
    if (needed <= text->room)
        return;
    size_t room = text->room * 2 > needed ? text->room * 2 : needed;
    char *data = arena_alloc(text->arena, room);
    memcpy(data, text->data, text->length + 1);
    text->data = data;
    text->room = room;
}

void text_add(struct text *text, const char *bytes, size_t length)
{
    text_reserve(text, length);
    memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = '\0';
}

void text_add_string(struct text *text, const char *string)
{
    text_add(text, string, strlen(string));
}

void text_printf(struct text *text, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    size_t room = text->room - text->length;
    int length = vsnprintf(text->data + text->length, room, format, arguments);
    if (length > 0 && (size_t)length >= room) {
        text_reserve(text, (size_t)length);
        vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
    }
    text->length += length > 0 ? (size_t)length : 0;
    text->data[text->length] = '\0';
    va_end(again);
    va_end(arguments);
}

size_t text_decimal(int64_t number, char digits[text_decimal_size])
{
    char backwards[text_decimal_size];
    uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    size_t count = 0, length = 0;
    do
        backwards[count++] = (char)('0' + left % 10);
    while ((left /= 10) > 0);
    if (number < 0)
        digits[length++] = '-';
    while (count > 0)
        digits[length++] = backwards[--count];
    digits[length] = '\0';
    return length;
}

void text_add_number(struct text *text, int64_t number)
{
    char digits[text_decimal_size];
    text_add(text, digits, text_decimal(number, digits));
}

void text_clear(struct text *text)
{
    text->length = 0;
    text->data[0] = '\0';
}

/* Returns the length of the UTF-8 sequence at bytes, 0 if it is invalid. Sets *point to the code point. */
static size_t sequence_read(const unsigned char *bytes, size_t length, uint32_t *point)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = bytes[0];
    size_t size = first < 0x80         ? 1
                  : (first >> 5) == 6  ? 2
                  : (first >> 4) == 14 ? 3
                  : (first >> 3) == 30 ? 4
                                       : 0;
    if (size == 0 || size > length)
        return 0;
    *point = size == 1 ? first : first & (0xFFu >> (size + 1));
    for (size_t i = 1; i < size; i++) {
        if ((bytes[i] & 0xC0) != 0x80)
            return 0;
        *point = *point << 6 | (bytes[i] & 0x3F);
    }
    bool is_surrogate = *point >= 0xD800 && *point <= 0xDFFF;
    return *point < smallest[size] || *point > 0x10FFFF || is_surrogate ? 0 : size;
}

size_t text_sequence(const char *bytes, size_t length)
{
    uint32_t point;
    return length == 0 ? 0 : sequence_read((const unsigned char *)bytes, length, &point);
}

bool text_is_utf8(const char *bytes, size_t length)
{
    uint32_t point;
    for (size_t at = 0, size; at < length; at += size) {
        size = sequence_read((const unsigned char *)bytes + at, length - at, &point);
        if (size == 0)
            return false;
    }
    return true;
}

bool text_is_ascii(const char *bytes, size_t length)
{
    for (size_t at = 0; at < length; at++)
        if ((unsigned char)bytes[at] >= 0x80)
            return false;
    return true;
}

size_t text_code_points(const char *bytes, size_t length)
{
    size_t count = 0;
    for (size_t at = 0; at < length; at++)
        count += ((unsigned char)bytes[at] & 0xC0) != 0x80;
    return count;
}

int text_head(const char *text, int most)
{
    int length = (int)strnlen(text, (size_t)most + 1);
    if (length <= most)
        return length;
    for (length = most; length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80;)
        length--;
    return length;
}

bool text_has_control(const char *bytes, size_t length)
{
    for (size_t at = 0; at < length; at++) {
        unsigned char byte = (unsigned char)bytes[at];
        bool is_c1 = byte == 0xC2 && at + 1 < length && (unsigned char)bytes[at + 1] < 0xA0;
        if (byte < 0x20 || byte == 0x7F || is_c1)
            return true;
    }
    return false;
}

bool text_integer(const char *string, int64_t minimum, int64_t maximum, int64_t *value)
{
    bool is_negative = *string == '-';
    const char *digit = string + is_negative;
    if (*digit == '\0' || (*digit == '0' && (digit[1] != '\0' || is_negative)))
        return false;
    int64_t sum = 0;
    for (; *digit != '\0'; digit++) {
        if (*digit < '0' || *digit > '9' || __builtin_mul_overflow(sum, 10, &sum) ||
            __builtin_sub_overflow(sum, *digit - '0', &sum))
            return false;
    }
    if (!is_negative && sum == INT64_MIN)
        return false;
    *value = is_negative ? sum : -sum;
    return *value >= minimum && *value <= maximum;
}

bool text_equal_nocase(const char *a, const char *b)
{
    return strcasecmp(a, b) == 0;
}
