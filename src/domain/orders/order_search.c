#include "domain/orders/order_search.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/message.h"
#include "base/text.h"
#include "db/segments.h"
#include "db/transaction.h"
#include "search/search.h"

/*
 * A search: a byte an order, and a bit an order and word, of ten million orders.  Building a segment: the
 * words of 12,000 names of 255 characters, each another word.
 */
static const size_t arena_max = (size_t)512 << 20;

enum {
    /*
     * An open segment doubles, within these bounds: each order is read about three times, and a list reads
     * few names outside of segments.
     */
    grown_min = 128,
    grown_max = 1024,
    /*
     * From the id of an order to the commit; if the commit comes later, the next build of the segment adds
     * the order.
     */
    commit_ms = 10000,
    again_s = 10 * 60,
    renewed_s = 7 * 24 * 60 * 60 /* corrects what changed outside of the programs */
};

/* ---- the segments of an account ---- */

struct piece {
    struct segment segment;
    struct search_part part; /* valid if the query has conditions */
    int64_t match_count;
};

/* A filter, and the matching orders, from the index and from the younger orders. */
struct lookup {
    struct domain *domain;
    const struct order_filter *filter;
    struct arena *arena, *scratch;
    struct search_query query;
    struct piece *pieces; /* oldest first */
    size_t count;
    bool is_damaged;
    int64_t total;         /* matches */
    int64_t tail_count;    /* of them after the last segment */
    struct query_ids tail; /* theirs, newest first; unless lists read them by an index */
    int64_t named_id;      /* the order whose names are read */
};

static void segment_take(void *user, const struct segment *segment, const uint8_t *facts, const uint8_t *ids,
                         size_t count)
{
    struct lookup *lookup = user;
    lookup->pieces = arena_more(lookup->arena, lookup->pieces, lookup->count, sizeof *lookup->pieces);
    struct piece *piece = &lookup->pieces[lookup->count++];
    *piece = (struct piece){.segment = *segment, .match_count = segment->order_count};
    if (facts != NULL)
        search_part_init(&piece->part, lookup->arena, facts, ids, count);
}

static int piece_compare(const void *key, const void *element)
{
    int64_t id = *(const int64_t *)key;
    const struct piece *piece = element;
    return id < piece->segment.first_id ? -1 : id > piece->segment.first_id;
}

static void row_take(void *user, int64_t first_id, const struct search_row *row)
{
    struct lookup *lookup = user;
    struct piece *piece =
        bsearch(&first_id, lookup->pieces, lookup->count, sizeof *lookup->pieces, piece_compare);
    if (piece != NULL && !search_part_row(&piece->part, &lookup->query, row))
        lookup->is_damaged = true;
}

static enum iw_error pieces_read(struct lookup *lookup, const struct segments_range *range)
{
    struct context *context = lookup->domain->context;
    const struct segments_reader reader = {segment_take, row_take, lookup};
    enum iw_error error = segments_read(&lookup->domain->db, range, &lookup->query, &reader);
    if (error != IW_OK || !lookup->is_damaged)
        return error;
    context_cause(context, "a row of order_words is damaged");
    return context_fail(context, IW_SERVER_INTERNAL_ERROR, NULL);
}

/* ---- the orders after the last segment ---- */

static bool tail_take(void *user, const struct order_names *names)
{
    struct lookup *lookup = user;
    struct query_ids *tail = &lookup->tail;
    const char *const others[] = {names->file, names->text};
    int64_t order_id = names->order_id;
    bool is_first = order_id != lookup->named_id, is_match = false;
    lookup->named_id = order_id;
    if (tail->count > 0 && tail->items[tail->count - 1] == order_id)
        return true;
    if (is_first)
        is_match = search_query_look(&lookup->query, lookup->scratch, names->order, true) ||
                   order_id == lookup->query.id;
    for (size_t i = 0; i < sizeof others / sizeof others[0] && !is_match; i++)
        if (others[i] != NULL)
            is_match = search_query_look(&lookup->query, lookup->scratch, others[i], false);
    if (is_match) {
        tail->items = arena_more(lookup->arena, tail->items, tail->count, sizeof *tail->items);
        tail->items[tail->count++] = order_id;
    }
    return true;
}

/* True if an index of the table orders yields exactly the orders of the filter, by id. */
static bool is_by_index(const struct lookup *lookup)
{
    const struct order_filter *filter = lookup->filter;
    return filter->keyword == NULL &&
           (lookup->count == 0 ||
            (filter->metadata_count == 0 && filter->channel < 0 && (filter->status < 0 || filter->type < 0)));
}

static enum iw_error tail_read(struct lookup *lookup)
{
    const struct db *db = &lookup->domain->db;
    struct order_filter younger = *lookup->filter;
    if (lookup->count > 0)
        younger.id_above = lookup->pieces[lookup->count - 1].segment.last_id;
    if (is_by_index(lookup))
        return orders_count(db, &younger, &lookup->tail_count);
    enum iw_error error = orders_names(db, &younger, tail_take, lookup);
    lookup->tail_count = lookup->tail.count;
    return error;
}

