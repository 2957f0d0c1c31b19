#include "domain/upload.h"

#include <string.h>

#include <imgward/fault.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/log.h"
#include "domain/order.h"
#include "service/queue.h"
#include "store/uploads.h"

enum { piece_bytes = 65536 };

/* The store is opened when it is first needed: without it, orders can still be read. */
static enum iw_error store_ready(struct domain *domain)
{
    struct context *context = domain->context;
    if (domain->storage != NULL ||
        storage_open(context, domain->config->store_path, &domain->storage) == IW_OK)
        return IW_OK;
    const char *cause = context->sentence;
    context_clear(context);
    enum iw_error error =
        context_fail(context, IW_SERVICE_UNAVAILABLE, "The file store cannot be used now; try again later.");
    context->reason = "store_failed";
    context_cause(context, "%s", cause);
    return error;
}

/* ---- May it be? ---- */

static enum iw_error place_check(struct context *context, const struct upload_place *place)
{
    if (place->order_status == ORDER_PENDING)
        return IW_OK;
    if (place->order_status == ORDER_FAILED && !place->is_started)
        return context_fail(context, IW_ORDER_NOT_PENDING,
                            "The order was not started in time and takes no more files; make a new order.");
    return context_fail(context, IW_ORDER_ALREADY_STARTED, NULL);
}

static enum iw_error size_check(struct context *context, int64_t announced_bytes, int64_t max_bytes)
{
    if (announced_bytes <= max_bytes)
        return IW_OK;
    return context_fail(context, IW_PAYLOAD_TOO_LARGE, "The file has %lld bytes; at most %lld are allowed.",
                        (long long)announced_bytes, (long long)max_bytes);
}

static enum iw_error place_find(struct domain *domain, const struct store *store, const struct filekey *key,
                                bool for_change, struct upload_place *place)
{
    struct context *context = domain->context;
    enum iw_error error =
        uploads_find(store, key->order_id, key->number, key->kind == FILEKEY_ORIGINAL, for_change, place);
    if (error == IW_NOT_FOUND)
        return context_fail(context, IW_ORDER_NOT_FOUND, NULL);
    if (error != IW_OK)
        return error;
    context->account_id = place->account_id;
    return place_check(context, place);
}

enum iw_error upload_check(struct domain *domain, const struct presign_grant *grant, int64_t announced_bytes)
{
    struct upload_place place;
    domain->context->order_id = grant->key.order_id;
    enum iw_error error = place_find(domain, &domain->store, &grant->key, false, &place);
    return error != IW_OK ? error : size_check(domain->context, announced_bytes, grant->max_bytes);
}

/* ---- Taking it ---- */

static enum iw_error bytes_take(struct context *context, struct upload_sink *sink,
                                const struct upload_source *source)
{
    unsigned char piece[piece_bytes];
    int64_t taken_bytes = 0;
    bool is_cut = false;
    for (long count; (count = source->read(source->handle, piece, sizeof piece)) != 0;) {
        if (count < 0) {
            is_cut = true;
            break;
        }
        enum iw_error error = upload_sink_add(sink, context, piece, (size_t)count);
        if (error != IW_OK)
            return error;
        taken_bytes += count;
    }
    if (!is_cut && (source->announced_bytes < 0 || taken_bytes == source->announced_bytes))
        return IW_OK;
    context->reason = "upload_short";
    if (source->announced_bytes < 0)
        return context_fail(context, IW_VALIDATION_FAILED,
                            "The body ended early, after %lld bytes; upload the file again.",
                            (long long)taken_bytes);
    return context_fail(context, IW_VALIDATION_FAILED,
                        "The body ended after %lld of %lld bytes; upload the file again.",
                        (long long)taken_bytes, (long long)source->announced_bytes);
}

static enum iw_error digests_check(struct context *context, const struct upload_source *source,
                                   const struct upload_sink_facts *facts)
{
    if (source->sha256 != NULL && !crypto_equal(source->sha256, facts->sha256, sizeof facts->sha256))
        context_detail(context, "Content-Digest",
                       "is not the SHA-256 of the bytes that arrived; upload the file again");
    if (source->md5 != NULL && !crypto_equal(source->md5, facts->md5, sizeof facts->md5))
        context_detail(context, "Content-MD5",
                       "is not the MD5 of the bytes that arrived; upload the file again");
    return context_validated(context);
}

