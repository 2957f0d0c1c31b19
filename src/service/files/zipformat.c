#include "service/files/zipformat.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum {
    version_stored = 10,     /* 4.4.3: version needed to extract, 1.0 */
    version_zip64 = 45,      /* 4.4.3: 4.5 */
    made_by_unix = 3 << 8,   /* 4.4.2: upper byte; external attributes are Unix modes */
    flag_utf8 = 1 << 11,     /* 4.4.4: names are UTF-8; bit 3 (data descriptor) stays 0 */
    extra_zip64 = 0x0001,    /* 4.5.3 */
    extra_time = 0x5455,     /* Info-ZIP's extended timestamp (appnote.iz, "UT") */
    extra_time_modified = 1, /* the field holds the modification time */
    mode_unix = S_IFREG | 0644,
    dos_year_first = 1980,
    dos_year_last = 2107,
};

static const uint64_t most_16 = UINT16_MAX, most_32 = UINT32_MAX;

/* Appends a little-endian number, as all numbers of the format are (4.4.1). */
static void number_add(struct text *record, unsigned bytes, uint64_t number)
{
    for (unsigned i = 0; i < bytes; i++) {
        const char byte = (char)(number >> 8 * i & 0xFF);
        text_add(record, &byte, 1);
    }
}

/* A number too large for its field is written as all ones (4.4.1.4). */
static void number_add_most(struct text *record, unsigned bytes, uint64_t number)
{
    uint64_t most = bytes == 2 ? most_16 : most_32;
    number_add(record, bytes, number < most ? number : most);
}

static bool is_large(int64_t number)
{
    return (uint64_t)number >= most_32;
}

/* MS-DOS date and time (4.4.6), in UTC, clamped to the years that the format can represent. */
static uint32_t dos_time(int64_t time_ms)
{
    struct tm tm;
    time_t seconds = (time_t)(time_ms / 1000);
    if (gmtime_r(&seconds, &tm) == NULL || tm.tm_year + 1900 < dos_year_first)
        tm = (struct tm){.tm_year = dos_year_first - 1900, .tm_mday = 1};
    if (tm.tm_year + 1900 > dos_year_last)
        tm = (struct tm){.tm_year = dos_year_last - 1900, .tm_mon = 11, .tm_mday = 31, .tm_hour = 23};
    unsigned second = tm.tm_sec < 60 ? (unsigned)tm.tm_sec : 59;
    uint32_t date = (uint32_t)(tm.tm_year + 1900 - dos_year_first) << 9 | (uint32_t)(tm.tm_mon + 1) << 5 |
                    (uint32_t)tm.tm_mday;
    return date << 16 | (uint32_t)tm.tm_hour << 11 | (uint32_t)tm.tm_min << 5 | second / 2;
}

/* UTC time in seconds, because most readers take the MS-DOS time for local time. The field ends in 2038. */
static void time_add(struct text *extra, int64_t time_ms)
{
    int64_t seconds = time_ms / 1000;
    if (seconds < 0 || seconds > INT32_MAX)
        return;
    number_add(extra, 2, extra_time);
    number_add(extra, 2, 5);
    number_add(extra, 1, extra_time_modified);
    number_add(extra, 4, (uint64_t)seconds);
}

/* The fields that both headers share, from the version to the CRC and the sizes. */
static void common_add(struct text *record, const struct zipformat_entry *entry)
{
    bool is_zip64 = is_large(entry->size_bytes) || is_large(entry->offset_bytes);
    number_add(record, 2, is_zip64 ? version_zip64 : version_stored);
    number_add(record, 2, flag_utf8);
    number_add(record, 2, 0); /* 4.4.5: stored */
    number_add(record, 4, dos_time(entry->time_ms));
    number_add(record, 4, entry->crc);
    number_add_most(record, 4, (uint64_t)entry->size_bytes);
    number_add_most(record, 4, (uint64_t)entry->size_bytes);
}