/* ---- a lookup ---- */

/* Call lookup_end in any case. */
static enum iw_error lookup_begin(struct lookup *lookup, struct domain *domain,
                                  const struct order_filter *filter)
{
    struct segments_range all = {filter->account_id, 0, INT64_MAX, -1};
    *lookup = (struct lookup){
        .domain = domain, .filter = filter, .arena = arena_new(arena_max), .scratch = arena_new(0)};
    struct search_query *query = &lookup->query;
    search_query_init(query, lookup->arena, filter->keyword);
    segments_filter(filter, query);
    if (filter->keyword != NULL && text_integer(filter->keyword, 1, INT64_MAX, &query->id))
        all.ids_of = query->id;
    if (query->words.count > search_words_max) {
        context_detail(domain->context, "keyword", message_word_count, query->words.count - query->tag_count,
                       search_words_max - query->tag_count);
        return context_validated(domain->context);
    }
    enum iw_error error = pieces_read(lookup, &all);
    if (error == IW_OK)
        error = tail_read(lookup);
    lookup->total = lookup->tail_count;
    for (size_t i = 0; error == IW_OK && i < lookup->count; i++) {
        struct piece *piece = &lookup->pieces[i];
        if (piece->part.facts != NULL)
            piece->match_count = (int64_t)search_part_match(&piece->part, query, NULL);
        lookup->total += piece->match_count;
    }
    return error;
}

static void lookup_end(struct lookup *lookup)
{
    arena_free(lookup->arena);
    arena_free(lookup->scratch);
}

/* ---- ids of matches ---- */

struct found {
    int64_t skip; /* matches to leave out first */
    size_t most;  /* room of ids.items */
    struct query_ids ids;
};

static void id_add(struct found *found, int64_t id)
{
    if (found->skip > 0)
        found->skip--;
    else if (found->ids.count < found->most)
        found->ids.items[found->ids.count++] = id;
}

/*
 * Reads a segment again, with the ids, in one snapshot, because the segment may have been rebuilt since.
 * Orders that were added since are in the tail.
 */
static enum iw_error piece_collect(const struct lookup *lookup, const struct segment *segment,
                                   struct found *found)
{
    struct lookup again = {.domain = lookup->domain, .query = lookup->query, .arena = arena_new(0)};
    const struct segments_range range = {lookup->filter->account_id, segment->first_id, segment->first_id,
                                         segment->last_id};
    enum iw_error error = pieces_read(&again, &range);
    if (error == IW_OK && again.count > 0 && again.pieces[0].part.ids != NULL) {
        const struct search_part *part = &again.pieces[0].part;
        int64_t *ids = arena_array(again.arena, part->count + 1, sizeof *ids);
        size_t count = search_part_match(part, &again.query, ids);
        for (size_t i = 0; i < count; i++)
            if (ids[i] <= segment->last_id)
                id_add(found, ids[i]);
    }
    arena_free(again.arena);
    return error;
}

/* Adds the ids of matches, newest first, until found is full. */
static enum iw_error ids_collect(const struct lookup *lookup, struct arena *arena, struct found *found)
{
    enum iw_error error = IW_OK;
    found->ids = (struct query_ids){.items = arena_array(arena, found->most + 1, sizeof *found->ids.items)};
    for (unsigned i = 0; i < lookup->tail.count; i++)
        id_add(found, lookup->tail.items[i]);
    for (size_t i = lookup->count; error == IW_OK && i-- > 0 && found->ids.count < found->most;) {
        const struct piece *piece = &lookup->pieces[i];
        if (found->skip >= piece->match_count)
            found->skip -= piece->match_count;
        else
            error = piece_collect(lookup, &piece->segment, found);
    }
    return error;
}

/* ---- lists ---- */

/* Skips whole segments, then orders of the index in one segment. */
static enum iw_error page_by_index(const struct lookup *lookup, int64_t limit, int64_t offset,
                                   struct order_page *page)
{
    struct order_filter part = *lookup->filter;
    if (offset >= lookup->tail_count) {
        size_t at = lookup->count;
        for (offset -= lookup->tail_count; offset >= lookup->pieces[at - 1].match_count; at--)
            offset -= lookup->pieces[at - 1].match_count;
        part.id_up_to = lookup->pieces[at - 1].segment.last_id;
    }
    return orders_page(&lookup->domain->db, &part, limit, offset, &page->orders, &page->count);
}

