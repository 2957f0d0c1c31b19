/* Text: UTF-8 checks, numbers, and a growing buffer. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

/*
 * A buffer that grows in an arena. The bytes in data always end with a zero byte that length does not count.
 * If the limit of the arena is reached, the process aborts.
 */
struct text {
    struct arena *arena;
    char *data;
    size_t length;
    size_t room;
};

void text_init(struct text *text, struct arena *arena);
void text_add(struct text *text, const char *bytes, size_t length);
void text_add_string(struct text *text, const char *string);
void text_printf(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends the number in decimal. */
void text_add_number(struct text *text, int64_t number);

/* Empties the buffer and keeps its memory. */
void text_clear(struct text *text);

/* True if the bytes are valid UTF-8 (no surrogates, no overlong forms, at most U+10FFFF). */
bool text_is_utf8(const char *bytes, size_t length);

/* True if no byte is above 0x7F. */
bool text_is_ascii(const char *bytes, size_t length);

/* Returns the length of the UTF-8 sequence at bytes, 1 to 4; 0 if it is invalid. */
size_t text_sequence(const char *bytes, size_t length);

/* Returns the number of code points of valid UTF-8. */
size_t text_code_points(const char *bytes, size_t length);

/* Returns the length of a beginning of at most `most` bytes that cuts no character: for "%.*s". */
int text_head(const char *text, int most);

/* Returns true if the text, which must be valid UTF-8, has a control character (C0, DEL, C1). */
bool text_has_control(const char *bytes, size_t length);

/*
 * Reads a decimal integer within minimum..maximum: optional "-", no blanks, no leading zeros. Returns false
 * for any other text.
 */
bool text_integer(const char *string, int64_t minimum, int64_t maximum, int64_t *value);

/* True for a printable ASCII byte that JSON does not escape. */
static inline bool text_is_plain(unsigned char byte)
{
    return byte >= 0x20 && byte < 0x7F && byte != '"' && byte != '\\';
}

/* Size of a buffer for any 64-bit decimal number with its terminating zero. */
enum { text_decimal_size = 21 };

/* Writes a number in decimal and returns its length. Several times faster than printf. */
size_t text_decimal(int64_t number, char digits[text_decimal_size]);

/* Compares two texts; ignores the case of ASCII letters. */
bool text_equal_nocase(const char *a, const char *b);

#endif
