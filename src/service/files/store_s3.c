#include "service/files/store_s3.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/text.h"
#include "model/format.h"
#include "service/net/s3.h"

enum {
    buffer_first_bytes = 64 * 1024,
    part_bytes = 8 * 1024 * 1024, /* S3: at least 5 MiB */
    /* S3 permits 10,000 parts, so the size doubles after every 2,000 parts */
    parts_a_size = 2000,
    keys_a_page = 1000, /* S3's limit for lists and for deletions */
    keys_a_step = 200   /* of a step of a walk, which queries the database about each order */
};

struct store_s3 {
    struct storage base;
    struct s3 *s3;
};

struct store_s3_writer {
    struct storage_writer base;
    struct storage_key key;
    unsigned char *buffer;
    size_t size;
    size_t room;
    const char *type; /* Content-Type, known with the first bytes */
    char *upload_id;  /* of a multipart upload; NULL if there is none yet */
    unsigned part_count;
    char (*etags)[s3_etag_size]; /* of the parts */
};

static struct s3 *s3_of(struct storage *storage)
{
    return ((struct store_s3 *)storage)->s3;
}

static struct store_s3_writer *writer_of(struct storage_writer *writer)
{
    return (struct store_s3_writer *)writer;
}

static void query_add(struct s3_call *call, const char *name, const char *value)
{
    call->query[call->query_count++] = (struct sigv4_pair){name, value};
}

static void call_header_add(struct s3_call *call, const char *name, const char *value)
{
    call->headers[call->header_count++] = (struct sigv4_pair){name, value};
}

static enum iw_error not_found(struct context *context)
{
    return context_fail(context, IW_NOT_FOUND, "The file is not in the store.");
}

/* ---- XML ---- */

/*
 * Returns the text between <name> and </name> after *at, and moves *at behind it. Returns NULL if there is
 * none.
 */
static const char *element_next(struct arena *arena, const char *name, const char **at)
{
    const char *open = arena_printf(arena, "<%s>", name), *close = arena_printf(arena, "</%s>", name);
    const char *begin = strstr(*at, open);
    const char *end = begin != NULL ? strstr(begin, close) : NULL;
    if (end == NULL)
        return NULL;
    begin += strlen(open);
    *at = end + strlen(close);
    return arena_text_n(arena, begin, (size_t)(end - begin));
}

static const char *element_of(struct arena *arena, const char *name, const char *xml)
{
    const char *at = xml;
    return element_next(arena, name, &at);
}

/* "2026-03-12T10:00:00.000Z" */
static int64_t time_read(const char *text)
{
    struct tm parts = {0};
    if (text == NULL || strptime(text, "%Y-%m-%dT%H:%M:%S", &parts) == NULL)
        return 0;
    return (int64_t)timegm(&parts) * 1000;
}

/* ---- Writing ---- */

static enum iw_error s3_put_begin(struct storage *storage, struct context *context,
                                  const struct storage_key *key, struct storage_writer **writer)
{
    struct store_s3_writer *made = calloc(1, sizeof *made);
    (void)context;
    if (made == NULL)
        abort();
    made->base.storage = storage;
    made->key = *key;
    *writer = &made->base;
    return IW_OK;
}

static void writer_free(struct store_s3_writer *writer)
{
    free(writer->buffer);
    free(writer->upload_id);
    free(writer->etags);
    free(writer);
}

static void type_set(struct store_s3_writer *writer)
{
    enum format format = writer->key.kind == FILEKEY_ZIP ? FORMAT_ZIP
                         : writer->size > 0              ? sniff_format(writer->buffer, writer->size)
                                                         : FORMAT_NONE;
    writer->type = format == FORMAT_NONE ? "application/octet-stream" : format_media_type(format);
}

static const char *key_text(struct context *context, const struct store_s3_writer *writer)
{
    return storage_key_text(context->arena, &writer->key);
}

