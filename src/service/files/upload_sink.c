#include "service/files/upload_sink.h"

#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"
#include "base/message.h"
#include "service/files/cutoff.h"
#include "service/files/header.h"

struct upload_sink {
    struct storage_writer *writer;
    struct crypto_hash *sha256; /* NULL after the end */
    struct crypto_md5 *md5;     /* NULL after the end, or if not requested */
    unsigned char first[sniff_bytes];
    size_t first_count;
    struct cutoff cutoff; /* its format is set when the first bytes have been identified */
    struct header header;
    struct upload_limits limits;
    int64_t size_bytes;
};

enum iw_error upload_sink_begin(struct storage *storage, struct context *context,
                                const struct storage_key *key, const struct upload_limits *limits,
                                struct upload_sink **sink)
{
    struct storage_writer *writer;
    enum iw_error error = storage_put_begin(storage, context, key, &writer);
    if (error != IW_OK)
        return error;
    struct upload_sink *made = calloc(1, sizeof *made);
    if (made == NULL)
        abort();
    made->writer = writer;
    made->limits = *limits;
    made->sha256 = crypto_hash_begin();
    made->md5 = limits->with_md5 ? crypto_md5_begin() : NULL;
    *sink = made;
    return IW_OK;
}

/* Identifies the format by the first bytes that are available. */
static enum iw_error no_picture(const struct upload_sink *sink, struct context *context)
{
    const char *advice = sniff_advice(context->arena, sink->first, sink->first_count);
    context->reason = "no_picture";
    return context_fail(context, IW_UNSUPPORTED_MEDIA_TYPE, "%s", advice);
}

/* Looks for the header, and for the end of the picture. */
static enum iw_error look(struct upload_sink *sink, struct context *context, const void *bytes, size_t size)
{
    cutoff_add(&sink->cutoff, bytes, size);
    if (!header_add(&sink->header, bytes, size))
        return IW_OK;
    return header_check(context, &sink->header, sink->limits.type, sink->limits.image_memory_bytes);
}

/* Collects the first bytes until the format is known, then passes on all bytes. */
static enum iw_error first_look(struct upload_sink *sink, struct context *context, const void *bytes,
                                size_t size)
{
    size_t wanted = sizeof sink->first - sink->first_count;
    size_t count = size < wanted ? size : wanted;
    bool was_known = sink->cutoff.format != FORMAT_NONE;
    memcpy(sink->first + sink->first_count, bytes, count);
    sink->first_count += count;
    if (was_known)
        return look(sink, context, bytes, size);
    enum format format = sniff_format(sink->first, sink->first_count);
    if (format == FORMAT_NONE)
        return sink->first_count == sizeof sink->first ? no_picture(sink, context) : IW_OK;
    if (!format_is_in(format, sink->limits.formats))
        return no_picture(sink, context);
    sink->cutoff.format = sink->header.form.format = format;
    enum iw_error error = look(sink, context, sink->first, sink->first_count);
    return error == IW_OK ? look(sink, context, (const unsigned char *)bytes + count, size - count) : error;
}

enum iw_error upload_sink_add(struct upload_sink *sink, struct context *context, const void *bytes,
                              size_t size)
{
    if ((int64_t)size > sink->limits.max_bytes - sink->size_bytes)
        return context_fail(context, IW_PAYLOAD_TOO_LARGE, message_file_bytes_least,
                            (long long)(sink->size_bytes + (int64_t)size), (long long)sink->limits.max_bytes);
    enum iw_error error = first_look(sink, context, bytes, size);
    if (error != IW_OK)
        return error;
    sink->size_bytes += (int64_t)size;
    crypto_hash_add(sink->sha256, bytes, size);
    if (sink->md5 != NULL)
        crypto_md5_add(sink->md5, bytes, size);
    return storage_put_add(sink->writer, context, bytes, size);
}

/* Finishes and frees the hash states. */
static void hashes_end(struct upload_sink *sink, struct upload_sink_facts *facts)
{
    if (sink->sha256 != NULL)
        crypto_hash_end(sink->sha256, facts->sha256);
    if (sink->md5 != NULL)
        crypto_md5_end(sink->md5, facts->md5);
    sink->sha256 = NULL;
    sink->md5 = NULL;
}

enum iw_error upload_sink_finish(struct upload_sink *sink, struct context *context, bool is_cut_allowed,
                                 struct upload_sink_facts *facts)
{
    if (sink->cutoff.format == FORMAT_NONE)
        return no_picture(sink, context);
    if (!is_cut_allowed && cutoff_is_cut(&sink->cutoff)) {
        context->reason = "cut_off";
        return context_fail(context, IW_IMAGE_CORRUPT, "The file is cut off after %lld bytes.",
                            (long long)sink->size_bytes);
    }
    *facts = (struct upload_sink_facts){.format = sink->cutoff.format, .size_bytes = sink->size_bytes};
    hashes_end(sink, facts);
    return IW_OK;
}

enum iw_error upload_sink_commit(struct upload_sink *sink, struct context *context)
{
    struct storage_writer *writer = sink->writer;
    free(sink);
    return storage_put_commit(writer, context);
}

void upload_sink_abandon(struct upload_sink *sink)
{
    struct upload_sink_facts unused;
    hashes_end(sink, &unused);
    storage_put_abandon(sink->writer);
    free(sink);
}
