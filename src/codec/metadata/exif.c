#include "codec/metadata/exif.h"

#include <string.h>

enum {
    head_bytes = 8,
    entry_bytes = 12,
    tag_width = 0x0100,
    tag_height = 0x0101,
    tag_strips = 0x0111,
    tag_strip_bytes = 0x0117,
    tag_sub_directories = 0x014A,
    tag_jpeg = 0x0201,
    tag_jpeg_bytes = 0x0202,
    tag_exif_directory = 0x8769,
    type_byte = 1,
    type_short = 3,
    type_long = 4,
    type_directory = 13
};

const char exif_prefix[exif_prefix_bytes] = "Exif\0";

/* ---- numbers ---- */

static uint32_t number(const struct exif *exif, size_t at, unsigned bytes)
{
    uint32_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value = value << 8 | exif->bytes[at + (exif->is_little ? bytes - 1 - i : i)];
    return value;
}

static void number_put(const struct exif *exif, size_t at, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++)
        exif->bytes[at + i] = (unsigned char)(value >> (exif->is_little ? 8 * i : 24 - 8 * i));
}

/* ---- directories ---- */

/* Bytes of one value of a type (TIFF 6.0, page 15); 0 if the type is not known. */
static unsigned type_bytes(unsigned type)
{
    static const unsigned char sizes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4};
    return type < sizeof sizes ? sizes[type] : 0;
}

static size_t table_bytes(const struct exif_table *table)
{
    return 2 + (size_t)table->entry_count * entry_bytes + 4;
}

/* Adds the directory at `at`. False if it is outside the block or already known. */
static bool table_add(struct exif *exif, size_t at)
{
    if (exif->table_count == exif_tables_max || at < head_bytes || exif->size < 2 || at > exif->size - 2)
        return false;
    for (unsigned i = 0; i < exif->table_count; i++)
        if (exif->tables[i].at == at)
            return false;
    unsigned fitting = (unsigned)((exif->size - at - 2) / entry_bytes);
    unsigned count = number(exif, at, 2);
    exif->tables[exif->table_count++] = (struct exif_table){at, count < fitting ? count : fitting};
    return true;
}

/* Offset of the link to the next directory; 0 if there is none. */
static size_t link_at(const struct exif *exif, const struct exif_table *table)
{
    size_t at = table->at + table_bytes(table) - 4;
    return at + 4 <= exif->size ? at : 0;
}

/* Entry of a tag in a directory; 0 if there is none. */
static size_t entry_find(const struct exif *exif, const struct exif_table *table, unsigned tag)
{
    for (unsigned i = 0; i < table->entry_count; i++) {
        size_t at = table->at + 2 + (size_t)i * entry_bytes;
        if (number(exif, at, 2) == tag)
            return at;
    }
    return 0;
}

/* Offset of an entry's values, all within the block; 0 if they are outside. */
static size_t values_at(const struct exif *exif, size_t entry, size_t *size)
{
    uint64_t bytes = (uint64_t)type_bytes(number(exif, entry + 2, 2)) * number(exif, entry + 4, 4);
    size_t at = bytes <= 4 ? entry + 8 : number(exif, entry + 8, 4);
    *size = (size_t)bytes;
    return bytes == 0 || at < head_bytes || bytes > exif->size || at > exif->size - bytes ? 0 : at;
}

/* The n-th integer of an entry. False if there is none. */
static bool entry_number(const struct exif *exif, size_t entry, size_t n, uint32_t *value)
{
    size_t size = 0;
    unsigned type = entry == 0 ? 0 : number(exif, entry + 2, 2);
    unsigned bytes = type_bytes(type);
    size_t at =
        type == type_short || type == type_long || type == type_directory ? values_at(exif, entry, &size) : 0;
    if (at == 0 || n >= size / bytes)
        return false;
    *value = number(exif, at + n * bytes, bytes);
    return true;
}

/* Adds the directories that the entry refers to. */
static void tables_below(struct exif *exif, const struct exif_table *table, unsigned tag)
{
    uint32_t at = 0;
    size_t entry = entry_find(exif, table, tag);
    for (size_t n = 0; n < exif_tables_max && entry_number(exif, entry, n, &at); n++)
        table_add(exif, at);
}

