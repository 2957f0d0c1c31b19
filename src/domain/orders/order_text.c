#include "domain/orders/order_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "db/texts.h"

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

enum iw_error order_text_resolve(const struct domain *domain, int64_t account_id,
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
