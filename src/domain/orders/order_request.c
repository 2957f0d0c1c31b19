#include "domain/orders/order_request.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "db/texts.h"

struct quota_amounts order_request_amounts(const struct order_request *requested)
{
    unsigned original = requested->original_name != NULL ? 1 : 0;
    struct quota_amounts amounts = {1, requested->file_count + original, original};
    for (unsigned i = 0; i < requested->file_count; i++)
        amounts.uploads += requested->files[i].source_url == NULL;
    return amounts;
}

static bool target_is_expired(const struct order_request_file *file)
{
    return file->target_expires_ms != 0 && file->target_expires_ms <= clock_now_ms();
}

void order_request_targets_check(struct context *context, const struct order_request *requested)
{
    for (unsigned i = 0; i < requested->file_count; i++)
        if (target_is_expired(&requested->files[i]))
            context_detail(context,
                           arena_printf(context->arena, "outputTargets[%u].presignedUrlExpiresAt", i),
                           "must lie in the future; sign a new URL for the target");
}

bool order_request_is_expired(const struct order_request *requested)
{
    bool is_expired = false;
    for (unsigned i = 0; i < requested->file_count; i++)
        is_expired = is_expired || target_is_expired(&requested->files[i]);
    return is_expired;
}

/* ---- the rows ---- */

/* Fills the rows of the files; the original of an extraction comes last. */
static void files_make(struct arena *arena, const struct order_request *requested, struct order_row *row)
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
}

/* "anti_ai_2026-03-12" */
static const char *name_make(struct arena *arena, enum order_type type, int64_t now_ms)
{
    static const char *const stems[ORDER_TYPE_COUNT] = {"anti_ai", "wtr_embed", "wtr_extract"};
    char day[11];
    clock_day(now_ms, day);
    return arena_printf(arena, "%s_%s", stems[type], day);
}

void order_request_row(const struct domain *domain, const struct order_request *requested,
                       struct order_row *row)
{
    int64_t now_ms = clock_now_ms();
    struct arena *arena = domain->context->arena;
    *row = (struct order_row){.id = order_id_make(now_ms, crypto_random_u64()),
                              .account_id = requested->account->id,
                              .type = requested->type,
                              .channel = requested->account->channel,
                              .name = requested->name != NULL ? requested->name
                                                              : name_make(arena, requested->type, now_ms),
                              .key = requested->key,
                              .key_length = requested->key_length,
                              .body_digest = requested->body_digest,
                              .metadata = requested->metadata,
                              .strength = requested->strength,
                              .result_suffix = requested->result_suffix,
                              .is_zero_copy = requested->is_zero_copy,
                              .created_ms = now_ms,
                              .expires_ms = now_ms + domain->config->orders_pending_s * 1000};
    files_make(arena, requested, row);
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

/* The different texts of the request, by digest; the array is in the arena. */
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

enum iw_error order_request_texts(const struct domain *domain, const struct order_request *requested,
                                  struct order_row *row, int64_t *new_count)
{
    size_t count;
    struct arena *arena = domain->context->arena;
    struct text_entry *entries = entries_make(arena, requested, &count);
    enum iw_error error =
        texts_register(&domain->db, row->account_id, entries, count, row->created_ms, new_count);
    for (unsigned i = 0; error == IW_OK && i < requested->file_count; i++)
        row->files[i].text_ids = shares_texts(requested, i)
                                     ? row->files[i - 1].text_ids
                                     : ids_of(arena, &requested->files[i], entries, count);
    return error;
}

/* ---- the view ---- */

void order_request_view(struct arena *arena, const struct order_row *row, const int64_t *file_ids,
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
