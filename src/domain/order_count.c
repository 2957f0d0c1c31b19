/*
 * Counting orders without counting them all each time.
 *
 * Orders are never deleted and their ids grow with time, so how many an account
 * has up to an id of a minute ago never changes: this process remembers it and
 * counts only what came since.
 */
#include "domain/order.h"

#include "base/clock.h"

enum {
    slots = 64,
    /* A creation takes less than this from making its id to its commit, clock differences included. */
    settled_after_ms = 60000,
    /* So many young orders are worth moving the line. */
    young_max = 256
};

struct settled {
    int64_t account_id; /* 0: empty */
    int64_t id;         /* the line: what is up to here has been counted */
    int64_t count;
};

static struct settled remembered[slots];

static bool is_everything(const struct order_filter *filter)
{
    return filter->type < 0 && filter->status < 0 && filter->channel < 0 && filter->keyword == NULL;
}

/* Counts what is old enough to stay as it is and remembers it. */
static enum iw_error settle(struct domain *domain, int64_t account_id, struct settled *slot)
{
    int64_t line = order_id_make(clock_now_ms() - settled_after_ms, 0), count;
    enum iw_error error = orders_count_up_to(domain->context, domain->db, account_id, line, &count);
    if (error == IW_OK)
        *slot = (struct settled){account_id, line, count};
    return error;
}

enum iw_error order_count(struct domain *domain, const struct order_filter *filter, int64_t *count)
{
    struct settled *slot = &remembered[(uint64_t)filter->account_id % slots];
    struct order_filter young = *filter;
    enum iw_error error = IW_OK;
    if (!is_everything(filter))
        return orders_count(domain->context, domain->db, filter, count);
    if (slot->account_id != filter->account_id)
        error = settle(domain, filter->account_id, slot);
    if (error != IW_OK)
        return error;
    young.id_above = slot->id;
    int64_t settled = slot->count;
    error = orders_count(domain->context, domain->db, &young, count);
    if (error == IW_OK && *count > young_max)
        slot->account_id = 0; /* The next count draws a new line. */
    *count += settled;
    return error;
}