static enum iw_error upload_begin(struct store_s3_writer *writer, struct context *context)
{
    struct s3_call call = {.method = S3_POST, .key = key_text(context, writer), .body = "", .sink = -1};
    type_set(writer);
    query_add(&call, "uploads", "");
    call_header_add(&call, "content-type", writer->type);
    enum iw_error error = s3_call(s3_of(writer->base.storage), context, &call, 1);
    if (error != IW_OK)
        return error;
    const char *id = element_of(context->arena, "UploadId", call.text);
    if (id == NULL)
        return s3_fail(context, &call, "no UploadId");
    writer->upload_id = strdup(id);
    writer->etags = malloc(10000 * sizeof *writer->etags);
    if (writer->upload_id == NULL || writer->etags == NULL)
        abort();
    return IW_OK;
}

/* Sends the buffer as the next part. */
static enum iw_error part_send(struct store_s3_writer *writer, struct context *context)
{
    struct s3_call call = {.method = S3_PUT,
                           .key = key_text(context, writer),
                           .body = writer->buffer,
                           .body_bytes = writer->size,
                           .sink = -1};
    enum iw_error error = writer->upload_id == NULL ? upload_begin(writer, context) : IW_OK;
    if (error != IW_OK)
        return error;
    query_add(&call, "partNumber", arena_printf(context->arena, "%u", writer->part_count + 1));
    query_add(&call, "uploadId", writer->upload_id);
    error = s3_call(s3_of(writer->base.storage), context, &call, 1);
    if (error == IW_OK && (call.status != 200 || call.etag[0] == '\0'))
        return s3_fail(context, &call, "the part was not stored");
    if (error == IW_OK)
        memcpy(writer->etags[writer->part_count++], call.etag, s3_etag_size);
    writer->size = 0;
    return error;
}

static enum iw_error s3_put_add(struct storage_writer *writer, struct context *context, const void *bytes,
                                size_t size)
{
    struct store_s3_writer *own = writer_of(writer);
    const unsigned char *at = bytes;
    while (size > 0) {
        size_t wanted = (size_t)part_bytes << (own->part_count / parts_a_size);
        if (own->size == own->room && own->room < wanted) {
            own->room = own->room == 0 ? (size_t)buffer_first_bytes : 2 * own->room;
            own->buffer = realloc(own->buffer, own->room);
            if (own->buffer == NULL)
                abort();
        }
        size_t count = own->room - own->size < size ? own->room - own->size : size;
        memcpy(own->buffer + own->size, at, count);
        own->size += count;
        at += count;
        size -= count;
        enum iw_error error = own->size >= wanted ? part_send(own, context) : IW_OK;
        if (error != IW_OK)
            return error;
    }
    return IW_OK;
}

/* If the reply to CompleteMultipartUpload was lost, the upload no longer exists, but the object does. */
static enum iw_error upload_complete(struct store_s3_writer *writer, struct context *context)
{
    struct text body;
    struct s3 *s3 = s3_of(writer->base.storage);
    text_init(&body, context->arena);
    text_add_string(&body, "<CompleteMultipartUpload>");
    for (unsigned i = 0; i < writer->part_count; i++)
        text_printf(&body, "<Part><PartNumber>%u</PartNumber><ETag>%s</ETag></Part>", i + 1,
                    writer->etags[i]);
    text_add_string(&body, "</CompleteMultipartUpload>");
    struct s3_call call = {.method = S3_POST,
                           .key = key_text(context, writer),
                           .body = body.data,
                           .body_bytes = body.length,
                           .sink = -1};
    query_add(&call, "uploadId", writer->upload_id);
    enum iw_error error = s3_call(s3, context, &call, 1);
    if (error != IW_OK || call.status == 200)
        return error;
    struct s3_call head = {.method = S3_HEAD, .key = call.key, .sink = -1};
    error = s3_call(s3, context, &head, 1);
    return error == IW_OK && head.status != 200 ? s3_fail(context, &call, "not completed") : error;
}

