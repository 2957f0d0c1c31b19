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
    /* If an account makes a thousand orders a second, one new id in a million is taken already. */
    attempts_max = 4,
    first_check_ms = 1000,
    wait_first_ms = 5,
    wait_max_ms = 80
};

/* The end of a step.  order_create goes on while it is OPEN. */
enum creation_end {
    OPEN,
    CREATED,
    REPLAYED, /* the key has created the order before */
    REFUSED,  /* the context has the error: a refusal or a failure */
    AGAIN     /* the attempt had no effect and may be repeated; the context has the error of the last one */
};

struct creation {
    struct domain *domain;
    struct admission *admission;
    const struct order_request *requested;
    struct order_view *view;
    struct quota_numbers limits;
    struct quota_claim claim;
};

/* Records the error of a refusal. */
static enum creation_end refuse(const struct creation *creation, enum iw_error error)
{
    context_fail(creation->domain->context, error, NULL);
    return REFUSED;
}

/* ---- admission: rate limit, lock of the key, reserve of the quotas ---- */

static struct quota_amounts amounts_of(const struct order_request *requested)
{
    unsigned original = requested->original_name != NULL ? 1 : 0;
    struct quota_amounts amounts = {1, requested->file_count + original, original};
    for (unsigned i = 0; i < requested->file_count; i++)
        amounts.uploads += requested->files[i].source_url == NULL;
    return amounts;
}

static enum creation_end admit(struct creation *creation)
{
    const struct order_request *requested = creation->requested;
    const struct account *account = requested->account;
    const struct config *config = creation->domain->config;
    struct admission *admission = creation->admission;
    struct quota_claim *claim = &creation->claim;
    creation->limits = quota_limits(config, account->plan, &account->quotas);
    *claim = (struct quota_claim){.account_id = account->id,
                                  .amounts = amounts_of(requested),
                                  .upload_max_bytes = config->store_upload_max_bytes,
                                  .now_ms = clock_now_ms(),
                                  .limits = &creation->limits};
    const struct admission_creation asked = {order_type_name(requested->type), requested->key,
                                             requested->key_length, claim->amounts, claim->now_ms};
    if (admission_lock(admission, &asked) != IW_OK)
        return REFUSED;
    claim->is_covered = admission->is_covered;
    claim->reserve = admission->reserve;
    claim->ahead = claim->is_covered ? 0 : quota_ahead(claim, admission->used);
    return OPEN;
}

/* ---- replay: the order that the key created before ---- */

static enum creation_end replay(struct creation *creation)
{
    bool is_found = false;
    const struct order_request *requested = creation->requested;
    struct order_view *view = creation->view;
    const struct orders_key key = {requested->account->id, requested->type, requested->key,
                                   requested->key_length};
    if (orders_find_by_key(&creation->domain->db, &key, &view->order, &view->files, &is_found) != IW_OK)
        return REFUSED;
    if (!is_found)
        return OPEN;
    view->is_replay = true;
    if (memcmp(view->order.body_digest, requested->body_digest, sizeof requested->body_digest) != 0)
        return refuse(creation, IW_IDEMPOTENCY_KEY_REUSED);
    return REPLAYED;
}

/*
 * Waits for the order of a concurrent creation.  OPEN if the order does not appear, because that creation
 * failed, died or takes too long.  Then this creation continues, and the unique key in the database decides.
 */
static enum creation_end concurrent_wait(struct creation *creation)
{
    int64_t end_ms = clock_monotonic_ms() + admission_lock_ms;
    if (!creation->admission->is_lock_held_elsewhere)
        return OPEN;
    for (long pause_ms = wait_first_ms;; pause_ms = pause_ms * 2 < wait_max_ms ? pause_ms * 2 : wait_max_ms) {
        bool is_held = admission_lock_is_held(creation->admission);
        enum creation_end end = replay(creation);
        if (end != OPEN || !is_held || clock_monotonic_ms() >= end_ms)
            return end;
        nanosleep(&(struct timespec){.tv_nsec = pause_ms * 1000000}, NULL);
    }
}

/* ---- what refuses a new order, but not a replay ---- */

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

static enum creation_end targets_check(struct creation *creation)
{
    bool is_expired = false;
    struct context *context = creation->domain->context;
    for (unsigned i = 0; i < creation->requested->file_count; i++)
        is_expired = is_expired || target_is_expired(&creation->requested->files[i]);
    enum creation_end end = is_expired ? replay(creation) : OPEN;
    if (!is_expired || end != OPEN)
        return end;
    order_targets_check(context, creation->requested);
    return context_validated(context) == IW_OK ? OPEN : REFUSED;
}

static bool have_room(const struct domain *domain)
{
    return domain_database_check(domain) == IW_OK && domain_room_check(domain) == IW_OK;
}

static enum creation_end room_check(struct creation *creation)
{
    if (have_room(creation->domain))
        return OPEN;
    context_clear(creation->domain->context);
    enum creation_end end = replay(creation);
    /* The check is repeated for its error.  If files were deleted meanwhile, the order is created. */
    return end != OPEN || have_room(creation->domain) ? end : REFUSED;
}

/* ---- the rows of the order ---- */

