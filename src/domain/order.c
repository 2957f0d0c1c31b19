#include "domain/order.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <imgward/fault.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/text.h"
#include "service/filekey.h"
#include "service/name.h"
#include "service/presign.h"
#include "service/queue.h"
#include "store/jobs.h"
#include "store/texts.h"

enum {
    /* A new id is taken already once in a million at a thousand orders a second; twice is enough. */
    id_tries = 4,
    conflict_tries = 4,
    wait_first_ms = 5,
    wait_longest_ms = 80
};

static const char *const name_stems[ORDER_TYPE_COUNT] = {"anti_ai", "wtr_embed", "wtr_extract"};

/* A domain's own word for a row that is not there. */
static enum iw_error not_found(struct domain *domain)
{
    return context_fail(domain->context, IW_ORDER_NOT_FOUND, NULL);
}

static const char *name_make(struct arena *arena, enum order_type type, int64_t now_ms)
{
    char day[11];
    clock_day(now_ms, day);
    return arena_printf(arena, "%s_%s", name_stems[type], day);
}

/* The order that a key made before; NOT_FOUND when there is none. */
static enum iw_error replay(struct domain *domain, int64_t account_id, const struct order_request *wanted,
                            struct order_view *view)
{
    enum iw_error error = orders_find_by_key(&domain->store, account_id, wanted->type, wanted->key,
                                             wanted->key_length, &view->order, &view->files);
    if (error != IW_OK)
        return error;
    view->is_replay = true;
    if (memcmp(view->order.body_digest, wanted->body_digest, sizeof wanted->body_digest) != 0)
        return context_fail(domain->context, IW_IDEMPOTENCY_KEY_REUSED, NULL);
    return IW_OK;
}

/* What a client is shown of an order that was just written, without reading it back. */
static void view_fill(struct arena *arena, const struct order_row *row, const int64_t *file_ids,
                      struct order_view *view)
{
    *view = (struct order_view){.order = {.id = row->id,
                                          .type = row->type,
                                          .status = row->is_started ? ORDER_IN_PROGRESS : ORDER_PENDING,
                                          .name = row->name,
                                          .is_zero_copy = row->is_zero_copy,
                                          .file_count = row->file_count,
                                          .file_rows = row->file_rows,
                                          .created_ms = row->created_ms,
                                          .updated_ms = row->created_ms,
                                          .expires_ms = row->is_started ? 0 : row->expires_ms}};
    view->files = arena_array(arena, row->file_rows + 1, sizeof *view->files);
    for (unsigned i = 0; i < row->file_rows; i++)
        view->files[i] = (struct order_file){.id = file_ids[i],
                                             .position = row->files[i].position,
                                             .is_original = row->files[i].is_original,
                                             .name = row->files[i].name,
                                             .status = "pending",
                                             .source_url = row->files[i].source_url};
}

/* The registry's numbers for the texts of one file. */
static enum iw_error texts_resolve(const struct store *store, int64_t account_id,
                                   const struct order_request_file *file, const int64_t **ids)
{
    enum iw_error error = IW_OK;
    int64_t now_ms = clock_now_ms();
    int64_t *found = arena_array(store->context->arena, file->text_count + 1, sizeof *found);
    for (unsigned i = 0; i < file->text_count && error == IW_OK; i++)
        error =
            texts_register(store, account_id, file->texts[i].text, file->texts[i].length, now_ms, &found[i]);
    *ids = found;
    return error;
}

/* Whose texts are to be registered, and the rows that their numbers go to. */
struct registration {
    int64_t account_id;
    const struct order_request *wanted;
    struct order_row_file *files;
};

/* Files that share their texts, as those beside them all do, ask once. */
static enum iw_error registration_work(const struct store *store, void *user)
{
    const struct registration *work = user;
    enum iw_error error = IW_OK;
    for (unsigned i = 0; i < work->wanted->file_count && error == IW_OK; i++) {
        const struct order_request_file *file = &work->wanted->files[i];
        if (i > 0 && file->texts == file[-1].texts)
            work->files[i].text_ids = work->files[i - 1].text_ids;
        else
            error = texts_resolve(store, work->account_id, file, &work->files[i].text_ids);
    }
    return error;
}