bool exif_open(struct exif *exif, unsigned char *bytes, size_t size)
{
    bool has_prefix = size >= exif_prefix_bytes && memcmp(bytes, exif_prefix, exif_prefix_bytes) == 0;
    size_t skipped = has_prefix ? exif_prefix_bytes : 0;
    bytes += skipped;
    size -= skipped;
    memset(exif, 0, sizeof *exif);
    exif->bytes = bytes;
    exif->size = size;
    if (size < head_bytes || (memcmp(bytes, "II*\0", 4) != 0 && memcmp(bytes, "MM\0*", 4) != 0))
        return false;
    exif->is_little = bytes[0] == 'I';
    size_t at = number(exif, 4, 4);
    while (at != 0 && table_add(exif, at)) {
        exif->chain_count = exif->table_count;
        size_t link = link_at(exif, &exif->tables[exif->table_count - 1]);
        at = link == 0 ? 0 : number(exif, link, 4);
    }
    if (exif->table_count == 0)
        return false;
    tables_below(exif, &exif->tables[0], tag_sub_directories);
    tables_below(exif, &exif->tables[0], tag_exif_directory);
    return true;
}

/* ---- pictures ---- */

/* True if the bytes overlap neither a directory nor the head. */
static bool is_apart(const struct exif *exif, size_t at, size_t size)
{
    for (unsigned i = 0; i < exif->table_count; i++)
        if (at < exif->tables[i].at + table_bytes(&exif->tables[i]) && exif->tables[i].at < at + size)
            return false;
    return at >= head_bytes;
}

static bool range_blank(const struct exif *exif, size_t at, size_t size)
{
    if (at > exif->size)
        return false;
    size_t inside = size < exif->size - at ? size : exif->size - at;
    if (inside == 0 || !is_apart(exif, at, inside))
        return false;
    memset(exif->bytes + at, 0, inside);
    return true;
}

/*
 * Zeroes the JPEG or the strips of a directory, at most the size of the block, because strips do
 * not overlap.
 */
static bool pictures_blank(const struct exif *exif, const struct exif_table *table)
{
    static const struct {
        unsigned offset_tag;
        unsigned size_tag;
    } pairs[] = {{tag_jpeg, tag_jpeg_bytes}, {tag_strips, tag_strip_bytes}};
    enum { strips_max = 65536 };
    bool is_any = false;
    size_t left = exif->size;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        uint32_t at = 0;
        uint32_t size = 0;
        size_t offsets = entry_find(exif, table, pairs[i].offset_tag);
        size_t sizes = entry_find(exif, table, pairs[i].size_tag);
        for (size_t n = 0; n < strips_max && entry_number(exif, offsets, n, &at) &&
                           entry_number(exif, sizes, n, &size) && size <= left;
             n++) {
            is_any |= range_blank(exif, at, size);
            left -= size;
        }
    }
    return is_any;
}

bool exif_thumbnail_find(const struct exif *exif, struct exif_thumbnail *thumbnail)
{
    uint32_t at = 0;
    uint32_t room = 0;
    if (exif->chain_count < 2)
        return false;
    const struct exif_table *table = &exif->tables[1];
    size_t length = entry_find(exif, table, tag_jpeg_bytes);
    if (!entry_number(exif, entry_find(exif, table, tag_jpeg), 0, &at) ||
        !entry_number(exif, length, 0, &room) || number(exif, length + 4, 4) != 1)
        return false;
    if (at > exif->size || room > exif->size - at || room < 4 || !is_apart(exif, at, room) ||
        exif_jpeg_bytes(exif->bytes + at, room) == 0)
        return false;
    *thumbnail = (struct exif_thumbnail){at, room};
    return true;
}

/* Stores a number in an entry, in the entry's type. */
static void entry_put(const struct exif *exif, size_t entry, uint32_t value)
{
    if (entry == 0 || number(exif, entry + 4, 4) != 1)
        return;
    if (number(exif, entry + 2, 2) == type_short && exif->is_little)
        number_put(exif, entry + 8, value & 0xFFFF);
    else
        number_put(exif, entry + 8, number(exif, entry + 2, 2) == type_short ? value << 16 : value);
}

void exif_thumbnail_set(const struct exif *exif, const struct exif_thumbnail *thumbnail, size_t size,
                        uint32_t width_px, uint32_t height_px)
{
    const struct exif_table *table = &exif->tables[1];
    memset(exif->bytes + thumbnail->at + size, 0, thumbnail->room - size);
    entry_put(exif, entry_find(exif, table, tag_jpeg_bytes), (uint32_t)size);
    entry_put(exif, entry_find(exif, table, tag_width), width_px);
    entry_put(exif, entry_find(exif, table, tag_height), height_px);
}

bool exif_chain_cut(struct exif *exif)
{
    if (exif->chain_count < 2)
        return false;
    for (unsigned i = 1; i < exif->chain_count; i++)
        pictures_blank(exif, &exif->tables[i]);
    number_put(exif, link_at(exif, &exif->tables[0]), 0);
    return true;
}

