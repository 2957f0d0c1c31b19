#include "domain/orders/order_create.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "db/checks.h"
#include "db/orders.h"
#include "db/texts.h"
#include "db/transaction.h"
#include "service/redis/admission.h"
#include "service/redis/queue.h"
#include "service/redis/reserve.h"

enum {
    /* At a thousand orders a second one new id in a million is taken already. */
    id_attempts_max = 4,
    conflict_attempts_max = 4,
    first_check_ms = 1000,
    wait_first_ms = 5,
    wait_max_ms = 80
};

static const char *const name_stems[ORDER_TYPE_COUNT] = {"anti_ai", "wtr_embed", "wtr_extract"};

/* The order that the key created before; NOT_FOUND when there is none. */
static enum iw_error replay(struct domain *domain, int64_t account_id, const struct order_request *requested,
                            struct order_view *view)
{
    const struct orders_key key = {account_id, requested->type, requested->key, requested->key_length};
    enum iw_error error = orders_find_by_key(&domain->db, &key, &view->order, &view->files);
    if (error != IW_OK)
        return error;
    view->is_replay = true;
    if (memcmp(view->order.body_digest, requested->body_digest, sizeof requested->body_digest) != 0)
        return context_fail(domain->context, IW_IDEMPOTENCY_KEY_REUSED, NULL);
    return IW_OK;
}

