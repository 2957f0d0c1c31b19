/* File keys, presigned URLs, the file store with injected failures, uploads, names, archives. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <zlib.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/text.h"
#include "service/files/upload_sink.h"
#include "service/files/name.h"
#include "service/files/presign.h"
#include "service/files/storage.h"
#include "service/files/store_local.h"
#include "service/files/zip.h"
#include "service/files/zipformat.h"
#include "runner.h"

static struct arena *arena;
static struct context context;
static char folder[64]; /* of one test, created and removed around it */

/* ---- Failures: the linker redirects these calls of the store to this file ---- */

enum fault { FAULT_NONE, FAULT_NO_TMPFILE, FAULT_WRITE, FAULT_DATASYNC, FAULT_LINK, FAULT_FOLDER_SYNC };

static enum fault fault;

/* With large files enabled, the C library's openat is named openat64. */
int __real_openat(int parent, const char *path, int flags, ...);
int __wrap_openat64(int parent, const char *path, int flags, ...);
int __wrap_openat(int parent, const char *path, int flags, ...);
ssize_t __real_write(int descriptor, const void *bytes, size_t size);
ssize_t __wrap_write(int descriptor, const void *bytes, size_t size);
int __real_fdatasync(int descriptor);
int __wrap_fdatasync(int descriptor);
int __real_fsync(int descriptor);
int __wrap_fsync(int descriptor);
int __real_linkat(int from_parent, const char *from, int to_parent, const char *to, int flags);
int __wrap_linkat(int from_parent, const char *from, int to_parent, const char *to, int flags);

static int failed_with(int why)
{
    errno = why;
    return -1;
}

static int openat_tried(int parent, const char *path, int flags, va_list arguments)
{
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
    if (fault == FAULT_NO_TMPFILE && (flags & O_TMPFILE) == O_TMPFILE)
        return failed_with(EOPNOTSUPP);
    return __real_openat(parent, path, flags, mode);
}

int __wrap_openat(int parent, const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    int descriptor = openat_tried(parent, path, flags, arguments);
    va_end(arguments);
    return descriptor;
}

int __wrap_openat64(int parent, const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    int descriptor = openat_tried(parent, path, flags, arguments);
    va_end(arguments);
    return descriptor;
}

ssize_t __wrap_write(int descriptor, const void *bytes, size_t size)
{
    return fault == FAULT_WRITE ? failed_with(ENOSPC) : __real_write(descriptor, bytes, size);
}

int __wrap_fdatasync(int descriptor)
{
    return fault == FAULT_DATASYNC ? failed_with(EIO) : __real_fdatasync(descriptor);
}

int __wrap_fsync(int descriptor)
{
    return fault == FAULT_FOLDER_SYNC ? failed_with(EIO) : __real_fsync(descriptor);
}

int __wrap_linkat(int from_parent, const char *from, int to_parent, const char *to, int flags)
{
    return fault == FAULT_LINK ? failed_with(ENOSPC) : __real_linkat(from_parent, from, to_parent, to, flags);
}

/* ---- Before and after every test ---- */

static void context_fresh(void)
{
    context_init(&context, arena, NULL);
}