static void s3_put_abandon(struct storage_writer *writer)
{
    struct store_s3_writer *own = writer_of(writer);
    if (own->upload_id != NULL) {
        struct context quiet;
        context_init(&quiet, arena_new(0), NULL);
        struct s3_call call = {.method = S3_DELETE, .key = key_text(&quiet, own), .sink = -1};
        query_add(&call, "uploadId", own->upload_id);
        /* If this fails, the sweep aborts the upload later. */
        if (s3_call(s3_of(writer->storage), &quiet, &call, 1) != IW_OK)
            context_clear(&quiet);
        arena_free(quiet.arena);
    }
    writer_free(own);
}

static enum iw_error object_put(struct store_s3_writer *writer, struct context *context)
{
    struct s3_call call = {.method = S3_PUT,
                           .key = key_text(context, writer),
                           .body = writer->size > 0 ? (const void *)writer->buffer : "",
                           .body_bytes = writer->size,
                           .sink = -1};
    type_set(writer);
    call_header_add(&call, "content-type", writer->type);
    enum iw_error error = s3_call(s3_of(writer->base.storage), context, &call, 1);
    return error == IW_OK && call.status != 200 ? s3_fail(context, &call, "not stored") : error;
}

static enum iw_error s3_put_commit(struct storage_writer *writer, struct context *context)
{
    struct store_s3_writer *own = writer_of(writer);
    enum iw_error error;
    if (own->upload_id == NULL) {
        error = object_put(own, context);
    } else {
        error = own->size > 0 ? part_send(own, context) : IW_OK;
        if (error == IW_OK)
            error = upload_complete(own, context);
    }
    if (error == IW_OK)
        writer_free(own);
    else
        s3_put_abandon(writer);
    return error;
}

/* ---- Reading ---- */

static void facts_fill(struct storage_facts *facts, const struct s3_call *call)
{
    if (facts != NULL)
        *facts = (struct storage_facts){.size_bytes = call->size_bytes, .modified_ms = call->modified_ms};
}

static enum iw_error changed(struct context *context)
{
    context->reason = "store_changed";
    return context_fail(context, IW_NOT_FOUND, "The file changed after it was confirmed.");
}

/* libcurl reports a body that ends early, and s3_call then reads it again. */
static enum iw_error s3_get(struct storage *storage, struct context *context, const struct storage_key *key,
                            const char *etag, int *descriptor, struct storage_facts *facts)
{
    int file = memfd_create("object", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file < 0) {
        context_cause(context, "memfd_create: %s", strerror(errno));
        return context_fail(context, IW_SERVICE_UNAVAILABLE, NULL);
    }
    struct s3_call call = {.method = S3_GET, .key = storage_key_text(context->arena, key), .sink = file};
    if (etag != NULL)
        call_header_add(&call, "if-match", etag);
    enum iw_error error = s3_call(s3_of(storage), context, &call, 1);
    struct stat found;
    if (error == IW_OK && call.status == 404)
        error = not_found(context);
    else if (error == IW_OK && call.status == 412)
        error = changed(context);
    else if (error == IW_OK && (fstat(file, &found) != 0 || found.st_size != call.size_bytes))
        error = s3_fail(context, &call, "the body has another size than its header says");
    /*
     * The descriptor of a local store is read-only, so this descriptor is made read-only for the image
     * process, too.
     */
    if (error == IW_OK && (lseek(file, 0, SEEK_SET) != 0 ||
                           fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0))
        error = s3_fail(context, &call, strerror(errno));
    if (error != IW_OK) {
        close(file);
        return error;
    }
    facts_fill(facts, &call);
    *descriptor = file;
    return IW_OK;
}

static enum iw_error s3_stat(struct storage *storage, struct context *context, const struct storage_key *key,
                             struct storage_facts *facts)
{
    struct s3_call call = {.method = S3_HEAD, .key = storage_key_text(context->arena, key), .sink = -1};
    enum iw_error error = s3_call(s3_of(storage), context, &call, 1);
    if (error == IW_OK && call.status != 200)
        return not_found(context);
    facts_fill(facts, &call);
    return error;
}