/* Fills the rows of the files; the original of an extraction comes last. */
static struct order_row_file *files_make(struct arena *arena, const struct order_request *requested,
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

/* "anti_ai_2026-03-12" */
static const char *name_make(struct arena *arena, enum order_type type, int64_t now_ms)
{
    static const char *const stems[ORDER_TYPE_COUNT] = {"anti_ai", "wtr_embed", "wtr_extract"};
    char day[11];
    clock_day(now_ms, day);
    return arena_printf(arena, "%s_%s", stems[type], day);
}

static struct order_row row_make(const struct creation *creation, int64_t now_ms)
{
    const struct order_request *requested = creation->requested;
    struct arena *arena = creation->domain->context->arena;
    return (struct order_row){.id = order_id_make(now_ms, crypto_random_u64()),
                              .account_id = requested->account->id,
                              .type = requested->type,
                              .channel = requested->account->channel,
                              .name = requested->name != NULL ? requested->name
                                                              : name_make(arena, requested->type, now_ms),
                              .key = requested->key,
                              .key_length = requested->key_length,
                              .body_digest = requested->body_digest,
                              .strength = requested->strength,
                              .is_zero_copy = requested->is_zero_copy,
                              .created_ms = now_ms,
                              .expires_ms = now_ms + creation->domain->config->orders_pending_s * 1000};
}

/* ---- the watermark texts ---- */

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

/* ---- an attempt to write the order ---- */

/*
 * TWIN_EXISTS if the id or the idempotency key is taken, USAGE_LIMIT_EXCEEDED if a quota refuses the claim.
 * An order with texts needs a transaction around this function, any other order is one statement.
 */
static enum iw_error rows_write(struct creation *creation, struct order_row *row,
                                struct order_row_file *files, int64_t *file_ids)
{
    struct domain *domain = creation->domain;
    struct quota_claim *claim = &creation->claim;
    enum iw_error error = IW_OK;
    if (row->type == ORDER_WATERMARK_EMBED)
        error = texts_resolve(domain, row->account_id, creation->requested, files, &claim->texts);
    if (error == IW_OK)
        error = quota_alone_check(domain->context, claim);
    /* No upload of this order reaches the service, and no request starts it: a worker looks for its uploads.
     */
    bool is_watched = domain_is_direct(domain) && row->type != ORDER_ANTI_AI && !row->is_started;
    if (error == IW_OK && is_watched)
        error = checks_add(&domain->db, row->id, row->account_id, row->created_ms + first_check_ms);
    row->claim = quotas_claim_is_empty(claim) ? NULL : claim;
    return error == IW_OK ? orders_insert(&domain->db, row, file_ids) : error;
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

/* A taken key is a replay, a taken id is not. */
static enum creation_end twin_judge(struct creation *creation)
{
    context_clear(creation->domain->context);
    enum creation_end end = replay(creation);
    if (end != OPEN)
        return end;
    context_fail(creation->domain->context, IW_SERVER_INTERNAL_ERROR, NULL);
    return AGAIN;
}

/* A quota refused the claim: perhaps only with the claim ahead, or it has room again. */
static enum creation_end quota_judge(struct creation *creation)
{
    struct context *context = creation->domain->context;
    bool was_ahead = creation->claim.ahead > 0;
    creation->claim.ahead = 0;
    if (was_ahead)
        return AGAIN;
    context_clear(context);
    if (quota_refuse(creation->domain, &creation->claim, &creation->view->refusal) != IW_OK)
        return REFUSED;
    context_fail(context, IW_USAGE_LIMIT_EXCEEDED, NULL);
    return AGAIN;
}

static enum creation_end attempt(struct creation *creation)
{
    enum iw_error error;
    const struct db *db = &creation->domain->db;
    struct arena *arena = creation->domain->context->arena;
    struct order_row row = row_make(creation, clock_now_ms());
    struct order_row_file *files = files_make(arena, creation->requested, &row);
    int64_t *file_ids = arena_array(arena, row.file_rows, sizeof *file_ids);
    creation->claim.now_ms = row.created_ms;
    if (row.type != ORDER_WATERMARK_EMBED)
        error = rows_write(creation, &row, files, file_ids);
    else
        for (struct transaction t = transaction_begin(db); transaction_goes_on(&t, &error);) {
            error = rows_write(creation, &row, files, file_ids);
        }
    if (error == IW_TWIN_EXISTS)
        return twin_judge(creation);
    if (error == IW_USAGE_LIMIT_EXCEEDED)
        return quota_judge(creation);
    if (error != IW_OK)
        return error == IW_SERVICE_UNAVAILABLE && db_is_conflict(db->connection) ? AGAIN : REFUSED;
    view_fill(arena, &row, file_ids, creation->view);
    return CREATED;
}

static enum creation_end order_write(struct creation *creation)
{
    enum creation_end end = AGAIN;
    for (int count = 0; end == AGAIN && count < attempts_max; count++) {
        context_clear(creation->domain->context);
        end = attempt(creation);
    }
    return end == AGAIN ? REFUSED : end;
}

/* ---- the end ---- */

/* After a creation, stores the advance claim as the reserve; after a failed one, releases its claim. */
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
    static enum creation_end (*const steps[])(struct creation *) = {admit, concurrent_wait, targets_check,
                                                                    room_check, order_write};
    struct creation creation = {
        .domain = domain, .admission = admission, .requested = requested, .view = view};
    enum creation_end end = OPEN;
    for (size_t i = 0; end == OPEN && i < sizeof steps / sizeof steps[0]; i++)
        end = steps[i](&creation);
    reserve_return(domain, &creation.claim, end == CREATED);
    if (end == REFUSED) {
        admission_lock_release(admission);
        return domain->context->error;
    }
    domain->context->order_id = view->order.id;
    /* An order with only source URLs starts at once. */
    if (end == CREATED && view->order.status == ORDER_IN_PROGRESS)
        queue_notify(domain->redis, domain->config, domain->context, view->order.id);
    return IW_OK;
}