/*
 * Appends the ZIP64 field. A local header needs both sizes (4.5.3), a central header only the numbers that
 * are too large for their fields.
 */
static void zip64_add(struct text *extra, const struct zipformat_entry *entry, bool is_central)
{
    bool is_far = is_central && is_large(entry->offset_bytes);
    unsigned bytes = (is_large(entry->size_bytes) ? 16u : 0u) + (is_far ? 8u : 0u);
    if (bytes == 0)
        return;
    number_add(extra, 2, extra_zip64);
    number_add(extra, 2, bytes);
    for (unsigned i = 0; is_large(entry->size_bytes) && i < 2; i++)
        number_add(extra, 8, (uint64_t)entry->size_bytes);
    if (is_far)
        number_add(extra, 8, (uint64_t)entry->offset_bytes);
}

static struct text extra_of(struct text *record, const struct zipformat_entry *entry, bool is_central)
{
    struct text extra;
    text_init(&extra, record->arena);
    zip64_add(&extra, entry, is_central);
    time_add(&extra, entry->time_ms);
    return extra;
}

/* 4.3.7 */
void zipformat_local(struct text *record, const struct zipformat_entry *entry)
{
    const struct text extra = extra_of(record, entry, false);
    text_add(record, "PK\3\4", 4);
    common_add(record, entry);
    number_add(record, 2, strlen(entry->name));
    number_add(record, 2, extra.length);
    text_add_string(record, entry->name);
    text_add(record, extra.data, extra.length);
}

/* 4.3.12 */
void zipformat_central(struct text *record, const struct zipformat_entry *entry)
{
    const struct text extra = extra_of(record, entry, true);
    text_add(record, "PK\1\2", 4);
    number_add(record, 2, made_by_unix | version_zip64);
    common_add(record, entry);
    number_add(record, 2, strlen(entry->name));
    number_add(record, 2, extra.length);
    number_add(record, 2, 0);                         /* comment */
    number_add(record, 2, 0);                         /* disk */
    number_add(record, 2, 0);                         /* internal attributes: bytes, not text */
    number_add(record, 4, (uint64_t)mode_unix << 16); /* 4.4.15 */
    number_add_most(record, 4, (uint64_t)entry->offset_bytes);
    text_add_string(record, entry->name);
    text_add(record, extra.data, extra.length);
}

/* 4.3.14 and 4.3.15: the ZIP64 end records, for numbers that are too large for the old end record. */
static void end64_add(struct text *record, uint64_t count, int64_t offset_bytes, int64_t size_bytes)
{
    text_add(record, "PK\6\6", 4);
    number_add(record, 8, 44); /* size of the rest of this record */
    number_add(record, 2, made_by_unix | version_zip64);
    number_add(record, 2, version_zip64);
    number_add(record, 4, 0); /* disk */
    number_add(record, 4, 0); /* disk of the central headers */
    number_add(record, 8, count);
    number_add(record, 8, count);
    number_add(record, 8, (uint64_t)size_bytes);
    number_add(record, 8, (uint64_t)offset_bytes);
    text_add(record, "PK\6\7", 4);
    number_add(record, 4, 0); /* disk of the record above */
    number_add(record, 8, (uint64_t)(offset_bytes + size_bytes));
    number_add(record, 4, 1); /* disks */
}

/* 4.3.16 */
void zipformat_end(struct text *record, uint64_t count, int64_t offset_bytes, int64_t size_bytes)
{
    if (count >= most_16 || is_large(offset_bytes) || is_large(size_bytes))
        end64_add(record, count, offset_bytes, size_bytes);
    text_add(record, "PK\5\6", 4);
    number_add(record, 2, 0); /* disk */
    number_add(record, 2, 0); /* disk of the central headers */
    number_add_most(record, 2, count);
    number_add_most(record, 2, count);
    number_add_most(record, 4, (uint64_t)size_bytes);
    number_add_most(record, 4, (uint64_t)offset_bytes);
    number_add(record, 2, 0); /* comment */
}