/* ---- Deleting ---- */

/* Deletes at most keys_a_page keys in one request. */
static enum iw_error page_delete(struct storage *storage, struct context *context,
                                 const struct storage_key *keys, size_t count)
{
    struct text body;
    uint8_t digest[16];
    struct arena *arena = context->arena;
    text_init(&body, arena);
    text_add_string(&body, "<Delete><Quiet>true</Quiet>");
    for (size_t i = 0; i < count; i++)
        text_printf(&body, "<Object><Key>%s%s</Key></Object>", s3_prefix(s3_of(storage)),
                    storage_key_text(arena, &keys[i]));
    text_add_string(&body, "</Delete>");
    struct crypto_md5 *md5 = crypto_md5_begin();
    crypto_md5_add(md5, body.data, body.length);
    crypto_md5_end(md5, digest);
    struct s3_call call = {.method = S3_POST, .body = body.data, .body_bytes = body.length, .sink = -1};
    query_add(&call, "delete", "");
    call_header_add(&call, "content-md5", crypto_base64(arena, digest, sizeof digest));
    enum iw_error error = s3_call(s3_of(storage), context, &call, 1);
    if (error != IW_OK)
        return error;
    const char *fault = element_of(arena, "Error", call.text);
    if (call.status != 200 || fault != NULL)
        return s3_fail(context, &call, fault != NULL ? fault : "not deleted");
    return IW_OK;
}

static enum iw_error s3_delete_list(struct storage *storage, struct context *context,
                                    const struct storage_key *keys, size_t count)
{
    enum iw_error error = IW_OK;
    if (count == 1) {
        struct s3_call call = {
            .method = S3_DELETE, .key = storage_key_text(context->arena, keys), .sink = -1};
        return s3_call(s3_of(storage), context, &call, 1);
    }
    for (size_t i = 0; error == IW_OK && i < count; i += keys_a_page)
        error = page_delete(storage, context, keys + i, count - i < keys_a_page ? count - i : keys_a_page);
    return error;
}

/* ---- Listing ---- */

struct s3_listing {
    const char *prefix; /* of the texts of the keys */
    const char *after;  /* the text of a key; "" at the start */
    int most;           /* keys of a page */
    storage_visit *visit;
    void *user;
    bool is_stopped;
    bool is_last;                /* there are no more keys */
    char last[storage_key_size]; /* of the page; "" if there is none */
};

static void object_visit(struct s3_listing *listing, struct arena *arena, const char *text,
                         const char *object)
{
    struct storage_key key;
    struct storage_facts facts = {.modified_ms = time_read(element_of(arena, "LastModified", object))};
    const char *size = element_of(arena, "Size", object);
    snprintf(listing->last, sizeof listing->last, "%s", text);
    if (storage_key_read(text, &key) && size != NULL && text_integer(size, 0, INT64_MAX, &facts.size_bytes))
        listing->is_stopped = !listing->visit(listing->user, &key, &facts);
}

/* Objects whose names are not keys of the service are skipped. */
static enum iw_error page_list(struct storage *storage, struct context *context, struct s3_listing *listing)
{
    struct arena *arena = context->arena;
    struct s3 *s3 = s3_of(storage);
    size_t prefix_length = strlen(s3_prefix(s3));
    struct s3_call call = {.method = S3_GET, .sink = -1};
    query_add(&call, "list-type", "2");
    query_add(&call, "max-keys", arena_printf(arena, "%d", listing->most));
    query_add(&call, "prefix", arena_printf(arena, "%s%s", s3_prefix(s3), listing->prefix));
    if (listing->after[0] != '\0')
        query_add(&call, "start-after", arena_printf(arena, "%s%s", s3_prefix(s3), listing->after));
    enum iw_error error = s3_call(s3, context, &call, 1);
    if (error != IW_OK)
        return error;
    const char *at = call.text, *object;
    const char *more = element_of(arena, "IsTruncated", call.text);
    if (call.status != 200 || more == NULL)
        return s3_fail(context, &call, "no list");
    listing->last[0] = '\0';
    while (!listing->is_stopped && (object = element_next(arena, "Contents", &at)) != NULL) {
        const char *text = element_of(arena, "Key", object);
        if (text != NULL && strlen(text) >= prefix_length)
            object_visit(listing, arena, text + prefix_length, object);
    }
    listing->is_last = strcmp(more, "true") != 0 || listing->last[0] == '\0';
    return IW_OK;
}

