#include "service/files/store_local.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/fault.h"

/*
 * <root>/<kind>/<shard>/<order>.<number>.<version>[.<part>]
 *
 * There are 4,096 shards per kind, created on first use and never removed. Ten million files
 * then mean about 2,400 names per folder.
 */
enum {
    shard_bits = 12,
    folder_mode = 0750, /* readable by the group, because nginx reads the files through it */
    file_mode = 0640
};

struct store_local {
    struct storage base;
    int root;
    int kinds[FILEKEY_KIND_COUNT]; /* folders of the kinds */
    int unfinished;                /* tmp/, for replacing files and for file systems without O_TMPFILE */
};

struct store_local_writer {
    struct storage_writer base;
    struct storage_key key;
    int descriptor;
    char name[40]; /* name under tmp/; "" while the file has no name (O_TMPFILE) */
};

static struct store_local *local_of(struct storage *storage)
{
    return (struct store_local *)storage;
}

static struct store_local_writer *writer_of(struct storage_writer *writer)
{
    return (struct store_local_writer *)writer;
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

const char *store_local_handover(struct arena *arena, const struct storage_key *key)
{
    char shard[shard_size], name[storage_key_size];
    shard_print(shard, key->order_id);
    storage_numbers_print(name, key, '.');
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

/* ---- Folders ---- */

static bool folder_make(int parent, const char *name)
{
    /* Uses chmod, because the umask must not remove the bits of the group. */
    if (mkdirat(parent, name, folder_mode) == 0)
        return fchmodat(parent, name, folder_mode, 0) == 0 && fsync(parent) == 0;
    return errno == EEXIST;
}

static int folder_open(int parent, const char *name)
{
    return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Creates and opens a folder under the root. Returns -1 and sets errno on failure. */
static int folder_prepare(struct store_local *storage, const char *name)
{
    return folder_make(storage->root, name) ? folder_open(storage->root, name) : -1;
}

static bool folders_prepare(struct store_local *storage)
{
    for (int kind = 0; kind < FILEKEY_KIND_COUNT; kind++)
        if ((storage->kinds[kind] = folder_prepare(storage, filekey_folder((enum filekey_kind)kind))) < 0)
            return false;
    storage->unfinished = folder_prepare(storage, "tmp");
    return storage->unfinished >= 0 && faccessat(storage->unfinished, ".", W_OK | X_OK, 0) == 0;
}

static void descriptor_close(int descriptor)
{
    int why = errno;
    if (descriptor >= 0)
        close(descriptor);
    errno = why;
}

static void local_close(struct storage *storage)
{
    struct store_local *local = local_of(storage);
    for (int kind = 0; kind < FILEKEY_KIND_COUNT; kind++)
        descriptor_close(local->kinds[kind]);
    descriptor_close(local->unfinished);
    descriptor_close(local->root);
    free(local);
}

/* Opens the folder of a key without following symbolic links. Returns -1 and sets errno on failure. */
static int shard_open(struct store_local *storage, const struct storage_key *key)
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

static enum iw_error local_put_begin(struct storage *storage, struct context *context,
                                     const struct storage_key *key, struct storage_writer **writer)
{
    int unfinished = local_of(storage)->unfinished;
    struct store_local_writer *made = calloc(1, sizeof *made);
    if (made == NULL)
        abort();
    made->base.storage = storage;
    made->key = *key;
    if (is_broken(FAULT_STORE_BEGIN, "")) {
        free(made);
        return store_failed(context, "begin", errno);
    }
    made->descriptor = openat(unfinished, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, file_mode);
    if (made->descriptor < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT)) {
        unfinished_name(made->name);
        made->descriptor = openat(unfinished, made->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, file_mode);
    }
    if (made->descriptor < 0) {
        int why = errno;
        free(made);
        return store_failed(context, "begin", why);
    }
    *writer = &made->base;
    return IW_OK;
}

static enum iw_error local_put_add(struct storage_writer *writer, struct context *context, const void *bytes,
                                   size_t size)
{
    if (is_broken(FAULT_STORE_ADD, ""))
        return store_failed(context, "write", errno);
    for (size_t done = 0; done < size;) {
        ssize_t count = write(writer_of(writer)->descriptor, (const char *)bytes + done, size - done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return store_failed(context, "write", errno);
        done += (size_t)count;
    }
    return IW_OK;
}

/* Links the file under tmp/, so that it can be renamed over another file. */
static bool writer_name(struct store_local_writer *writer)
{
    char file[64];
    snprintf(file, sizeof file, "/proc/self/fd/%d", writer->descriptor);
    unfinished_name(writer->name);
    if (linkat(AT_FDCWD, file, local_of(writer->base.storage)->unfinished, writer->name, AT_SYMLINK_FOLLOW) ==
        0)
        return true;
    writer->name[0] = '\0';
    return false;
}

/* Gives the file its final name: a link for a new key, a rename over an existing one. */
static bool writer_place(struct store_local_writer *writer, int folder, const char *name)
{
    char file[64];
    snprintf(file, sizeof file, "/proc/self/fd/%d", writer->descriptor);
    if (writer->name[0] == '\0') {
        if (linkat(AT_FDCWD, file, folder, name, AT_SYMLINK_FOLLOW) == 0)
            return true;
        if (errno != EEXIST || !writer_name(writer))
            return false;
    }
    if (renameat(local_of(writer->base.storage)->unfinished, writer->name, folder, name) != 0)
        return false;
    writer->name[0] = '\0';
    return true;
}

/*
 * Opens the folder of a key and creates the folder if it is missing. Syncs the parent even if another process
 * has created the folder, because that process may not have synced it yet.
 */
static int shard_make(struct store_local *storage, const struct storage_key *key)
{
    char shard[shard_size];
    int parent = storage->kinds[key->kind], folder = shard_open(storage, key);
    if (folder >= 0 || errno != ENOENT)
        return folder;
    shard_print(shard, key->order_id);
    return folder_make(parent, shard) && fsync(parent) == 0 ? shard_open(storage, key) : -1;
}

/* The steps of a commit, in order. Returns NULL, or the failed step with errno set. */
static const char *writer_finish(struct store_local_writer *writer)
{
    const struct storage_key *key = &writer->key;
    char name[storage_key_size];
    storage_numbers_print(name, key, '.');
    if (fchmod(writer->descriptor, file_mode) != 0 || fdatasync(writer->descriptor) != 0 ||
        is_broken(FAULT_STORE_SYNCED, filekey_folder(key->kind)))
        return "sync";
    int folder = shard_make(local_of(writer->base.storage), key);
    const char *failed = folder < 0                            ? "folder"
                         : !writer_place(writer, folder, name) ? "place"
                         : is_broken(FAULT_STORE_PLACED, filekey_folder(key->kind)) || fsync(folder) != 0
                             ? "folder sync"
                             : NULL;
    descriptor_close(folder);
    return failed;
}

static void local_put_abandon(struct storage_writer *writer)
{
    struct store_local_writer *own = writer_of(writer);
    if (own->name[0] != '\0')
        unlinkat(local_of(writer->storage)->unfinished, own->name, 0);
    close(own->descriptor);
    free(own);
}

static enum iw_error local_put_commit(struct storage_writer *writer, struct context *context)
{
    const char *failed = writer_finish(writer_of(writer));
    int why = errno;
    local_put_abandon(writer);
    return failed == NULL ? IW_OK : store_failed(context, failed, why);
}

/* ---- Reading ---- */

static void facts_fill(struct storage_facts *facts, const struct stat *found)
{
    facts->size_bytes = (int64_t)found->st_size;
    facts->modified_ms = (int64_t)found->st_mtim.tv_sec * 1000 + found->st_mtim.tv_nsec / 1000000;
}

/*
 * O_NONBLOCK keeps open() from blocking if someone has put a pipe there. It has no effect on regular files.
 */
static int file_open(struct store_local *storage, const struct storage_key *key)
{
    char name[storage_key_size];
    storage_numbers_print(name, key, '.');
    int folder = shard_open(storage, key);
    int file = folder < 0 ? -1 : openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    descriptor_close(folder);
    return file;
}

/* A key of a local store has only one version, so the ETag is ignored. */
static enum iw_error local_get(struct storage *storage, struct context *context,
                               const struct storage_key *key, const char *etag, int *descriptor,
                               struct storage_facts *facts)
{
    (void)etag;
    struct stat found;
    int opened = file_open(local_of(storage), key);
    if (opened < 0 && errno == ENOENT)
        return context_fail(context, IW_NOT_FOUND, "The file is not in the store.");
    if (opened < 0)
        return store_failed(context, "open", errno);
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

static enum iw_error local_stat(struct storage *storage, struct context *context,
                                const struct storage_key *key, struct storage_facts *facts)
{
    int descriptor;
    enum iw_error error = local_get(storage, context, key, NULL, &descriptor, facts);
    if (error == IW_OK)
        close(descriptor);
    return error;
}

static enum iw_error key_delete(struct store_local *local, struct context *context,
                                const struct storage_key *key)
{
    char name[storage_key_size];
    storage_numbers_print(name, key, '.');
    if (is_broken(FAULT_STORE_DELETE, filekey_folder(key->kind)))
        return store_failed(context, "delete", errno);
    int folder = shard_open(local, key);
    bool is_gone = (folder >= 0 && unlinkat(folder, name, 0) == 0) || errno == ENOENT;
    descriptor_close(folder);
    return is_gone ? IW_OK : store_failed(context, "delete", errno);
}

static enum iw_error local_delete_list(struct storage *storage, struct context *context,
                                       const struct storage_key *keys, size_t count)
{
    enum iw_error error = IW_OK;
    for (size_t i = 0; error == IW_OK && i < count; i++)
        error = key_delete(local_of(storage), context, &keys[i]);
    return error;
}

/* ---- Listing ---- */

/* Returns the stream of a folder. Returns NULL and sets errno on failure. */
static DIR *folder_stream(int parent, const char *name)
{
    int descriptor = folder_open(parent, name);
    DIR *stream = descriptor < 0 ? NULL : fdopendir(descriptor);
    if (stream == NULL && descriptor >= 0)
        close(descriptor);
    return stream;
}

struct local_listing {
    enum filekey_kind kind;
    int64_t order_id; /* 0 for all orders */
    storage_visit *visit;
    void *user;
    bool is_stopped;
};

static void name_visit(struct local_listing *listing, int folder, const char *name)
{
    struct storage_key key = {.kind = listing->kind};
    struct storage_facts facts;
    struct stat found;
    if (!storage_numbers_read(name, '.', &key) ||
        (listing->order_id != 0 && listing->order_id != key.order_id) ||
        fstatat(folder, name, &found, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(found.st_mode))
        return;
    facts_fill(&facts, &found);
    listing->is_stopped = !listing->visit(listing->user, &key, &facts);
}

/* Visits one shard; a missing shard is empty. */
static int shard_list(struct store_local *storage, struct local_listing *listing, unsigned shard)
{
    char name[shard_size];
    snprintf(name, sizeof name, "%03x", shard % store_local_shard_count);
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

_Static_assert(store_local_shard_count == 1 << shard_bits, "a step of a walk must be a shard");

/* All keys of an order are in one step. */
static enum iw_error local_walk(struct storage *storage, struct context *context,
                                struct storage_cursor *cursor, storage_visit *visit, void *user)
{
    for (int kind = 0; kind < FILEKEY_KIND_COUNT; kind++) {
        struct local_listing listing = {.kind = (enum filekey_kind)kind, .visit = visit, .user = user};
        int why = shard_list(local_of(storage), &listing, cursor->part);
        if (why != 0)
            return store_failed(context, "list", why);
    }
    cursor->part = (cursor->part + 1) % store_local_shard_count;
    return IW_OK;
}

static enum iw_error local_list(struct storage *storage, struct context *context, enum filekey_kind kind,
                                int64_t order_id, storage_visit *visit, void *user)
{
    struct local_listing listing = {.kind = kind, .order_id = order_id, .visit = visit, .user = user};
    unsigned first = order_id != 0 ? shard_of(order_id) : 0;
    unsigned last = order_id != 0 ? first : store_local_shard_count - 1;
    for (unsigned shard = first; shard <= last && !listing.is_stopped; shard++) {
        int why = shard_list(local_of(storage), &listing, shard);
        if (why != 0)
            return store_failed(context, "list", why);
    }
    return IW_OK;
}

static enum iw_error local_sweep(struct storage *storage, struct context *context, int64_t age_s,
                                 unsigned *count)
{
    int unfinished = local_of(storage)->unfinished;
    int64_t limit_s = clock_now_ms() / 1000 - age_s;
    unsigned removed = 0;
    struct stat found;
    const struct dirent *entry;
    DIR *stream = folder_stream(unfinished, ".");
    if (stream == NULL)
        return store_failed(context, "sweep", errno);
    while ((entry = readdir(stream)) != NULL)
        if (fstatat(unfinished, entry->d_name, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(found.st_mode) &&
            found.st_mtim.tv_sec <= limit_s)
            removed += unlinkat(unfinished, entry->d_name, 0) == 0;
    closedir(stream);
    if (count != NULL)
        *count = removed;
    return IW_OK;
}

/* ---- Opening ---- */

static const struct storage_driver driver = {
    .close = local_close,
    .put_begin = local_put_begin,
    .put_add = local_put_add,
    .put_commit = local_put_commit,
    .put_abandon = local_put_abandon,
    .get = local_get,
    .stat = local_stat,
    .delete_list = local_delete_list,
    .list = local_list,
    .walk = local_walk,
    .sweep = local_sweep,
};

enum iw_error store_local_open(struct context *context, const char *path, struct storage **storage)
{
    struct store_local *opened = malloc(sizeof *opened);
    if (opened == NULL)
        abort();
    memset(opened, 0xFF, sizeof *opened); /* every descriptor is -1 */
    opened->root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened->root >= 0 && folders_prepare(opened)) {
        opened->base = (struct storage){.driver = &driver};
        *storage = &opened->base;
        return IW_OK;
    }
    int why = errno;
    bool is_wrong = why == ENOENT || why == ENOTDIR || why == EACCES || why == EPERM || why == ELOOP;
    local_close(&opened->base);
    if (!is_wrong) {
        context->reason = "store_failed";
        context->retry_after_s = 10;
    }
    return context_fail(context, is_wrong ? IW_IO_FAILED : IW_SERVICE_UNAVAILABLE,
                        "The file store %s cannot be used: %s.", path, strerror(why));
}
