#include "domain/files/upload.h"

#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/log.h"
#include "base/message.h"
#include "db/files.h"
#include "db/orders.h"
#include "db/quotas.h"
#include "db/transaction.h"
#include "domain/orders/order_confirm.h"
#include "service/redis/queue.h"

enum { piece_bytes = 65536 };

/* ---- the check before the body ---- */

/* Finds the file of an upload; for_change locks the order's row. */
static enum iw_error file_find(struct domain *domain, const struct filekey *key, bool for_change,
                               struct upload_file *file)
{
    struct context *context = domain->context;
    bool is_found = false;
    enum iw_error error = files_upload_find(&domain->db, key, for_change, file, &is_found);
    if (error != IW_OK)
        return error;
    if (!is_found)
        return context_fail(context, IW_ORDER_NOT_FOUND, NULL);
    context->account_id = file->account_id;
    context_trace_join(context, file->trace_id);
    if (file->is_suspended)
        return context_fail(context, IW_AUTH_FORBIDDEN, NULL);
    if (file->order_status == ORDER_PENDING)
        return IW_OK;
    if (file->order_status == ORDER_FAILED && !file->is_started)
        return context_fail(context, IW_ORDER_NOT_PENDING,
                            "The order was not started in time and takes no more files; make a new order.");
    return context_fail(context, IW_ORDER_ALREADY_STARTED, NULL);
}

static enum iw_error upload_admit(struct domain *domain, const struct presign_grant *grant,
                                  int64_t announced_bytes, struct upload_file *file)
{
    domain->context->order_id = grant->key.order_id;
    enum iw_error error = file_find(domain, &grant->key, false, file);
    if (error != IW_OK || announced_bytes <= grant->max_bytes)
        return error;
    return context_fail(domain->context, IW_PAYLOAD_TOO_LARGE, message_file_bytes, (long long)announced_bytes,
                        (long long)grant->max_bytes);
}

enum iw_error upload_check(struct domain *domain, const struct presign_grant *grant, int64_t announced_bytes)
{
    struct upload_file file;
    enum iw_error error = upload_admit(domain, grant, announced_bytes, &file);
    return error == IW_OK ? domain_room_check(domain) : error;
}

/* ---- the body ---- */