static enum iw_error s3_list(struct storage *storage, struct context *context, enum filekey_kind kind,
                             int64_t order_id, storage_visit *visit, void *user)
{
    const char *folder = filekey_folder(kind);
    struct s3_listing listing = {
        .prefix = order_id != 0 ? arena_printf(context->arena, "%s/%lld/", folder, (long long)order_id)
                                : arena_printf(context->arena, "%s/", folder),
        .after = "",
        .most = keys_a_page,
        .visit = visit,
        .user = user};
    enum iw_error error = IW_OK;
    while (error == IW_OK && !listing.is_last && !listing.is_stopped) {
        error = page_list(storage, context, &listing);
        listing.after = arena_text(context->arena, listing.last);
    }
    return error;
}

/* A step of a walk is a page. */
static enum iw_error s3_walk(struct storage *storage, struct context *context, struct storage_cursor *cursor,
                             storage_visit *visit, void *user)
{
    struct s3_listing listing = {
        .prefix = "", .after = cursor->after, .most = keys_a_step, .visit = visit, .user = user};
    enum iw_error error = page_list(storage, context, &listing);
    if (error != IW_OK)
        return error;
    cursor->part = 0;
    memcpy(cursor->after, listing.is_last ? "" : listing.last, listing.is_last ? 1 : sizeof cursor->after);
    return IW_OK;
}

/* Aborts multipart uploads that a dead process left behind. */
static enum iw_error s3_sweep(struct storage *storage, struct context *context, int64_t age_s,
                              unsigned *count)
{
    struct arena *arena = context->arena;
    struct s3 *s3 = s3_of(storage);
    size_t prefix_length = strlen(s3_prefix(s3));
    struct s3_call list = {.method = S3_GET, .sink = -1};
    unsigned removed = 0;
    query_add(&list, "uploads", "");
    query_add(&list, "prefix", s3_prefix(s3));
    enum iw_error error = s3_call(s3, context, &list, 1);
    const char *at = error == IW_OK ? list.text : "", *upload;
    while (error == IW_OK && (upload = element_next(arena, "Upload", &at)) != NULL) {
        const char *key = element_of(arena, "Key", upload), *id = element_of(arena, "UploadId", upload);
        int64_t begun_ms = time_read(element_of(arena, "Initiated", upload));
        if (key == NULL || id == NULL || strlen(key) < prefix_length || begun_ms == 0 ||
            begun_ms > clock_now_ms() - age_s * 1000)
            continue;
        struct s3_call call = {.method = S3_DELETE, .key = key + prefix_length, .sink = -1};
        query_add(&call, "uploadId", id);
        error = s3_call(s3, context, &call, 1);
        removed += error == IW_OK;
    }
    if (count != NULL)
        *count = removed;
    return error;
}

/* ---- For clients ---- */

static const char *s3_link(struct storage *storage, struct arena *arena, const struct storage_link *link)
{
    struct s3_call call = {.method = link->is_upload ? S3_PUT : S3_GET,
                           .key = storage_key_text(arena, &link->key)};
    if (link->disposition != NULL)
        query_add(&call, "response-content-disposition", link->disposition);
    if (link->type != NULL)
        query_add(&call, "response-content-type", link->type);
    return s3_url(s3_of(storage), arena, &call, link->expires_s);
}