/* A cut file is a fault of the upload here, and its client knows the file by its name. */
static enum iw_error cut_refuse(struct domain *domain, const struct presign_grant *grant)
{
    struct upload_place place;
    struct context *context = domain->context;
    const char *sentence = context->sentence;
    context_clear(context);
    enum iw_error error = place_find(domain, &domain->store, &grant->key, false, &place);
    if (error != IW_OK)
        return error;
    context->reason = "cut_off";
    return context_fail(context, IW_VALIDATION_FAILED, "%s: %s Upload it again.", place.name, sentence);
}

/* Reads all of it into the store; on success the bytes lie under key and nothing names them yet. */
static enum iw_error bytes_store(struct domain *domain, const struct presign_grant *grant,
                                 const struct upload_source *source, const struct storage_key *key,
                                 struct upload_sink_facts *facts)
{
    struct upload_sink *sink;
    struct context *context = domain->context;
    enum iw_error error =
        upload_sink_begin(domain->storage, context, grant->max_bytes, source->md5 != NULL, &sink);
    if (error != IW_OK)
        return error;
    error = bytes_take(context, sink, source);
    if (error == IW_OK)
        error = upload_sink_finish(sink, context, facts);
    if (error == IW_OK)
        error = digests_check(context, source, facts);
    fault_point(FAULT_UPLOAD_TAKEN);
    if (error == IW_OK)
        return upload_sink_commit(sink, context, key);
    upload_sink_abandon(sink);
    return error == IW_IMAGE_CORRUPT ? cut_refuse(domain, grant) : error;
}

struct record {
    struct domain *domain;
    const struct filekey *key;
    struct upload_facts facts;
    struct upload_place place;
    bool is_started; /* this was the last file that the order waited for */
};

/* Embedding and extraction start by themselves with their last upload; protection waits to be confirmed. */
static enum iw_error last_start(const struct store *store, struct record *record)
{
    struct order_view view;
    enum order_status status;
    if (record->place.order_type == ORDER_ANTI_AI)
        return IW_OK;
    enum iw_error error =
        orders_find(store, record->place.account_id, record->key->order_id, &view.order, &view.files);
    if (error != IW_OK)
        return error;
    for (unsigned i = 0; i < view.order.file_rows; i++)
        if (order_file_is_missing(&view.files[i]))
            return IW_OK;
    error = order_start(store, &view.order, &status);
    record->is_started = error == IW_OK;
    return error;
}

/* The transaction: the order's row locked, still pending, then the file's row. */
static enum iw_error record_work(const struct store *store, void *user)
{
    struct record *record = user;
    enum iw_error error = place_find(record->domain, store, record->key, true, &record->place);
    if (error != IW_OK)
        return error;
    record->is_started = false;
    error = uploads_mark(store, record->place.file_id, clock_now_ms(), &record->facts);
    return error == IW_OK ? last_start(store, record) : error;
}

/* Best effort: what stays is found by the reclaim of what no row names. */
static void bytes_forget(struct domain *domain, const struct storage_key *key)
{
    struct context quiet;
    context_init(&quiet, domain->context->arena, domain->context->request_id);
    if (storage_delete(domain->storage, &quiet, key) != IW_OK)
        log_failure(&quiet, "upload_leftover");
}

