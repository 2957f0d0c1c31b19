#include "model/format.h"

#include <string.h>

#include "base/text.h"

static const struct {
    const char *name;
    const char *word;
    const char *title;
    const char *media_type;
    const char *extensions[format_extensions_max]; /* a name without an extension gets the first one */
} formats[FORMAT_COUNT] = {
    [FORMAT_NONE] = {"", NULL, NULL, NULL, {"", NULL}},
    [FORMAT_JPEG] = {"jpeg", "JPG", "JPEG", "image/jpeg", {".jpg", ".jpeg"}},
    [FORMAT_PNG] = {"png", "PNG", "PNG", "image/png", {".png", NULL}},
    [FORMAT_WEBP] = {"webp", "WEBP", "WebP", "image/webp", {".webp", NULL}},
    [FORMAT_ZIP] = {"zip", "ZIP", "ZIP", "application/zip", {".zip", NULL}},
    [FORMAT_HEIC] = {"heic", "HEIC", "HEIC", "image/heic", {".heic", ".heif"}},
    [FORMAT_AVIF] = {"avif", "AVIF", "AVIF", "image/avif", {".avif", NULL}},
    [FORMAT_TIFF] = {"tiff", "TIFF", "TIFF", "image/tiff", {".tif", ".tiff"}},
    [FORMAT_GIF] = {"gif", "GIF", "GIF", "image/gif", {".gif", NULL}},
    [FORMAT_BMP] = {"bmp", "BMP", "BMP", "image/bmp", {".bmp", NULL}},
};

unsigned formats_taken(const struct config *config, enum order_type type)
{
    const bool is_read[FORMAT_COUNT] = {[FORMAT_HEIC] = config->image_read_heic,
                                        [FORMAT_AVIF] = config->image_read_avif,
                                        [FORMAT_TIFF] = config->image_read_tiff,
                                        [FORMAT_GIF] = config->image_read_gif,
                                        [FORMAT_BMP] = config->image_read_bmp};
    unsigned taken = 0;
    for (unsigned i = 0; i < FORMAT_COUNT; i++)
        if (format_is_picture((enum format)i) || (type == ORDER_WATERMARK_EXTRACT && is_read[i]))
            taken |= 1U << i;
    return taken;
}

const char *formats_extensions(struct arena *arena, unsigned taken)
{
    const char *list = "", *last = NULL;
    for (unsigned i = 0; i < FORMAT_COUNT; i++)
        for (unsigned j = 0; format_is_in((enum format)i, taken) && j < format_extensions_max; j++) {
            if (formats[i].extensions[j] == NULL)
                continue;
            if (last != NULL)
                list = arena_printf(arena, "%s%s%s", list, list[0] == '\0' ? "" : ", ", last);
            last = formats[i].extensions[j];
        }
    return arena_printf(arena, "%s or %s", list, last);
}

const char *format_name(enum format format)
{
    return formats[format].name;
}

const char *format_word(enum format format)
{
    return formats[format].word;
}

const char *format_title(enum format format)
{
    return formats[format].title;
}

const char *const *format_extensions(enum format format)
{
    return formats[format].extensions;
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
        for (int j = 0; j < format_extensions_max && formats[i].extensions[j] != NULL; j++)
            if (text_equal_nocase(formats[i].extensions[j], extension))
                return (enum format)i;
    return FORMAT_NONE;
}