bool exif_previews_blank(struct exif *exif, const struct exif_thumbnail *keep)
{
    bool is_any = false;
    for (unsigned i = keep == NULL ? 1 : 2; i < exif->table_count; i++)
        is_any |= pictures_blank(exif, &exif->tables[i]);
    /* EXIF defines no directory after IFD1. */
    if (keep != NULL && exif->chain_count > 2)
        number_put(exif, link_at(exif, &exif->tables[1]), 0);
    size_t from = keep == NULL ? exif->size : keep->at;
    size_t to = keep == NULL ? exif->size : keep->at + keep->room;
    is_any |= exif_jpegs_blank(exif->bytes, from);
    is_any |= exif_jpegs_blank(exif->bytes + to, exif->size - to);
    return is_any;
}

/* IFD0's field of the tag with one unsigned number of any size. 0 if there is none. */
static uint32_t unsigned_number(const struct exif *exif, unsigned tag)
{
    size_t entry = entry_find(exif, &exif->tables[0], tag);
    unsigned type = entry == 0 ? 0 : number(exif, entry + 2, 2);
    return type == type_byte || type == type_short || type == type_long
               ? number(exif, entry + 8, type_bytes(type))
               : 0;
}

/* The standard requires SHORT; some phones write LONG or BYTE. */
unsigned exif_orientation(const struct exif *exif)
{
    enum { tag_orientation = 0x0112 };
    uint32_t value = unsigned_number(exif, tag_orientation);
    return value >= 1 && value <= 8 ? value : 1;
}

const unsigned char *exif_field(const struct exif *exif, unsigned tag, size_t *size)
{
    size_t entry = entry_find(exif, &exif->tables[0], tag);
    size_t at = entry == 0 ? 0 : values_at(exif, entry, size);
    return at == 0 ? NULL : exif->bytes + at;
}

void exif_field_remove(struct exif *exif, unsigned tag)
{
    struct exif_table *table = &exif->tables[0];
    size_t entry = entry_find(exif, table, tag);
    size_t size = 0;
    size_t at = entry == 0 ? 0 : values_at(exif, entry, &size);
    size_t end = table->at + table_bytes(table);
    if (at == 0 || end > exif->size)
        return;
    if (size > 4)
        range_blank(exif, at, size);
    memmove(exif->bytes + entry, exif->bytes + entry + entry_bytes, end - entry - entry_bytes);
    memset(exif->bytes + end - entry_bytes, 0, entry_bytes);
    table->entry_count--;
    exif->bytes[table->at + (exif->is_little ? 0 : 1)] = (unsigned char)table->entry_count;
    exif->bytes[table->at + (exif->is_little ? 1 : 0)] = (unsigned char)(table->entry_count >> 8);
}

/* ---- JPEG streams ---- */

size_t exif_jpeg_bytes(const unsigned char *data, size_t size)
{
    enum { marker_soi = 0xD8, marker_eoi = 0xD9, marker_sos = 0xDA, marker_first = 0xC0, least_segments = 2 };
    unsigned segments = 0;
    if (size < 4 || memcmp(data, "\xFF\xD8\xFF", 3) != 0)
        return 0;
    size_t at = 2;
    while (size - at >= 4 && data[at] == 0xFF) {
        unsigned marker = data[at + 1];
        if (marker == 0xFF) {
            at++;
            continue;
        }
        size_t length = (size_t)data[at + 2] << 8 | data[at + 3];
        if (marker < marker_first || marker == marker_soi || marker == marker_eoi || length < 2 ||
            length + 2 > size - at)
            break;
        at += 2 + length;
        segments++;
        /* Entropy-coded bytes end at the next marker that is not a restart. */
        while (marker == marker_sos && size - at >= 2 &&
               (data[at] != 0xFF || data[at + 1] == 0 || (data[at + 1] & 0xF8) == 0xD0))
            at++;
    }
    /* A single marker may be a coincidence. */
    if (segments < least_segments)
        return 0;
    return size - at >= 2 && data[at] == 0xFF && data[at + 1] == marker_eoi ? at + 2 : at;
}

bool exif_jpegs_blank(unsigned char *data, size_t size)
{
    bool is_any = false;
    for (size_t at = 0; size - at >= 4;) {
        const unsigned char *found = memchr(data + at, 0xFF, size - at - 3);
        if (found == NULL)
            break;
        at = (size_t)(found - data);
        size_t length = exif_jpeg_bytes(data + at, size - at);
        is_any |= length != 0;
        memset(data + at, 0, length);
        at += length == 0 ? 1 : length;
    }
    return is_any;
}
