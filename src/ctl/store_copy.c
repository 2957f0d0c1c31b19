/* imgwardctl store copy: copies the files that the database names between the local store and the object
 * store. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "ctl/ctl.h"
#include "db/db.h"
#include "db/files.h"
#include "db/orders.h"
#include "service/files/storage.h"

enum { piece_bytes = 256 * 1024, progress_default_s = 10 };

struct copying {
    struct context context; /* of one step; the arena is reset after each step */
    struct db db;           /* uses context */
    struct storage *from;
    struct storage *to;
    int64_t progress_s;
    int64_t progress_at_ms; /* monotonic time of the last progress line */
    int64_t order_total;
    int64_t orders;
    int64_t copied;
    int64_t present; /* already in the target */
    int64_t missing; /* in the source */
    int64_t faults;  /* with a digest that differs from the row */
    int64_t bytes;
    unsigned char piece[piece_bytes];
};

/* Reads the source into the writer; digest gets the SHA-256. */
static enum iw_error bytes_copy(struct copying *work, int descriptor, struct storage_writer *writer,
                                uint8_t digest[sha256_bytes])
{
    struct crypto_hash *hash = crypto_hash_begin();
    enum iw_error error = IW_OK;
    ssize_t size = 0;
    while (error == IW_OK && (size = read(descriptor, work->piece, sizeof work->piece)) > 0) {
        crypto_hash_add(hash, work->piece, (size_t)size);
        work->bytes += size;
        error = storage_put_add(writer, &work->context, work->piece, (size_t)size);
    }
    crypto_hash_end(hash, digest);
    return error == IW_OK && size < 0 ? context_fail(&work->context, IW_IO_FAILED, "A file cannot be read.")
                                      : error;
}

/* Copies an open file, unless the bytes do not have the digest of the row. */
static enum iw_error open_copy(struct copying *work, const struct storage_key *key,
                               const struct files_stored *file, int descriptor)
{
    uint8_t digest[sha256_bytes];
    struct storage_writer *writer;
    enum iw_error error = storage_put_begin(work->to, &work->context, key, &writer);
    if (error != IW_OK)
        return error;
    error = bytes_copy(work, descriptor, writer, digest);
    bool is_changed =
        error == IW_OK && file->digest != NULL && memcmp(digest, file->digest, sizeof digest) != 0;
    if (error == IW_OK && !is_changed) {
        work->copied++;
        return storage_put_commit(writer, &work->context);
    }
    storage_put_abandon(writer);
    if (is_changed) {
        work->faults++;
        printf("%s of order %" PRId64 ": does not have the digest that the database has\n", file->store_key,
               file->order_id);
    }
    return error;
}

static enum iw_error file_copy(struct copying *work, const struct files_stored *file)
{
    struct storage_key key;
    struct storage_facts facts;
    int descriptor = -1;
    if (!storage_key_read(file->store_key, &key))
        return IW_OK;
    enum iw_error error = storage_stat(work->to, &work->context, &key, &facts);
    context_clear(&work->context);
    /* The file is complete in the target, because a write becomes visible only as a whole. */
    if (error == IW_OK && (file->size_bytes < 0 || facts.size_bytes == file->size_bytes)) {
        work->present++;
        return IW_OK;
    }
    error = storage_get(work->from, &work->context, &key, &descriptor, NULL);
    if (error == IW_NOT_FOUND) {
        context_clear(&work->context);
        work->missing++;
        return IW_OK;
    }
    if (error == IW_OK) {
        error = open_copy(work, &key, file, descriptor);
        close(descriptor);
    }
    return error;
}

static void progress_report(struct copying *work, int64_t after_order_id)
{
    int64_t now_ms = clock_monotonic_ms();
    if (now_ms - work->progress_at_ms < work->progress_s * 1000)
        return;
    work->progress_at_ms = now_ms;
    fprintf(stderr,
            "store: %" PRId64 " of %" PRId64 " orders, %" PRId64 " files copied, %" PRId64
            " MiB; continue with --after %" PRId64 "\n",
            work->orders, work->order_total, work->copied, work->bytes >> 20, after_order_id);
}

