#include "service/files/name.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <utf8proc.h>

#include "base/text.h"

/* The parts of a name. */
struct shape {
    const char *stem;
    size_t stem_length;
    const char *suffix;
    const char *extension; /* with the dot, or "" */
};

/* ---- Characters ---- */

/*
 * Characters with the Unicode property Bidi_Control (PropList.txt): they change the order in
 * which a name is displayed.
 */
static bool is_bidi_control(utf8proc_int32_t point)
{
    switch (utf8proc_get_property(point)->bidi_class) {
    case UTF8PROC_BIDI_CLASS_LRE:
    case UTF8PROC_BIDI_CLASS_LRO:
    case UTF8PROC_BIDI_CLASS_RLE:
    case UTF8PROC_BIDI_CLASS_RLO:
    case UTF8PROC_BIDI_CLASS_PDF:
    case UTF8PROC_BIDI_CLASS_LRI:
    case UTF8PROC_BIDI_CLASS_RLI:
    case UTF8PROC_BIDI_CLASS_FSI:
    case UTF8PROC_BIDI_CLASS_PDI:
        return true;
    default:
        return point == 0x061C || point == 0x200E || point == 0x200F;
    }
}

/* Reserved by Windows ("Naming Files, Paths, and Namespaces"), control characters and line separators. */
static bool is_forbidden(utf8proc_int32_t point)
{
    utf8proc_category_t category = utf8proc_category(point);
    return (point < 0x80 && strchr("<>:\"/\\|?*", point) != NULL) || category == UTF8PROC_CATEGORY_CC ||
           category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

/*
 * Replaces forbidden characters. The result is never longer than the given name. Invalid UTF-8 bytes also
 * become "_".
 */
static const char *name_clean(struct arena *arena, const char *given)
{
    size_t length = strlen(given);
    char *name = arena_alloc(arena, length + 1), *end = name;
    for (size_t at = 0; at < length;) {
        utf8proc_int32_t point;
        utf8proc_ssize_t size =
            utf8proc_iterate((const uint8_t *)given + at, (utf8proc_ssize_t)(length - at), &point);
        if (size < 1 || is_forbidden(point)) {
            *end++ = '_';
        } else if (!is_bidi_control(point)) {
            memcpy(end, given + at, (size_t)size);
            end += size;
        }
        at += size < 1 ? 1 : (size_t)size;
    }
    return name;
}

/* ---- Extensions ---- */

/* Splits a name before a known extension. A leading dot does not begin an extension. */
static void shape_split(struct shape *shape, const char *name, enum format format)
{
    const char *dot = strrchr(name, '.');
    enum format announced = dot != NULL && dot != name ? format_by_extension(dot) : FORMAT_NONE;
    bool is_right = announced != FORMAT_NONE && (format == FORMAT_NONE || announced == format);
    shape->stem = name;
    shape->stem_length = announced != FORMAT_NONE ? (size_t)(dot - name) : strlen(name);
    shape->extension = is_right ? dot : format_extension(format);
}

/* ---- Devices ---- */

/*
 * Returns true for a Windows device name ("Naming Files, Paths, and Namespaces"), even if blanks or an
 * extension follow.
 */
static bool is_device(const char *stem, size_t length)
{
    static const char *const devices[] = {
        "CON",       "PRN",       "AUX",  "NUL",       "CONIN$",    "CONOUT$",   "COM1", "COM2",
        "COM3",      "COM4",      "COM5", "COM6",      "COM7",      "COM8",      "COM9", "COM\u00B9",
        "COM\u00B2", "COM\u00B3", "LPT1", "LPT2",      "LPT3",      "LPT4",      "LPT5", "LPT6",
        "LPT7",      "LPT8",      "LPT9", "LPT\u00B9", "LPT\u00B2", "LPT\u00B3",
    };
    const char *dot = memchr(stem, '.', length);
    if (dot != NULL)
        length = (size_t)(dot - stem);
    while (length > 0 && stem[length - 1] == ' ')
        length--;
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++)
        if (strlen(devices[i]) == length && strncasecmp(devices[i], stem, length) == 0)
            return true;
    return false;
}

/* ---- One name ---- */

static struct shape shape_of(struct arena *arena, const struct name_request *wanted)
{
    struct shape shape = {.suffix = wanted->suffix != NULL ? wanted->suffix : ""};
    const char *name = name_clean(arena, wanted->name != NULL ? wanted->name : "");
    bool is_nothing = name[strspn(name, ". ")] == '\0';
    shape_split(&shape, is_nothing ? "file" : name, wanted->format);
    return shape;
}

/*
 * Returns the length of the longest prefix of at most room bytes that ends between two grapheme clusters (UAX
 * #29). If the first cluster is longer than room, the prefix ends between code points.
 */
static size_t stem_fit(const char *stem, size_t length, size_t room)
{
    utf8proc_int32_t state = 0, point, before = 0;
    size_t whole = 0, fit = 0;
    if (length <= room)
        return length;
    for (size_t at = 0; at <= room;) {
        utf8proc_ssize_t size =
            utf8proc_iterate((const uint8_t *)stem + at, (utf8proc_ssize_t)(length - at), &point);
        if (at > 0 && utf8proc_grapheme_break_stateful(before, point, &state))
            whole = at;
        fit = at;
        before = point;
        at += size < 1 ? 1 : (size_t)size;
    }
    return whole > 0 ? whole : fit;
}

