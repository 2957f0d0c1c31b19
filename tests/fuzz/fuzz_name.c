/*
 * Makes names of results. Each name is UTF-8 of at most 255 bytes, without characters that are
 * forbidden in a path or on Windows. It differs from the earlier names, and a second pass does
 * not change it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "service/files/name.h"
#include "targets.h"

enum { requests_max = 64 };

static const enum format formats[] = {FORMAT_JPEG, FORMAT_PNG, FORMAT_WEBP, FORMAT_ZIP, FORMAT_NONE};

static void name_check(const char *name)
{
    size_t length = strlen(name);
    if (length == 0 || length > name_bytes_max || !text_is_utf8(name, length) ||
        text_has_control(name, length) || strpbrk(name, "<>:\"/\\|?*") != NULL ||
        strchr(". ", name[length - 1]) != NULL)
        abort();
}

int fuzz_name(const unsigned char *data, size_t size)
{
    struct arena *arena = arena_new(0);
    struct name_request requests[requests_max];
    size_t count = 0;
    char *text = arena_text_n(arena, (const char *)data, size);
    /* One request per line; the length of the line selects the format. */
    for (char *line = text, *end; count < requests_max && line != NULL; line = end) {
        end = strchr(line, '\n');
        if (end != NULL)
            *end++ = '\0';
        requests[count++] = (struct name_request){.name = line, .format = formats[strlen(line) % 5]};
    }
    const char **names = name_list(arena, requests, count);
    for (size_t i = 0; i < count; i++) {
        name_check(names[i]);
        requests[i].name = names[i];
        for (size_t before = 0; before < i; before++)
            if (text_equal_nocase(names[before], names[i]))
                abort();
    }
    const char **again = name_list(arena, requests, count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(again[i], names[i]) != 0)
            abort();
    arena_free(arena);
    return 0;
}