enum iw_error order_search_page(struct domain *domain, const struct order_filter *filter, int64_t limit,
                                int64_t offset, struct order_page *page)
{
    struct lookup lookup;
    struct found found = {.skip = offset, .most = (size_t)limit};
    enum iw_error error = lookup_begin(&lookup, domain, filter);
    bool is_there = error == IW_OK && offset < lookup.total;
    *page = (struct order_page){.total = lookup.total};
    if (is_there && is_by_index(&lookup))
        error = page_by_index(&lookup, limit, offset, page);
    else if (is_there)
        error = ids_collect(&lookup, domain->context->arena, &found);
    if (error == IW_OK && found.ids.count > 0)
        error = orders_of_ids(&domain->db, filter->account_id, &found.ids, &page->orders, &page->count);
    lookup_end(&lookup);
    return error;
}

enum iw_error order_search_stream(struct domain *domain, const struct order_filter *filter,
                                  bool (*take)(void *user, const struct order *order), void *user)
{
    struct lookup lookup;
    struct found found = {.skip = 0};
    if (filter->keyword == NULL && filter->metadata_count == 0)
        return orders_stream(&domain->db, filter, take, user);
    enum iw_error error = lookup_begin(&lookup, domain, filter);
    bool is_plain = is_by_index(&lookup);
    found.most = (size_t)lookup.total;
    if (error == IW_OK && is_plain)
        error = orders_stream(&domain->db, filter, take, user);
    else if (error == IW_OK)
        error = ids_collect(&lookup, lookup.arena, &found);
    if (error == IW_OK && !is_plain)
        error = orders_stream_ids(&domain->db, filter->account_id, &found.ids, take, user);
    lookup_end(&lookup);
    return error;
}

/* ---- building the index ---- */

/*
 * Locks the newest segment if it is open, or begins a segment.  *has_new is false if there are too few new
 * orders.
 */
static enum iw_error segment_grown(const struct db *db, int64_t account_id, int64_t horizon_id,
                                   struct segment *segment, bool *has_new)
{
    bool is_found = false;
    int64_t least = grown_min;
    enum iw_error error = segments_lock(db, account_id, INT64_MAX, segment, &is_found);
    if (error != IW_OK)
        return error;
    if (!segment->is_open)
        segment->first_id = is_found ? segment->last_id + 1 : 0;
    else if (segment->order_count > least)
        least = segment->order_count < grown_max ? segment->order_count : grown_max;
    return segments_has_new(db, account_id, segment->last_id, horizon_id, least, has_new);
}

/* Orders of a young segment may still be committed. */
static unsigned due_s(const struct segment *segment)
{
    return segment->last_id > order_id_make(clock_now_ms() - again_s * 1000, 0) ? again_s : renewed_s;
}

/* Builds the segment that begins at first_id and is due, or with first_id -1 the newest of the account. */
static enum iw_error segment_build(struct domain *domain, int64_t account_id, int64_t first_id,
                                   int64_t horizon_id, bool *is_changed)
{
    enum iw_error error;
    const struct db *db = &domain->db;
    bool is_due = first_id >= 0;
    for (struct transaction t = transaction_begin(db); transaction_goes_on(&t, &error);) {
        struct segment segment = {.first_id = 0};
        struct search_build build = {.arena = arena_new(arena_max)};
        bool goes_on = false, is_whole = false;
        error = is_due ? segments_lock(db, account_id, first_id, &segment, &goes_on)
                       : segment_grown(db, account_id, horizon_id, &segment, &goes_on);
        if (is_due)
            goes_on = goes_on && segment.first_id == first_id;
        if (error == IW_OK && goes_on)
            error = segments_gather(db, account_id, &segment, is_due ? segment.last_id : horizon_id, &build,
                                    &is_whole);
        if (error == IW_OK && is_whole)
            error = segments_write(db, account_id, &segment, &build, is_due ? due_s(&segment) : again_s);
        *is_changed = error == IW_OK && is_whole;
        arena_free(build.arena);
    }
    if (error != IW_TWIN_EXISTS)
        return error;
    /* Another worker was faster. */
    context_clear(domain->context);
    return IW_OK;
}

enum iw_error order_search_index(struct domain *domain, int64_t *after_id, bool *is_changed)
{
    struct query_ids grown = {.count = 0};
    int64_t account_id, first_id, horizon_id = order_id_make(clock_now_ms() - commit_ms, 0);
    bool is_due = false;
    *is_changed = false;
    enum iw_error error = segments_due(&domain->db, &account_id, &first_id, &is_due);
    if (error == IW_OK && is_due)
        error = segment_build(domain, account_id, first_id, horizon_id, is_changed);
    if (error == IW_OK && !*is_changed)
        error = segments_grown(&domain->db, horizon_id, grown_min, after_id, &grown);
    for (unsigned i = 0; error == IW_OK && !*is_changed && i < grown.count; i++) {
        error = segment_build(domain, grown.items[i], -1, horizon_id, is_changed);
        /* The account may have more orders; after an error the others come first. */
        if (error != IW_OK || *is_changed)
            *after_id = error == IW_OK ? grown.items[i] - 1 : grown.items[i];
    }
    return error;
}
