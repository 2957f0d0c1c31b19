#include "service/secret/typed.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

enum { ideographic_full_stop = 0x3002 };

static utf8proc_int32_t blank_plain(utf8proc_int32_t point, void *unused)
{
    (void)unused;
    return utf8proc_category(point) == UTF8PROC_CATEGORY_ZS ? ' ' : point;
}

/* Input methods write this full stop in addresses (UTS #46, 2.3), and word processors write other dashes. */
static utf8proc_int32_t mark_plain(utf8proc_int32_t point, void *unused)
{
    (void)unused;
    if (point == ideographic_full_stop)
        return '.';
    return utf8proc_category(point) == UTF8PROC_CATEGORY_PD ? '-' : point;
}

static const char *mapped(struct arena *arena, const char *text, unsigned options, utf8proc_custom_func each)
{
    uint8_t *fresh = NULL;
    utf8proc_ssize_t size =
        utf8proc_map_custom((const uint8_t *)text, (utf8proc_ssize_t)strlen(text), &fresh,
                            (utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_COMPOSE | options), each, NULL);
    if (size < 0)
        return text;
    const char *copy = arena_text_n(arena, (const char *)fresh, (size_t)size);
    free(fresh);
    return copy;
}

const char *typed_password(struct arena *arena, const char *text)
{
    return mapped(arena, text, 0, blank_plain);
}

const char *typed_word(struct arena *arena, const char *text)
{
    const char *word = mapped(arena, text, UTF8PROC_COMPAT | UTF8PROC_IGNORE, mark_plain);
    word += strspn(word, " ");
    size_t length = strlen(word);
    while (length > 0 && word[length - 1] == ' ')
        length--;
    return arena_text_n(arena, word, length);
}
