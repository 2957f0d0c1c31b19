#include "domain/order_search.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "domain/posting.h"

/* Facts, and a bit an order and word: enough for ten million orders. */
static const size_t arena_max = (size_t)512 << 20;

/* ---- segments ---- */

static bool segment_take(void *user, const struct segment *segment, const uint8_t *facts, size_t length)
{
    struct search *search = user;
    if (search->piece_count == search->piece_room) {
        size_t room = search->piece_room == 0 ? 64 : 2 * search->piece_room;
        struct search_piece *pieces = arena_array(search->arena, room, sizeof *pieces);
        if (search->piece_count > 0)
            memcpy(pieces, search->pieces, search->piece_count * sizeof *pieces);
        search->pieces = pieces;
        search->piece_room = room;
    }
    struct search_piece *piece = &search->pieces[search->piece_count++];
    *piece = (struct search_piece){.segment = *segment, .match_count = (size_t)segment->order_count};
    if (!search->has_matches)
        return true;
    piece->positions = length;
    piece->facts = (const uint8_t *)arena_text_n(search->arena, (const char *)facts, length);
    piece->found = arena_array(search->arena, search->terms.count + 1, sizeof *piece->found);
    piece->matches = arena_alloc(search->arena, length / 8 + 1);
    return true;
}

/* Pieces are in the order of the primary key while they are read. */
static int piece_compare(const void *key, const void *element)
{
    int64_t id = *(const int64_t *)key;
    const struct search_piece *piece = element;
    return id < piece->segment.first_id ? -1 : id > piece->segment.first_id;
}

static bool words_take(void *user, const struct segments_words *words)
{
    struct search *search = user;
    struct search_piece *piece =
        bsearch(&words->first_id, search->pieces, search->piece_count, sizeof *search->pieces, piece_compare);
    for (size_t i = 0; piece != NULL && i < search->terms.count; i++) {
        const struct term *term = &search->terms.items[i];
        if (posting_bucket(term) != words->bucket_length ||
            memcmp(term->text, words->bucket, words->bucket_length) != 0)
            continue;
        if (piece->found[i] == NULL)
            piece->found[i] = arena_alloc(search->arena, piece->positions / 8 + 1);
        if (!posting_mark(words, term, piece->found[i], (unsigned)piece->positions))
            search->is_damaged = true;
    }
    return true;
}

static bool is_in_all(const struct search *search, const struct search_piece *piece, size_t at)
{
    for (size_t i = 0; i < search->terms.count; i++)
        if (piece->found[i] == NULL || (piece->found[i][at / 8] & 1 << at % 8) == 0)
            return false;
    return search->terms.count > 0 || search->filter->keyword == NULL;
}

static void match_set(struct search_piece *piece, size_t at)
{
    if ((piece->matches[at / 8] & 1 << at % 8) != 0)
        return;
    piece->matches[at / 8] = (uint8_t)(piece->matches[at / 8] | 1 << at % 8);
    piece->match_count++;
}

static void piece_match(const struct search *search, struct search_piece *piece)
{
    piece->match_count = 0;
    for (size_t at = 0; at < piece->positions; at++)
        if (segment_fact_fits(piece->facts[at], search->mask) && is_in_all(search, piece, at))
            match_set(piece, at);
}

/* The argument of id_take: the order whose id is the keyword. */
struct wanted {
    const struct search *search;
    struct search_piece *piece;
};

static void id_take(void *user, const uint8_t *ids, size_t count)
{
    struct wanted *wanted = user;
    for (size_t i = 0; i < count && i < wanted->piece->positions; i++)
        if (segments_id(ids + 8 * i) == wanted->search->keyword_id &&
            segment_fact_fits(wanted->piece->facts[i], wanted->search->mask))
            match_set(wanted->piece, i);
}

static enum iw_error keyword_id_match(struct search *search)
{
    for (size_t i = 0; i < search->piece_count; i++) {
        struct search_piece *piece = &search->pieces[i];
        struct wanted wanted = {search, piece};
        if (search->keyword_id < piece->segment.first_id || search->keyword_id > piece->segment.last_id)
            continue;
        return segments_ids(&search->domain->store, search->filter->account_id, &piece->segment, id_take,
                            &wanted);
    }
    return IW_OK;
}

static enum iw_error segments_match(struct search *search)
{
    struct segments_buckets buckets = {.count = 0};
    const struct segments_reader reader = {segment_take, words_take, search};
    for (size_t i = 0; i < search->terms.count; i++, buckets.count++) {
        buckets.lengths[i] = posting_bucket(&search->terms.items[i]);
        memcpy(buckets.names[i], search->terms.items[i].text, buckets.lengths[i]);
    }
    enum iw_error error = segments_read(&search->domain->store, search->filter->account_id,
                                        search->has_matches, &buckets, &reader);
    if (error == IW_OK && search->is_damaged) {
        context_cause(search->domain->context, "a row of order_words is damaged");
        error = context_fail(search->domain->context, IW_SERVER_INTERNAL_ERROR, NULL);
    }
    if (error != IW_OK || search->piece_count == 0)
        return error;
    search->tail_above = search->pieces[search->piece_count - 1].segment.last_id;
    for (size_t i = 0; search->has_matches && i < search->piece_count; i++)
        piece_match(search, &search->pieces[i]);
    for (size_t i = 0; i < search->piece_count / 2; i++) {
        struct search_piece piece = search->pieces[i];
        search->pieces[i] = search->pieces[search->piece_count - 1 - i];
        search->pieces[search->piece_count - 1 - i] = piece;
    }
    return search->keyword_id > 0 ? keyword_id_match(search) : IW_OK;
}

