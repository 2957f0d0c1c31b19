/*
 * Makes archives with the service's code for tests/api/test_archives.py.
 *
 *   zip_maker names FOLDER < NAMES   an archive of one small JPEG entry per line; prints the assigned names
 *   zip_maker list FOLDER < NAMES    only prints the names
 *   zip_maker many FOLDER COUNT      COUNT entries of one byte
 *   zip_maker weigh FOLDER COUNT MIB COUNT entries of MIB MiB each; prints the memory used in kilobytes
 *   zip_maker large FOLDER           a sparse archive with an entry over 4 GiB between two small ones
 *
 * The archive is FOLDER/archive.zip. FOLDER must exist; the first four commands put their store in it, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <zlib.h>

#include "base/crypto.h"
#include "service/files/name.h"
#include "service/files/storage.h"
#include "service/files/store_local.h"
#include "service/files/zip.h"
#include "service/files/zipformat.h"

enum { mebibyte = 1 << 20 };

static const int64_t time_ms = INT64_C(1700000000123);
static const struct storage_key archive_key = {FILEKEY_ZIP, 7, 0, 1, 0};

static struct arena *arena;
static struct context context;

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "zip_maker: %s: %s%s%s\n", what, strerror(errno), context.sentence != NULL ? "; " : "",
            context.sentence != NULL ? context.sentence : "");
    exit(EXIT_FAILURE);
}

static void must(enum iw_error error, const char *what)
{
    if (error != IW_OK)
        die(what);
}

/* Stores a result of size bytes with the same value. */
static struct zip_entry result_put(struct storage *storage, int64_t number, int value, int64_t size)
{
    static unsigned char piece[mebibyte];
    struct storage_writer *writer;
    struct crypto_hash *hash = crypto_hash_begin();
    struct zip_entry entry = {.format = FORMAT_JPEG, .key = {FILEKEY_RESULT, 7, number, 1, 0}};
    memset(piece, value, sizeof piece);
    must(storage_put_begin(storage, &context, &entry.key, &writer), "begin");
    for (int64_t left = size; left > 0; left -= mebibyte) {
        size_t count = (size_t)(left < mebibyte ? left : mebibyte);
        must(storage_put_add(writer, &context, piece, count), "add");
        crypto_hash_add(hash, piece, count);
    }
    must(storage_put_commit(writer, &context), "commit");
    crypto_hash_end(hash, entry.sha256);
    return entry;
}

/* Builds the archive in the store and links it to FOLDER/archive.zip. */
static void archive_build(struct storage *storage, const struct zip_entry *entries, size_t count,
                          const char *folder)
{
    struct zip_facts facts;
    must(zip_build(storage, &context,
                   &(struct zip_source){.entries = entries, .count = count, .time_ms = time_ms}, &archive_key,
                   &facts),
         "zip_build");
    const char *from = arena_printf(arena, "%s/%s", folder, store_local_handover(arena, &archive_key));
    if (rename(from, arena_printf(arena, "%s/archive.zip", folder)) != 0)
        die(from);
}

enum { lines_max = 10000, line_bytes = 4096 };

/* Reads the names from standard input. */
static size_t requests_read(struct name_request requests[lines_max])
{
    char line[line_bytes];
    size_t count = 0;
    while (count < lines_max && fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        requests[count++] = (struct name_request){.name = arena_text(arena, line), .format = FORMAT_JPEG};
    }
    return count;
}

static void names_make(struct storage *storage, const char *folder, bool has_archive)
{
    static struct name_request requests[lines_max];
    size_t count = requests_read(requests);
    struct zip_entry *entries = arena_array(arena, count + 1, sizeof *entries);
    for (size_t i = 0; i < count && has_archive; i++) {
        entries[i] = result_put(storage, (int64_t)i + 1, 'a' + (int)(i % 26), (int64_t)i + 1);
        entries[i].name = requests[i].name;
    }
    if (has_archive)
        archive_build(storage, entries, count, folder);
    const char **names = name_list(arena, requests, count);
    for (size_t i = 0; i < count; i++)
        puts(names[i]);
}