static enum iw_error orders_copy(struct copying *work, int64_t after_order_id)
{
    struct files_step step = {.after_order_id = after_order_id};
    enum iw_error error = orders_count_all(&work->db, &work->order_total);
    while (error == IW_OK) {
        arena_reset(work->context.arena);
        int64_t from = step.after_order_id;
        error = files_stored_next(&work->db, &step);
        if (error != IW_OK || step.orders == 0)
            return error;
        for (unsigned i = 0; error == IW_OK && i < step.count; i++) {
            error = file_copy(work, &step.files[i]);
            progress_report(work, from);
        }
        work->orders += step.orders;
    }
    return error;
}

static enum iw_error driver_open(struct ctl *ctl, const struct config *config, const char *driver,
                                 struct storage **storage)
{
    struct config chosen = *config;
    chosen.store_driver = driver;
    return storage_open(ctl->context, &chosen, storage);
}

/* Opens both stores, copies, and copies an error to the command's context. */
static enum iw_error copy_work(struct ctl *ctl, const struct config *config, struct copying *work,
                               int64_t after_order_id)
{
    const char *to = ctl->arguments[0];
    const char *from = strcmp(to, "s3") == 0 ? "local" : "s3";
    enum iw_error error = driver_open(ctl, config, from, &work->from);
    if (error == IW_OK)
        error = driver_open(ctl, config, to, &work->to);
    context_init(&work->context, arena_new(0), NULL);
    work->progress_at_ms = clock_monotonic_ms();
    if (error == IW_OK) {
        error = orders_copy(work, after_order_id);
        if (error != IW_OK)
            context_fail(ctl->context, error, "%s%s%s", work->context.sentence,
                         work->context.cause != NULL ? " " : "",
                         work->context.cause != NULL ? work->context.cause : "");
    }
    arena_free(work->context.arena);
    storage_close(work->from);
    storage_close(work->to);
    return error;
}

static enum ctl_exit copy_run(struct ctl *ctl)
{
    struct config config;
    int64_t after_order_id;
    struct copying *work = arena_alloc(ctl->context->arena, sizeof *work);
    memset(work, 0, sizeof *work);
    if (!ctl_option_integer(ctl, "--progress", 0, 86400, progress_default_s, &work->progress_s) ||
        !ctl_option_integer(ctl, "--after", 0, INT64_MAX, 0, &after_order_id))
        return CTL_FAILED;
    if (strcmp(ctl->arguments[0], "s3") != 0 && strcmp(ctl->arguments[0], "local") != 0) {
        context_fail(ctl->context, IW_VALIDATION_FAILED, "The target is \"%s\"; it must be local or s3.",
                     ctl->arguments[0]);
        return ctl_failed(ctl);
    }
    const struct db *db = ctl_db_open(ctl, &config);
    if (db == NULL)
        return CTL_FAILED;
    work->db = (struct db){&work->context, db->connection};
    enum iw_error error = copy_work(ctl, &config, work, after_order_id);
    ctl_db_close(db);
    if (error != IW_OK)
        return ctl_failed(ctl);
    printf("store: %" PRId64 " files copied to %s, %" PRId64 " present there, %" PRId64 " missing, %" PRId64
           " with faults, %" PRId64 " MiB read\n",
           work->copied, ctl->arguments[0], work->present, work->missing, work->faults, work->bytes >> 20);
    return work->faults == 0 ? CTL_DONE : CTL_NEGATIVE;
}

const struct ctl_command store_copy_commands[] = {
    {.words = {"store", "copy"},
     .arguments = "local|s3",
     .arguments_least = 1,
     .arguments_most = 1,
     .options = {{"--after", "ORDER", "continue after this order id, taken from a progress line"},
                 {"--progress", "SECONDS",
                  "interval of progress lines on standard error; 10 when omitted, 0 for a line a file"}},
     .help = "Copy every file in the database from the local store to the object store or back, and compare "
             "SHA-256.  Files that the target has are skipped, so the command can be interrupted and run "
             "again.  Exit code 1 if a digest differs.",
     .run = copy_run},
    {.words = {NULL}},
};
