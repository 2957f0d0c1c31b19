#include "model/format.h"

#include <string.h>

#include "base/text.h"

enum { extensions_max = 2 };

static const struct {
    const char *name;
    const char *word;
    const char *media_type;
    const char *extensions[extensions_max]; /* a name without an extension gets the first one */
} formats[FORMAT_COUNT] = {
    [FORMAT_NONE] = {"", NULL, NULL, {"", NULL}},
    [FORMAT_JPEG] = {"jpeg", "JPG", "image/jpeg", {".jpg", ".jpeg"}},
    [FORMAT_PNG] = {"png", "PNG", "image/png", {".png", NULL}},
    [FORMAT_WEBP] = {"webp", "WEBP", "image/webp", {".webp", NULL}},
    [FORMAT_ZIP] = {"zip", "ZIP", "application/zip", {".zip", NULL}},
};

const char *format_name(enum format format)
{
    return formats[format].name;
}

const char *format_word(enum format format)
{
    return formats[format].word;
}

const char *format_media_type(enum format format)
{
    return formats[format].media_type;
}

const char *format_extension(enum format format)
{
    return formats[format].extensions[0];
}

enum format format_by_name(const char *name)
{
    for (int i = FORMAT_NONE + 1; name != NULL && i < FORMAT_COUNT; i++)
        if (strcmp(formats[i].name, name) == 0)
            return (enum format)i;
    return FORMAT_NONE;
}

enum format format_by_extension(const char *extension)
{
    for (int i = FORMAT_NONE + 1; i < FORMAT_COUNT; i++)
        for (int j = 0; j < extensions_max && formats[i].extensions[j] != NULL; j++)
            if (text_equal_nocase(formats[i].extensions[j], extension))
                return (enum format)i;
    return FORMAT_NONE;
}
