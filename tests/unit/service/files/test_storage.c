/* The file store: keys, writes with injected failures, lists. */
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "service/files/store_local.h"
#include "store_maker.h"

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
    const char *path = arena_printf(arena, "%s/%s", folder, store_local_handover(arena, &key_a));
    struct stat found;
    CU_ASSERT(stat(path, &found) == 0 && (found.st_mode & 07777) == 0640);
    /* A different part is a different key; a second write to a key replaces the file. */
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
 * If the disk is full or broken at any step, the write is an error with a reason, leaves nothing behind
 * and does not change the old file.
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
    /* A process that dies leaves a file, which the sweep deletes when it is old enough. */
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
    const char *path = arena_printf(arena, "%s/%s", folder, store_local_handover(arena, &key_a));
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

/* Opens a store with three results for each of forty orders. */
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

/* The number of visits of each order over all parts, and the part of the last visit. */
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

int main(void)
{
    static CU_TestInfo tests[] = {
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
        CU_TEST_INFO_NULL,
    };
    return fixture_run("file store", tests);
}
