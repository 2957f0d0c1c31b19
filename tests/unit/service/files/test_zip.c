/* Archives and their format. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/crypto.h"
#include "base/text.h"
#include "service/files/zip.h"
#include "service/files/zipformat.h"
#include "store_maker.h"

/* Reads a little-endian number of the archive (APPNOTE.TXT). */
static uint64_t number_at(const char *bytes, unsigned size)
{
    uint64_t number = 0;
    for (unsigned i = 0; i < size; i++)
        number |= (uint64_t)(unsigned char)bytes[i] << 8 * i;
    return number;
}

/* Checks a local header with the CRC; returns the bytes of header and entry. */
static size_t local_expect(const char *at, const char *name, const char *bytes, size_t size)
{
    size_t name_size = number_at(at + 26, 2), extra_size = number_at(at + 28, 2);
    CU_ASSERT_EQUAL(memcmp(at, "PK\3\4", 4), 0);
    CU_ASSERT_EQUAL(number_at(at + 4, 2), 10);
    CU_ASSERT_EQUAL(number_at(at + 6, 2), 1 << 11); /* UTF-8, without a data descriptor */
    CU_ASSERT_EQUAL(number_at(at + 8, 2), 0);
    CU_ASSERT_EQUAL(number_at(at + 10, 4),
                    (uint32_t)(43 << 9 | 11 << 5 | 14) << 16 | 22 << 11 | 13 << 5 | 10);
    CU_ASSERT_EQUAL(number_at(at + 14, 4), crc32_z(0, (const unsigned char *)bytes, size));
    CU_ASSERT_EQUAL(number_at(at + 18, 4), size);
    CU_ASSERT_EQUAL(number_at(at + 22, 4), size);
    CU_ASSERT_EQUAL_FATAL(name_size, strlen(name));
    CU_ASSERT_EQUAL(memcmp(at + 30, name, name_size), 0);
    CU_ASSERT_EQUAL(extra_size, 9);
    CU_ASSERT_EQUAL(number_at(at + 30 + name_size + 5, 4), 1700000000);
    CU_ASSERT_EQUAL(memcmp(at + 30 + name_size + extra_size, bytes, size), 0);
    return 30 + name_size + extra_size + size;
}

/* Checks that a central header agrees with the local header at offset; returns the bytes of the central
 * header. */
static size_t central_expect(const char *at, const char *archive, uint64_t offset)
{
    const char *local = archive + offset;
    size_t name_size = number_at(at + 28, 2), extra_size = number_at(at + 30, 2);
    CU_ASSERT_EQUAL(memcmp(at, "PK\1\2", 4), 0);
    CU_ASSERT_EQUAL(number_at(at + 4, 2), 3 << 8 | 45);
    CU_ASSERT_EQUAL(memcmp(at + 6, local + 4, 26),
                    0); /* from the version to the length of the extra fields */
    CU_ASSERT_EQUAL(number_at(at + 32, 6), 0);
    CU_ASSERT_EQUAL(number_at(at + 38, 4), (uint64_t)0100644 << 16);
    CU_ASSERT_EQUAL(number_at(at + 42, 4), offset);
    CU_ASSERT_EQUAL(memcmp(at + 46, local + 30, name_size + extra_size), 0);
    return 46 + name_size + extra_size;
}

static struct zip_entry zip_entry_of(const char *name, const char *format, int64_t number, const void *bytes,
                                     size_t size)
{
    struct zip_entry entry = {name, format_by_name(format), {FILEKEY_RESULT, 7, number, 1, 0}, {0}};
    crypto_sha256(bytes, size, entry.sha256);
    return entry;
}

static char *archive_read(struct storage *storage, const struct storage_key *key, int64_t size)
{
    int descriptor;
    struct storage_facts facts;
    char *whole = malloc((size_t)size);
    CU_ASSERT_EQUAL_FATAL(storage_get(storage, &context, key, &descriptor, &facts), IW_OK);
    CU_ASSERT_EQUAL(facts.size_bytes, size);
    CU_ASSERT_EQUAL(pread(descriptor, whole, (size_t)size, 0), size);
    close(descriptor);
    return whole;
}

