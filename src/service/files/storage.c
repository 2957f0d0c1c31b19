#include "service/files/storage.h"

#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "service/files/store_local.h"
#include "service/files/store_s3.h"

/* ---- The walk ---- */

bool storage_cursor_is_start(const struct storage_cursor *cursor)
{
    return cursor->part == 0 && cursor->after[0] == '\0';
}

/* Only a local store has parts; in an object store a walk can start at any text of a key. */
struct storage_cursor storage_cursor_random(const struct storage *storage)
{
    struct storage_cursor cursor = {.part = (unsigned)(crypto_random_u64() % store_local_shard_count)};
    (void)storage;
    return cursor;
}

/* Records a failure of the store; a missing file is not a failure. */
static enum iw_error noted(struct storage *storage, const struct context *context, enum iw_error error)
{
    if (error != IW_SERVICE_UNAVAILABLE && error != IW_IO_FAILED)
        return error;
    storage->failed_ms = clock_now_ms();
    snprintf(storage->reason, sizeof storage->reason, "%s",
             context->cause != NULL ? context->cause : context->sentence);
    return error;
}

int64_t storage_failed_ms(const struct storage *storage, const char **reason)
{
    *reason = storage->failed_ms != 0 ? storage->reason : NULL;
    return storage->failed_ms;
}

/* ---- The driver ---- */

enum iw_error storage_open(struct context *context, const struct config *config, struct storage **storage)
{
    if (strcmp(config->store_driver, "s3") == 0)
        return store_s3_open(context, config, storage);
    if (strcmp(config->store_driver, "local") != 0)
        return context_fail(context, IW_CONFIG_INVALID, "store.driver is %s; it must be local or s3.",
                            config->store_driver);
    return store_local_open(context, config->store_path, storage);
}

void storage_close(struct storage *storage)
{
    if (storage != NULL)
        storage->driver->close(storage);
}

enum iw_error storage_put_begin(struct storage *storage, struct context *context,
                                const struct storage_key *key, struct storage_writer **writer)
{
    return noted(storage, context, storage->driver->put_begin(storage, context, key, writer));
}

enum iw_error storage_put_add(struct storage_writer *writer, struct context *context, const void *bytes,
                              size_t size)
{
    return noted(writer->storage, context, writer->storage->driver->put_add(writer, context, bytes, size));
}

enum iw_error storage_put_commit(struct storage_writer *writer, struct context *context)
{
    struct storage *storage = writer->storage; /* not abandoned, because the commit frees the writer */
    return noted(storage, context, storage->driver->put_commit(writer, context));
}

void storage_put_abandon(struct storage_writer *writer)
{
    writer->storage->driver->put_abandon(writer);
}

enum iw_error storage_put_bytes(struct storage *storage, struct context *context,
                                const struct storage_key *key, const void *bytes, size_t size)
{
    struct storage_writer *writer;
    enum iw_error error = storage_put_begin(storage, context, key, &writer);
    if (error != IW_OK)
        return error;
    error = storage_put_add(writer, context, bytes, size);
    if (error == IW_OK)
        return storage_put_commit(writer, context);
    storage_put_abandon(writer);
    return error;
}

enum iw_error storage_get(struct storage *storage, struct context *context, const struct storage_key *key,
                          int *descriptor, struct storage_facts *facts)
{
    return noted(storage, context, storage->driver->get(storage, context, key, NULL, descriptor, facts));
}

enum iw_error storage_get_match(struct storage *storage, struct context *context,
                                const struct storage_key *key, const char *etag, int *descriptor,
                                struct storage_facts *facts)
{
    return noted(storage, context, storage->driver->get(storage, context, key, etag, descriptor, facts));
}

enum iw_error storage_stat(struct storage *storage, struct context *context, const struct storage_key *key,
                           struct storage_facts *facts)
{
    return noted(storage, context, storage->driver->stat(storage, context, key, facts));
}

enum iw_error storage_delete(struct storage *storage, struct context *context, const struct storage_key *key)
{
    return noted(storage, context, storage->driver->delete_list(storage, context, key, 1));
}

enum iw_error storage_delete_list(struct storage *storage, struct context *context,
                                  const struct storage_key *keys, size_t count)
{
    return count == 0 ? IW_OK
                      : noted(storage, context, storage->driver->delete_list(storage, context, keys, count));
}

enum iw_error storage_list(struct storage *storage, struct context *context, enum filekey_kind kind,
                           int64_t order_id, storage_visit *visit, void *user)
{
    return noted(storage, context, storage->driver->list(storage, context, kind, order_id, visit, user));
}

enum iw_error storage_walk(struct storage *storage, struct context *context, struct storage_cursor *cursor,
                           storage_visit *visit, void *user)
{
    return noted(storage, context, storage->driver->walk(storage, context, cursor, visit, user));
}

enum iw_error storage_sweep(struct storage *storage, struct context *context, int64_t age_s, unsigned *count)
{
    return storage->driver->sweep(storage, context, age_s, count);
}

bool storage_is_direct(const struct storage *storage)
{
    return storage->driver->url != NULL;
}

const char *storage_url(struct storage *storage, struct arena *arena, const struct storage_link *link)
{
    return storage->driver->url(storage, arena, link);
}

enum iw_error storage_peek(struct storage *storage, struct context *context, struct storage_object *objects,
                           size_t count)
{
    return count == 0 ? IW_OK
                      : noted(storage, context, storage->driver->peek(storage, context, objects, count));
}

enum iw_error storage_copy(struct storage *storage, struct context *context, struct storage_object *objects,
                           const struct storage_key *to, size_t count)
{
    return count == 0 ? IW_OK
                      : noted(storage, context, storage->driver->copy(storage, context, objects, to, count));
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
