/* imgwardctl store: verifies the files that the database names, and deletes files that no row names. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/render.h"
#include "ctl/ctl.h"
#include "db/db.h"
#include "db/files.h"
#include "db/orders.h"
#include "domain/files/reclaim.h"
#include "service/files/storage.h"

enum {
    unfinished_age_s = 24 * 60 * 60,
    piece_bytes = 256 * 1024,
    progress_default_s = 10,
    orphans_keys = 1000
};

struct verification {
    struct context context; /* of one step; the arena is reset after each step */
    struct db db;           /* uses context */
    struct storage *storage;
    struct render *render; /* of the faults as JSON; NULL to print them immediately */
    bool is_quick;
    int64_t progress_s;
    int64_t progress_at_ms; /* monotonic time of the last progress line */
    int64_t order_total;
    int64_t orders;
    int64_t files;
    int64_t bytes;
    int64_t faults;
    unsigned char piece[piece_bytes];
};

/* The rows may have been read minutes ago, and the order may have expired since. */
static bool is_still_named(struct verification *work, const struct files_stored *file)
{
    struct query_texts keys;
    context_clear(&work->context);
    if (orders_store_keys(&work->db, file->order_id, &keys) != IW_OK)
        return true;
    for (unsigned i = 0; i < keys.count; i++)
        if (strcmp(keys.items[i], file->store_key) == 0)
            return true;
    return false;
}

static void fault_report(struct verification *work, const struct files_stored *file, const char *what)
{
    if (!is_still_named(work, file))
        return;
    work->faults++;
    if (work->render == NULL) {
        printf("%s of order %" PRId64 ": %s\n", file->store_key, file->order_id, what);
        return;
    }
    render_object_begin(work->render, NULL);
    render_string(work->render, "storeKey", file->store_key);
    render_id(work->render, "orderId", file->order_id);
    render_string(work->render, "fault", what);
    render_object_end(work->render);
}

/* Computes the SHA-256 of the rest of a file. Returns false if the file cannot be read. */
static bool bytes_digest(struct verification *work, int descriptor, uint8_t digest[sha256_bytes])
{
    struct crypto_hash *hash = crypto_hash_begin();
    ssize_t size;
    while ((size = read(descriptor, work->piece, sizeof work->piece)) > 0) {
        crypto_hash_add(hash, work->piece, (size_t)size);
        work->bytes += size;
    }
    crypto_hash_end(hash, digest);
    return size == 0;
}

static void file_verify(struct verification *work, const struct files_stored *file)
{
    struct storage_key key;
    struct storage_facts facts;
    uint8_t digest[sha256_bytes];
    int descriptor = -1;
    bool is_read = !work->is_quick && file->digest != NULL;
    work->files++;
    if (!storage_key_read(file->store_key, &key))
        fault_report(work, file, "is not a store key");
    else if ((is_read ? storage_get(work->storage, &work->context, &key, &descriptor, &facts)
                      : storage_stat(work->storage, &work->context, &key, &facts)) != IW_OK)
        fault_report(work, file, "missing");
    else if (file->size_bytes >= 0 && facts.size_bytes != file->size_bytes)
        fault_report(work, file, "does not have the size that the database has");
    else if (is_read && !bytes_digest(work, descriptor, digest))
        fault_report(work, file, "cannot be read");
    else if (is_read && memcmp(digest, file->digest, sizeof digest) != 0)
        fault_report(work, file, "does not have the digest that the database has");
    if (descriptor >= 0)
        close(descriptor);
    context_clear(&work->context);
}

static void progress_report(struct verification *work)
{
    int64_t now_ms = clock_monotonic_ms();
    if (now_ms - work->progress_at_ms < work->progress_s * 1000)
        return;
    work->progress_at_ms = now_ms;
    fprintf(stderr, "store: %" PRId64 " of %" PRId64 " orders, %" PRId64 " files, %" PRId64 " MiB read\n",
            work->orders, work->order_total, work->files, work->bytes >> 20);
}

static enum iw_error orders_verify(struct verification *work)
{
    struct files_step step = {.after_order_id = 0};
    enum iw_error error = orders_count_all(&work->db, &work->order_total);
    while (error == IW_OK) {
        arena_reset(work->context.arena);
        error = files_stored_next(&work->db, &step);
        if (error != IW_OK || step.orders == 0)
            return error;
        for (unsigned i = 0; i < step.count; i++) {
            file_verify(work, &step.files[i]);
            progress_report(work);
        }
        work->orders += step.orders;
    }
    return error;
}

