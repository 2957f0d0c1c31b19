#include "service/term.h"

#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "base/text.h"

enum class { CLASS_NONE, CLASS_LETTER, CLASS_DIGIT, CLASS_SYMBOL };

void terms_init(struct terms *terms, struct arena *arena)
{
    *terms = (struct terms){.arena = arena};
}

void terms_add(struct terms *terms, struct term term)
{
    if (terms->count == terms->room) {
        size_t room = terms->room == 0 ? 64 : 2 * terms->room;
        struct term *items = arena_array(terms->arena, room, sizeof *items);
        if (terms->count > 0)
            memcpy(items, terms->items, terms->count * sizeof *items);
        terms->items = items;
        terms->room = room;
    }
    terms->items[terms->count++] = term;
}

static enum class class_of_ascii(unsigned char byte) {
    if ((byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z')) return CLASS_LETTER;
    if (byte >= '0' && byte <= '9') return CLASS_DIGIT;
    return byte > ' ' && byte < 0x7F ? CLASS_SYMBOL : CLASS_NONE;
}

/* A mark has the class of the character before it. */
static enum class class_of(utf8proc_int32_t point, enum class before) {
    static const enum class classes[] =
        {
            [UTF8PROC_CATEGORY_LU] = CLASS_LETTER, [UTF8PROC_CATEGORY_LL] = CLASS_LETTER,
            [UTF8PROC_CATEGORY_LT] = CLASS_LETTER, [UTF8PROC_CATEGORY_LM] = CLASS_LETTER,
            [UTF8PROC_CATEGORY_LO] = CLASS_LETTER, [UTF8PROC_CATEGORY_ND] = CLASS_DIGIT,
            [UTF8PROC_CATEGORY_NL] = CLASS_DIGIT,  [UTF8PROC_CATEGORY_NO] = CLASS_DIGIT,
            [UTF8PROC_CATEGORY_PC] = CLASS_SYMBOL, [UTF8PROC_CATEGORY_PD] = CLASS_SYMBOL,
            [UTF8PROC_CATEGORY_PS] = CLASS_SYMBOL, [UTF8PROC_CATEGORY_PE] = CLASS_SYMBOL,
            [UTF8PROC_CATEGORY_PI] = CLASS_SYMBOL, [UTF8PROC_CATEGORY_PF] = CLASS_SYMBOL,
            [UTF8PROC_CATEGORY_PO] = CLASS_SYMBOL, [UTF8PROC_CATEGORY_SM] = CLASS_SYMBOL,
            [UTF8PROC_CATEGORY_SC] = CLASS_SYMBOL, [UTF8PROC_CATEGORY_SK] = CLASS_SYMBOL,
            [UTF8PROC_CATEGORY_SO] = CLASS_SYMBOL, [UTF8PROC_CATEGORY_CO] = CLASS_NONE,
        };
    utf8proc_category_t category = utf8proc_category(point);
    if (category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME) return before == CLASS_NONE
        ? CLASS_SYMBOL
        : before;
    return classes[category];
}

/* The class of the character at text and its length. */
static enum class class_at(const char *text, size_t length, enum class before, size_t *bytes) {
    utf8proc_int32_t point; *bytes = 1;
    if ((unsigned char)*text < 0x80) return class_of_ascii((unsigned char)*text);
    *bytes = (size_t)utf8proc_iterate((const uint8_t *)text, (utf8proc_ssize_t)length, &point);
    return class_of(point, before);
}

/* The canonical caseless form in NFC; NULL when the text is not UTF-8. */
static const char *fold(struct arena *arena, const char *text, size_t *length)
{
    uint8_t *mapped = NULL;
    *length = strlen(text);
    if (text_is_ascii(text, *length)) {
        char *lower = arena_text_n(arena, text, *length);
        for (char *at = lower; *at != '\0'; at++)
            *at = *at >= 'A' && *at <= 'Z' ? (char)(*at | 0x20) : *at;
        return lower;
    }
    utf8proc_ssize_t size = utf8proc_map((const uint8_t *)text, (utf8proc_ssize_t)*length, &mapped,
                                         UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_CASEFOLD);
    if (size < 0)
        return NULL;
    *length = (size_t)size;
    const char *copy = arena_text_n(arena, (const char *)mapped, *length);
    free(mapped);
    return copy;
}

void terms_read(struct terms *terms, const char *text, uint16_t position)
{
    size_t length, begin = 0, bytes;
    enum class run = CLASS_NONE;
    const char *folded = fold(terms->arena, text, &length);
    if (folded == NULL)
        return;
    for (size_t at = 0; at <= length; at += bytes) {
        bytes = 1;
        enum class next =
            at < length ? class_at(folded + at, length - at, at > 0 ? run : CLASS_NONE, &bytes) : CLASS_NONE;
        if (next == run)
            continue;
        if (run != CLASS_NONE)
            terms_add(terms, (struct term){.text = folded + begin,
                                           .length = (uint32_t)(at - begin),
                                           .position = position,
                                           .is_word = run != CLASS_SYMBOL});
        begin = at;
        run = next;
    }
}

static int term_compare(const void *a, const void *b)
{
    const struct term *one = a, *other = b;
    size_t common = one->length < other->length ? one->length : other->length;
    int order = memcmp(one->text, other->text, common);
    if (order == 0)
        order = (one->length > other->length) - (one->length < other->length);
    return order != 0 ? order : (int)one->position - (int)other->position;
}

void terms_sort(struct terms *terms)
{
    size_t kept = 0;
    if (terms->count == 0)
        return;
    qsort(terms->items, terms->count, sizeof *terms->items, term_compare);
    for (size_t i = 1; i < terms->count; i++)
        if (term_compare(&terms->items[kept], &terms->items[i]) != 0)
            terms->items[++kept] = terms->items[i];
    terms->count = kept + 1;
}

bool term_begins(const struct term *term, const struct term *wanted)
{
    return term->length >= wanted->length && memcmp(term->text, wanted->text, wanted->length) == 0;
}

void terms_of_keyword(struct terms *terms, struct arena *arena, const char *keyword)
{
    size_t kept = 0;
    bool has_word = false;
    terms_init(terms, arena);
    terms_read(terms, keyword, 0);
    terms_sort(terms);
    for (size_t i = 0; i < terms->count; i++)
        has_word = has_word || terms->items[i].is_word;
    /* Sorted: the terms that a term begins follow it. */
    for (size_t i = 0; i < terms->count; i++) {
        const struct term *next = i + 1 < terms->count ? &terms->items[i + 1] : NULL;
        bool is_implied = next != NULL && term_begins(next, &terms->items[i]);
        if (terms->items[i].is_word == has_word && !is_implied)
            terms->items[kept++] = terms->items[i];
    }
    terms->count = kept;
}