/* ---- the orders after the last segment ---- */

/* The order whose names are read. */
struct tail {
    struct search *search;
    struct arena *scratch;
    int64_t order_id;
    bool *has_term; /* of each term */
    bool is_matched;
    size_t room;
};

static void tail_name(struct tail *tail, const char *name)
{
    struct terms terms;
    const struct terms *wanted = &tail->search->terms;
    arena_reset(tail->scratch);
    terms_init(&terms, tail->scratch);
    terms_read(&terms, name, 0);
    for (size_t i = 0; i < terms.count; i++)
        for (size_t at = 0; at < wanted->count; at++)
            tail->has_term[at] = tail->has_term[at] || term_begins(&terms.items[i], &wanted->items[at]);
}

static void tail_id_add(struct tail *tail)
{
    struct query_ids *ids = &tail->search->tail;
    if (ids->count == tail->room) {
        tail->room = tail->room == 0 ? 64 : 2 * tail->room;
        int64_t *items = arena_array(tail->search->arena, tail->room, sizeof *items);
        if (ids->count > 0)
            memcpy(items, ids->items, ids->count * sizeof *items);
        ids->items = items;
    }
    ids->items[ids->count++] = tail->order_id;
    tail->is_matched = true;
}

static bool tail_take(void *user, int64_t order_id, const char *order_name, const char *file_name)
{
    struct tail *tail = user;
    const struct search *search = tail->search;
    if (order_id != tail->order_id) {
        tail->order_id = order_id;
        tail->is_matched = false;
        memset(tail->has_term, 0, search->terms.count);
        tail_name(tail, order_name);
        if (order_id == search->keyword_id)
            tail_id_add(tail);
    }
    if (tail->is_matched || search->terms.count == 0)
        return true;
    tail_name(tail, file_name);
    if (memchr(tail->has_term, false, search->terms.count) == NULL)
        tail_id_add(tail);
    return true;
}

static enum iw_error tail_match(struct search *search)
{
    struct order_filter younger = *search->filter;
    struct tail tail = {.search = search,
                        .scratch = arena_new(0),
                        .has_term = arena_array(search->arena, search->terms.count + 1, sizeof(bool))};
    younger.id_above = search->tail_above;
    enum iw_error error = orders_names(&search->domain->store, &younger, tail_take, &tail);
    arena_free(tail.scratch);
    return error;
}

/* ---- the search ---- */

enum iw_error search_begin(struct search *search, struct domain *domain, const struct order_filter *filter)
{
    *search = (struct search){
        .domain = domain, .filter = filter, .arena = arena_new(arena_max), .mask = segment_mask_of(filter)};
    search->has_matches = search->mask.bits != 0 || filter->keyword != NULL;
    if (filter->keyword != NULL) {
        terms_of_keyword(&search->terms, search->arena, filter->keyword);
        if (!text_integer(filter->keyword, 1, INT64_MAX, &search->keyword_id))
            search->keyword_id = 0;
    }
    if (search->terms.count > segments_buckets_max) {
        context_detail(domain->context, "keyword", "has %zu different words; at most %d are allowed",
                       search->terms.count, segments_buckets_max);
        return context_validated(domain->context);
    }
    enum iw_error error = segments_match(search);
    return error == IW_OK && filter->keyword != NULL ? tail_match(search) : error;
}

void search_end(struct search *search)
{
    arena_free(search->arena);
    search->arena = NULL;
}

int64_t search_count(const struct search *search)
{
    int64_t count = search->tail.count;
    for (size_t i = 0; i < search->piece_count; i++)
        count += (int64_t)search->pieces[i].match_count;
    return count;
}

/* The argument of piece_take. */
struct collecting {
    const struct search_piece *piece;
    struct search_ids *found;
};

static void id_add(struct search_ids *found, int64_t id)
{
    if (found->skip > 0)
        found->skip--;
    else if (found->ids.count < found->most)
        found->ids.items[found->ids.count++] = id;
}

static void piece_take(void *user, const uint8_t *ids, size_t count)
{
    const struct collecting *collecting = user;
    const struct search_piece *piece = collecting->piece;
    for (size_t at = count < piece->positions ? count : piece->positions; at-- > 0;)
        if ((piece->matches[at / 8] & 1 << at % 8) != 0)
            id_add(collecting->found, segments_id(ids + 8 * at));
}

enum iw_error search_collect(const struct search *search, struct search_ids *found)
{
    enum iw_error error = IW_OK;
    for (unsigned i = 0; i < search->tail.count; i++)
        id_add(found, search->tail.items[i]);
    for (size_t i = 0; error == IW_OK && i < search->piece_count && found->ids.count < found->most; i++) {
        const struct search_piece *piece = &search->pieces[i];
        struct collecting collecting = {piece, found};
        if (found->skip >= (int64_t)piece->match_count)
            found->skip -= (int64_t)piece->match_count;
        else
            error = segments_ids(&search->domain->store, search->filter->account_id, &piece->segment,
                                 piece_take, &collecting);
    }
    return error;
}
