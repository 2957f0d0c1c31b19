/* Text: UTF-8 checks, numbers, and a growing buffer for what is printed or sent. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include <imgward/arena.h>

/*
 * A buffer that grows in its arena.  data is always closed by a zero byte that
 * is not counted.  It never overflows: the arena's limit ends the process.
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

/* The number in decimal. */
void text_add_number(struct text *text, int64_t number);

/* Empties the buffer and keeps its room. */
void text_clear(struct text *text);

/* True when the bytes are valid UTF-8 (no surrogates, no overlong forms, at most U+10FFFF). */
bool text_is_utf8(const char *bytes, size_t length);

/* True when no byte is above 0x7F. */
bool text_is_ascii(const char *bytes, size_t length);

/* The bytes of the UTF-8 sequence that begins here, 1 to 4; 0 when none does. */
size_t text_sequence(const char *bytes, size_t length);

/* The number of code points of valid UTF-8. */
size_t text_code_points(const char *bytes, size_t length);

/* True when valid UTF-8 holds a control character (C0, DEL, C1). */
bool text_has_control(const char *bytes, size_t length);

/*
 * Reads a whole decimal integer, no sign but '-', no blanks, no leading zeros
 * except "0", within minimum..maximum.  False otherwise.
 */
bool text_integer(const char *string, int64_t minimum, int64_t maximum, int64_t *value);

/* True for a byte that stands for itself in JSON and is no part of a longer sequence. */
static inline bool text_is_plain(unsigned char byte)
{
    return byte >= 0x20 && byte < 0x7F && byte != '"' && byte != '\\';
}

/* Room for any 64-bit number in decimal and the closing zero. */
enum { text_decimal_size = 21 };

/* Prints a number in decimal, many times faster than printf does it; its length. */
size_t text_decimal(int64_t number, char digits[text_decimal_size]);

/* True when a equals b without regard to ASCII case. */
bool text_equal_nocase(const char *a, const char *b);

#endif