/* Builds an archive with count entries that share one stored result. */
static void copies_make(struct storage *storage, const char *folder, size_t count, int64_t size)
{
    struct zip_entry *entries = arena_array(arena, count, sizeof *entries);
    const struct zip_entry result = result_put(storage, 1, 'x', size);
    for (size_t i = 0; i < count; i++) {
        entries[i] = result;
        entries[i].name = arena_printf(arena, "%zu.jpg", i);
    }
    archive_build(storage, entries, count, folder);
}

/* ---- The large archive: only the records are written, the zeros are a hole in the file ---- */

static void record_write(int file, const struct text *record, int64_t offset)
{
    if (pwrite(file, record->data, record->length, (off_t)offset) != (ssize_t)record->length)
        die("pwrite");
}

/* Returns the CRC-32 of size zero bytes. */
static uint32_t zeros_crc(int64_t size)
{
    const unsigned char zero = 0;
    uint32_t sum = 0, power = (uint32_t)crc32_z(0, &zero, 1);
    for (int64_t bit = 1; bit <= size; bit *= 2) {
        if ((size & bit) != 0)
            sum = (uint32_t)crc32_combine(sum, power, (z_off_t)bit);
        power = (uint32_t)crc32_combine(power, power, (z_off_t)bit);
    }
    return sum;
}

static void large_make(const char *folder)
{
    struct zipformat_entry entries[] = {{.name = "first.jpg", .size_bytes = 5},
                                        {.name = "large.jpg", .size_bytes = ((int64_t)4 << 30) + 1},
                                        {.name = "last.jpg", .size_bytes = 7}};
    enum { count = sizeof entries / sizeof entries[0] };
    int64_t at = 0, central;
    struct text record, headers;
    int file = open(arena_printf(arena, "%s/archive.zip", folder), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0)
        die(folder);
    text_init(&record, arena);
    text_init(&headers, arena);
    for (int i = 0; i < count; i++) {
        entries[i].time_ms = time_ms;
        entries[i].offset_bytes = at;
        entries[i].crc = zeros_crc(entries[i].size_bytes);
        text_clear(&record);
        zipformat_local(&record, &entries[i]);
        zipformat_central(&headers, &entries[i]);
        record_write(file, &record, at);
        at += (int64_t)record.length + entries[i].size_bytes;
    }
    central = at;
    record_write(file, &headers, central);
    text_clear(&record);
    zipformat_end(&record, count, central, (int64_t)headers.length);
    record_write(file, &record, central + (int64_t)headers.length);
    close(file);
}

int main(int argument_count, char **arguments)
{
    struct storage *storage;
    struct rusage usage;
    const char *verb = argument_count > 2 ? arguments[1] : "",
               *folder = arguments[argument_count > 2 ? 2 : 0];
    arena = arena_new((size_t)1 << 30);
    context_init(&context, arena, NULL);
    if (strcmp(verb, "large") == 0) {
        large_make(folder);
        return EXIT_SUCCESS;
    }
    must(store_local_open(&context, folder, &storage), "storage_open");
    if (strcmp(verb, "names") == 0 || strcmp(verb, "list") == 0)
        names_make(storage, folder, strcmp(verb, "names") == 0);
    else if (strcmp(verb, "many") == 0 && argument_count == 4)
        copies_make(storage, folder, strtoul(arguments[3], NULL, 10), 1);
    else if (strcmp(verb, "weigh") == 0 && argument_count == 5)
        copies_make(storage, folder, strtoul(arguments[3], NULL, 10),
                    strtol(arguments[4], NULL, 10) * mebibyte);
    else
        die("names, list, many, weigh or large");
    storage_close(storage);
    getrusage(RUSAGE_SELF, &usage);
    if (strcmp(verb, "weigh") == 0)
        printf("%ld\n", usage.ru_maxrss);
    arena_free(arena);
    return EXIT_SUCCESS;
}
