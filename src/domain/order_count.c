/*
 * Counting a large account's orders without counting them all each time.
 *
 * Orders are never deleted and their ids grow with time, so how many an account
 * has up to an id of a minute ago does not change: this process remembers it for
 * a few seconds and counts only what came since.  (Not for ever: a clock that is
 * set back makes ids below the line.)  Small accounts are always counted whole.
 */
#include "domain/order.h"

#include "base/clock.h"

enum {
    slots = 64,
    large = 1000,
    /* A creation takes less than this from making its id to its commit, clock differences included. */
    settled_after_ms = 60000,
    remembered_ms = 10000
};

struct settled {
    int64_t account_id;
    int64_t id; /* the line: what is up to here has been counted */
    int64_t count;
    int64_t until_ms; /* monotonic; 0: empty */
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
        *slot = (struct settled){account_id, line, count, clock_monotonic_ms() + remembered_ms};
    return error;
}

enum iw_error order_count(struct domain *domain, const struct order_filter *filter, int64_t *count)
{
    struct settled *slot = &remembered[(uint64_t)filter->account_id % slots];
    struct order_filter young = *filter;
    bool is_known = slot->account_id == filter->account_id && slot->until_ms > clock_monotonic_ms();
    if (!is_everything(filter) || !is_known) {
        enum iw_error error = orders_count(domain->context, domain->db, filter, count);
        if (error != IW_OK || !is_everything(filter) || *count < large)
            return error;
        return settle(domain, filter->account_id, slot);
    }
    young.id_above = slot->id;
    enum iw_error error = orders_count(domain->context, domain->db, &young, count);
    *count += slot->count;
    return error;
}