/* Points the file's row at the new bytes, then lets go of those that no row names any more. */
static enum iw_error bytes_record(struct domain *domain, const struct filekey *filekey,
                                  const struct storage_key *key, struct upload_outcome *outcome)
{
    struct storage_key before;
    struct context *context = domain->context;
    struct record record = {.domain = domain,
                            .key = filekey,
                            .facts = {.store_key = storage_key_text(context->arena, key),
                                      .format = outcome->facts.format,
                                      .size_bytes = outcome->facts.size_bytes,
                                      .sha256 = outcome->facts.sha256}};
    fault_point(FAULT_UPLOAD_STORED);
    enum iw_error error = db_transaction(&domain->store, record_work, &record);
    fault_point(FAULT_UPLOAD_RECORDED);
    /* When the database went away, the commit may have happened: then the bytes must stay. */
    bool is_refused =
        error == IW_ORDER_NOT_FOUND || error == IW_ORDER_ALREADY_STARTED || error == IW_ORDER_NOT_PENDING;
    if (is_refused)
        bytes_forget(domain, key);
    if (error != IW_OK)
        return error;
    outcome->is_replacement = record.place.is_uploaded;
    if (record.is_started)
        queue_ring(domain->redis, domain->config, context, filekey->order_id);
    if (record.place.store_key != NULL && storage_key_read(record.place.store_key, &before))
        bytes_forget(domain, &before);
    return IW_OK;
}

enum iw_error upload_receive(struct domain *domain, const struct presign_grant *grant,
                             const struct upload_source *source, struct upload_outcome *outcome)
{
    const struct storage_key key = {.kind = grant->key.kind,
                                    .order_id = grant->key.order_id,
                                    .number = grant->key.number,
                                    .version = storage_version_new()};
    /* Asked again: an order may have started while the body was on its way. */
    enum iw_error error = upload_check(domain, grant, source->announced_bytes);
    if (error == IW_OK)
        error = store_ready(domain);
    if (error == IW_OK)
        error = bytes_store(domain, grant, source, &key, &outcome->facts);
    return error == IW_OK ? bytes_record(domain, &grant->key, &key, outcome) : error;
}

/* ---- Downloads ---- */

static enum iw_error nothing_there(struct context *context, const char *why)
{
    context_clear(context);
    enum iw_error error = context_fail(context, IW_PROCESSED_FILE_NOT_FOUND, NULL);
    context->reason = why;
    return error;
}

static enum iw_error row_find(struct domain *domain, const struct filekey *key, struct download_row *row)
{
    switch (key->kind) {
    case FILEKEY_RESULT:
        return downloads_find_result(&domain->store, key->order_id, key->number, row);
    case FILEKEY_ZIP:
        return downloads_find_archive(&domain->store, key->order_id, row);
    case FILEKEY_THUMBNAIL:
        return downloads_find_thumbnail(&domain->store, key->order_id, row);
    case FILEKEY_UPLOAD:
    case FILEKEY_ORIGINAL:
    case FILEKEY_KIND_COUNT:
        break;
    }
    return IW_NOT_FOUND;
}

/* NULL when the row leads to bytes, otherwise why not. */
static const char *row_refuse(const struct download_row *row)
{
    if (row->store_key == NULL)
        return "no_bytes";
    if (row->is_deleted || row->order_status == ORDER_EXPIRED)
        return "order_expired";
    /* Its time is over, even where the upkeep has not come by yet. */
    if (row->order_status == ORDER_COMPLETE && row->expires_ms != 0 && row->expires_ms <= clock_now_ms())
        return "order_expired";
    return NULL;
}

enum iw_error download_find(struct domain *domain, const struct filekey *key, struct download *download)
{
    struct download_row row;
    struct storage_facts facts;
    struct context *context = domain->context;
    context->order_id = key->order_id;
    enum iw_error error = row_find(domain, key, &row);
    if (error == IW_NOT_FOUND)
        return nothing_there(context, "no_row");
    if (error != IW_OK)
        return error;
    const char *refused = row_refuse(&row);
    if (refused != NULL || !storage_key_read(row.store_key, &download->key))
        return nothing_there(context, refused != NULL ? refused : "key_unreadable");
    error = store_ready(domain);
    if (error == IW_OK)
        error = storage_stat(domain->storage, context, &download->key, &facts);
    if (error == IW_NOT_FOUND)
        return nothing_there(context, "bytes_missing");
    if (error != IW_OK)
        return error;
    download->kind = key->kind;
    download->format = row.format;
    download->size_bytes = facts.size_bytes;
    download->name = key->kind == FILEKEY_ZIP ? order_archive_name(context->arena, row.name) : row.name;
    return IW_OK;
}