/* Opens the store, verifies, and copies an error to the command's context. */
static enum iw_error verify_work(struct ctl *ctl, const struct config *config, struct verification *work)
{
    enum iw_error error = storage_open(ctl->context, config, &work->storage);
    if (error != IW_OK)
        return error;
    context_init(&work->context, arena_new(0), NULL);
    work->progress_at_ms = clock_monotonic_ms();
    error = orders_verify(work);
    if (error != IW_OK)
        context_fail(ctl->context, error, "%s", work->context.sentence);
    arena_free(work->context.arena);
    storage_close(work->storage);
    return error;
}

static void verify_print(const struct verification *work, const struct text *json)
{
    if (work->render != NULL)
        puts(json->data);
    else if (work->is_quick)
        printf("store: %" PRId64 " files in the database, %" PRId64 " with faults (sizes only)\n",
               work->files, work->faults);
    else
        printf("store: %" PRId64 " files in the database, %" PRId64 " with faults, %" PRId64 " MiB read\n",
               work->files, work->faults, work->bytes >> 20);
}

static enum ctl_exit verify_run(struct ctl *ctl)
{
    struct config config;
    struct text text;
    struct render render;
    struct verification *work = arena_alloc(ctl->context->arena, sizeof *work);
    memset(work, 0, sizeof *work);
    work->is_quick = ctl_option(ctl, "--quick") != NULL;
    work->render = ctl_option(ctl, "--json") != NULL ? &render : NULL;
    if (!ctl_option_integer(ctl, "--progress", 0, 86400, progress_default_s, &work->progress_s))
        return CTL_FAILED;
    const struct db *db = ctl_db_open(ctl, &config);
    if (db == NULL)
        return CTL_FAILED;
    work->db = (struct db){&work->context, db->connection};
    text_init(&text, ctl->context->arena);
    render_init(&render, &text);
    render_array_begin(&render, NULL);
    enum iw_error error = verify_work(ctl, &config, work);
    ctl_db_close(db);
    if (error != IW_OK)
        return ctl_failed(ctl);
    render_array_end(&render);
    verify_print(work, &text);
    return work->faults == 0 ? CTL_DONE : CTL_NEGATIVE;
}

/* Visits all parts of the store, with an arena that is reset after each. */
static enum iw_error orphans_delete(struct ctl *ctl, const struct domain *domain, struct storage *storage,
                                    unsigned *files)
{
    struct context context;
    struct domain step = *domain;
    struct storage_cursor cursor = {.part = 0};
    unsigned count;
    enum iw_error error;
    context_init(&context, arena_new(0), NULL);
    domain_context_set(&step, &context);
    do {
        arena_reset(context.arena);
        error = reclaim_files(&step, storage, &cursor, orphans_keys, &count);
        *files += count;
    } while (error == IW_OK && !storage_cursor_is_start(&cursor));
    if (error != IW_OK)
        context_fail(ctl->context, error, "%s", context.sentence);
    arena_free(context.arena);
    return error;
}

static enum ctl_exit reclaim_run(struct ctl *ctl)
{
    struct config config;
    struct storage *storage = NULL;
    unsigned orders = 0, unfinished = 0, files = 0;
    const struct db *db = ctl_db_open(ctl, &config);
    if (db == NULL)
        return CTL_FAILED;
    const struct domain domain = {.context = ctl->context, .config = &config, .db = *db};
    enum iw_error error = storage_open(ctl->context, &config, &storage);
    if (error == IW_OK)
        error = reclaim_inputs(&domain, storage, &orders);
    if (error == IW_OK)
        error = orphans_delete(ctl, &domain, storage, &files);
    if (error == IW_OK)
        error = storage_sweep(storage, ctl->context, unfinished_age_s, &unfinished);
    storage_close(storage);
    ctl_db_close(db);
    if (error != IW_OK)
        return ctl_failed(ctl);
    printf("store: inputs of %u ended orders deleted, %u files that no row names, %u unfinished writes "
           "removed\n",
           orders, files, unfinished);
    return CTL_DONE;
}

const struct ctl_command store_commands[] = {
    {.words = {"store", "verify"},
     .arguments = "",
     .options = {{"--quick", NULL, "compare only sizes; read no file"},
                 {"--progress", "SECONDS",
                  "interval of progress lines on standard error; 10 when omitted, 0 for a line a file"},
                 {"--json", NULL, "print the faults as a JSON array"}},
     .help = "Check that every file in the database is in the store, with the same size and SHA-256; exit "
             "code 1 if a file is missing or differs.",
     .run = verify_run},
    {.words = {"store", "reclaim"},
     .arguments = "",
     .help = "Delete orphaned files now, as workers do continuously: inputs of ended orders, unnamed "
             "uploads, unfinished "
             "writes, and results, archives and thumbnails of ended orders that no row names.",
     .run = reclaim_run},
    {.words = {NULL}},
};