static enum iw_error body_read(struct context *context, struct upload_sink *sink,
                               const struct upload_source *source)
{
    unsigned char piece[piece_bytes];
    int64_t read_bytes = 0;
    long count;
    while ((count = source->read(source->handle, piece, sizeof piece)) > 0) {
        enum iw_error error = upload_sink_add(sink, context, piece, (size_t)count);
        if (error != IW_OK)
            return error;
        read_bytes += count;
    }
    if (count == 0 && (source->announced_bytes < 0 || read_bytes == source->announced_bytes))
        return IW_OK;
    context->reason = "upload_short";
    if (source->announced_bytes < 0)
        return context_fail(context, IW_VALIDATION_FAILED,
                            "The body ended early, after %lld bytes; upload the file again.",
                            (long long)read_bytes);
    return context_fail(context, IW_VALIDATION_FAILED,
                        "The body ended after %lld of %lld bytes; upload the file again.",
                        (long long)read_bytes, (long long)source->announced_bytes);
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

/* Turns the sink's error about the picture into an error of uploads that names the client's file. */
static enum iw_error picture_refuse(struct domain *domain, const struct presign_grant *grant,
                                    enum iw_error code, const char *advice)
{
    struct upload_file file;
    struct context *context = domain->context;
    const char *sentence = context->sentence, *reason = context->reason;
    context_clear(context);
    enum iw_error error = file_find(domain, &grant->key, false, &file);
    if (error != IW_OK)
        return error;
    context->reason = reason;
    return context_fail(context, code, "%s: %s%s", file.name, sentence, advice);
}

/* Reads the whole body into the file store, under a key that no row names yet. */
static enum iw_error bytes_store(struct domain *domain, const struct presign_grant *grant,
                                 const struct upload_source *source, const struct storage_key *key,
                                 const struct upload_file *file, struct upload_sink_facts *facts)
{
    struct upload_sink *sink;
    struct context *context = domain->context;
    const struct upload_limits limits = {.max_bytes = grant->max_bytes,
                                         .formats = formats_taken(domain->config, file->order_type),
                                         .with_md5 = source->md5 != NULL,
                                         .type = file->order_type,
                                         .image_memory_bytes = domain->config->image_memory_max_bytes};
    /*
     * A leaked copy may be cut off. The original of an extraction and pictures to deliver must be complete.
     */
    bool may_be_truncated = file->order_type == ORDER_WATERMARK_EXTRACT && grant->key.kind == FILEKEY_UPLOAD;
    enum iw_error error = upload_sink_begin(domain->storage, context, key, &limits, &sink);
    if (error != IW_OK)
        return error;
    error = body_read(context, sink, source);
    if (error == IW_OK)
        error = upload_sink_finish(sink, context, may_be_truncated, facts);
    if (error == IW_OK)
        error = digests_check(context, source, facts);
    if (error == IW_OK)
        return upload_sink_commit(sink, context);
    upload_sink_abandon(sink);
    if (error == IW_IMAGE_TOO_LARGE)
        return picture_refuse(domain, grant, IW_PAYLOAD_TOO_LARGE, "");
    if (error == IW_UNSUPPORTED_MEDIA_TYPE)
        return picture_refuse(domain, grant, error, "");
    return error == IW_IMAGE_CORRUPT
               ? picture_refuse(domain, grant, IW_VALIDATION_FAILED, " Upload it again.")
               : error;
}

/* ---- the file's row ---- */

/* Embedding and extraction start with their last upload.  Protection waits for a confirmation. */
static enum iw_error complete_order_start(struct domain *domain, const struct upload_file *file,
                                          int64_t order_id, bool *is_started)
{
    struct order_view view;
    enum order_status status;
    if (file->order_type == ORDER_ANTI_AI)
        return IW_OK;
    enum iw_error error = order_find(domain, file->account_id, order_id, &view);
    if (error != IW_OK)
        return error;
    for (unsigned i = 0; i < view.order.file_rows; i++)
        if (order_file_is_missing(&view.files[i]))
            return IW_OK;
    error = order_start(domain, &view.order, &status);
    *is_started = error == IW_OK;
    return error;
}

/*
 * Deletes bytes that no row names. A failure is only logged, because reclaim_inputs deletes the bytes later.
 */
static void bytes_delete(struct domain *domain, const struct storage_key *key)
{
    struct context quiet;
    context_init_part(&quiet, domain->context);
    if (storage_delete(domain->storage, &quiet, key) != IW_OK)
        log_failure(&quiet, "upload_leftover");
}

/*
 * After a failed transaction: IW_OK if the row names the bytes, because only the answer of the commit was
 * lost. Otherwise deletes the bytes and keeps the error. The row's lock waits for a transaction that still
 * runs. If the database is unavailable, the bytes stay until reclaim_files deletes them.
 */
static enum iw_error lost_commit_settle(struct domain *domain, const struct filekey *filekey,
                                        const struct storage_key *key, enum iw_error error)
{
    struct context quiet;
    struct upload_file file;
    enum iw_error found;
    bool is_found = false;
    context_init_part(&quiet, domain->context);
    const struct db db = {&quiet, domain->db.connection};
    for (struct transaction t = transaction_begin(&db); transaction_goes_on(&t, &found);) {
        found = files_upload_find(&db, filekey, true, &file, &is_found);
    }
    if (found != IW_OK || !is_found)
        return error;
    if (file.store_key == NULL || strcmp(file.store_key, storage_key_text(quiet.arena, key)) != 0) {
        bytes_delete(domain, key);
        return error;
    }
    context_clear(domain->context);
    return IW_OK;
}

/* Locks the order, checks that it is still pending, and points the file's row to the bytes. */
static enum iw_error row_write(struct domain *domain, const struct filekey *filekey,
                               const struct upload_facts *facts, struct upload_file *file, bool *is_started)
{
    enum iw_error error;
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        *is_started = false;
        error = file_find(domain, filekey, true, file);
        if (error == IW_OK)
            error = files_upload_write(&domain->db, file->id, clock_now_ms(), facts);
        if (error == IW_OK)
            error = quotas_stored(&domain->db, file->account_id, facts->size_bytes);
        if (error == IW_OK)
            error = complete_order_start(domain, file, filekey->order_id, is_started);
    }
    return error;
}

/* Writes the file's row, then deletes the bytes that no row names any longer. */
static enum iw_error bytes_record(struct domain *domain, const struct filekey *filekey,
                                  const struct storage_key *key, struct upload_outcome *outcome)
{
    struct storage_key before;
    struct upload_file file = {.id = 0};
    bool is_started = false;
    const struct upload_facts facts = {.store_key = storage_key_text(domain->context->arena, key),
                                       .format = outcome->facts.format,
                                       .size_bytes = outcome->facts.size_bytes,
                                       .sha256 = outcome->facts.sha256};
    enum iw_error error = row_write(domain, filekey, &facts, &file, &is_started);
    bool is_refused = error == IW_ORDER_NOT_FOUND || error == IW_ORDER_ALREADY_STARTED ||
                      error == IW_ORDER_NOT_PENDING || error == IW_AUTH_FORBIDDEN;
    if (is_refused)
        bytes_delete(domain, key);
    else if (error != IW_OK)
        error = lost_commit_settle(domain, filekey, key, error);
    if (error != IW_OK)
        return error;
    outcome->is_replacement = file.is_uploaded;
    if (is_started)
        queue_notify(domain->redis, domain->config, domain->context, filekey->order_id);
    if (file.store_key != NULL && storage_key_read(file.store_key, &before))
        bytes_delete(domain, &before);
    return IW_OK;
}

enum iw_error upload_receive(struct domain *domain, const struct presign_grant *grant,
                             const struct upload_source *source, struct upload_outcome *outcome)
{
    const struct storage_key key = {.kind = grant->key.kind,
                                    .order_id = grant->key.order_id,
                                    .number = grant->key.number,
                                    .version = storage_version_new()};
    struct upload_file file;
    /* Checks again, because the order may have started while nginx read the body. */
    enum iw_error error = upload_admit(domain, grant, source->announced_bytes, &file);
    if (error == IW_OK)
        error = domain_storage_open(domain);
    if (error == IW_OK)
        error = bytes_store(domain, grant, source, &key, &file, &outcome->facts);
    return error == IW_OK ? bytes_record(domain, &grant->key, &key, outcome) : error;
}