/* Builds the name; a number other than 0 is added as " (2)" and so on. */
static const char *shape_print(struct arena *arena, const struct shape *shape, unsigned number)
{
    char digits[text_decimal_size + 3] = "";
    if (number > 0)
        snprintf(digits, sizeof digits, " (%u)", number);
    size_t room = name_bytes_max - strlen(shape->suffix) - strlen(digits) - strlen(shape->extension);
    /* Windows removes dots and blanks at the end of a name. */
    bool is_end = shape->suffix[0] == '\0' && digits[0] == '\0' && shape->extension[0] == '\0';
    const char *prefix = is_device(shape->stem, shape->stem_length) ? "_" : "", *stem = shape->stem;
    size_t length = stem_fit(stem, shape->stem_length, room - strlen(prefix));
    while (is_end && length > 0 && strchr(". ", stem[length - 1]) != NULL)
        length--;
    /* A stem that was cut can become a device name, or empty. */
    if (prefix[0] == '\0' && is_device(stem, length)) {
        prefix = "_";
        length = stem_fit(stem, length, room - 1);
    }
    if (length == 0) {
        stem = "file";
        length = strlen(stem);
    }
    return arena_printf(arena, "%s%.*s%s%s%s", prefix, (int)length, stem, shape->suffix, digits,
                        shape->extension);
}

const char *name_one(struct arena *arena, const struct name_request *wanted)
{
    const struct shape shape = shape_of(arena, wanted);
    return shape_print(arena, &shape, 0);
}

/* ---- Duplicates ---- */

static uint8_t *text_map(const uint8_t *text, size_t length, unsigned options, size_t *mapped_length)
{
    uint8_t *mapped;
    utf8proc_ssize_t size =
        utf8proc_map(text, (utf8proc_ssize_t)length, &mapped, (utf8proc_option_t)(UTF8PROC_STABLE | options));
    if (size < 0)
        abort(); /* can only be out of memory, because the text is valid */
    *mapped_length = (size_t)size;
    return mapped;
}

const char *name_fold(struct arena *arena, const char *name)
{
    size_t length = strlen(name), folded_length;
    if (text_is_ascii(name, length)) {
        char *lower = arena_text(arena, name);
        for (char *at = lower; *at != '\0'; at++)
            *at = *at >= 'A' && *at <= 'Z' ? (char)(*at | 0x20) : *at;
        return lower;
    }
    uint8_t *plain = text_map((const uint8_t *)name, length, UTF8PROC_DECOMPOSE, &length);
    uint8_t *folded =
        text_map(plain, length, UTF8PROC_DECOMPOSE | UTF8PROC_CASEFOLD | UTF8PROC_IGNORE, &folded_length);
    char *key = arena_text_n(arena, (const char *)folded, folded_length);
    free(plain);
    free(folded);
    return key;
}

/* A name in use, and the first number to try for its next duplicate; lower numbers are in use. */
struct taken {
    const char *key; /* NULL if the entry is empty */
    unsigned next;
};

/*
 * Returns the entry of a key, or the empty entry for the key. The hash function is FNV-1a (Fowler, Noll, Vo).
 */
static struct taken *taken_find(struct taken *table, size_t room, const char *key)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (const char *at = key; *at != '\0'; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(1099511628211);
    size_t place = (size_t)(hash ^ hash >> 32) & (room - 1);
    while (table[place].key != NULL && strcmp(table[place].key, key) != 0)
        place = (place + 1) & (room - 1);
    return &table[place];
}

const char **name_list(struct arena *arena, const struct name_request *requests, size_t count)
{
    size_t room = 16;
    while (room < 2 * count)
        room *= 2;
    struct taken *table = arena_array(arena, room, sizeof *table);
    const char **names = arena_array(arena, count > 0 ? count : 1, sizeof *names);
    for (size_t i = 0; i < count; i++) {
        const struct shape shape = shape_of(arena, &requests[i]);
        const char *name = shape_print(arena, &shape, 0), *key = name_fold(arena, name);
        struct taken *first = taken_find(table, room, key), *place = first;
        while (place->key != NULL) {
            name = shape_print(arena, &shape, first->next++);
            key = name_fold(arena, name);
            place = taken_find(table, room, key);
        }
        *place = (struct taken){key, 2};
        names[i] = name;
    }
    return names;
}

const char *name_disposition(struct arena *arena, const char *name)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$&+-.^_`|~";
    struct text ascii, coded;
    text_init(&ascii, arena);
    text_init(&coded, arena);
    for (const unsigned char *at = (const unsigned char *)name; *at != '\0'; at++) {
        bool is_separator = *at == '/' || *at == '\\';
        char byte = *at < 0x20 || *at == 0x7F || is_separator ? '_' : (char)*at;
        bool is_start = (*at & 0xC0) != 0x80; /* writes one underscore per code point */
        if (*at >= 0x80 ? is_start : true)
            text_printf(&ascii, "%c", *at >= 0x80 || byte == '"' || byte == '%' ? '_' : byte);
        if (*at < 0x80 && strchr(plain, byte) != NULL)
            text_add(&coded, &byte, 1);
        else
            text_printf(&coded, "%%%02X", (unsigned char)byte);
    }
    return arena_printf(arena, "attachment; filename=\"%s\"; filename*=UTF-8''%s", ascii.data, coded.data);
}