/* The view of an order that was just written, without a query. */
static void view_fill(struct arena *arena, const struct order_row *row, const int64_t *file_ids,
                      struct order_view *view)
{
    *view = (struct order_view){.order = {.id = row->id,
                                          .type = row->type,
                                          .channel = row->channel,
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
                                             .status = FILE_PENDING,
                                             .source_url = row->files[i].source_url};
}

/* Fills the rows of the files; the original of an extraction comes last. */
static struct order_row_file *rows_make(struct arena *arena, const struct order_request *requested,
                                        struct order_row *row)
{
    struct order_row_file *files = arena_array(arena, requested->file_count + 1, sizeof *files);
    row->is_started = true;
    for (unsigned i = 0; i < requested->file_count; i++) {
        const struct order_request_file *file = &requested->files[i];
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
    row->file_count = row->file_rows = requested->file_count;
    if (requested->original_name != NULL)
        files[row->file_rows++] =
            (struct order_row_file){.position = 1, .is_original = true, .name = requested->original_name};
    row->files = files;
    return files;
}

static struct quota_amounts amounts_of(const struct order_request *requested)
{
    unsigned original = requested->original_name != NULL ? 1 : 0;
    struct quota_amounts amounts = {1, requested->file_count + original, original};
    for (unsigned i = 0; i < requested->file_count; i++)
        amounts.uploads += requested->files[i].source_url == NULL;
    return amounts;
}

static int by_digest(const void *one, const void *other)
{
    return memcmp(((const struct text_entry *)one)->digest, ((const struct text_entry *)other)->digest,
                  sha256_bytes);
}

/* True for a file with the texts of the file before it: the order's common texts. */
static bool shares_texts(const struct order_request *requested, unsigned index)
{
    return index > 0 && requested->files[index].texts == requested->files[index - 1].texts;
}

static void entry_fill(const struct order_request_text *text, struct text_entry *entry)
{
    *entry = (struct text_entry){.text = text->text, .length = text->length};
    crypto_sha256(text->text, text->length, entry->digest);
}

/* The different texts of the request, by digest; the array is the arena's. */
static struct text_entry *entries_make(struct arena *arena, const struct order_request *requested,
                                       size_t *count)
{
    size_t room = 0, all = 0;
    for (unsigned i = 0; i < requested->file_count; i++)
        room += shares_texts(requested, i) ? 0 : requested->files[i].text_count;
    struct text_entry *entries = arena_array(arena, room + 1, sizeof *entries);
    for (unsigned i = 0; i < requested->file_count; i++)
        for (unsigned copy = 0; !shares_texts(requested, i) && copy < requested->files[i].text_count; copy++)
            entry_fill(&requested->files[i].texts[copy], &entries[all++]);
    qsort(entries, all, sizeof *entries, by_digest);
    *count = 0;
    for (size_t i = 0; i < all; i++)
        if (i == 0 || by_digest(&entries[i], &entries[*count - 1]) != 0)
            entries[(*count)++] = entries[i];
    return entries;
}

static const int64_t *ids_of(struct arena *arena, const struct order_request_file *file,
                             const struct text_entry *entries, size_t count)
{
    int64_t *ids = arena_array(arena, file->text_count + 1, sizeof *ids);
    for (unsigned copy = 0; copy < file->text_count; copy++) {
        struct text_entry wanted;
        entry_fill(&file->texts[copy], &wanted);
        const struct text_entry *found = bsearch(&wanted, entries, count, sizeof *entries, by_digest);
        ids[copy] = found != NULL ? found->id : 0;
    }
    return ids;
}

/*
 * Sets the text ids of the files.  Each different text is found or inserted once, in the order of the
 * digests: so concurrent orders do not wait for each other in a circle.
 */
static enum iw_error texts_resolve(const struct domain *domain, int64_t account_id,
                                   const struct order_request *requested, struct order_row_file *files,
                                   int64_t *new_count)
{
    size_t count;
    struct arena *arena = domain->context->arena;
    struct text_entry *entries = entries_make(arena, requested, &count);
    enum iw_error error = texts_register(&domain->db, account_id, entries, count, clock_now_ms(), new_count);
    for (unsigned i = 0; error == IW_OK && i < requested->file_count; i++)
        files[i].text_ids = shares_texts(requested, i) ? files[i - 1].text_ids
                                                       : ids_of(arena, &requested->files[i], entries, count);
    return error;
}

/* An order with texts needs a transaction around it, any other is one statement. */
static enum iw_error order_write(const struct domain *domain, const struct order_request *requested,
                                 struct order_row *row, struct order_row_file *files,
                                 struct quota_claim *claim, int64_t *file_ids)
{
    const struct db *db = &domain->db;
    enum iw_error error = IW_OK;
    if (requested->type == ORDER_WATERMARK_EMBED)
        error = texts_resolve(domain, row->account_id, requested, files, &claim->texts);
    if (error == IW_OK)
        error = quota_alone_check(domain->context, claim);
    /* No upload of this order reaches the service, and no request starts it: a worker looks for its uploads.
     */
    bool is_watched = domain_is_direct(domain) && row->type != ORDER_ANTI_AI && !row->is_started;
    if (error == IW_OK && is_watched)
        error = checks_add(db, row->id, row->account_id, row->created_ms + first_check_ms);
    row->claim = quotas_claim_is_empty(claim) ? NULL : claim;
    return error == IW_OK ? orders_insert(db, row, file_ids) : error;
}

/*
 * One attempt to write the order.  TWIN_EXISTS: its id or its idempotency key is taken.  USAGE_LIMIT_EXCEEDED
 * without an error in the context: the limit is free again, or permits no claim ahead.
 */
static enum iw_error insert(struct domain *domain, const struct order_request *requested,
                            struct quota_claim *claim, struct order_view *view)
{
    char day[11];
    struct arena *arena = domain->context->arena;
    int64_t now_ms = clock_now_ms(), account_id = claim->account_id;
    struct order_row row = {.id = order_id_make(now_ms, crypto_random_u64()),
                            .account_id = account_id,
                            .type = requested->type,
                            .channel = requested->account->channel,
                            .name = requested->name,
                            .key = requested->key,
                            .key_length = requested->key_length,
                            .body_digest = requested->body_digest,
                            .strength = requested->strength,
                            .is_zero_copy = requested->is_zero_copy,
                            .created_ms = now_ms,
                            .expires_ms = now_ms + domain->config->orders_pending_s * 1000};
    if (row.name == NULL) {
        clock_day(now_ms, day);
        row.name = arena_printf(arena, "%s_%s", name_stems[requested->type], day);
    }
    struct order_row_file *files = rows_make(arena, requested, &row);
    claim->now_ms = now_ms;
    int64_t *file_ids = arena_array(arena, row.file_rows, sizeof *file_ids);
    enum iw_error error = IW_OK;
    if (requested->type != ORDER_WATERMARK_EMBED)
        error = order_write(domain, requested, &row, files, claim, file_ids);
    else
        for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
            error = order_write(domain, requested, &row, files, claim, file_ids);
        }
    bool is_refused = error == IW_USAGE_LIMIT_EXCEEDED && domain->context->error == IW_OK;
    if (is_refused && claim->ahead == 0 && quota_refuse(domain, claim, &view->refusal) != IW_OK)
        return domain->context->error;
    if (is_refused)
        claim->ahead = 0;
    if (error == IW_OK) {
        domain->context->order_id = row.id;
        view_fill(arena, &row, file_ids, view);
    }
    return error;
}

/* A taken key is a replay; a taken id and a database conflict are retried. */
static enum iw_error insert_or_replay(struct domain *domain, const struct order_request *requested,
                                      struct quota_claim *claim, struct order_view *view)
{
    for (int attempt = 1;; attempt++) {
        enum iw_error error = insert(domain, requested, claim, view);
        if (error == IW_TWIN_EXISTS) {
            error = replay(domain, claim->account_id, requested, view);
            if (error != IW_NOT_FOUND || attempt == id_attempts_max)
                return error == IW_NOT_FOUND ? context_fail(domain->context, IW_SERVER_INTERNAL_ERROR, NULL)
                                             : error;
            continue;
        }
        if (error == IW_USAGE_LIMIT_EXCEEDED && domain->context->error == IW_OK) {
            if (attempt == conflict_attempts_max)
                return context_fail(domain->context, error, NULL);
            continue;
        }
        const char *reason = domain->context->reason;
        bool is_conflict =
            error == IW_SERVICE_UNAVAILABLE && reason != NULL && strcmp(reason, "database_conflict") == 0;
        if (!is_conflict || attempt == conflict_attempts_max)
            return error;
        context_clear(domain->context);
    }
}

/*
 * Waits for the order of a concurrent creation.  NOT_FOUND when it does not
 * appear, because that creation failed, died or takes too long.  Then this one
 * continues, and the unique key in the database decides.
 */
static enum iw_error concurrent_wait(struct domain *domain, const struct admission *admission,
                                     const struct order_request *requested, struct order_view *view)
{
    int64_t end_ms = clock_monotonic_ms() + admission_lock_ms;
    for (long pause_ms = wait_first_ms;; pause_ms = pause_ms * 2 < wait_max_ms ? pause_ms * 2 : wait_max_ms) {
        bool is_held = admission_lock_is_held(admission);
        enum iw_error error = replay(domain, admission->account_id, requested, view);
        if (error != IW_NOT_FOUND || !is_held || clock_monotonic_ms() >= end_ms)
            return error;
        nanosleep(&(struct timespec){.tv_nsec = pause_ms * 1000000}, NULL);
    }
}

static bool target_is_expired(const struct order_request_file *file)
{
    return file->target_expires_ms != 0 && file->target_expires_ms <= clock_now_ms();
}

void order_targets_check(struct context *context, const struct order_request *requested)
{
    for (unsigned i = 0; i < requested->file_count; i++)
        if (target_is_expired(&requested->files[i]))
            context_detail(context,
                           arena_printf(context->arena, "outputTargets[%u].presignedUrlExpiresAt", i),
                           "must lie in the future; sign a new URL for the target");
}

/* A replay is answered although its targets have expired since.  NOT_FOUND when no target has expired. */
static enum iw_error expired_replay(struct domain *domain, int64_t account_id,
                                    const struct order_request *requested, struct order_view *view)
{
    bool is_expired = false;
    for (unsigned i = 0; i < requested->file_count; i++)
        is_expired = is_expired || target_is_expired(&requested->files[i]);
    enum iw_error error = is_expired ? replay(domain, account_id, requested, view) : IW_NOT_FOUND;
    if (!is_expired || error != IW_NOT_FOUND)
        return error;
    order_targets_check(domain->context, requested);
    return context_validated(domain->context);
}

static enum iw_error rooms_check(const struct domain *domain)
{
    enum iw_error error = domain_database_check(domain);
    return error == IW_OK ? domain_room_check(domain) : error;
}

/* A replay is answered although a disk is full.  NOT_FOUND when all have room. */
static enum iw_error full_replay(struct domain *domain, int64_t account_id,
                                 const struct order_request *requested, struct order_view *view)
{
    if (rooms_check(domain) == IW_OK)
        return IW_NOT_FOUND;
    context_clear(domain->context);
    enum iw_error error = replay(domain, account_id, requested, view);
    /* Checked again for the error.  When files were deleted meanwhile the order is created. */
    if (error == IW_NOT_FOUND && rooms_check(domain) != IW_OK)
        return domain->context->error;
    return error;
}

/* After a creation: store the advance claim as the reserve. After a failed one: release its claim. */
static void reserve_return(const struct domain *domain, const struct quota_claim *claim, bool is_created)
{
    const struct quota_amounts *own = &claim->amounts;
    struct quota_reserve reserve = {{0}, quota_term(claim->now_ms)};
    if (is_created)
        reserve.amounts = (struct quota_amounts){own->orders * claim->ahead, own->files * claim->ahead,
                                                 own->uploads * claim->ahead};
    else if (claim->is_covered)
        reserve.amounts = *own;
    else
        reserve = claim->reserve;
    if (reserve.amounts.orders > 0 || reserve.amounts.files > 0)
        reserve_put(domain->redis, domain->context, domain->config->redis_prefix, claim->account_id,
                    &reserve);
}

enum iw_error order_create(struct domain *domain, struct admission *admission,
                           const struct order_request *requested, struct order_view *view)
{
    const struct account *account = requested->account;
    const struct quota_numbers limits = quota_limits(domain->config, account->plan, &account->quotas);
    struct quota_claim claim = {.account_id = account->id,
                                .amounts = amounts_of(requested),
                                .upload_max_bytes = domain->config->store_upload_max_bytes,
                                .now_ms = clock_now_ms(),
                                .limits = &limits};
    const struct admission_creation creation = {order_type_name(requested->type), requested->key,
                                                requested->key_length, claim.amounts, claim.now_ms};
    enum iw_error error = admission_lock(admission, &creation);
    if (error != IW_OK)
        return error;
    claim.is_covered = admission->is_covered;
    claim.reserve = admission->reserve;
    claim.ahead = claim.is_covered ? 0 : quota_ahead(&claim, admission->used);
    error = IW_NOT_FOUND;
    if (admission->is_lock_held_elsewhere)
        error = concurrent_wait(domain, admission, requested, view);
    if (error == IW_NOT_FOUND)
        error = expired_replay(domain, account->id, requested, view);
    if (error == IW_NOT_FOUND)
        error = full_replay(domain, account->id, requested, view);
    if (error == IW_NOT_FOUND)
        error = insert_or_replay(domain, requested, &claim, view);
    bool is_created = error == IW_OK && !view->is_replay;
    reserve_return(domain, &claim, is_created);
    if (error != IW_OK)
        admission_lock_release(admission);
    else
        domain->context->order_id = view->order.id;
    /* An order with only source URLs starts at once. */
    if (is_created && view->order.status == ORDER_IN_PROGRESS)
        queue_notify(domain->redis, domain->config, domain->context, view->order.id);
    return error;
}