/* An ETag in XML: "&quot;0123&quot;"; its other bytes are plain. */
static void etag_read(const char *xml, char etag[storage_etag_size])
{
    static const char quote[] = "&quot;";
    if (strncmp(xml, quote, sizeof quote - 1) == 0)
        xml += sizeof quote - 1;
    else if (*xml == '"')
        xml++;
    snprintf(etag, storage_etag_size, "\"%.*s\"", (int)strcspn(xml, "&\""), xml);
}

/*
 * Sends one request per object, because the response to a range request also has the size of the whole
 * object.
 */
static enum iw_error s3_peek(struct storage *storage, struct context *context, struct storage_object *objects,
                             size_t count)
{
    struct s3_call *calls = arena_array(context->arena, count, sizeof *calls);
    for (size_t i = 0; i < count; i++) {
        calls[i] = (struct s3_call){
            .method = S3_GET, .key = storage_key_text(context->arena, &objects[i].key), .sink = -1};
        call_header_add(&calls[i], "range", arena_printf(context->arena, "bytes=0-%d", sniff_bytes - 1));
    }
    enum iw_error error = s3_call(s3_of(storage), context, calls, count);
    for (size_t i = 0; error == IW_OK && i < count; i++) {
        struct storage_object *object = &objects[i];
        bool is_empty = calls[i].status == 416; /* an empty range */
        object->is_there = is_empty || calls[i].status == 200 || calls[i].status == 206;
        object->size_bytes = is_empty ? 0 : calls[i].size_bytes;
        object->first_count = is_empty ? 0 : calls[i].text_bytes;
        if (object->first_count > sniff_bytes)
            object->first_count = sniff_bytes;
        memcpy(object->first, calls[i].text, object->first_count);
        memcpy(object->etag, calls[i].etag, sizeof object->etag);
    }
    return error;
}

static enum iw_error s3_copy(struct storage *storage, struct context *context, struct storage_object *objects,
                             const struct storage_key *to, size_t count)
{
    struct arena *arena = context->arena;
    struct s3_call *calls = arena_array(arena, count, sizeof *calls);
    for (size_t i = 0; i < count; i++) {
        calls[i] = (struct s3_call){
            .method = S3_PUT, .key = storage_key_text(arena, &to[i]), .body = "", .sink = -1};
        call_header_add(&calls[i], "x-amz-copy-source",
                        s3_copy_source(s3_of(storage), arena, storage_key_text(arena, &objects[i].key)));
        call_header_add(&calls[i], "x-amz-copy-source-if-match", objects[i].etag);
    }
    enum iw_error error = s3_call(s3_of(storage), context, calls, count);
    for (size_t i = 0; error == IW_OK && i < count; i++) {
        const char *etag = element_of(arena, "ETag", calls[i].text);
        objects[i].is_there = calls[i].status == 200 && etag != NULL;
        if (objects[i].is_there)
            etag_read(etag, objects[i].etag);
    }
    return error;
}

/* ---- Opening ---- */

static void s3_close(struct storage *storage)
{
    s3_free(s3_of(storage));
    free(storage);
}

static const struct storage_driver driver = {
    .close = s3_close,
    .put_begin = s3_put_begin,
    .put_add = s3_put_add,
    .put_commit = s3_put_commit,
    .put_abandon = s3_put_abandon,
    .get = s3_get,
    .stat = s3_stat,
    .delete_list = s3_delete_list,
    .list = s3_list,
    .walk = s3_walk,
    .sweep = s3_sweep,
    .url = s3_link,
    .peek = s3_peek,
    .copy = s3_copy,
};

enum iw_error store_s3_open(struct context *context, const struct config *config, struct storage **storage)
{
    struct store_s3 *made = calloc(1, sizeof *made);
    if (made == NULL)
        abort();
    made->base.driver = &driver;
    enum iw_error error = s3_new(context, config, &made->s3);
    if (error != IW_OK) {
        free(made);
        return error;
    }
    *storage = &made->base;
    return IW_OK;
}
