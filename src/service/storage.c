#include "service/storage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <imgward/fault.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/text.h"

/*
 * <root>/<kind>/<shard>/<order>.<number>.<version>[.<part>]
 *
 * There are 4,096 shards per kind, created on first use and never removed. Ten million files
 * then mean about 2,400 names per folder.
 */
enum {
    shard_bits = 12,
    folder_mode = 0750, /* nginx reads through the group */
    file_mode = 0640,
    name_size = 160
};

struct storage {
    int root;
    int kinds[FILEKEY_KIND_COUNT]; /* folders of the kinds */
    int unfinished;                /* tmp/, for replacing files and for file systems without O_TMPFILE */
};

struct storage_writer {
    struct storage *storage;
    int descriptor;
    char name[40]; /* name under tmp/; "" while the file has no name (O_TMPFILE) */
};

/* ---- Keys and names ---- */

static int numbers_print(char *text, size_t room, const struct storage_key *key, char separator)
{
    int length = snprintf(text, room, "%" PRId64 "%c%" PRId64 ".%" PRId64, key->order_id, separator,
                          key->number, key->version);
    if (key->part > 0)
        length += snprintf(text + length, room - (size_t)length, ".%" PRId64, key->part);
    return length;
}

const char *storage_key_text(struct arena *arena, const struct storage_key *key)
{
    char numbers[name_size];
    numbers_print(numbers, sizeof numbers, key, '/');
    return arena_printf(arena, "%s/%s", filekey_folder(key->kind), numbers);
}

/* Reads "7001/12.1.2" or "7001.12.1.2"; separator is the one between the first two numbers. */
static bool numbers_read(const char *text, char separator, struct storage_key *key)
{
    char copy[name_size];
    int64_t *const fields[] = {&key->order_id, &key->number, &key->version, &key->part};
    size_t length = strlen(text), count = 0;
    if (length >= sizeof copy)
        return false;
    memcpy(copy, text, length + 1);
    key->part = 0;
    for (char *at = copy, *end; at != NULL; at = end, count++) {
        end = strchr(at, count == 0 ? separator : '.');
        if (end != NULL)
            *end++ = '\0';
        bool is_order_or_part = count == 0 || count == 3;
        if (count == 4 || !text_integer(at, is_order_or_part ? 1 : 0, INT64_MAX, fields[count]))
            return false;
    }
    return count >= 3;
}

bool storage_key_read(const char *text, struct storage_key *key)
{
    const char *slash = strchr(text, '/');
    for (int kind = 0; slash != NULL && kind < FILEKEY_KIND_COUNT; kind++) {
        const char *folder = filekey_folder((enum filekey_kind)kind);
        size_t length = strlen(folder);
        if (length != (size_t)(slash - text) || memcmp(text, folder, length) != 0)
            continue;
        key->kind = (enum filekey_kind)kind;
        return numbers_read(slash + 1, '/', key);
    }
    return false;
}

int64_t storage_version_new(void)
{
    int64_t version;
    do {
        version = (int64_t)(crypto_random_u64() >> 1);
    } while (version == 0);
    return version;
}

/* Spreads consecutive orders over the shards: Fibonacci hashing (Knuth, TAOCP 3, 6.4). */
static unsigned shard_of(int64_t order_id)
{
    return (unsigned)(((uint64_t)order_id * UINT64_C(11400714819323198485)) >> (64 - shard_bits));
}

enum { shard_size = 8 };

static void shard_print(char name[shard_size], int64_t order_id)
{
    snprintf(name, shard_size, "%03x", shard_of(order_id));
}

const char *storage_handover(struct arena *arena, const struct storage_key *key)
{
    char shard[shard_size], name[name_size];
    shard_print(shard, key->order_id);
    numbers_print(name, sizeof name, key, '.');
    return arena_printf(arena, "%s/%s/%s", filekey_folder(key->kind), shard, name);
}

/* ---- Errors ---- */

static enum iw_error store_failed(struct context *context, const char *what, int why)
{
    bool is_full = why == ENOSPC || why == EDQUOT || why == EFBIG;
    enum iw_error error =
        context_fail(context, IW_SERVICE_UNAVAILABLE,
                     is_full ? "The service has no space left to store files; try again later."
                             : "The file store cannot be used now; try again later.");
    context->reason = is_full ? "store_full" : "store_failed";
    context->retry_after_s = is_full ? 60 : 10;
    context_cause(context, "%s: %s", what, strerror(why));
    return error;
}

/* Simulates a disk error at a fault point: ENOSPC, or EIO. */
static bool is_broken(enum fault fault, const char *key)
{
    (void)fault;
    (void)key;
    if (!fault_fails(fault, key))
        return false;
    errno = fault == FAULT_STORE_DELETE || fault == FAULT_STORE_SYNCED ? EIO : ENOSPC;
    return true;
}

