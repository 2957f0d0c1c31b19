#include "domain/posting.h"

#include <string.h>

#include "base/text.h"

enum { term_bytes_max = 4096 };

size_t posting_bucket(const struct term *term)
{
    return term->length == 1 ? 1 : 2;
}

/* ---- packing ---- */

static void number_add(struct text *out, size_t number)
{
    for (; number >= 0x80; number >>= 7)
        text_add(out, &(char){(char)(number | 0x80)}, 1);
    text_add(out, &(char){(char)number}, 1);
}

/* The positions of count equal terms. */
static void positions_add(struct text *out, struct arena *arena, const struct term *terms, size_t count,
                          unsigned orders)
{
    struct text gaps;
    unsigned next = 0;
    size_t map_bytes = (orders + 7) / 8;
    text_init(&gaps, arena);
    for (size_t i = 0; i < count && gaps.length < map_bytes; i++) {
        number_add(&gaps, terms[i].position - next);
        next = terms[i].position + 1u;
    }
    if (gaps.length < map_bytes) {
        number_add(out, gaps.length * 2);
        text_add(out, gaps.data, gaps.length);
        return;
    }
    char *map = arena_alloc(arena, map_bytes);
    for (size_t i = 0; i < count; i++)
        map[terms[i].position / 8] = (char)(map[terms[i].position / 8] | 1 << terms[i].position % 8);
    number_add(out, map_bytes * 2 + 1);
    text_add(out, map, map_bytes);
}

static bool is_equal(const struct term *one, const struct term *other)
{
    return one->length == other->length && term_begins(one, other);
}

/* Packs the terms of one row. */
static struct segments_words row_pack(struct arena *arena, const struct term *terms, size_t count,
                                      unsigned orders)
{
    struct text out;
    const struct term *before = NULL;
    text_init(&out, arena);
    for (size_t i = 0, same; i < count; i += same) {
        size_t shared = 0;
        for (same = 1; i + same < count && is_equal(&terms[i + same], &terms[i]);)
            same++;
        while (before != NULL && shared < before->length && shared < terms[i].length &&
               before->text[shared] == terms[i].text[shared])
            shared++;
        number_add(&out, shared);
        number_add(&out, terms[i].length - shared);
        text_add(&out, terms[i].text + shared, terms[i].length - shared);
        positions_add(&out, arena, &terms[i], same, orders);
        before = &terms[i];
    }
    struct segments_words row = {
        .bucket_length = posting_bucket(terms), .data = out.data, .length = out.length};
    memcpy(row.bucket, terms->text, row.bucket_length);
    return row;
}

void posting_pack(struct terms *terms, unsigned orders, struct segments_words **rows, unsigned *count)
{
    size_t given = terms->count, end;
    for (size_t i = 0; i < given; i++) {
        struct term first = terms->items[i];
        first.length = 1;
        if ((unsigned char)*first.text < 0x80 && terms->items[i].length > 1)
            terms_add(terms, first);
    }
    terms_sort(terms);
    *rows = arena_array(terms->arena, terms->count + 1, sizeof **rows);
    *count = 0;
    for (size_t begin = 0; begin < terms->count; begin = end) {
        const struct term *first = &terms->items[begin];
        const struct term name = {.text = first->text, .length = (uint32_t)posting_bucket(first)};
        for (end = begin + 1; end < terms->count && term_begins(&terms->items[end], &name) &&
                              posting_bucket(&terms->items[end]) == name.length;)
            end++;
        (*rows)[(*count)++] = row_pack(terms->arena, first, end - begin, orders);
    }
}

/* ---- reading ---- */

struct reader {
    const uint8_t *at, *end;
    bool is_damaged;
};

static size_t number_read(struct reader *reader)
{
    size_t number = 0;
    for (unsigned shift = 0; reader->at < reader->end && shift < 35; shift += 7) {
        uint8_t byte = *reader->at++;
        number |= (size_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return number;
    }
    reader->is_damaged = true;
    return 0;
}

/* The next bytes; NULL when fewer are left. */
static const uint8_t *bytes_read(struct reader *reader, size_t length)
{
    const uint8_t *bytes = reader->at;
    if (length > (size_t)(reader->end - reader->at)) {
        reader->is_damaged = true;
        return NULL;
    }
    reader->at += length;
    return bytes;
}

/* Sets the bits of one term's positions. */
static bool positions_mark(const uint8_t *bytes, size_t length, bool is_map, uint8_t *bits, unsigned orders)
{
    struct reader reader = {.at = bytes, .end = bytes + length};
    if (is_map && length != (orders + 7) / 8)
        return false;
    for (size_t i = 0; is_map && i < length; i++)
        bits[i] |= bytes[i];
    for (size_t next = 0; !is_map && reader.at < reader.end; next++) {
        next += number_read(&reader);
        if (reader.is_damaged || next >= orders)
            return false;
        bits[next / 8] = (uint8_t)(bits[next / 8] | 1 << next % 8);
    }
    return true;
}

bool posting_mark(const struct segments_words *row, const struct term *wanted, uint8_t *bits, unsigned orders)
{
    struct reader reader = {.at = (const uint8_t *)row->data,
                            .end = (const uint8_t *)row->data + row->length};
    char text[term_bytes_max];
    struct term term = {.text = text};
    while (reader.at < reader.end) {
        size_t shared = number_read(&reader), more = number_read(&reader);
        const uint8_t *bytes = bytes_read(&reader, more);
        if (bytes == NULL || shared > term.length || shared + more > sizeof text)
            return false;
        memcpy(text + shared, bytes, more);
        term.length = (uint32_t)(shared + more);
        size_t head = number_read(&reader);
        bytes = bytes_read(&reader, head / 2);
        if (bytes == NULL || reader.is_damaged)
            return false;
        if (!term_begins(&term, wanted))
            continue;
        if (!positions_mark(bytes, head / 2, head % 2 != 0, bits, orders))
            return false;
    }
    return true;
}