static void test_zip_follows_the_format(void)
{
    enum { big_bytes = 3000000, count = 3 };
    const struct storage_key key = {FILEKEY_ZIP, 7, 0, 1, 0};
    static const char *const names[count] = {"gr\u00F6\u00DFe.jpg", "b.png", "b (2).png"};
    size_t offsets[count], at = 0;
    struct zip_facts made, again;
    uint8_t digest[32];
    test_begin();
    char *big = malloc(big_bytes);
    for (size_t i = 0; i < big_bytes; i++)
        big[i] = (char)(i * 2654435761u >> 13);
    const struct zip_entry entries[count] = {zip_entry_of("gr\u00F6\u00DFe.jpg", "jpeg", 1, big, big_bytes),
                                             zip_entry_of("b.png", "png", 2, "two", 3),
                                             zip_entry_of("b.jpg", "png", 3, "", 0)};
    const char *const bytes[count] = {big, "two", ""};
    const size_t sizes[count] = {big_bytes, 3, 0};
    struct storage *storage = store_of();
    for (int i = 0; i < count; i++)
        CU_ASSERT_EQUAL(storage_put_bytes(storage, &context, &entries[i].key, bytes[i], sizes[i]), IW_OK);
    CU_ASSERT_EQUAL_FATAL(
        zip_build(storage, &context,
                  &(struct zip_source){.entries = entries, .count = count, .time_ms = 1700000000123}, &key,
                  &made),
        IW_OK);
    char *whole = archive_read(storage, &key, made.size_bytes);
    crypto_sha256(whole, (size_t)made.size_bytes, digest);
    CU_ASSERT_EQUAL(memcmp(digest, made.sha256, sizeof digest), 0);
    for (int i = 0; i < count; i++) {
        offsets[i] = at;
        at += local_expect(whole + at, names[i], bytes[i], sizes[i]);
    }
    size_t central = at;
    for (int i = 0; i < count; i++)
        at += central_expect(whole + at, whole, offsets[i]);
    CU_ASSERT_EQUAL(memcmp(whole + at, "PK\5\6\0\0\0\0\3\0\3\0", 12), 0);
    CU_ASSERT_EQUAL(number_at(whole + at + 12, 4), at - central);
    CU_ASSERT_EQUAL(number_at(whole + at + 16, 4), central);
    CU_ASSERT_EQUAL(number_at(whole + at + 20, 2), 0);
    CU_ASSERT_EQUAL(made.size_bytes, (int64_t)at + 22);
    free(whole);
    free(big);
    /* The same order gives the same bytes. */
    CU_ASSERT_EQUAL(
        zip_build(storage, &context,
                  &(struct zip_source){.entries = entries, .count = count, .time_ms = 1700000000123}, &key,
                  &again),
        IW_OK);
    CU_ASSERT_EQUAL(memcmp(&again, &made, sizeof made), 0);
    storage_close(storage);
    test_end();
}

/* ZIP64 fields occur only where a number needs them. */
static void test_zip64_only_where_it_is_needed(void)
{
    static const struct {
        int64_t size, offset;
        unsigned version;
        const char *local, *central; /* expected ZIP64 fields */
    } rows[] = {
        {0xFFFFFFFE, 0xFFFFFFFE, 10, "", ""},
        {0xFFFFFFFF, 1, 45, "\1\0\x10\0\xFF\xFF\xFF\xFF\0\0\0\0\xFF\xFF\xFF\xFF\0\0\0\0",
         "\1\0\x10\0\xFF\xFF\xFF\xFF\0\0\0\0\xFF\xFF\xFF\xFF\0\0\0\0"},
        {5, 0x123456789A, 45, "", "\1\0\x08\0\x9A\x78\x56\x34\x12\0\0\0"},
        {0x100000001, 0x100000002, 45, "\1\0\x10\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0",
         "\1\0\x18\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\2\0\0\0\1\0\0\0"},
    };
    static const uint64_t most = UINT32_MAX;
    struct text record;
    test_begin();
    text_init(&record, arena);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct zipformat_entry entry = {"n", rows[i].size, 7, -1000,
                                              rows[i].offset}; /* no time field */
        uint64_t size = (uint64_t)rows[i].size < most ? (uint64_t)rows[i].size : most;
        uint64_t offset = (uint64_t)rows[i].offset < most ? (uint64_t)rows[i].offset : most;
        text_clear(&record);
        zipformat_local(&record, &entry);
        size_t extra = number_at(record.data + 28, 2);
        CU_ASSERT_EQUAL(number_at(record.data + 4, 2), rows[i].version);
        CU_ASSERT_EQUAL(number_at(record.data + 18, 4), size);
        CU_ASSERT_EQUAL(number_at(record.data + 22, 4), size);
        CU_ASSERT_EQUAL(record.length, 31 + extra);
        CU_ASSERT_EQUAL(extra, rows[i].local[0] == '\0' ? 0 : 4 + number_at(rows[i].local + 2, 2));
        CU_ASSERT_EQUAL(memcmp(record.data + 31, rows[i].local, extra), 0);
        text_clear(&record);
        zipformat_central(&record, &entry);
        extra = number_at(record.data + 30, 2);
        CU_ASSERT_EQUAL(number_at(record.data + 6, 2), rows[i].version);
        CU_ASSERT_EQUAL(number_at(record.data + 20, 4), size);
        CU_ASSERT_EQUAL(number_at(record.data + 42, 4), offset);
        CU_ASSERT_EQUAL(extra, rows[i].central[0] == '\0' ? 0 : 4 + number_at(rows[i].central + 2, 2));
        CU_ASSERT_EQUAL(memcmp(record.data + 47, rows[i].central, extra), 0);
    }
    test_end();
}

