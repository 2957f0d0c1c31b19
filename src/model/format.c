#include "model/format.h"

#include <stddef.h>
#include <string.h>

#include "base/text.h"

enum { signatures_max = 4 };

/* First bytes of a file, of which a mask says which count. */
struct format_signature {
    size_t size;
    const char *bytes;
    const char *mask;
};

#define SWITCH(key) offsetof(struct config, key)

/* Everything that programs without image libraries know of a format; the rest is in codec/driver.h. */
static const struct {
    const char *name;
    const char *word;
    const char *title; /* in sentences */
    const char *media_type;
    const char *extensions[format_extensions_max]; /* a name without an extension gets the first of them */
    bool is_changed;                               /* every order takes it; results have it */
    size_t read_switch; /* key of the configuration that lets extractions read it; 0 if there is none */
    struct format_signature signatures[signatures_max];
} formats[FORMAT_COUNT] = {
    [FORMAT_NONE] = {"", NULL, NULL, NULL, {"", NULL}, false, 0, {{0}}},
    [FORMAT_JPEG] = {"jpeg",
                     "JPG",
                     "JPEG",
                     "image/jpeg",
                     {".jpg", ".jpeg"},
                     true,
                     0,
                     {{3, "\xff\xd8\xff", "\xff\xff\xff"}}},
    [FORMAT_PNG] = {"png",
                    "PNG",
                    "PNG",
                    "image/png",
                    {".png", NULL},
                    true,
                    0,
                    {{8, "\x89PNG\r\n\x1a\n", "\xff\xff\xff\xff\xff\xff\xff\xff"}}},
    /* Bytes 4..7 are the size of the file. */
    [FORMAT_WEBP] = {"webp",
                     "WEBP",
                     "WebP",
                     "image/webp",
                     {".webp", NULL},
                     true,
                     0,
                     {{15, "RIFF\0\0\0\0WEBPVP8", "\xff\xff\xff\xff\0\0\0\0\xff\xff\xff\xff\xff\xff\xff"}}},
    [FORMAT_ZIP] = {"zip", "ZIP", "ZIP", "application/zip", {".zip", NULL}, false, 0, {{0}}},
    /* A file of the general brand mif1 is in sniff.c. */
    [FORMAT_HEIC] = {"heic",
                     "HEIC",
                     "HEIC",
                     "image/heic",
                     {".heic", ".heif"},
                     false,
                     SWITCH(image_read_heic),
                     {{12, "\0\0\0\0ftyphei\0", "\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\0"}}},
    [FORMAT_AVIF] = {"avif",
                     "AVIF",
                     "AVIF",
                     "image/avif",
                     {".avif", NULL},
                     false,
                     SWITCH(image_read_avif),
                     {{12, "\0\0\0\0ftypavif", "\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff"}}},
    [FORMAT_TIFF] = {"tiff",
                     "TIFF",
                     "TIFF",
                     "image/tiff",
                     {".tif", ".tiff"},
                     false,
                     SWITCH(image_read_tiff),
                     {{4, "II*\0", "\xff\xff\xff\xff"},
                      {4, "MM\0*", "\xff\xff\xff\xff"},
                      {4, "II+\0", "\xff\xff\xff\xff"},
                      {4, "MM\0+", "\xff\xff\xff\xff"}}},
    [FORMAT_GIF] = {"gif",
                    "GIF",
                    "GIF",
                    "image/gif",
                    {".gif", NULL},
                    false,
                    SWITCH(image_read_gif),
                    {{6, "GIF87a", "\xff\xff\xff\xff\xff\xff"}, {6, "GIF89a", "\xff\xff\xff\xff\xff\xff"}}},
    /* The upper bytes of the header's size are zero. */
    [FORMAT_BMP] = {"bmp",
                    "BMP",
                    "BMP",
                    "image/bmp",
                    {".bmp", NULL},
                    false,
                    SWITCH(image_read_bmp),
                    {{18, "BM\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
                      "\xff\xff\0\0\0\0\0\0\0\0\0\0\0\0\0\xff\xff\xff"}}},
};

bool format_is_picture(enum format format)
{
    return formats[format].is_changed;
}

static bool is_read(const struct config *config, enum format format)
{
    bool is_on = false;
    if (formats[format].read_switch != 0)
        memcpy(&is_on, (const char *)config + formats[format].read_switch, sizeof is_on);
    return is_on;
}

unsigned formats_changed(void)
{
    unsigned set = 0;
    for (unsigned i = 0; i < FORMAT_COUNT; i++)
        set |= formats[i].is_changed ? 1U << i : 0;
    return set;
}

unsigned formats_taken(const struct config *config, enum order_type type)
{
    unsigned taken = formats_changed();
    for (unsigned i = 0; i < FORMAT_COUNT; i++)
        if (type == ORDER_WATERMARK_EXTRACT && is_read(config, (enum format)i))
            taken |= 1U << i;
    return taken;
}

bool format_begins(enum format format, const void *first_bytes, size_t n)
{
    const struct format_signature *signature = formats[format].signatures;
    for (int i = 0; i < signatures_max && signature[i].size != 0; i++) {
        bool is_equal = n >= signature[i].size;
        for (size_t at = 0; is_equal && at < signature[i].size; at++)
            is_equal = (((const char *)first_bytes)[at] & signature[i].mask[at]) == signature[i].bytes[at];
        if (is_equal)
            return true;
    }
    return false;
}

/* Joins the texts of a set, added in turn: "A, B or C". */
struct format_list {
    const char *done, *last;
};

static void list_add(struct arena *arena, struct format_list *list, const char *text)
{
    if (list->last != NULL)
        list->done = arena_printf(arena, "%s%s%s", list->done == NULL ? "" : list->done,
                                  list->done == NULL ? "" : ", ", list->last);
    list->last = text;
}

static const char *list_end(struct arena *arena, const struct format_list *list)
{
    return list->done == NULL ? list->last : arena_printf(arena, "%s or %s", list->done, list->last);
}

const char *formats_extensions(struct arena *arena, unsigned set)
{
    struct format_list list = {NULL, NULL};
    for (unsigned i = 0; i < FORMAT_COUNT; i++)
        for (unsigned j = 0; format_is_in((enum format)i, set) && j < format_extensions_max; j++)
            if (formats[i].extensions[j] != NULL)
                list_add(arena, &list, formats[i].extensions[j]);
    return list_end(arena, &list);
}

const char *formats_titles(struct arena *arena, unsigned set)
{
    struct format_list list = {NULL, NULL};
    for (unsigned i = 0; i < FORMAT_COUNT; i++)
        if (format_is_in((enum format)i, set))
            list_add(arena, &list, formats[i].title);
    return list_end(arena, &list);
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
