#include "domain/order_list.h"

#include <string.h>

#include "domain/order_count.h"
#include "domain/order_search.h"

/* Segments change every few seconds at most. */
enum { search_tries = 3 };

/* An index has the orders of the filter, and only these, by id. */
static bool has_index(const struct order_filter *filter)
{
    return filter->keyword == NULL && filter->channel < 0 && (filter->status < 0 || filter->type < 0);
}

/* ---- a page of an index ---- */

/* Steps over segments, then over the index in one segment. */
static enum iw_error page_of_index(const struct search *search, int64_t limit, int64_t offset,
                                   struct order_list *list)
{
    struct order_filter part = *search->filter;
    for (size_t i = 0; i < search->piece_count; i++) {
        const struct search_piece *piece = &search->pieces[i];
        if (offset >= (int64_t)piece->match_count) {
            offset -= (int64_t)piece->match_count;
            continue;
        }
        part.id_up_to = piece->segment.last_id;
        break;
    }
    return orders_page(&search->domain->store, &part, limit, offset, &list->orders, &list->count);
}

/* ---- a page of matches ---- */

static enum iw_error page_of_matches(const struct search *search, int64_t limit, int64_t offset,
                                     struct order_list *list)
{
    struct domain *domain = search->domain;
    struct search_ids found = {.skip = offset, .most = (size_t)limit};
    found.ids.items = arena_array(domain->context->arena, found.most + 1, sizeof *found.ids.items);
    enum iw_error error = search_collect(search, &found);
    if (error != IW_OK || found.ids.count == 0)
        return error;
    struct order *more = NULL;
    size_t count = 0;
    error = orders_of_ids(&domain->store, search->filter->account_id, &found.ids, &more, &count);
    if (error != IW_OK)
        return error;
    struct order *all = arena_array(domain->context->arena, list->count + count + 1, sizeof *all);
    if (list->count > 0)
        memcpy(all, list->orders, list->count * sizeof *all);
    memcpy(all + list->count, more, count * sizeof *all);
    list->orders = all;
    list->count += count;
    return IW_OK;
}

/* ---- pages ---- */

/* Without a keyword: the orders after the last segment are counted and read by an index. */
static enum iw_error page_without_keyword(const struct search *search, int64_t limit, int64_t offset,
                                          struct order_list *list)
{
    const struct store *store = &search->domain->store;
    struct order_filter younger = *search->filter;
    int64_t tail;
    younger.id_above = search->tail_above;
    enum iw_error error = search->piece_count == 0 ? order_count(search->domain, search->filter, &tail)
                                                   : orders_count(store, &younger, &tail);
    if (error != IW_OK)
        return error;
    list->total = tail + search_count(search);
    if (offset >= list->total)
        return IW_OK;
    if (has_index(search->filter) || search->piece_count == 0)
        return offset < tail ? orders_page(store, search->filter, limit, offset, &list->orders, &list->count)
                             : page_of_index(search, limit, offset - tail, list);
    if (offset < tail)
        error = orders_page(store, &younger, limit, offset, &list->orders, &list->count);
    int64_t left = limit - (int64_t)list->count;
    if (error != IW_OK || left == 0)
        return error;
    return page_of_matches(search, left, offset < tail ? 0 : offset - tail, list);
}

static enum iw_error page_read(struct search *search, int64_t limit, int64_t offset, struct order_list *list)
{
    *list = (struct order_list){.count = 0};
    if (search->filter->keyword == NULL)
        return page_without_keyword(search, limit, offset, list);
    list->total = search_count(search);
    return offset < list->total ? page_of_matches(search, limit, offset, list) : IW_OK;
}

/* A segment that was rebuilt between two statements. */
static enum iw_error changed_fail(struct domain *domain)
{
    domain->context->reason = "index_changed";
    domain->context->retry_after_s = 1;
    return context_fail(domain->context, IW_SERVICE_UNAVAILABLE, NULL);
}

enum iw_error order_list(struct domain *domain, const struct order_filter *filter, int64_t limit,
                         int64_t offset, struct order_list *list)
{
    for (int try = 0; try < search_tries; try++) {
        struct search search;
        enum iw_error error = search_begin(&search, domain, filter);
        if (error == IW_OK)
            error = page_read(&search, limit, offset, list);
        search_end(&search);
        if (error != IW_NOT_FOUND)
            return error;
    }
    return changed_fail(domain);
}

/* ---- all orders ---- */

/* Remembers that the callback stopped. */
struct streaming {
    bool (*take)(void *user, const struct order *order);
    void *user;
    bool is_stopped;
};

static bool stream_take(void *user, const struct order *order)
{
    struct streaming *streaming = user;
    streaming->is_stopped = !streaming->take(streaming->user, order);
    return !streaming->is_stopped;
}

static enum iw_error ids_stream(struct domain *domain, int64_t account_id, const struct query_ids *ids,
                                struct streaming *streaming)
{
    enum iw_error error = IW_OK;
    for (unsigned at = 0; error == IW_OK && !streaming->is_stopped && at < ids->count; at += orders_ids_max) {
        unsigned left = ids->count - at;
        const struct query_ids part = {.items = ids->items + at,
                                       .count = left < orders_ids_max ? left : orders_ids_max};
        error = orders_stream_ids(&domain->store, account_id, &part, stream_take, streaming);
    }
    return error;
}

/* All ids are known before the first order is passed on: a segment that changes does not break the list off.
 */
static enum iw_error ids_read(const struct search *search, struct arena **arena, struct search_ids *found)
{
    found->most = (size_t)search_count(search);
    *arena = arena_new((found->most + 1) * sizeof *found->ids.items + 1);
    found->ids.items = arena_array(*arena, found->most + 1, sizeof *found->ids.items);
    return search_collect(search, found);
}

enum iw_error order_list_stream(struct domain *domain, const struct order_filter *filter,
                                bool (*take)(void *user, const struct order *order), void *user)
{
    struct streaming streaming = {.take = take, .user = user};
    if (filter->keyword == NULL)
        return orders_stream(&domain->store, filter, take, user);
    for (int try = 0; try < search_tries; try++) {
        struct search search;
        struct search_ids found = {.skip = 0};
        struct arena *arena = NULL;
        enum iw_error error = search_begin(&search, domain, filter);
        if (error == IW_OK)
            error = ids_read(&search, &arena, &found);
        search_end(&search);
        if (error == IW_OK)
            error = ids_stream(domain, filter->account_id, &found.ids, &streaming);
        arena_free(arena);
        if (error != IW_NOT_FOUND)
            return error;
    }
    return changed_fail(domain);
}