/* ---- Opening ---- */

static bool folder_make(int parent, const char *name)
{
    /* With chmod, because the umask must not remove the bits of the group. */
    if (mkdirat(parent, name, folder_mode) == 0)
        return fchmodat(parent, name, folder_mode, 0) == 0 && fsync(parent) == 0;
    return errno == EEXIST;
}

static int folder_open(int parent, const char *name)
{
    return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Creates and opens a folder under the root; -1 with errno. */
static int folder_prepare(struct storage *storage, const char *name)
{
    return folder_make(storage->root, name) ? folder_open(storage->root, name) : -1;
}

static bool folders_prepare(struct storage *storage)
{
    for (int kind = 0; kind < FILEKEY_KIND_COUNT; kind++)
        if ((storage->kinds[kind] = folder_prepare(storage, filekey_folder((enum filekey_kind)kind))) < 0)
            return false;
    storage->unfinished = folder_prepare(storage, "tmp");
    return storage->unfinished >= 0 && faccessat(storage->unfinished, ".", W_OK | X_OK, 0) == 0;
}

enum iw_error storage_open(struct context *context, const char *path, struct storage **storage)
{
    struct storage *opened = malloc(sizeof *opened);
    if (opened == NULL)
        abort();
    memset(opened, 0xFF, sizeof *opened); /* every descriptor is -1 */
    opened->root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened->root >= 0 && folders_prepare(opened)) {
        *storage = opened;
        return IW_OK;
    }
    int why = errno;
    bool is_wrong = why == ENOENT || why == ENOTDIR || why == EACCES || why == EPERM || why == ELOOP;
    storage_close(opened);
    if (!is_wrong) {
        context->reason = "store_failed";
        context->retry_after_s = 10;
    }
    return context_fail(context, is_wrong ? IW_IO_FAILED : IW_SERVICE_UNAVAILABLE,
                        "The file store %s cannot be used: %s.", path, strerror(why));
}

static void descriptor_close(int descriptor)
{
    int why = errno;
    if (descriptor >= 0)
        close(descriptor);
    errno = why;
}

void storage_close(struct storage *storage)
{
    if (storage == NULL)
        return;
    for (int kind = 0; kind < FILEKEY_KIND_COUNT; kind++)
        descriptor_close(storage->kinds[kind]);
    descriptor_close(storage->unfinished);
    descriptor_close(storage->root);
    free(storage);
}

/* Opens the folder of a key without following symbolic links; -1 with errno. */
static int shard_open(struct storage *storage, const struct storage_key *key)
{
    char shard[shard_size];
    shard_print(shard, key->order_id);
    return folder_open(storage->kinds[key->kind], shard);
}

/* ---- Writing ---- */

static void unfinished_name(char name[40])
{
    snprintf(name, 40, "%016" PRIx64 "%016" PRIx64, crypto_random_u64(), crypto_random_u64());
}

enum iw_error storage_put_begin(struct storage *storage, struct context *context,
                                struct storage_writer **writer)
{
    struct storage_writer *made = calloc(1, sizeof *made);
    if (made == NULL)
        abort();
    made->storage = storage;
    if (is_broken(FAULT_STORE_BEGIN, "")) {
        free(made);
        return store_failed(context, "begin", errno);
    }
    made->descriptor = openat(storage->unfinished, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, file_mode);
    if (made->descriptor < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT)) {
        unfinished_name(made->name);
        made->descriptor =
            openat(storage->unfinished, made->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, file_mode);
    }
    if (made->descriptor < 0) {
        int why = errno;
        free(made);
        return store_failed(context, "begin", why);
    }
    *writer = made;
    return IW_OK;
}