/* The rows of the files, the original of an extraction last. */
static enum iw_error rows_make(struct domain *domain, int64_t account_id, const struct order_request *wanted,
                               struct order_row *row)
{
    struct order_row_file *files = arena_array(domain->context->arena, wanted->file_count + 1, sizeof *files);
    row->is_started = true;
    for (unsigned i = 0; i < wanted->file_count; i++) {
        const struct order_request_file *file = &wanted->files[i];
        files[i] = (struct order_row_file){.position = i + 1,
                                           .name = file->name,
                                           .source_url = file->source_url,
                                           .target_url = file->target_url,
                                           .target_key = file->target_key,
                                           .target_expires_ms = file->target_expires_ms,
                                           .target_headers = file->target_headers,
                                           .text_count = file->text_count};
        row->is_started = row->is_started && file->source_url != NULL;
    }
    row->file_count = row->file_rows = wanted->file_count;
    if (wanted->original_name != NULL)
        files[row->file_rows++] =
            (struct order_row_file){.position = 1, .is_original = true, .name = wanted->original_name};
    row->files = files;
    if (wanted->type != ORDER_WATERMARK_EMBED)
        return IW_OK;
    /* One transaction: a thousand new texts would otherwise wait for the disk a thousand times. */
    struct registration work = {account_id, wanted, files};
    return db_transaction(&domain->store, registration_work, &work);
}

/* One try to write the order.  TWIN_EXISTS: its id or its idempotency key is taken. */
static enum iw_error insert(struct domain *domain, int64_t account_id, const struct order_request *wanted,
                            struct order_view *view)
{
    struct arena *arena = domain->context->arena;
    int64_t now_ms = clock_now_ms();
    struct order_row row = {.id = order_id_make(now_ms, crypto_random_u64()),
                            .account_id = account_id,
                            .type = wanted->type,
                            .name =
                                wanted->name != NULL ? wanted->name : name_make(arena, wanted->type, now_ms),
                            .key = wanted->key,
                            .key_length = wanted->key_length,
                            .body_digest = wanted->body_digest,
                            .strength = wanted->strength,
                            .is_zero_copy = wanted->is_zero_copy,
                            .created_ms = now_ms,
                            .expires_ms = now_ms + domain->config->orders_pending_s * 1000};
    enum iw_error error = rows_make(domain, account_id, wanted, &row);
    if (error != IW_OK)
        return error;
    int64_t *file_ids = arena_array(arena, row.file_rows, sizeof *file_ids);
    error = orders_insert(&domain->store, &row, file_ids);
    if (error == IW_OK) {
        domain->context->order_id = row.id;
        view_fill(arena, &row, file_ids, view);
    }
    return error;
}

/* Writing, with its twins: a key that is taken is replayed, an id that is taken is made anew. */
static enum iw_error insert_or_replay(struct domain *domain, int64_t account_id,
                                      const struct order_request *wanted, struct order_view *view)
{
    for (int try = 1;; try++) {
        enum iw_error error = insert(domain, account_id, wanted, view);
        if (error == IW_TWIN_EXISTS) {
            error = replay(domain, account_id, wanted, view);
            if (error != IW_NOT_FOUND || try == id_tries)
                return error == IW_NOT_FOUND ? context_fail(domain->context, IW_SERVER_INTERNAL_ERROR, NULL)
                                             : error;
            continue;
        }
        const char *reason = domain->context->reason;
        bool is_conflict =
            error == IW_SERVICE_UNAVAILABLE && reason != NULL && strcmp(reason, "database_conflict") == 0;
        if (!is_conflict || try == conflict_tries)
            return error;
        context_clear(domain->context);
    }
}

