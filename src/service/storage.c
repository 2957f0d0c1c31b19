#include "service/storage.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/crypto.h"
#include "base/text.h"
#include "service/storage_driver.h"
#include "service/store_local.h"

/* ---- Keys and names ---- */

int storage_numbers_print(char text[storage_name_size], const struct storage_key *key, char separator)
{
    const size_t room = storage_name_size;
    int length = snprintf(text, room, "%" PRId64 "%c%" PRId64 ".%" PRId64, key->order_id, separator,
                          key->number, key->version);
    if (key->part > 0)
        length += snprintf(text + length, room - (size_t)length, ".%" PRId64, key->part);
    return length;
}

const char *storage_key_text(struct arena *arena, const struct storage_key *key)
{
    char numbers[storage_name_size];
    storage_numbers_print(numbers, key, '/');
    return arena_printf(arena, "%s/%s", filekey_folder(key->kind), numbers);
}

bool storage_numbers_read(const char *text, char separator, struct storage_key *key)
{
    char copy[storage_name_size];
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
        return storage_numbers_read(slash + 1, '/', key);
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

/* ---- The walk ---- */

bool storage_cursor_is_start(const struct storage_cursor *cursor)
{
    return cursor->part == 0 && cursor->after[0] == '\0';
}

/* Only a local store has parts; an object store starts anywhere by the text of a key. */
struct storage_cursor storage_cursor_random(const struct storage *storage)
{
    struct storage_cursor cursor = {.part = (unsigned)(crypto_random_u64() % store_local_shard_count)};
    (void)storage;
    return cursor;
}

/* ---- The driver ---- */

enum iw_error storage_open(struct context *context, const struct config *config, struct storage **storage)
{
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
    return storage->driver->put_begin(storage, context, key, writer);
}

enum iw_error storage_put_add(struct storage_writer *writer, struct context *context, const void *bytes,
                              size_t size)
{
    return writer->storage->driver->put_add(writer, context, bytes, size);
}

enum iw_error storage_put_commit(struct storage_writer *writer, struct context *context)
{
    return writer->storage->driver->put_commit(writer, context);
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
    return storage->driver->get(storage, context, key, descriptor, facts);
}

enum iw_error storage_stat(struct storage *storage, struct context *context, const struct storage_key *key,
                           struct storage_facts *facts)
{
    return storage->driver->stat(storage, context, key, facts);
}

enum iw_error storage_delete(struct storage *storage, struct context *context, const struct storage_key *key)
{
    return storage->driver->delete_list(storage, context, key, 1);
}

enum iw_error storage_delete_list(struct storage *storage, struct context *context,
                                  const struct storage_key *keys, size_t count)
{
    return count == 0 ? IW_OK : storage->driver->delete_list(storage, context, keys, count);
}

enum iw_error storage_list(struct storage *storage, struct context *context, enum filekey_kind kind,
                           int64_t order_id, storage_visit *visit, void *user)
{
    return storage->driver->list(storage, context, kind, order_id, visit, user);
}

enum iw_error storage_walk(struct storage *storage, struct context *context, struct storage_cursor *cursor,
                           storage_visit *visit, void *user)
{
    return storage->driver->walk(storage, context, cursor, visit, user);
}

enum iw_error storage_sweep(struct storage *storage, struct context *context, int64_t age_s, unsigned *count)
{
    return storage->driver->sweep(storage, context, age_s, count);
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
