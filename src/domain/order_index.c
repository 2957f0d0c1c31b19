#include "domain/order_index.h"

#include "base/clock.h"
#include "domain/posting.h"
#include "service/term.h"
#include "store/orders.h"
#include "store/segments.h"

enum {
    /* A search reads about 1 KiB a segment and word; building a segment takes about 50 ms. */
    orders_max = 4096,
    /* Names of files; an order has at most 200. */
    names_max = 8192,
    /* Orders that were committed late do not split a segment that is compared. */
    compared_max = 2 * orders_max,
    /*
     * An open segment doubles, within these bounds: each order is read about three times, and a list reads
     * few names outside of segments.
     */
    grown_min = 128,
    grown_max = 1024,
    /* From the id of an order to its commit; later ones are added when the segment is compared. */
    commit_ms = 10000,
    first_compared_s = 10 * 60,
    compared_every_s = 24 * 60 * 60
};

/* The argument of the transactions below. */
struct building {
    struct domain *domain;
    int64_t account_id;
    int64_t first_id; /* of the segment to compare */
    int64_t horizon_id;
    bool is_extended; /* the segment grows; else it is compared */
    struct segments_orders orders;
    unsigned next; /* of orders: while file names are read */
    struct terms terms;
};

static bool name_take(void *user, int64_t order_id, const char *name)
{
    struct building *building = user;
    while (building->next < building->orders.count && building->orders.items[building->next].id < order_id)
        building->next++;
    if (building->next < building->orders.count && building->orders.items[building->next].id == order_id)
        terms_read(&building->terms, name, (uint16_t)building->next);
    return true;
}

static enum iw_error terms_gather(const struct store *store, struct building *building)
{
    terms_init(&building->terms, store->context->arena);
    building->next = 0;
    for (unsigned i = 0; i < building->orders.count; i++)
        terms_read(&building->terms, building->orders.items[i].name, (uint16_t)i);
    return segments_file_names(store, building->account_id, building->orders.items[0].id,
                               building->orders.items[building->orders.count - 1].id, name_take, building);
}

/* Sets facts and ids. */
static void content_make(struct arena *arena, const struct building *building,
                         struct segments_content *content)
{
    uint8_t *facts = arena_alloc(arena, building->orders.count + 1);
    uint8_t *ids = arena_alloc(arena, 8 * building->orders.count + 1), *at = ids;
    for (unsigned i = 0; i < building->orders.count; i++) {
        facts[i] = building->orders.items[i].fact;
        for (int shift = 56; shift >= 0; shift -= 8)
            *at++ = (uint8_t)((uint64_t)building->orders.items[i].id >> shift);
    }
    content->segment.order_count = building->orders.count;
    content->facts = facts;
    content->ids = ids;
}

/* Writes the orders that were read, or deletes the segment when there are none. */
static enum iw_error segment_write(const struct store *store, struct building *building,
                                   struct segments_content *content)
{
    struct segments_words *rows;
    if (building->orders.count == 0)
        return segments_delete(store, building->account_id, content->segment.first_id);
    enum iw_error error = terms_gather(store, building);
    if (error != IW_OK)
        return error;
    posting_pack(&building->terms, building->orders.count, &rows, &content->row_count);
    content->rows = rows;
    return segments_write(store, building->account_id, content);
}

/*
 * Reads and locks the orders of a range without waiting: heartbeats must be on time.  NOT_FOUND: one is
 * locked. After the last order that was read others may be locked; they stay outside of a segment that grows.
 */
static enum iw_error orders_lock_all(const struct store *store, struct building *building, int64_t first_id,
                                     int64_t last_id, unsigned most)
{
    int64_t count;
    struct order_filter range = {.account_id = building->account_id,
                                 .type = -1,
                                 .status = -1,
                                 .channel = -1,
                                 .id_above = first_id - 1,
                                 .id_up_to = last_id};
    enum iw_error error =
        segments_orders(store, building->account_id, first_id, last_id, most, &building->orders);
    if (error == IW_OK && building->is_extended && building->orders.count == 0)
        error = IW_NOT_FOUND;
    if (error != IW_OK)
        return error;
    if (building->is_extended)
        range.id_up_to = building->orders.items[building->orders.count - 1].id;
    error = orders_count(store, &range, &count);
    return error == IW_OK && count != building->orders.count ? IW_NOT_FOUND : error;
}

/*
 * Locks the segment that was read before its orders: a transaction that changes an order locks in the same
 * order. NOT_FOUND: another worker is building it, or has built it since.
 */
static enum iw_error segment_claim(const struct store *store, const struct building *building,
                                   const struct segment *segment)
{
    struct segment now;
    if (segment->version < 0)
        return segments_insert(store, building->account_id, segment->first_id);
    enum iw_error error = segments_lock(store, building->account_id, segment->first_id, &now);
    return error == IW_OK && now.version != segment->version ? IW_NOT_FOUND : error;
}