static void sleep_ms(long ms)
{
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

/*
 * Somebody else is creating the order: waits for it.  NOT_FOUND when it did not
 * come, because the other failed, died or takes too long: then we try ourselves,
 * and the database decides.
 */
static enum iw_error wait_for_twin(struct domain *domain, const struct admission *admission,
                                   const struct order_request *wanted, struct order_view *view)
{
    int64_t end_ms = clock_monotonic_ms() + admission_lock_ms;
    for (long pause_ms = wait_first_ms;;
         pause_ms = pause_ms * 2 < wait_longest_ms ? pause_ms * 2 : wait_longest_ms) {
        bool is_held = admission_lock_is_held(admission);
        enum iw_error error = replay(domain, admission->account_id, wanted, view);
        if (error != IW_NOT_FOUND || !is_held || clock_monotonic_ms() >= end_ms)
            return error;
        sleep_ms(pause_ms);
    }
}

static bool target_is_late(const struct order_request_file *file)
{
    return file->target_expires_ms != 0 && file->target_expires_ms <= clock_now_ms();
}

void order_targets_check(struct context *context, const struct order_request *wanted)
{
    for (unsigned i = 0; i < wanted->file_count; i++)
        if (target_is_late(&wanted->files[i]))
            context_detail(context,
                           arena_printf(context->arena, "outputTargets[%u].presignedUrlExpiresAt", i),
                           "must lie in the future; sign a new URL for the target");
}

/* What is asked for again is answered again, though the time of its targets is over by now. */
static enum iw_error late_replay(struct domain *domain, int64_t account_id,
                                 const struct order_request *wanted, struct order_view *view)
{
    bool is_late = false;
    for (unsigned i = 0; i < wanted->file_count; i++)
        is_late = is_late || target_is_late(&wanted->files[i]);
    enum iw_error error = is_late ? replay(domain, account_id, wanted, view) : IW_NOT_FOUND;
    if (!is_late || error != IW_NOT_FOUND)
        return error;
    order_targets_check(domain->context, wanted);
    return context_validated(domain->context);
}

enum iw_error order_create(struct domain *domain, struct admission *admission,
                           const struct order_request *wanted, struct order_view *view)
{
    int64_t account_id = admission->account_id;
    enum iw_error error =
        admission_lock(admission, order_type_name(wanted->type), wanted->key, wanted->key_length);
    if (error != IW_OK)
        return error;
    error = admission->is_lock_held_elsewhere ? wait_for_twin(domain, admission, wanted, view) : IW_NOT_FOUND;
    if (error == IW_NOT_FOUND)
        error = late_replay(domain, account_id, wanted, view);
    if (error == IW_NOT_FOUND)
        error = insert_or_replay(domain, account_id, wanted, view);
    if (error != IW_OK)
        admission_lock_release(admission);
    else
        domain->context->order_id = view->order.id;
    fault_point(FAULT_ORDER_CREATED);
    /* An order of URLs alone has begun: somebody should look. */
    if (error == IW_OK && !view->is_replay && view->order.status == ORDER_IN_PROGRESS)
        queue_ring(domain->redis, domain->config, domain->context, view->order.id);
    return error;
}

enum iw_error order_find(struct domain *domain, int64_t account_id, int64_t id, struct order_view *view)
{
    *view = (struct order_view){.is_replay = false};
    domain->context->order_id = id;
    enum iw_error error = orders_find(&domain->store, account_id, id, &view->order, &view->files);
    return error == IW_NOT_FOUND ? not_found(domain) : error;
}

bool order_file_is_missing(const struct order_file *file)
{
    return strcmp(file->status, "pending") == 0 && file->source_url == NULL;
}

static const char *missing_field(struct arena *arena, const struct order_view *view,
                                 const struct order_file *file)
{
    if (view->order.type == ORDER_WATERMARK_EXTRACT)
        return file->is_original ? "file.originalFile.fileName" : "file.fileName";
    return arena_printf(arena, "files[%u].fileName", file->position - 1);
}

/* A file's name; what tells it from another one of the same name follows in brackets. */
static const char *file_label(struct arena *arena, const struct order_view *view, unsigned index)
{
    const struct order_file *file = &view->files[index];
    for (unsigned i = 0; i < view->order.file_rows; i++)
        if (i != index && strcmp(view->files[i].name, file->name) == 0)
            return arena_printf(arena, "%s (position %u, fileId %lld)", file->name, file->position,
                                (long long)file->id);
    return file->name;
}

/* A detail for each file that waits for its upload. */
static enum iw_error uploads_check(struct domain *domain, const struct order_view *view)
{
    unsigned missing = 0;
    for (unsigned i = 0; i < view->order.file_rows; i++) {
        const struct order_file *file = &view->files[i];
        if (!order_file_is_missing(file))
            continue;
        missing++;
        context_detail(domain->context, missing_field(domain->context->arena, view, file),
                       "%s has not been uploaded; PUT it to its uploadUrl",
                       file_label(domain->context->arena, view, i));
    }
    if (missing == 0)
        return IW_OK;
    return context_fail(
        domain->context, IW_ORDER_FILE_NOT_UPLOADED,
        "%u of %u files have not been uploaded; upload those that details names, then confirm again.",
        missing, view->order.file_rows);
}

/* What a confirmation is about and what came of it. */
struct confirmation {
    struct domain *domain;
    int64_t account_id;
    int64_t id;
    enum order_status status;
    bool is_started; /* by this confirmation */
};

enum iw_error order_start(const struct store *store, const struct order *order, enum order_status *status)
{
    enum order_status next;
    if (!order_next(order->type, order->status, ORDER_EVENT_START, &next))
        return context_fail(store->context, IW_ORDER_NOT_PENDING, NULL);
    enum iw_error error = orders_start(store, order->id, order->status, next, clock_now_ms());
    if (error == IW_OK)
        error = jobs_insert_for_order(store, order->id);
    *status = next;
    return error;
}

/* What an order that takes no more files is, and where to look. */
static enum iw_error not_pending(struct context *context, enum order_status status)
{
    if (status == ORDER_FAILED)
        return context_fail(context, IW_ORDER_NOT_PENDING,
                            "The order is failed and not pending; its errors say why. Make a new order.");
    if (status == ORDER_EXPIRED)
        return context_fail(context, IW_ORDER_NOT_PENDING,
                            "The order is expired and not pending; make a new order.");
    return context_fail(context, IW_ORDER_NOT_PENDING,
                        "The order is %s and not pending; it takes no more files.",
                        order_status_name(status));
}

static enum iw_error confirm_work(const struct store *store, void *user)
{
    struct confirmation *confirmation = user;
    struct order_view view;
    confirmation->is_started = false;
    enum iw_error error =
        orders_lock(store, confirmation->account_id, confirmation->id, &view.order, &view.files);
    if (error == IW_NOT_FOUND)
        return not_found(confirmation->domain);
    if (error != IW_OK)
        return error;
    confirmation->status = view.order.status;
    if (view.order.status == ORDER_FAILED || view.order.status == ORDER_EXPIRED)
        return not_pending(store->context, view.order.status);
    if (view.order.status != ORDER_PENDING)
        return IW_OK;
    error = uploads_check(confirmation->domain, &view);
    if (error == IW_OK)
        error = order_start(store, &view.order, &confirmation->status);
    confirmation->is_started = error == IW_OK;
    return error;
}

enum iw_error order_confirm(struct domain *domain, int64_t account_id, int64_t id, enum order_status *status)
{
    struct confirmation confirmation = {.domain = domain, .account_id = account_id, .id = id};
    domain->context->order_id = id;
    enum iw_error error = db_transaction(&domain->store, confirm_work, &confirmation);
    *status = confirmation.status;
    fault_point(FAULT_ORDER_CONFIRMED);
    if (error == IW_OK && confirmation.is_started)
        queue_ring(domain->redis, domain->config, domain->context, id);
    return error;
}

enum iw_error order_refresh(struct domain *domain, int64_t account_id, int64_t id, struct order_view *view)
{
    enum iw_error error = order_find(domain, account_id, id, view);
    if (error == IW_OK && view->order.status != ORDER_PENDING)
        return not_pending(domain->context, view->order.status);
    return error;
}

enum iw_error order_texts(struct domain *domain, const struct order *order, struct order_text **texts,
                          size_t *count)
{
    *count = 0;
    if (order->type != ORDER_WATERMARK_EMBED)
        return IW_OK;
    return orders_texts(&domain->store, order->id, texts, count);
}

/* The contract's order of checks: kind, expiry, completion. */
static enum iw_error download_check(struct domain *domain, const struct order *order)
{
    bool has_results = order->type != ORDER_WATERMARK_EXTRACT && !order->is_zero_copy;
    bool is_over = order->expires_ms != 0 && order->expires_ms <= clock_now_ms();
    if (!has_results)
        return context_fail(
            domain->context, IW_ORDER_TYPE_CANT_DOWNLOAD,
            order->is_zero_copy
                ? "A zero-copy order has no file to download; its results are at its outputTargets."
                : "An extraction order has no file to download; its result is watermarkText of "
                  "GET /api/v2/orders/{orderId}.");
    if (order->status == ORDER_EXPIRED || (order->status == ORDER_COMPLETE && is_over))
        return context_fail(domain->context, IW_ORDER_EXPIRED, NULL);
    if (order->status != ORDER_COMPLETE)
        return context_fail(domain->context, IW_ORDER_NOT_COMPLETED, "The order is %s and not complete; %s.",
                            order_status_name(order->status),
                            order->status == ORDER_FAILED    ? "its errors say why"
                            : order->status == ORDER_PENDING ? "upload its files and confirm it first"
                                                             : "ask again when its status is complete");
    return IW_OK;
}

const char *order_archive_name(struct arena *arena, const char *order_name)
{
    const struct name_request wanted = {.name = arena_printf(arena, "%s.zip", order_name), .format = "zip"};
    return name_one(arena, &wanted);
}

static struct filekey upload_filekey(int64_t order_id, const struct order_file *file)
{
    return (struct filekey){.kind = file->is_original ? FILEKEY_ORIGINAL : FILEKEY_UPLOAD,
                            .order_id = order_id,
                            .number = file->position};
}

const char *order_upload_key(struct arena *arena, int64_t order_id, const struct order_file *file)
{
    struct filekey key = upload_filekey(order_id, file);
    return filekey_text(arena, &key);
}

const char *order_upload_url(const struct domain *domain, struct arena *arena, int64_t order_id,
                             const struct order_file *file, int64_t *expires_ms)
{
    struct filekey key = upload_filekey(order_id, file);
    int64_t expires_s = presign_expiry_s(domain->presign, PRESIGN_PUT);
    *expires_ms = expires_s * 1000;
    return presign_upload_url(domain->presign, arena, &key, expires_s,
                              presign_upload_max_bytes(domain->presign));
}

bool order_file_failure(const struct order *order, const struct order_file *file,
                        struct order_failure *failure)
{
    bool is_own = file->error_code != NULL || order->status != ORDER_FAILED;
    failure->code = is_own ? file->error_code : order->error_code;
    if (failure->code == NULL)
        return false;
    failure->sentence = file->error_sentence != NULL ? file->error_sentence
                                                     : iw_error_sentence(iw_error_by_code(failure->code));
    return true;
}

const char *order_errors(struct arena *arena, const struct order_view *view)
{
    struct order_failure failure;
    struct text text;
    text_init(&text, arena);
    for (unsigned i = 0; i < view->order.file_count; i++)
        if (order_file_failure(&view->order, &view->files[i], &failure))
            text_printf(&text, "%s%s: %s: %s", text.length > 0 ? "\n" : "", file_label(arena, view, i),
                        failure.code, failure.sentence);
    return text.length > 0 ? text.data : NULL;
}

static const char *download_url(const struct domain *domain, struct arena *arena, struct filekey key)
{
    return presign_download_url(domain->presign, arena, &key, presign_expiry_s(domain->presign, PRESIGN_GET));
}

const char *order_result_url(const struct domain *domain, struct arena *arena, int64_t order_id,
                             int64_t result_id)
{
    return download_url(domain, arena, (struct filekey){FILEKEY_RESULT, order_id, result_id});
}

const char *order_archive_url(const struct domain *domain, struct arena *arena, int64_t order_id)
{
    return download_url(domain, arena, (struct filekey){FILEKEY_ZIP, order_id, 0});
}

enum iw_error order_download_make(struct domain *domain, const struct order *order,
                                  struct order_download *download)
{
    struct arena *arena = domain->context->arena;
    *download = (struct order_download){.order = *order};
    enum iw_error error =
        orders_results(&domain->store, order->id, &download->results, &download->result_count);
    if (error != IW_OK)
        return error;
    if (download->result_count == 1) {
        download->url = order_result_url(domain, arena, order->id, download->results[0].id);
        download->name = download->results[0].name;
        download->format = download->results[0].format;
    } else if (download->result_count > 1 && order->zip_store_key != NULL) {
        download->url = order_archive_url(domain, arena, order->id);
        download->name = order_archive_name(arena, order->name);
        download->format = "zip";
    }
    return IW_OK;
}

enum iw_error order_download(struct domain *domain, int64_t account_id, int64_t id,
                             struct order_download *download)
{
    struct order_view view;
    enum iw_error error = order_find(domain, account_id, id, &view);
    if (error == IW_OK)
        error = download_check(domain, &view.order);
    if (error == IW_OK)
        error = order_download_make(domain, &view.order, download);
    if (error == IW_OK && download->url == NULL)
        return context_fail(domain->context, IW_PROCESSED_FILE_NOT_FOUND, NULL);
    return error;
}

const char *order_thumbnail_url(const struct domain *domain, struct arena *arena, const struct order *order)
{
    bool is_over = order->status == ORDER_EXPIRED;
    if (!order->has_thumbnail || is_over)
        return NULL;
    return download_url(domain, arena, (struct filekey){FILEKEY_THUMBNAIL, order->id, 0});
}

enum iw_error order_page(struct domain *domain, const struct order_filter *filter, int64_t limit,
                         int64_t offset, struct order **orders, size_t *count)
{
    return orders_page(&domain->store, filter, limit, offset, orders, count);
}

enum iw_error order_stream(struct domain *domain, const struct order_filter *filter,
                           bool (*take)(void *user, const struct order *order), void *user)
{
    return orders_stream(&domain->store, filter, take, user);
}
