#include "service/zip.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>

#include "base/crypto.h"
#include "base/text.h"

enum { piece_bytes = 65536 };

/* Where libarchive's bytes go.  The first error stays in the context. */
struct sink {
    struct context *context;
    struct storage_writer *writer;
    struct crypto_hash *hash;
    int64_t size_bytes;
    bool is_given_up; /* what still comes is thrown away */
};

/* ---- Names ---- */

/* No separator, no control character, never empty, never a folder. */
static char *name_clean(struct arena *arena, const char *given)
{
    char *name = arena_text(arena, given != NULL && given[0] != '\0' ? given : "file");
    for (unsigned char *at = (unsigned char *)name; *at != '\0'; at++) {
        bool is_c1 = at[0] == 0xC2 && at[1] >= 0x80 && at[1] < 0xA0;
        if (is_c1)
            at[0] = at[1] = '_';
        else if (*at < 0x20 || *at == 0x7F || *at == '/' || *at == '\\')
            *at = '_';
    }
    return strspn(name, ".") == strlen(name) ? arena_printf(arena, "_%s", name) : name;
}

/* A name that is given away, and the number that its next twin tries first: those below are taken. */
struct taken {
    const char *name; /* NULL: a free place */
    unsigned next;
};

/* The place of a name, whatever its case, or the free one that it would get.  FNV-1a (Fowler, Noll, Vo). */
static struct taken *taken_find(struct taken *table, size_t room, const char *name)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (const char *at = name; *at != '\0'; at++) {
        bool is_upper = *at >= 'A' && *at <= 'Z';
        hash = (hash ^ (unsigned char)(is_upper ? *at | 0x20 : *at)) * UINT64_C(1099511628211);
    }
    size_t place = (size_t)(hash ^ hash >> 32) & (room - 1);
    while (table[place].name != NULL && !text_equal_nocase(table[place].name, name))
        place = (place + 1) & (room - 1);
    return &table[place];
}

/* "name (2).png" of "name.png"; a dot at the start begins no extension. */
static char *name_numbered(struct arena *arena, const char *name, unsigned number)
{
    const char *dot = strrchr(name, '.');
    size_t length = dot != NULL && dot != name ? (size_t)(dot - name) : strlen(name);
    return arena_printf(arena, "%.*s (%u)%s", (int)length, name, number, name + length);
}

const char **zip_names(struct arena *arena, const struct zip_entry *entries, size_t count)
{
    size_t room = 16;
    while (room < 2 * count)
        room *= 2;
    struct taken *table = arena_array(arena, room, sizeof *table);
    const char **names = arena_array(arena, count > 0 ? count : 1, sizeof *names);
    for (size_t i = 0; i < count; i++) {
        const char *name = name_clean(arena, entries[i].name), *tried = name;
        struct taken *first = taken_find(table, room, name), *place = first;
        while (place->name != NULL) {
            tried = name_numbered(arena, name, first->next++);
            place = taken_find(table, room, tried);
        }
        *place = (struct taken){tried, 2};
        names[i] = tried;
    }
    return names;
}

/* ---- The archive ---- */

static la_ssize_t sink_write(struct archive *archive, void *user, const void *bytes, size_t size)
{
    struct sink *sink = user;
    if (sink->is_given_up)
        return (la_ssize_t)size;
    if (storage_put_add(sink->writer, sink->context, bytes, size) != IW_OK) {
        archive_set_error(archive, EIO, "store");
        return -1;
    }
    crypto_hash_add(sink->hash, bytes, size);
    sink->size_bytes += (int64_t)size;
    return (la_ssize_t)size;
}

/* The store's error when there is one (recorded first), otherwise ours with libarchive's words. */
static enum iw_error archive_failed(struct context *context, struct archive *archive)
{
    if (context->error != IW_OK)
        return context->error;
    enum iw_error error = context_fail(context, IW_SERVER_INTERNAL_ERROR, NULL);
    context->reason = "zip_failed";
    context_cause(context, "libarchive: %s", archive_error_string(archive));
    return error;
}

