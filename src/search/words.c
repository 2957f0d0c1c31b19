#include "search/words.h"

#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

/* Of a character; a word is a run of one kind.  KIND_NONE separates words. */
enum kind { KIND_NONE, KIND_LETTER, KIND_DIGIT, KIND_SYMBOL };

void words_add(struct search_words *words, struct search_word word)
{
    words->items = arena_more(words->arena, words->items, words->count, sizeof word);
    words->items[words->count++] = word;
}

static enum kind kind_of_ascii(unsigned char byte)
{
    if ((byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z'))
        return KIND_LETTER;
    if (byte >= '0' && byte <= '9')
        return KIND_DIGIT;
    return byte > ' ' && byte < 0x7F ? KIND_SYMBOL : KIND_NONE;
}

/* A mark continues the run before it. */
static enum kind kind_of(utf8proc_int32_t point, enum kind before)
{
    utf8proc_category_t category = utf8proc_category(point);
    if (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO)
        return KIND_LETTER;
    if (category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME)
        return before == KIND_NONE ? KIND_SYMBOL : before;
    if (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO)
        return KIND_DIGIT;
    return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_SO ? KIND_SYMBOL : KIND_NONE;
}

/* The kind of the character at text and its length. */
static enum kind kind_at(const char *text, size_t length, enum kind before, size_t *bytes)
{
    utf8proc_int32_t point;
    *bytes = 1;
    if ((unsigned char)*text < 0x80)
        return kind_of_ascii((unsigned char)*text);
    *bytes = (size_t)utf8proc_iterate((const uint8_t *)text, (utf8proc_ssize_t)length, &point);
    return kind_of(point, before);
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

void words_read(struct search_words *words, const char *text, uint16_t position)
{
    size_t length, begin = 0, bytes;
    enum kind run = KIND_NONE;
    const char *folded = fold(words->arena, text, &length);
    if (folded == NULL)
        return;
    for (size_t at = 0; at <= length; at += bytes) {
        bytes = 1;
        enum kind next = at < length ? kind_at(folded + at, length - at, run, &bytes) : KIND_NONE;
        if (next == run)
            continue;
        if (run != KIND_NONE)
            words_add(words, (struct search_word){.text = folded + begin,
                                                  .length = (uint32_t)(at - begin),
                                                  .position = position,
                                                  .is_symbol = run == KIND_SYMBOL});
        begin = at;
        run = next;
    }
}

static int word_compare(const void *a, const void *b)
{
    const struct search_word *one = a, *other = b;
    size_t common = one->length < other->length ? one->length : other->length;
    int order = memcmp(one->text, other->text, common);
    if (order == 0)
        order = (one->length > other->length) - (one->length < other->length);
    return order != 0 ? order : (int)one->position - (int)other->position;
}

void words_sort(struct search_words *words)
{
    size_t kept = 0;
    if (words->count == 0)
        return;
    qsort(words->items, words->count, sizeof *words->items, word_compare);
    for (size_t i = 1; i < words->count; i++)
        if (word_compare(&words->items[kept], &words->items[i]) != 0)
            words->items[++kept] = words->items[i];
    words->count = kept + 1;
}