static void test_begin(void)
{
    fault = FAULT_NONE;
    arena_reset(arena);
    context_fresh();
    snprintf(folder, sizeof folder, "%s/imgward-files.XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : ".");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
}

static int entry_remove(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    (void)facts, (void)kind, (void)place;
    return remove(path);
}

static void test_end(void)
{
    fault = FAULT_NONE;
    nftw(folder, entry_remove, 16, FTW_DEPTH | FTW_PHYS);
}

static unsigned file_count;

static int file_note(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    (void)path, (void)facts, (void)place;
    file_count += kind == FTW_F;
    return 0;
}

/* Number of regular files in the test's folder and its subfolders. */
static unsigned files_count(void)
{
    file_count = 0;
    nftw(folder, file_note, 16, FTW_PHYS);
    return file_count;
}

/* ---- File keys ---- */

static void test_file_keys(void)
{
    static const char *const good[] = {"in/7/1", "in/7/100o", "out/9223372036854775807/9223372036854775807",
                                       "zip/12345", "thumb/1"};
    static const char *const bad[] = {
        "",
        "in",
        "in/",
        "in/7",
        "in/7/",
        "in/7/0",
        "in/07/1",
        "in/7/01",
        "in/7/1/",
        "in/-7/1",
        "in/7/1oo",
        "in/7/o",
        "out/7/1o",
        "zip/7/1",
        "zip/7o",
        "zip/",
        "thumb/7/",
        "tmp/7/1",
        "In/7/1",
        " in/7/1",
        "in/7/1 ",
        "in/7/1\n",
        "in//7/1",
        "/in/7/1",
        "in/../1",
        "in/7/1/../2",
        "in/9223372036854775808/1",
        "out/7/99999999999999999999999999999999999999999999999999999999999999999999"};
    struct filekey key;
    test_begin();
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        CU_ASSERT_TRUE_FATAL(filekey_read(good[i], &key));
        CU_ASSERT_STRING_EQUAL(filekey_text(arena, &key), good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CU_ASSERT_FALSE(filekey_read(bad[i], &key));
    CU_ASSERT_TRUE(filekey_read("in/7/3o", &key));
    CU_ASSERT(key.kind == FILEKEY_ORIGINAL && key.order_id == 7 && key.number == 3);
    test_end();
}

/* ---- Presigned URLs ---- */

static struct config config;

static const char *keys_path(void)
{
    return arena_printf(arena, "%s/signing.keys", folder);
}

static void keys_write(const char *text, mode_t mode)
{
    FILE *file = fopen(keys_path(), "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs(text, file);
    fclose(file);
    chmod(keys_path(), mode);
}

#define HEX_A              "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define HEX_B              "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"
#define UPLOAD_SIGNATURE   "B80V9ya7nWn3GISyEq9FQDlEOSD9WK803y37hPjcbTI"
#define DOWNLOAD_SIGNATURE "lG8dy4Jt1r61ZX62ji6Ps7MdId_8E1shAZalWGu0D0M"

static struct presign *presign_of(const char *keys)
{
    struct presign *presign = NULL;
    context_fresh();
    config_init(&config);
    config.api_public_url = "https://img.example";
    if (keys != NULL)
        keys_write(keys, 0600);
    config.store_signing_keys_file = keys_path();
    CU_ASSERT_EQUAL_FATAL(presign_new(&context, &config, &presign), IW_OK);
    return presign;
}

/* Splits "https://img.example/files/KEY?QUERY" and verifies it. */
static enum iw_error url_verify(const struct presign *presign, enum presign_method method, const char *url,
                                int64_t at_ms, struct presign_grant *grant)
{
    static const char prefix[] = "https://img.example/files/";
    CU_ASSERT_EQUAL_FATAL(strncmp(url, prefix, sizeof prefix - 1), 0);
    const char *key = url + sizeof prefix - 1, *query = strchr(key, '?');
    CU_ASSERT_PTR_NOT_NULL_FATAL(query);
    context_fresh();
    const struct presign_request request = {method, arena_text_n(arena, key, (size_t)(query - key)),
                                            query + 1, at_ms};
    return presign_verify(presign, &context, &request, grant);
}

static const struct filekey upload_key = {FILEKEY_UPLOAD, 7001, 2};
static const struct filekey result_key = {FILEKEY_RESULT, 7001, 55};

/* The signature was computed with the openssl program, from the text in presign.h. */
static void test_a_url_has_the_documented_signature(void)
{
    struct presign_grant grant;
    test_begin();
    struct presign *presign = presign_of("k1:" HEX_A "\n");
    const char *url = presign_upload_url(presign, arena, &upload_key, 1900000000, 1048576);
    CU_ASSERT_STRING_EQUAL(url, "https://img.example/files/in/7001/2?e=1900000000&m=1048576&k=k1"
                                "&s=" UPLOAD_SIGNATURE);
    CU_ASSERT_EQUAL(url_verify(presign, PRESIGN_PUT, url, 1899999999999, &grant), IW_OK);
    CU_ASSERT(grant.expires_s == 1900000000 && grant.max_bytes == 1048576 && grant.key.order_id == 7001);
    url = presign_download_url(presign, arena, &result_key, 1900000000);
    CU_ASSERT_STRING_EQUAL(url,
                           "https://img.example/files/out/7001/55?e=1900000000&k=k1&s=" DOWNLOAD_SIGNATURE);
    CU_ASSERT_EQUAL(url_verify(presign, PRESIGN_GET, url, 1899999999999, &grant), IW_OK);
    CU_ASSERT_EQUAL(grant.max_bytes, 0);
    presign_free(presign);
    test_end();
}

static void test_a_url_expires_on_the_second(void)
{
    struct presign_grant grant;
    test_begin();
    struct presign *presign = presign_of("k1:" HEX_A "\n");
    const char *url = presign_download_url(presign, arena, &result_key, 1900000000);
    CU_ASSERT_EQUAL(url_verify(presign, PRESIGN_GET, url, 1899999999999, &grant), IW_OK);
    CU_ASSERT_EQUAL(url_verify(presign, PRESIGN_GET, url, 1900000000000, &grant), IW_URL_EXPIRED);
    CU_ASSERT_STRING_EQUAL(context.expired_at, "2030-03-17T17:46:40.000Z");
    int64_t before_s = clock_now_ms() / 1000;
    int64_t expiry_s = presign_expiry_s(presign, PRESIGN_PUT);
    CU_ASSERT(expiry_s >= before_s + 3600 && expiry_s <= clock_now_ms() / 1000 + 3600);
    presign_free(presign);
    test_end();
}

/* Flips every bit of every character after the host; every such URL must be refused. */
static void test_no_altered_url_is_let_through(void)
{
    struct presign_grant grant;
    test_begin();
    struct presign *presign = presign_of("k1:" HEX_A "\nk2:" HEX_B "\n");
    const char *urls[] = {presign_upload_url(presign, arena, &upload_key, 1900000000, 1048576),
                          presign_download_url(presign, arena, &result_key, 1900000000)};
    size_t start = strlen("https://img.example/files/");
    for (int i = 0; i < 2; i++)
        for (size_t at = start; urls[i][at] != '\0'; at++)
            for (int bit = 0; bit < 8; bit++) {
                char *other = arena_text(arena, urls[i]);
                other[at] = (char)(other[at] ^ 1 << bit);
                if (other[at] == '\0' || strchr(other, '?') == NULL)
                    continue;
                enum iw_error error =
                    url_verify(presign, i == 0 ? PRESIGN_PUT : PRESIGN_GET, other, 1, &grant);
                CU_ASSERT_EQUAL(error, IW_URL_SIGNATURE_INVALID);
            }
    CU_ASSERT_EQUAL(url_verify(presign, PRESIGN_GET, urls[0], 1, &grant), IW_URL_SIGNATURE_INVALID);
    CU_ASSERT_EQUAL(url_verify(presign, PRESIGN_PUT, urls[1], 1, &grant), IW_URL_SIGNATURE_INVALID);
    presign_free(presign);
    test_end();
}

static void test_parameters_stand_once_in_any_order(void)
{
    struct presign_grant grant;
    test_begin();
    struct presign *presign = presign_of("k1:" HEX_A "\n");
    const char *good = "m=1048576&s=" UPLOAD_SIGNATURE "&k=k1&e=1900000000";
    static const char *const bad[] = {"%s&",
                                      "&%s",
                                      "%s&e=1900000000",
                                      "%s&x=1",
                                      "%s&m=",
                                      "%s;x",
                                      "%s&s=",
                                      "%s=",
                                      "x%s",
                                      "%s&K=k1",
                                      "%s%%20",
                                      "",
                                      "e=1900000000",
                                      "e=1900000000&m=1048576&k=k1",
                                      "e=1900000000&m=1048576&k=k1&s="};
    struct presign_request request = {PRESIGN_PUT, "in/7001/2", good, 1};
    CU_ASSERT_EQUAL(presign_verify(presign, &context, &request, &grant), IW_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const char *place = strstr(bad[i], "%s");
        request.query = place == NULL
                            ? bad[i]
                            : arena_printf(arena, "%.*s%s%s", (int)(place - bad[i]), bad[i], good, place + 2);
        context_fresh();
        CU_ASSERT_EQUAL(presign_verify(presign, &context, &request, &grant), IW_URL_SIGNATURE_INVALID);
    }
    presign_free(presign);
    test_end();
}

static void test_keys_rotate(void)
{
    struct presign_grant grant;
    const char *id, *again;
    test_begin();
    CU_ASSERT_EQUAL(presign_keys_rotate(&context, keys_path(), 0, &id), IW_CONFIG_INVALID);
    context_fresh();
    CU_ASSERT_EQUAL(presign_keys_generate(&context, keys_path(), &id), IW_OK);
    struct stat facts;
    CU_ASSERT(stat(keys_path(), &facts) == 0 && (facts.st_mode & 0777) == 0600);
    context_fresh();
    CU_ASSERT_EQUAL(presign_keys_generate(&context, keys_path(), &again), IW_TWIN_EXISTS);
    const char *urls[3];
    for (int i = 0; i < 3; i++) {
        struct presign *presign = presign_of(NULL);
        urls[i] = presign_upload_url(presign, arena, &upload_key, 1900000000, 10);
        for (int before = 0; before <= i; before++)
            CU_ASSERT_EQUAL(url_verify(presign, PRESIGN_PUT, urls[before], 1, &grant),
                            before + 1 >= i ? IW_OK : IW_URL_SIGNATURE_INVALID);
        presign_free(presign);
        context_fresh();
        CU_ASSERT_EQUAL(presign_keys_rotate(&context, keys_path(), 0, &id), IW_OK);
    }
    CU_ASSERT_EQUAL(files_count(), 1);
    test_end();
}

/* True when a URL made with the current key file is signed by this key. */
static bool signs_now(const char *id)
{
    struct presign *presign = presign_of(NULL);
    const char *url = presign_upload_url(presign, arena, &upload_key, 1900000000, 10);
    bool is_of_key = strstr(url, arena_printf(arena, "&k=%s&", id)) != NULL;
    presign_free(presign);
    return is_of_key;
}

static void test_a_key_is_accepted_before_it_signs(void)
{
    struct presign_grant grant;
    int64_t now_s = clock_now_ms() / 1000;
    test_begin();
    keys_write(arena_printf(arena, "new:" HEX_A ":%lld\nold:" HEX_B "\n", (long long)now_s + 600), 0600);
    CU_ASSERT(signs_now("old"));
    clock_offset_set_s(601); /* a process that has loaded the key before */
    struct presign *ahead = presign_of(NULL);
    const char *url = presign_download_url(ahead, arena, &result_key, 1900000000);
    CU_ASSERT(strstr(url, "&k=new&") != NULL);
    clock_offset_set_s(0);
    struct presign *behind = presign_of(NULL);
    CU_ASSERT_EQUAL(url_verify(behind, PRESIGN_GET, url, 1, &grant), IW_OK);
    keys_write(arena_printf(arena, "new:" HEX_A ":%lld\n", (long long)now_s + 600), 0600);
    CU_ASSERT(signs_now("new")); /* the only key */
    presign_free(behind);
    presign_free(ahead);
    test_end();
}

static void test_a_rotation_keeps_the_key_that_signs(void)
{
    const char *first, *waiting, *last;
    int64_t now_s = clock_now_ms() / 1000;
    test_begin();
    CU_ASSERT_EQUAL(presign_keys_generate(&context, keys_path(), &first), IW_OK);
    CU_ASSERT_EQUAL(presign_keys_rotate(&context, keys_path(), now_s + 600, &waiting), IW_OK);
    CU_ASSERT(signs_now(first));
    CU_ASSERT_EQUAL(presign_keys_rotate(&context, keys_path(), now_s + 900, &last), IW_OK);
    CU_ASSERT(signs_now(first));
    clock_offset_set_s(901);
    CU_ASSERT(signs_now(last));
    clock_offset_set_s(0);
    test_end();
}

static void test_bad_key_files_are_refused_without_telling_the_key(void)
{
    static const char *const bad[] = {"",
                                      "# nothing\n",
                                      "k1" HEX_A "\n",
                                      ":" HEX_A "\n",
                                      "k1:" HEX_A "0\n",
                                      "k1:0" HEX_A "\n",
                                      "k1:" HEX_A ":\n",
                                      "k1:" HEX_A ":soon\n",
                                      "k1:" HEX_A ":-1\n",
                                      "k1:" HEX_A ":1:1\n",
                                      "k1:" HEX_A "\nk1:" HEX_B "\n",
                                      "k 1:" HEX_A "\n",
                                      "k&1:" HEX_A "\n",
                                      "abcdefghijklmnopq:" HEX_A "\n"};
    struct presign *presign;
    test_begin();
    config_init(&config);
    config.store_signing_keys_file = keys_path();
    CU_ASSERT_EQUAL(presign_new(&context, &config, &presign), IW_CONFIG_INVALID);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        context_fresh();
        keys_write(bad[i], 0600);
        CU_ASSERT_EQUAL(presign_new(&context, &config, &presign), IW_CONFIG_INVALID);
        CU_ASSERT_PTR_NULL(strstr(context.sentence, "00112233"));
    }
    context_fresh();
    keys_write("k1:" HEX_A "\n", 0604);
    CU_ASSERT_EQUAL(presign_new(&context, &config, &presign), IW_CONFIG_INVALID);
    test_end();
}

/* ---- The store ---- */

static struct storage *store_of(void)
{
    struct storage *storage = NULL;
    CU_ASSERT_EQUAL_FATAL(store_local_open(&context, folder, &storage), IW_OK);
    return storage;
}

static const struct storage_key key_a = {FILEKEY_RESULT, 7001, 12, 1, 0};
static const struct storage_key key_b = {FILEKEY_RESULT, 7001, 12, 1, 2};

static void bytes_expect(struct storage *storage, const struct storage_key *key, const char *expected)
{
    char bytes[256];
    int descriptor;
    struct storage_facts facts;
    context_fresh();
    CU_ASSERT_EQUAL_FATAL(storage_get(storage, &context, key, &descriptor, &facts), IW_OK);
    ssize_t size = read(descriptor, bytes, sizeof bytes);
    close(descriptor);
    CU_ASSERT_EQUAL(size, (ssize_t)strlen(expected));
    CU_ASSERT_EQUAL(facts.size_bytes, (int64_t)strlen(expected));
    CU_ASSERT_EQUAL(memcmp(bytes, expected, strlen(expected)), 0);
}

static void test_store_keys(void)
{
    static const char *const good[] = {"in/1/1.5",      "original/1/1.9223372036854775807",
                                       "out/7001/12.1", "out/7001/12.1.2",
                                       "zip/7001/0.3",  "thumb/7001/0.0"};
    static const char *const bad[] = {
        "",           "in",         "in/1",      "in/1/1",    "in/0/1.5",  "in/1/1.5.0",   "out/1/1.2.3.4",
        "out/1/1.2.", "out/../1.2", "tmp/1/1.1", "out/1.1.2", "out/1/1/2", "out/1/1.2/..", "out/1/1.+2",
        "out/01/1.2", "/out/1/1.2"};
    struct storage_key key;
    test_begin();
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        CU_ASSERT_TRUE_FATAL(storage_key_read(good[i], &key));
        CU_ASSERT_STRING_EQUAL(storage_key_text(arena, &key), good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CU_ASSERT_FALSE(storage_key_read(bad[i], &key));
    CU_ASSERT_NOT_EQUAL(storage_version_new(), storage_version_new());
    test_end();
}

static void test_a_key_exists_only_after_its_commit(void)
{
    struct storage_writer *writer;
    struct storage_facts facts;
    test_begin();
    struct storage *storage = store_of();
    CU_ASSERT_EQUAL(storage_stat(storage, &context, &key_a, &facts), IW_NOT_FOUND);
    context_fresh();
    CU_ASSERT_EQUAL_FATAL(storage_put_begin(storage, &context, &key_a, &writer), IW_OK);
    CU_ASSERT_EQUAL(storage_put_add(writer, &context, "one ", 4), IW_OK);
    CU_ASSERT_EQUAL(storage_put_add(writer, &context, "two", 3), IW_OK);
    CU_ASSERT_EQUAL(files_count(), 0);
    CU_ASSERT_EQUAL(storage_put_commit(writer, &context), IW_OK);
    bytes_expect(storage, &key_a, "one two");
    CU_ASSERT_EQUAL(files_count(), 1);
    const char *path = arena_printf(arena, "%s/%s", folder, storage_handover(arena, &key_a));
    struct stat found;
    CU_ASSERT(stat(path, &found) == 0 && (found.st_mode & 07777) == 0640);
    /* Another part is another key; a second write to a key replaces the file. */
    CU_ASSERT_EQUAL(storage_put_bytes(storage, &context, &key_b, "part", 4), IW_OK);
    CU_ASSERT_EQUAL(storage_put_bytes(storage, &context, &key_a, "new", 3), IW_OK);
    bytes_expect(storage, &key_a, "new");
    bytes_expect(storage, &key_b, "part");
    CU_ASSERT_EQUAL(files_count(), 2);
    CU_ASSERT_EQUAL(storage_delete(storage, &context, &key_a), IW_OK);
    CU_ASSERT_EQUAL(storage_delete(storage, &context, &key_a), IW_OK);
    CU_ASSERT_EQUAL(files_count(), 1);
    storage_close(storage);
    test_end();
}

/*
 * A full or broken disk at every step: an error with its reason, nothing left behind, the old
 * file unchanged.
 */
static void test_faults_leave_the_old_file(void)
{
    static const struct {
        enum fault fault;
        const char *reason;
    } steps[] = {{FAULT_WRITE, "store_full"}, {FAULT_DATASYNC, "store_failed"}, {FAULT_LINK, "store_full"}};
    test_begin();
    struct storage *storage = store_of();
    CU_ASSERT_EQUAL(storage_put_bytes(storage, &context, &key_a, "old", 3), IW_OK);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        fault = steps[i].fault;
        for (int other = 0; other < 2; other++) {
            const struct storage_key *key = other ? &key_b : &key_a;
            context_fresh();
            CU_ASSERT_EQUAL(storage_put_bytes(storage, &context, key, "new", 3), IW_SERVICE_UNAVAILABLE);
            CU_ASSERT_STRING_EQUAL(context.reason, steps[i].reason);
            CU_ASSERT(context.retry_after_s > 0);
        }
        fault = FAULT_NONE;
        CU_ASSERT_EQUAL(files_count(), 1);
        bytes_expect(storage, &key_a, "old");
    }
    fault = FAULT_FOLDER_SYNC; /* The name may or may not be durable, so it is an error. */
    context_fresh();
    CU_ASSERT_EQUAL(storage_put_bytes(storage, &context, &key_b, "new", 3), IW_SERVICE_UNAVAILABLE);
    storage_close(storage);
    test_end();
}

static void test_a_file_system_without_nameless_files(void)
{
    struct storage_writer *writer;
    unsigned swept;
    test_begin();
    struct storage *storage = store_of();
    fault = FAULT_NO_TMPFILE;
    CU_ASSERT_EQUAL(storage_put_bytes(storage, &context, &key_a, "one", 3), IW_OK);
    CU_ASSERT_EQUAL(storage_put_bytes(storage, &context, &key_a, "two", 3), IW_OK);
    bytes_expect(storage, &key_a, "two");
    CU_ASSERT_EQUAL_FATAL(storage_put_begin(storage, &context, &key_a, &writer), IW_OK);
    storage_put_abandon(writer);
    CU_ASSERT_EQUAL(files_count(), 1);
    /* A process that dies leaves a file; the sweep deletes it when it is old enough. */
    pid_t child = fork();
    if (child == 0)
        _exit(storage_put_begin(storage, &context, &key_a, &writer) == IW_OK ? 0 : 1);
    int state = 1;
    waitpid(child, &state, 0);
    CU_ASSERT_EQUAL(state, 0);
    CU_ASSERT_EQUAL(files_count(), 2);
    CU_ASSERT_EQUAL(storage_sweep(storage, &context, 3600, &swept), IW_OK);
    CU_ASSERT_EQUAL(swept, 0);
    CU_ASSERT_EQUAL(storage_sweep(storage, &context, 0, &swept), IW_OK);
    CU_ASSERT_EQUAL(swept, 1);
    CU_ASSERT_EQUAL(files_count(), 1);
    storage_close(storage);
    test_end();
}

static void test_a_death_leaves_nothing(void)
{
    struct storage_writer *writer;
    test_begin();
    struct storage *storage = store_of();
    pid_t child = fork();
    if (child == 0)
        _exit(storage_put_begin(storage, &context, &key_a, &writer) == IW_OK &&
                      storage_put_add(writer, &context, "half", 4) == IW_OK
                  ? 0
                  : 1);
    int state = 1;
    waitpid(child, &state, 0);
    CU_ASSERT_EQUAL(state, 0);
    CU_ASSERT_EQUAL(files_count(), 0);
    storage_close(storage);
    test_end();
}

static void test_links_and_pipes_are_not_followed(void)
{
    struct storage_facts facts;
    int descriptor;
    test_begin();
    struct storage *storage = store_of();
    CU_ASSERT_EQUAL(storage_put_bytes(storage, &context, &key_a, "one", 3), IW_OK);
    const char *path = arena_printf(arena, "%s/%s", folder, storage_handover(arena, &key_a));
    unlink(path);
    CU_ASSERT_EQUAL_FATAL(symlink("/etc/passwd", path), 0);
    CU_ASSERT_EQUAL(storage_get(storage, &context, &key_a, &descriptor, NULL), IW_SERVICE_UNAVAILABLE);
    context_fresh();
    CU_ASSERT_EQUAL(storage_stat(storage, &context, &key_a, &facts), IW_SERVICE_UNAVAILABLE);
    /* Writing replaces the symbolic link, not its target. */
    context_fresh();
    CU_ASSERT_EQUAL(storage_put_bytes(storage, &context, &key_a, "two", 3), IW_OK);
    bytes_expect(storage, &key_a, "two");
    unlink(path);
    CU_ASSERT_EQUAL_FATAL(mkfifo(path, 0600), 0);
    CU_ASSERT_EQUAL(storage_get(storage, &context, &key_a, &descriptor, NULL), IW_SERVICE_UNAVAILABLE);
    storage_close(storage);
    test_end();
}

static bool key_count(void *user, const struct storage_key *key, const struct storage_facts *facts)
{
    unsigned *count = user;
    CU_ASSERT(key->kind == FILEKEY_RESULT && facts->size_bytes == 3 && facts->modified_ms > 0);
    return ++*count < 100;
}

/* A store with three results for each of forty orders. */
static struct storage *store_of_results(void)
{
    struct storage *storage = store_of();
    for (int64_t order = 1; order <= 40; order++)
        for (int64_t part = 1; part <= 3; part++) {
            const struct storage_key key = {FILEKEY_RESULT, order, 5, 1, part};
            CU_ASSERT_EQUAL(storage_put_bytes(storage, &context, &key, "abc", 3), IW_OK);
        }
    return storage;
}

static void test_listing(void)
{
    unsigned count = 0;
    test_begin();
    struct storage *storage = store_of_results();
    const struct storage_key other = {FILEKEY_UPLOAD, 1, 1, 1, 0};
    CU_ASSERT_EQUAL(storage_put_bytes(storage, &context, &other, "abc", 3), IW_OK);
    CU_ASSERT_EQUAL(storage_list(storage, &context, FILEKEY_RESULT, 7, key_count, &count), IW_OK);
    CU_ASSERT_EQUAL(count, 3);
    count = 0; /* The visitor stops after a hundred of 120. */
    CU_ASSERT_EQUAL(storage_list(storage, &context, FILEKEY_RESULT, 0, key_count, &count), IW_OK);
    CU_ASSERT_EQUAL(count, 100);
    storage_close(storage);
    test_end();
}

/* How often each order was visited over all parts, and in which part last. */
struct parts_told {
    unsigned part;
    unsigned counts[41];
    unsigned last_parts[41];
};

static bool part_key_note(void *user, const struct storage_key *key, const struct storage_facts *facts)
{
    struct parts_told *told = user;
    CU_ASSERT_FATAL(key->kind == FILEKEY_RESULT && key->order_id <= 40 && facts->size_bytes == 3);
    CU_ASSERT(told->counts[key->order_id] == 0 || told->last_parts[key->order_id] == told->part);
    told->counts[key->order_id]++;
    told->last_parts[key->order_id] = told->part;
    return true;
}

static void test_all_parts_are_the_whole_and_an_order_is_in_one(void)
{
    struct parts_told told = {.part = 0};
    test_begin();
    struct storage *storage = store_of_results();
    struct storage_cursor cursor = {.part = 0};
    do {
        CU_ASSERT_EQUAL_FATAL(storage_walk(storage, &context, &cursor, part_key_note, &told), IW_OK);
        told.part++;
    } while (!storage_cursor_is_start(&cursor));
    CU_ASSERT_EQUAL(told.part, store_local_shard_count);
    for (int order = 1; order <= 40; order++)
        CU_ASSERT_EQUAL(told.counts[order], 3);
    storage_close(storage);
    test_end();
}

static void test_a_store_that_is_none(void)
{
    struct storage *storage;
    test_begin();
    CU_ASSERT_EQUAL(store_local_open(&context, "/nowhere/at/all", &storage), IW_IO_FAILED);
    context_fresh();
    CU_ASSERT_EQUAL(store_local_open(&context, "/etc/passwd", &storage), IW_IO_FAILED);
    test_end();
}

/* ---- Uploads ---- */

static const unsigned char png_start[] = "\x89PNG\r\n\x1a\n and so on, for a while";

static void test_intake_takes_pictures_alone(void)
{
    struct upload_sink *sink;
    struct upload_sink_facts facts;
    test_begin();
    struct storage *storage = store_of();
    size_t size = sizeof png_start - 1;
    const struct upload_limits limits = {
        .max_bytes = (int64_t)size, .formats = 1U << FORMAT_PNG, .with_md5 = true};
    CU_ASSERT_EQUAL_FATAL(upload_sink_begin(storage, &context, &key_a, &limits, &sink), IW_OK);
    for (size_t at = 0; at < size; at++) /* byte by byte: identification waits for enough bytes */
        CU_ASSERT_EQUAL(upload_sink_add(sink, &context, png_start + at, 1), IW_OK);
    CU_ASSERT_EQUAL(upload_sink_finish(sink, &context, false, &facts), IW_OK);
    CU_ASSERT_EQUAL(upload_sink_commit(sink, &context), IW_OK);
    bytes_expect(storage, &key_a, (const char *)png_start);
    uint8_t digest[32];
    crypto_sha256(png_start, size, digest);
    CU_ASSERT(facts.format == FORMAT_PNG && facts.size_bytes == (int64_t)size);
    CU_ASSERT_EQUAL(memcmp(facts.sha256, digest, sizeof digest), 0);
    storage_close(storage);
    test_end();
}

static enum iw_error upload_sink_all(struct storage *storage, const void *bytes, size_t size,
                                     int64_t max_bytes)
{
    struct upload_sink *sink;
    struct upload_sink_facts facts;
    const struct upload_limits limits = {.max_bytes = max_bytes, .formats = 1U << FORMAT_PNG};
    context_fresh();
    CU_ASSERT_EQUAL_FATAL(upload_sink_begin(storage, &context, &key_a, &limits, &sink), IW_OK);
    enum iw_error error = upload_sink_add(sink, &context, bytes, size);
    if (error == IW_OK)
        error = upload_sink_finish(sink, &context, false, &facts);
    upload_sink_abandon(sink);
    return error;
}

static void test_intake_refuses(void)
{
    test_begin();
    struct storage *storage = store_of();
    CU_ASSERT_EQUAL(upload_sink_all(storage, "GIF89a and so on and on", 23, 100), IW_UNSUPPORTED_MEDIA_TYPE);
    CU_ASSERT_STRING_EQUAL(context.sentence, "This is a GIF file. Export it as PNG and upload it again.");
    CU_ASSERT_EQUAL(upload_sink_all(storage, "", 0, 100), IW_UNSUPPORTED_MEDIA_TYPE);
    CU_ASSERT_EQUAL(upload_sink_all(storage, "\xff\xd8", 2, 100), IW_UNSUPPORTED_MEDIA_TYPE);
    CU_ASSERT_EQUAL(upload_sink_all(storage, png_start, sizeof png_start - 1, 20), IW_PAYLOAD_TOO_LARGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(context.sentence, "at most 20"));
    CU_ASSERT_EQUAL(upload_sink_all(storage, png_start, sizeof png_start - 1, 100), IW_OK);
    CU_ASSERT_EQUAL(files_count(), 0);
    storage_close(storage);
    test_end();
}

/* ---- Names ---- */

static const char *name_of(const char *name, const char *suffix, const char *format)
{
    const struct name_request wanted = {.name = name, .suffix = suffix, .format = format_by_name(format)};
    return name_one(arena, &wanted);
}

static void test_names_are_safe(void)
{
    static const struct {
        const char *given;
        const char *format;
        const char *wanted;
    } rows[] = {
        {"a.jpg", "jpeg", "a.jpg"},
        /* The format decides about the extension; a correct one keeps the client's spelling. */
        {"a.JPEG", "jpeg", "a.JPEG"},
        {"a.jpg", "png", "a.png"},
        {"A.PNG", "jpeg", "A.jpg"},
        {"a.webp", "png", "a.png"},
        {"a.jpg", NULL, "a.jpg"},
        {"holiday.2024", "webp", "holiday.2024.webp"},
        {"none", "png", "none.png"},
        {".jpg", "jpeg", ".jpg.jpg"},
        {"order.jpg.zip", "zip", "order.jpg.zip"},
        /* Windows */
        {"what: ever?.jpg", "jpeg", "what_ ever_.jpg"},
        {"x<y>|\"z\"*.jpg", "jpeg", "x_y___z__.jpg"},
        {"../../etc/passwd.png", "png", ".._.._etc_passwd.png"},
        {"x\\y\n\x7f.png", "png", "x_y__.png"},
        {"CON.jpg", "jpeg", "_CON.jpg"},
        {"con.tar.jpg", "jpeg", "_con.tar.jpg"},
        {"Nul .png", "png", "_Nul .png"},
        {"COM1.jpg", "png", "_COM1.png"},
        {"lpt\u00B3.webp", "webp", "_lpt\u00B3.webp"},
        {"CONIN$.jpg", "jpeg", "_CONIN$.jpg"},
        {"console.jpg", "jpeg", "console.jpg"},
        {"COM10.jpg", "jpeg", "COM10.jpg"},
        {"end. .", NULL, "end"},
        {"end.jpg.", "jpeg", "end.jpg..jpg"},
        /* Empty or invalid names. */
        {"..", NULL, "file"},
        {"", "png", "file.png"},
        {NULL, "png", "file.png"},
        {"\u202E\u2066", "jpeg", "file.jpg"},
        /* Bidirectional controls are removed, control characters and line ends replaced, joiners kept. */
        {"photo\u202Egpj.exe\u2069\u200F.jpg", "jpeg", "photogpj.exe.jpg"},
        {"\u202ECON.jpg", "jpeg", "_CON.jpg"},
        {"a\xC2\x85"
         "b\u2028c\u2029.png",
         "png", "a_b_c_.png"},
        {"\U0001F469\u200D\U0001F680.png", "png", "\U0001F469\u200D\U0001F680.png"},
        {"\xFF\xC3.png", "png", "__.png"},
        {"gr\u00F6\u00DFe.webp", "webp", "gr\u00F6\u00DFe.webp"},
        {"-rf.jpg", "jpeg", "-rf.jpg"},
        {".hidden.jpg", "jpeg", ".hidden.jpg"},
    };
    test_begin();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *name = name_of(rows[i].given, NULL, rows[i].format);
        CU_ASSERT_STRING_EQUAL(name, rows[i].wanted);
        CU_ASSERT_STRING_EQUAL(name_of(name, NULL, rows[i].format), name);
    }
    test_end();
}

/* A text of count pieces, then end. */
static const char *repeated(const char *piece, size_t count, const char *end)
{
    struct text text;
    text_init(&text, arena);
    while (text.length + strlen(piece) <= count)
        text_add_string(&text, piece);
    text_add_string(&text, end);
    return text.data;
}

static void test_names_are_cut_between_characters(void)
{
    test_begin();
    CU_ASSERT_STRING_EQUAL(name_of(repeated("n", 251, ".jpg"), NULL, "jpeg"), repeated("n", 251, ".jpg"));
    CU_ASSERT_STRING_EQUAL(name_of(repeated("n", 251, ".jpg"), "-10", "jpeg"), repeated("n", 248, "-10.jpg"));
    CU_ASSERT_STRING_EQUAL(name_of(repeated("n", 251, ".jpg"), NULL, "webp"), repeated("n", 250, ".webp"));
    /* Code points of two and four bytes, a letter with a combining accent, an emoji sequence. */
    CU_ASSERT_STRING_EQUAL(name_of(repeated("\u00E9", 250, ".jpg"), "-1", "jpeg"),
                           repeated("\u00E9", 248, "-1.jpg"));
    CU_ASSERT_STRING_EQUAL(name_of(repeated("\U0001F680", 248, ".jpg"), "-1000", "jpeg"),
                           repeated("\U0001F680", 244, "-1000.jpg"));
    CU_ASSERT_STRING_EQUAL(name_of(repeated("e\u0301", 251, ".jpg"), "-1", "jpeg"),
                           repeated("e\u0301", 249, "-1.jpg"));
    CU_ASSERT_STRING_EQUAL(name_of(repeated("\U0001F469\u200D\U0001F680", 251, ".jpg"), "-1", "jpeg"),
                           repeated("\U0001F469\u200D\U0001F680", 242, "-1.jpg"));
    /* A single grapheme cluster longer than a name: cut between its code points. */
    const char *tower = arena_printf(arena, "a%s", repeated("\u0301", 250, ".jpg"));
    CU_ASSERT_STRING_EQUAL(name_of(tower, "-1", "jpeg"),
                           arena_printf(arena, "a%s", repeated("\u0301", 248, "-1.jpg")));
    /* The rest of a cut name is nothing or a device name. */
    CU_ASSERT_STRING_EQUAL(name_of(repeated(" ", 300, "x"), NULL, NULL), "file");
    CU_ASSERT_STRING_EQUAL(name_of(repeated(".", 300, "x"), NULL, NULL), "file");
    const char *device = arena_printf(arena, "CON%s", repeated(" ", 300, "x"));
    CU_ASSERT_STRING_EQUAL(name_of(device, NULL, NULL), "_CON");
    CU_ASSERT_STRING_EQUAL(name_of(device, NULL, "jpeg"),
                           arena_printf(arena, "_CON%s", repeated(" ", 247, ".jpg")));
    CU_ASSERT_STRING_EQUAL(name_of(arena_printf(arena, "COM1a%s", repeated("\u0301", 300, "")), "-1", "jpeg"),
                           "_COM1-1.jpg");
    test_end();
}

static void names_expect(const char *const *given, const char *const *wanted, size_t count)
{
    struct name_request *requests = arena_array(arena, count, sizeof *requests);
    for (size_t i = 0; i < count; i++)
        requests[i] = (struct name_request){.name = given[i], .format = FORMAT_JPEG};
    const char **names = name_list(arena, requests, count);
    for (size_t i = 0; i < count; i++) {
        CU_ASSERT_STRING_EQUAL(names[i], wanted[i]);
        requests[i].name = names[i];
    }
    const char **again = name_list(arena, requests, count);
    for (size_t i = 0; i < count; i++)
        CU_ASSERT_STRING_EQUAL(again[i], names[i]);
}

static void test_duplicates_differ_on_every_file_system(void)
{
    static const char *const given[] = {
        "a.jpg",
        "A.JPG",
        "a.jpg",
        "a (2).jpg",
        "\u00E9.jpg",
        "e\u0301.jpg",
        "\u00C9.jpg",
        "stra\u00DFe.jpg",
        "STRASSE.jpg",
        "\u03C3.jpg",
        "\u03C2.jpg",
        "\u212Ab.jpg",
        "kB.jpg",
        "so\u00ADft.jpg",
        "soft.jpg",
        "\u1E9B\u0323.jpg",
        "\u017F\u0323\u0307.jpg",
        "a?.jpg",
        "a*.jpg",
        "con.jpg",
        "_CON.jpg",
        "x.png",
        "x.jpg",
        "\u202Ex.webp",
    };
    static const char *const wanted[] = {
        "a.jpg",
        "A (2).JPG",
        "a (3).jpg",
        "a (2) (2).jpg",
        "\u00E9.jpg",
        "e\u0301 (2).jpg",
        "\u00C9 (3).jpg",
        "stra\u00DFe.jpg",
        "STRASSE (2).jpg",
        "\u03C3.jpg",
        "\u03C2 (2).jpg",
        "\u212Ab.jpg",
        "kB (2).jpg",
        "so\u00ADft.jpg",
        "soft (2).jpg",
        "\u1E9B\u0323.jpg",
        "\u017F\u0323\u0307 (2).jpg",
        "a_.jpg",
        "a_ (2).jpg",
        "_con.jpg",
        "_CON (2).jpg",
        "x.jpg",
        "x (2).jpg",
        "x (3).jpg",
    };
    test_begin();
    names_expect(given, wanted, sizeof given / sizeof given[0]);
    const char *long_name = repeated("n", 251, ".jpg");
    const char *const twins[] = {long_name, long_name, repeated("n", 247, " (2).jpg")};
    const char *const told[] = {long_name, repeated("n", 247, " (2).jpg"), repeated("n", 247, " (3).jpg")};
    names_expect(twins, told, 3);
    test_end();
}

/* As many names of full length as an order may have results: a hundred duplicates, ten copies each. */
static void test_names_of_many_duplicates(void)
{
    enum { copies = 10, count = 1000 };
    static struct name_request requests[count];
    test_begin();
    for (int i = 0; i < count; i++)
        requests[i] = (struct name_request){.name = repeated("x", 250, i % 3 == 0 ? ".png" : ".PNG"),
                                            .suffix = arena_printf(arena, "-%d", i % copies + 1),
                                            .format = FORMAT_PNG};
    const char **names = name_list(arena, requests, count);
    for (int i = 0; i < count; i++) {
        char end[32];
        const char *extension = i % 3 == 0 ? ".png" : ".PNG";
        if (i < copies)
            snprintf(end, sizeof end, "-%d%s", i + 1, extension);
        else
            snprintf(end, sizeof end, "-%d (%d)%s", i % copies + 1, i / copies + 1, extension);
        CU_ASSERT_STRING_EQUAL(names[i], repeated("x", name_bytes_max - strlen(end), end));
    }
    test_end();
}

/* ---- Archives ---- */

/* A little-endian number of the archive (APPNOTE.TXT). */
static uint64_t number_at(const char *bytes, unsigned size)
{
    uint64_t number = 0;
    for (unsigned i = 0; i < size; i++)
        number |= (uint64_t)(unsigned char)bytes[i] << 8 * i;
    return number;
}

/* Checks a local header, including its CRC; returns the bytes of header and entry. */
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

/* Checks that a central header agrees with the local header at offset; returns its bytes. */
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
    static CU_TestInfo urls[] = {
        {"file keys", test_file_keys},
        {"a url has the documented signature", test_a_url_has_the_documented_signature},
        {"a url expires on the second", test_a_url_expires_on_the_second},
        {"no altered url is let through", test_no_altered_url_is_let_through},
        {"parameters stand once in any order", test_parameters_stand_once_in_any_order},
        {"keys rotate", test_keys_rotate},
        {"a key is accepted before it signs", test_a_key_is_accepted_before_it_signs},
        {"a rotation keeps the key that signs", test_a_rotation_keeps_the_key_that_signs},
        {"bad key files are refused without telling the key",
         test_bad_key_files_are_refused_without_telling_the_key},
        CU_TEST_INFO_NULL,
    };
    static CU_TestInfo stores[] = {
        {"store keys", test_store_keys},
        {"a key exists only after its commit", test_a_key_exists_only_after_its_commit},
        {"faults leave the old file", test_faults_leave_the_old_file},
        {"a file system without nameless files", test_a_file_system_without_nameless_files},
        {"a death leaves nothing", test_a_death_leaves_nothing},
        {"links and pipes are not followed", test_links_and_pipes_are_not_followed},
        {"listing", test_listing},
        {"all parts are the whole and an order is in one",
         test_all_parts_are_the_whole_and_an_order_is_in_one},
        {"a store that is none", test_a_store_that_is_none},
        {"sink takes pictures alone", test_intake_takes_pictures_alone},
        {"sink refuses", test_intake_refuses},
        CU_TEST_INFO_NULL,
    };
    static CU_TestInfo names[] = {
        {"names are safe", test_names_are_safe},
        {"names are cut between characters", test_names_are_cut_between_characters},
        {"duplicates differ on every file system", test_duplicates_differ_on_every_file_system},
        {"names of many duplicates", test_names_of_many_duplicates},
        CU_TEST_INFO_NULL,
    };
    static CU_TestInfo archives[] = {
        {"zip follows the format", test_zip_follows_the_format},
        {"zip64 only where it is needed", test_zip64_only_where_it_is_needed},
        {"the end of a large archive", test_the_end_of_a_large_archive},
        {"zip times", test_zip_times},
        {"a zip that fails leaves nothing", test_a_zip_that_fails_leaves_nothing},
        CU_TEST_INFO_NULL,
    };
    CU_SuiteInfo suites[] = {{"presigned urls", NULL, NULL, NULL, NULL, urls},
                             {"file store", NULL, NULL, NULL, NULL, stores},
                             {"names", NULL, NULL, NULL, NULL, names},
                             {"archives", NULL, NULL, NULL, NULL, archives},
                             CU_SUITE_INFO_NULL};
    arena = arena_new(0);
    int code = runner_run_suites(suites);
    arena_free(arena);
    return code;
}