/* The segment to extend: the newest one when it is open, else a new one of version -1. */
static enum iw_error segment_extended(const struct store *store, int64_t account_id, struct segment *segment)
{
    enum iw_error error = segments_newest(store, account_id, segment);
    if (error == IW_OK && segment->is_open)
        return IW_OK;
    if (error != IW_OK && error != IW_NOT_FOUND)
        return error;
    *segment = (struct segment){.first_id = error == IW_OK ? segment->last_id + 1 : 0, .version = -1};
    return IW_OK;
}

/* Drops the last orders when all have too many files.  True when it did. */
static bool orders_cut(struct building *building)
{
    int64_t names = 0;
    for (unsigned i = 0; i < building->orders.count; i++) {
        names += building->orders.items[i].file_count;
        if (names <= names_max || i == 0)
            continue;
        building->orders.count = i;
        return true;
    }
    return false;
}

static enum iw_error extend_work(const struct store *store, void *user)
{
    struct building *building = user;
    struct segments_content content = {.due_s = first_compared_s};
    enum iw_error error = segment_extended(store, building->account_id, &content.segment);
    if (error == IW_OK)
        error = orders_lock_all(store, building, content.segment.first_id, building->horizon_id, orders_max);
    if (error == IW_OK)
        error = segment_claim(store, building, &content.segment);
    if (error != IW_OK)
        return error;
    bool is_full = building->orders.count == orders_max;
    content.segment.is_open = !orders_cut(building) && !is_full;
    content_make(store->context->arena, building, &content);
    /* Not the horizon: an order that is committed now stays outside of the range. */
    content.segment.last_id = building->orders.items[building->orders.count - 1].id;
    return segment_write(store, building, &content);
}

static enum iw_error compare_work(const struct store *store, void *user)
{
    struct building *building = user;
    struct segments_content content = {.due_s = compared_every_s};
    bool is_equal = false;
    enum iw_error error = segments_find(store, building->account_id, building->first_id, &content.segment);
    if (error == IW_OK)
        error =
            orders_lock_all(store, building, content.segment.first_id, content.segment.last_id, compared_max);
    if (error == IW_OK)
        error = segment_claim(store, building, &content.segment);
    if (error != IW_OK)
        return error;
    content_make(store->context->arena, building, &content);
    error = segments_is_equal(store, building->account_id, &content, &is_equal);
    if (error != IW_OK)
        return error;
    return is_equal ? segments_postpone(store, building->account_id, building->first_id, compared_every_s)
                    : segment_write(store, building, &content);
}

/* False when the open segment of an account should wait for more orders. */
static enum iw_error is_worth(const struct domain *domain, const struct building *building, bool *is_wanted)
{
    struct segment last = {0};
    const struct store *store = &domain->store;
    enum iw_error error = segments_newest(store, building->account_id, &last);
    if (error != IW_OK && error != IW_NOT_FOUND)
        return error;
    int64_t wanted = last.is_open ? last.order_count : 0;
    wanted = wanted < grown_min ? grown_min : wanted > grown_max ? grown_max : wanted;
    return segments_has_new(store, building->account_id, last.last_id, building->horizon_id, wanted,
                            is_wanted);
}

/* Another worker that is faster is no error. */
static enum iw_error build(struct building *building, enum iw_error (*work)(const struct store *, void *))
{
    enum iw_error error = db_transaction(&building->domain->store, work, building);
    if (error != IW_TWIN_EXISTS && error != IW_NOT_FOUND)
        return error;
    context_clear(building->domain->context);
    return IW_OK;
}

enum iw_error order_index_step(struct domain *domain, int64_t *after_id, bool *is_changed)
{
    struct query_ids grown = {.count = 0};
    struct building building = {.domain = domain, .horizon_id = order_id_make(clock_now_ms() - commit_ms, 0)};
    enum iw_error error = segments_due(&domain->store, &building.account_id, &building.first_id);
    *is_changed = error == IW_OK;
    if (error != IW_NOT_FOUND)
        return error == IW_OK ? build(&building, compare_work) : error;
    error = segments_grown(&domain->store, building.horizon_id, grown_min, after_id, &grown);
    for (unsigned i = 0; error == IW_OK && !*is_changed && i < grown.count; i++) {
        building.account_id = grown.items[i];
        error = is_worth(domain, &building, is_changed);
        if (error != IW_OK || !*is_changed)
            continue;
        building.is_extended = true;
        error = build(&building, extend_work);
        /* The account may have more orders; after an error the others come first. */
        *after_id = error == IW_OK ? building.account_id - 1 : building.account_id;
    }
    return error;
}