static void test_the_end_of_a_large_archive(void)
{
    static const struct {
        uint64_t count;
        int64_t offset, size;
        bool is_zip64;
    } rows[] = {{0, 0, 0, false},
                {65534, 0xFFFFFFFE, 0xFFFFFFFE, false},
                {65535, 5, 6, true},
                {3, 0xFFFFFFFF, 7, true},
                {3, 8, 0xFFFFFFFF, true}};
    struct text record;
    test_begin();
    text_init(&record, arena);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        text_clear(&record);
        zipformat_end(&record, rows[i].count, rows[i].offset, rows[i].size);
        CU_ASSERT_EQUAL_FATAL(record.length, rows[i].is_zip64 ? 56 + 20 + 22 : 22);
        const char *end = record.data + record.length - 22, *large = record.data;
        CU_ASSERT_EQUAL(number_at(end + 10, 2), rows[i].count < 65535 ? rows[i].count : 65535);
        CU_ASSERT_EQUAL(number_at(end + 12, 4), (uint64_t)rows[i].size);
        CU_ASSERT_EQUAL(number_at(end + 16, 4), (uint64_t)rows[i].offset);
        if (!rows[i].is_zip64)
            continue;
        CU_ASSERT_EQUAL(memcmp(large, "PK\6\6\x2C\0\0\0\0\0\0\0", 12), 0);
        CU_ASSERT_EQUAL(number_at(large + 24, 8), rows[i].count);
        CU_ASSERT_EQUAL(number_at(large + 32, 8), rows[i].count);
        CU_ASSERT_EQUAL(number_at(large + 40, 8), (uint64_t)rows[i].size);
        CU_ASSERT_EQUAL(number_at(large + 48, 8), (uint64_t)rows[i].offset);
        CU_ASSERT_EQUAL(memcmp(large + 56, "PK\6\7\0\0\0\0", 8), 0);
        CU_ASSERT_EQUAL(number_at(large + 64, 8), (uint64_t)(rows[i].offset + rows[i].size));
    }
    test_end();
}

/* Times outside the range of MS-DOS or of the seconds field. */
static void test_zip_times(void)
{
    static const struct {
        int64_t time_ms;
        uint32_t dos;
        bool has_seconds;
    } rows[] = {
        {0, 1 << 21 | 1 << 16, true},                /* 1970 */
        {INT64_C(2147483647000), 0x743319C3, true},  /* 2038-01-19 03:14:07 */
        {INT64_C(2147483648000), 0x743319C4, false}, /* a second later */
        {INT64_C(4354819200000), 127u << 25 | 12 << 21 | 31 << 16 | 23 << 11, false}, /* 2108 */
    };
    struct text record;
    test_begin();
    text_init(&record, arena);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct zipformat_entry entry = {"n", 1, 7, rows[i].time_ms, 0};
        text_clear(&record);
        zipformat_local(&record, &entry);
        CU_ASSERT_EQUAL(number_at(record.data + 10, 4), rows[i].dos);
        CU_ASSERT_EQUAL(record.length, rows[i].has_seconds ? 40 : 31);
    }
    test_end();
}

static void test_a_zip_that_fails_leaves_nothing(void)
{
    const struct zip_entry entries[] = {zip_entry_of("a.jpg", "jpeg", 1, "one", 3),
                                        zip_entry_of("b.png", "png", 2, "two", 3)};
    const struct storage_key key = {FILEKEY_ZIP, 7, 0, 1, 0};
    struct zip_facts made;
    test_begin();
    struct storage *storage = store_of();
    CU_ASSERT_EQUAL(storage_put_bytes(storage, &context, &entries[0].key, "one", 3), IW_OK);
    CU_ASSERT_EQUAL(zip_build(storage, &context,
                              &(struct zip_source){.entries = entries, .count = 2, .time_ms = 1}, &key,
                              &made),
                    IW_NOT_FOUND);
    CU_ASSERT_EQUAL(files_count(), 1);
    context_fresh();
    CU_ASSERT_EQUAL(storage_put_bytes(storage, &context, &entries[1].key, "twO", 3), IW_OK);
    CU_ASSERT_EQUAL(zip_build(storage, &context,
                              &(struct zip_source){.entries = entries, .count = 2, .time_ms = 1}, &key,
                              &made),
                    IW_SERVER_INTERNAL_ERROR);
    CU_ASSERT_STRING_EQUAL(context.reason, "result_changed");
    CU_ASSERT_PTR_NOT_NULL(strstr(context.cause, "out/7/2.1"));
    CU_ASSERT_EQUAL(files_count(), 2);
    context_fresh();
    CU_ASSERT_EQUAL(storage_put_bytes(storage, &context, &entries[1].key, "two", 3), IW_OK);
    fault = FAULT_WRITE;
    CU_ASSERT_EQUAL(zip_build(storage, &context,
                              &(struct zip_source){.entries = entries, .count = 2, .time_ms = 1}, &key,
                              &made),
                    IW_SERVICE_UNAVAILABLE);
    CU_ASSERT_STRING_EQUAL(context.reason, "store_full");
    CU_ASSERT_EQUAL(files_count(), 2);
    storage_close(storage);
    test_end();
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"zip follows the format", test_zip_follows_the_format},
        {"zip64 only where it is needed", test_zip64_only_where_it_is_needed},
        {"the end of a large archive", test_the_end_of_a_large_archive},
        {"zip times", test_zip_times},
        {"a zip that fails leaves nothing", test_a_zip_that_fails_leaves_nothing},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("archives", tests);
}