enum iw_error storage_put_add(struct storage_writer *writer, struct context *context, const void *bytes,
                              size_t size)
{
    if (is_broken(FAULT_STORE_ADD, ""))
        return store_failed(context, "write", errno);
    for (size_t done = 0; done < size;) {
        ssize_t count = write(writer->descriptor, (const char *)bytes + done, size - done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return store_failed(context, "write", errno);
        done += (size_t)count;
    }
    return IW_OK;
}

/* Links the file under tmp/, so that it can be renamed over another one. */
static bool writer_name(struct storage_writer *writer)
{
    char file[64];
    snprintf(file, sizeof file, "/proc/self/fd/%d", writer->descriptor);
    unfinished_name(writer->name);
    if (linkat(AT_FDCWD, file, writer->storage->unfinished, writer->name, AT_SYMLINK_FOLLOW) == 0)
        return true;
    writer->name[0] = '\0';
    return false;
}

/* Gives the file its final name: a link for a new key, a rename over an existing one. */
static bool writer_place(struct storage_writer *writer, int folder, const char *name)
{
    char file[64];
    snprintf(file, sizeof file, "/proc/self/fd/%d", writer->descriptor);
    if (writer->name[0] == '\0') {
        if (linkat(AT_FDCWD, file, folder, name, AT_SYMLINK_FOLLOW) == 0)
            return true;
        if (errno != EEXIST || !writer_name(writer))
            return false;
    }
    if (renameat(writer->storage->unfinished, writer->name, folder, name) != 0)
        return false;
    writer->name[0] = '\0';
    return true;
}

/*
 * Opens the folder of a key and creates it when it is missing. Syncs the parent also when
 * another process has created the folder, because that process may not have synced it yet.
 */
static int shard_make(struct storage *storage, const struct storage_key *key)
{
    char shard[shard_size];
    int parent = storage->kinds[key->kind], folder = shard_open(storage, key);
    if (folder >= 0 || errno != ENOENT)
        return folder;
    shard_print(shard, key->order_id);
    return folder_make(parent, shard) && fsync(parent) == 0 ? shard_open(storage, key) : -1;
}

/* The steps of a commit, in order. Returns NULL, or the failed step with errno set. */
static const char *writer_finish(struct storage_writer *writer, const struct storage_key *key)
{
    char name[name_size];
    numbers_print(name, sizeof name, key, '.');
    if (fchmod(writer->descriptor, file_mode) != 0 || fdatasync(writer->descriptor) != 0 ||
        is_broken(FAULT_STORE_SYNCED, filekey_folder(key->kind)))
        return "sync";
    int folder = shard_make(writer->storage, key);
    const char *failed = folder < 0                            ? "folder"
                         : !writer_place(writer, folder, name) ? "place"
                         : is_broken(FAULT_STORE_PLACED, filekey_folder(key->kind)) || fsync(folder) != 0
                             ? "folder sync"
                             : NULL;
    descriptor_close(folder);
    return failed;
}

enum iw_error storage_put_commit(struct storage_writer *writer, struct context *context,
                                 const struct storage_key *key)
{
    const char *failed = writer_finish(writer, key);
    int why = errno;
    storage_put_abandon(writer);
    return failed == NULL ? IW_OK : store_failed(context, failed, why);
}

void storage_put_abandon(struct storage_writer *writer)
{
    if (writer->name[0] != '\0')
        unlinkat(writer->storage->unfinished, writer->name, 0);
    close(writer->descriptor);
    free(writer);
}

enum iw_error storage_put_bytes(struct storage *storage, struct context *context,
                                const struct storage_key *key, const void *bytes, size_t size)
{
    struct storage_writer *writer;
    enum iw_error error = storage_put_begin(storage, context, &writer);
    if (error != IW_OK)
        return error;
    error = storage_put_add(writer, context, bytes, size);
    if (error == IW_OK)
        return storage_put_commit(writer, context, key);
    storage_put_abandon(writer);
    return error;
}

/* ---- Reading ---- */

static enum iw_error read_failed(struct context *context, const char *what, int why)
{
    if (why != ENOENT)
        return store_failed(context, what, why);
    return context_fail(context, IW_NOT_FOUND, "The file is not in the store.");
}

static void facts_fill(struct storage_facts *facts, const struct stat *found)
{
    facts->size_bytes = (int64_t)found->st_size;
    facts->modified_ms = (int64_t)found->st_mtim.tv_sec * 1000 + found->st_mtim.tv_nsec / 1000000;
}

/*
 * O_NONBLOCK: opening must not block when someone has put a pipe there. It has no effect on
 * regular files.
 */
static int file_open(struct storage *storage, const struct storage_key *key)
{
    char name[name_size];
    numbers_print(name, sizeof name, key, '.');
    int folder = shard_open(storage, key);
    int file = folder < 0 ? -1 : openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    descriptor_close(folder);
    return file;
}

enum iw_error storage_get(struct storage *storage, struct context *context, const struct storage_key *key,
                          int *descriptor, struct storage_facts *facts)
{
    struct stat found;
    int opened = file_open(storage, key);
    if (opened < 0)
        return read_failed(context, "open", errno);
    bool is_known = fstat(opened, &found) == 0;
    if (!is_known || !S_ISREG(found.st_mode)) {
        int why = is_known ? EINVAL : errno;
        close(opened);
        return store_failed(context, "not a regular file", why);
    }
    if (facts != NULL)
        facts_fill(facts, &found);
    *descriptor = opened;
    return IW_OK;
}

enum iw_error storage_stat(struct storage *storage, struct context *context, const struct storage_key *key,
                           struct storage_facts *facts)
{
    int descriptor;
    enum iw_error error = storage_get(storage, context, key, &descriptor, facts);
    if (error == IW_OK)
        close(descriptor);
    return error;
}

enum iw_error storage_delete(struct storage *storage, struct context *context, const struct storage_key *key)
{
    char name[name_size];
    numbers_print(name, sizeof name, key, '.');
    if (is_broken(FAULT_STORE_DELETE, filekey_folder(key->kind)))
        return store_failed(context, "delete", errno);
    int folder = shard_open(storage, key);
    bool is_gone = (folder >= 0 && unlinkat(folder, name, 0) == 0) || errno == ENOENT;
    descriptor_close(folder);
    return is_gone ? IW_OK : store_failed(context, "delete", errno);
}

/* ---- Listing ---- */

/* The stream of a folder, or NULL with errno. */
static DIR *folder_stream(int parent, const char *name)
{
    int descriptor = folder_open(parent, name);
    DIR *stream = descriptor < 0 ? NULL : fdopendir(descriptor);
    if (stream == NULL && descriptor >= 0)
        close(descriptor);
    return stream;
}

struct listing {
    enum filekey_kind kind;
    int64_t order_id; /* 0: all orders */
    storage_visit *visit;
    void *user;
    bool is_stopped;
};

static void name_visit(struct listing *listing, int folder, const char *name)
{
    struct storage_key key = {.kind = listing->kind};
    struct storage_facts facts;
    struct stat found;
    if (!numbers_read(name, '.', &key) || (listing->order_id != 0 && listing->order_id != key.order_id) ||
        fstatat(folder, name, &found, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(found.st_mode))
        return;
    facts_fill(&facts, &found);
    listing->is_stopped = !listing->visit(listing->user, &key, &facts);
}

/* Visits one shard; a missing shard is empty. */
static int shard_list(struct storage *storage, struct listing *listing, unsigned shard)
{
    char name[shard_size];
    snprintf(name, sizeof name, "%03x", shard & ((1u << shard_bits) - 1));
    DIR *stream = folder_stream(storage->kinds[listing->kind], name);
    if (stream == NULL)
        return errno == ENOENT ? 0 : errno;
    const struct dirent *entry;
    while (!listing->is_stopped && (errno = 0, entry = readdir(stream)) != NULL)
        name_visit(listing, dirfd(stream), entry->d_name);
    int why = listing->is_stopped ? 0 : errno;
    closedir(stream);
    return why;
}

_Static_assert(storage_part_count == 1 << shard_bits, "a part is a shard");

enum iw_error storage_list_part(struct storage *storage, struct context *context, enum filekey_kind kind,
                                unsigned part, storage_visit *visit, void *user)
{
    struct listing listing = {.kind = kind, .visit = visit, .user = user};
    int why = shard_list(storage, &listing, part);
    return why == 0 ? IW_OK : store_failed(context, "list", why);
}

enum iw_error storage_list(struct storage *storage, struct context *context, enum filekey_kind kind,
                           int64_t order_id, storage_visit *visit, void *user)
{
    struct listing listing = {.kind = kind, .order_id = order_id, .visit = visit, .user = user};
    unsigned first = order_id != 0 ? shard_of(order_id) : 0;
    unsigned last = order_id != 0 ? first : (1u << shard_bits) - 1;
    for (unsigned shard = first; shard <= last && !listing.is_stopped; shard++) {
        int why = shard_list(storage, &listing, shard);
        if (why != 0)
            return store_failed(context, "list", why);
    }
    return IW_OK;
}

enum iw_error storage_sweep(struct storage *storage, struct context *context, int64_t age_s, unsigned *count)
{
    int64_t limit_s = clock_now_ms() / 1000 - age_s;
    unsigned removed = 0;
    struct stat found;
    const struct dirent *entry;
    DIR *stream = folder_stream(storage->unfinished, ".");
    if (stream == NULL)
        return store_failed(context, "sweep", errno);
    while ((entry = readdir(stream)) != NULL)
        if (fstatat(storage->unfinished, entry->d_name, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(found.st_mode) && found.st_mtim.tv_sec <= limit_s)
            removed += unlinkat(storage->unfinished, entry->d_name, 0) == 0;
    closedir(stream);
    if (count != NULL)
        *count = removed;
    return IW_OK;
}

bool storage_room(const char *path, int64_t *free_bytes, int64_t *size_bytes)
{
    struct statvfs facts;
    if (statvfs(path, &facts) != 0)
        return false;
    *free_bytes = (int64_t)facts.f_bavail * (int64_t)facts.f_frsize;
    *size_bytes = (int64_t)facts.f_blocks * (int64_t)facts.f_frsize;
    return true;
}
