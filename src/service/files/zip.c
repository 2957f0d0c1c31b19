#include "service/files/zip.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <zlib.h>

#include "base/crypto.h"
#include "base/text.h"
#include "service/files/name.h"
#include "service/files/zipformat.h"

enum { piece_bytes = 65536 };

/* The output of the archive. */
struct zip_sink {
    struct context *context;
    struct storage_writer *writer;
    struct crypto_hash *hash;
    int64_t size_bytes;
    struct text record;  /* the record to write next */
    struct text central; /* the central headers so far */
};

static enum iw_error sink_put(struct zip_sink *sink, const void *bytes, size_t size)
{
    enum iw_error error = storage_put_add(sink->writer, sink->context, bytes, size);
    if (error != IW_OK)
        return error;
    crypto_hash_add(sink->hash, bytes, size);
    sink->size_bytes += (int64_t)size;
    return IW_OK;
}

/* ---- Results ---- */

/* An open result. Size and CRC-32 are set by the first reading. */
struct source {
    int descriptor;
    int64_t size_bytes;
    uint32_t crc;
};

/* Reads the whole source for its size and CRC-32, and passes the bytes to the hash or the archive. */
static enum iw_error source_read(struct context *context, struct source *source, struct crypto_hash *hash,
                                 struct zip_sink *sink)
{
    unsigned char piece[piece_bytes];
    enum iw_error error = IW_OK;
    source->size_bytes = 0;
    source->crc = 0;
    while (error == IW_OK) {
        ssize_t count = pread(source->descriptor, piece, sizeof piece, (off_t)source->size_bytes);
        if (count == 0)
            break;
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0) {
            context_cause(context, "read: %s", strerror(errno));
            context->reason = "store_failed";
            return context_fail(context, IW_SERVICE_UNAVAILABLE, "The file store cannot be read.");
        }
        source->size_bytes += count;
        source->crc = (uint32_t)crc32_z(source->crc, piece, (size_t)count);
        if (hash != NULL)
            crypto_hash_add(hash, piece, (size_t)count);
        if (sink != NULL)
            error = sink_put(sink, piece, (size_t)count);
    }
    return error;
}

static enum iw_error source_changed(struct context *context, const struct zip_entry *entry)
{
    context_cause(context, "%s changed after it was stored", storage_key_text(context->arena, &entry->key));
    context->reason = "result_changed";
    return context_fail(context, IW_SERVER_INTERNAL_ERROR, NULL);
}

/* First reading: computes size and CRC-32, and checks the digest against that of the row. */
static enum iw_error source_measure(struct context *context, struct source *source,
                                    const struct zip_entry *entry)
{
    uint8_t digest[sha256_bytes];
    struct crypto_hash *hash = crypto_hash_begin();
    enum iw_error error = source_read(context, source, hash, NULL);
    crypto_hash_end(hash, digest);
    if (error == IW_OK && memcmp(digest, entry->sha256, sizeof digest) != 0)
        error = source_changed(context, entry);
    return error;
}

/* Second reading: writes the bytes after their header. They must be the same as in the first reading. */
static enum iw_error source_copy(struct zip_sink *sink, const struct source *measured,
                                 const struct zip_entry *entry)
{
    struct source copied = *measured;
    enum iw_error error = source_read(sink->context, &copied, NULL, sink);
    bool is_same = copied.size_bytes == measured->size_bytes && copied.crc == measured->crc;
    return error != IW_OK || is_same ? error : source_changed(sink->context, entry);
}

/* ---- The archive ---- */

static enum iw_error source_archive(struct zip_sink *sink, struct source *source,
                                    const struct zip_entry *entry, const char *name, int64_t time_ms)
{
    enum iw_error error = source_measure(sink->context, source, entry);
    if (error != IW_OK)
        return error;
    const struct zipformat_entry header = {.name = name,
                                           .size_bytes = source->size_bytes,
                                           .crc = source->crc,
                                           .time_ms = time_ms,
                                           .offset_bytes = sink->size_bytes};
    text_clear(&sink->record);
    zipformat_local(&sink->record, &header);
    zipformat_central(&sink->central, &header);
    error = sink_put(sink, sink->record.data, sink->record.length);
    return error == IW_OK ? source_copy(sink, source, entry) : error;
}

static enum iw_error entry_archive(struct storage *storage, struct zip_sink *sink,
                                   const struct zip_entry *entry, const char *name, int64_t time_ms)
{
    struct source source;
    enum iw_error error = storage_get(storage, sink->context, &entry->key, &source.descriptor, NULL);
    if (error != IW_OK)
        return error;
    error = source_archive(sink, &source, entry, name, time_ms);
    close(source.descriptor);
    return error;
}

/* The text is put into an anonymous file, so that it is a source like the results. */
static enum iw_error text_archive(struct zip_sink *sink, const struct zip_source *source)
{
    struct zip_entry entry;
    struct source file = {.descriptor = memfd_create("text", MFD_CLOEXEC)};
    ssize_t put = file.descriptor < 0 ? -1 : write(file.descriptor, source->text.data, source->text.length);
    enum iw_error error = IW_OK;
    if (put != (ssize_t)source->text.length) {
        context_cause(sink->context, "memfd: %s", strerror(errno));
        error = context_fail(sink->context, IW_SERVICE_UNAVAILABLE, NULL);
    }
    crypto_sha256(source->text.data, source->text.length, entry.sha256);
    if (error == IW_OK)
        error = source_archive(sink, &file, &entry, source->text_name, source->time_ms);
    if (file.descriptor >= 0)
        close(file.descriptor);
    return error;
}

static enum iw_error archive_fill(struct storage *storage, struct zip_sink *sink,
                                  const struct zip_source *source)
{
    const struct zip_entry *entries = source->entries;
    size_t count = source->count;
    struct arena *arena = sink->context->arena;
    struct name_request *requests = arena_array(arena, count + 1, sizeof *requests);
    for (size_t i = 0; i < count; i++)
        requests[i] = (struct name_request){.name = entries[i].name, .format = entries[i].format};
    const char **names = name_list(arena, requests, count);
    enum iw_error error = IW_OK;
    text_init(&sink->record, arena);
    text_init(&sink->central, arena);
    for (size_t i = 0; i < count && error == IW_OK; i++)
        error = entry_archive(storage, sink, &entries[i], names[i], source->time_ms);
    if (error == IW_OK && source->text_name != NULL) {
        error = text_archive(sink, source);
        count++;
    }
    text_clear(&sink->record);
    zipformat_end(&sink->record, count, sink->size_bytes, (int64_t)sink->central.length);
    if (error == IW_OK)
        error = sink_put(sink, sink->central.data, sink->central.length);
    return error == IW_OK ? sink_put(sink, sink->record.data, sink->record.length) : error;
}

enum iw_error zip_build(struct storage *storage, struct context *context, const struct zip_source *source,
                        const struct storage_key *key, struct zip_facts *facts)
{
    struct zip_sink sink = {.context = context};
    enum iw_error error = storage_put_begin(storage, context, key, &sink.writer);
    if (error != IW_OK)
        return error;
    sink.hash = crypto_hash_begin();
    error = archive_fill(storage, &sink, source);
    crypto_hash_end(sink.hash, facts->sha256);
    if (error != IW_OK) {
        storage_put_abandon(sink.writer);
        return error;
    }
    facts->size_bytes = sink.size_bytes;
    return storage_put_commit(sink.writer, context);
}