static enum iw_error bytes_copy(struct context *context, struct archive *archive, int descriptor)
{
    char piece[piece_bytes];
    for (;;) {
        ssize_t count = read(descriptor, piece, sizeof piece);
        if (count < 0 && errno == EINTR)
            continue;
        if (count == 0)
            return IW_OK;
        if (count < 0) {
            context_cause(context, "read: %s", strerror(errno));
            context->reason = "store_failed";
            return context_fail(context, IW_SERVICE_UNAVAILABLE, "The file store cannot be read.");
        }
        if (archive_write_data(archive, piece, (size_t)count) != count)
            return archive_failed(context, archive);
    }
}

static enum iw_error header_write(struct context *context, struct archive *archive, const char *name,
                                  int64_t size_bytes, int64_t time_ms)
{
    struct archive_entry *entry = archive_entry_new2(archive);
    if (entry == NULL)
        return archive_failed(context, archive);
    archive_entry_set_pathname_utf8(entry, name);
    archive_entry_set_size(entry, size_bytes);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_mtime(entry, (time_t)(time_ms / 1000), 0);
    int result = archive_write_header(archive, entry);
    archive_entry_free(entry);
    return result == ARCHIVE_OK ? IW_OK : archive_failed(context, archive);
}

static enum iw_error entry_write(struct storage *storage, struct context *context, struct archive *archive,
                                 const char *name, const struct storage_key *key, int64_t time_ms)
{
    int descriptor;
    struct storage_facts facts;
    enum iw_error error = storage_get(storage, context, key, &descriptor, &facts);
    if (error != IW_OK)
        return error;
    error = header_write(context, archive, name, facts.size_bytes, time_ms);
    if (error == IW_OK)
        error = bytes_copy(context, archive, descriptor);
    close(descriptor);
    if (error == IW_OK && archive_write_finish_entry(archive) != ARCHIVE_OK)
        error = archive_failed(context, archive);
    return error;
}

/* Opens the format onto the sink; false leaves the reason in the archive. */
static bool archive_begin(struct archive *archive, struct sink *sink)
{
    return archive_write_set_format_zip(archive) == ARCHIVE_OK &&
           archive_write_set_options(archive, "zip:compression=store,zip:hdrcharset=UTF-8") == ARCHIVE_OK &&
           archive_write_set_bytes_per_block(archive, piece_bytes) == ARCHIVE_OK &&
           archive_write_set_bytes_in_last_block(archive, 1) == ARCHIVE_OK &&
           archive_write_open(archive, sink, NULL, sink_write, NULL) == ARCHIVE_OK;
}

static enum iw_error archive_fill(struct storage *storage, struct sink *sink, const struct zip_entry *entries,
                                  size_t count, int64_t time_ms)
{
    struct context *context = sink->context;
    const char **names = zip_names(context->arena, entries, count);
    struct archive *archive = archive_write_new();
    if (archive == NULL)
        return context_fail(context, IW_NO_MEMORY, NULL);
    enum iw_error error = archive_begin(archive, sink) ? IW_OK : archive_failed(context, archive);
    for (size_t i = 0; i < count && error == IW_OK; i++)
        error = entry_write(storage, context, archive, names[i], &entries[i].key, time_ms);
    if (error == IW_OK && archive_write_close(archive) != ARCHIVE_OK)
        error = archive_failed(context, archive);
    /* Freeing an unfinished archive writes its end. */
    sink->is_given_up = error != IW_OK;
    archive_write_free(archive);
    return error;
}

enum iw_error zip_build(struct storage *storage, struct context *context, const struct zip_entry *entries,
                        size_t count, int64_t time_ms, const struct storage_key *key, struct zip_facts *facts)
{
    struct sink sink = {.context = context};
    enum iw_error error = storage_put_begin(storage, context, &sink.writer);
    if (error != IW_OK)
        return error;
    sink.hash = crypto_hash_begin();
    error = archive_fill(storage, &sink, entries, count, time_ms);
    crypto_hash_end(sink.hash, facts->sha256);
    if (error != IW_OK) {
        storage_put_abandon(sink.writer);
        return error;
    }
    facts->size_bytes = sink.size_bytes;
    return storage_put_commit(sink.writer, context, key);
}
