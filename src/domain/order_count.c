/*
 * Cached counts for the lists of large accounts.
 *
 * Orders are never deleted, never change type or channel, and their ids grow with
 * time.  So the number of orders up to an older id is constant, and each process
 * caches it as a mark.  The first mark lies a minute back and is valid for
 * minutes.  Accounts with many new orders get further marks, some seconds back
 * and valid for some seconds.  Each list counts only the orders after the last
 * mark.
 *
 * Limit of accuracy: an order whose commit takes longer than after_ms of a mark
 * is missing while that mark is valid, from one second to ten minutes.
 *
 * A status changes, so a filter by status counts all its orders.  A large count
 * is cached for a time in proportion to its cost.  Small accounts are always
 * counted completely.
 */
#include "domain/order_count.h"

#include "base/clock.h"

enum {
    slots = 64,
    marks_max = 4,
    marked_min = 1000, /* orders of a filter that gets marks */
    recent_max = 500,  /* orders after the last mark; above, another mark is added */
    status_cached_min = 20000,
    counted_per_ms = 100 /* a count of N orders by status is cached for N / counted_per_ms ms */
};

/*
 * The age of each mark and its lifetime.  A creation takes nearly always less than a second from its id to
 * its commit, and never more than a minute, clock differences included.
 */
static const struct {
    int64_t after_ms;
    int64_t kept_ms;
} mark_times[marks_max] = {{60000, 600000}, {15000, 15000}, {4000, 4000}, {1000, 1000}};

/* The number of orders up to an id. */
struct count_mark {
    int64_t id;
    int64_t count;
    int64_t until_ms; /* monotonic; 0: unset */
};

/* The marks of a filter without status and keyword. */
struct count_marks {
    struct order_filter filter;
    struct count_mark marks[marks_max];
    unsigned depth; /* marks in use */
};

/* The cached count of a filter by status. */
struct count_by_status {
    struct order_filter filter;
    int64_t count;
    int64_t until_ms; /* monotonic */
};

static struct count_marks marks_cache[slots];
static struct count_by_status status_cache[slots];

static unsigned slot_of(const struct order_filter *filter)
{
    return (unsigned)(((uint64_t)filter->account_id * 31 + (uint64_t)(filter->type + 1) * 7 +
                       (uint64_t)(filter->channel + 1) * 3 + (uint64_t)(filter->status + 1)) %
                      slots);
}

static bool is_same(const struct order_filter *one, const struct order_filter *other)
{
    return one->account_id == other->account_id && one->type == other->type &&
           one->channel == other->channel && one->status == other->status;
}

/* The id of a mark that is set now. */
static int64_t mark_id(unsigned level)
{
    return order_id_make(clock_now_ms() - mark_times[level].after_ms, 0);
}

/* A mark is valid for its lifetime, but not when the clock was set back before its id. */
static bool mark_is_valid(const struct count_marks *marks, unsigned level)
{
    const struct count_mark *mark = &marks->marks[level];
    return mark->until_ms > clock_monotonic_ms() && mark->id <= mark_id(level);
}

static enum iw_error count_between(struct domain *domain, const struct order_filter *filter, int64_t above,
                                   int64_t up_to, int64_t *count)
{
    struct order_filter part = *filter;
    part.id_above = above;
    part.id_up_to = up_to;
    return orders_count(&domain->store, &part, count);
}

/* Sets a mark by counting from an older one. */
static enum iw_error mark_set(struct domain *domain, struct count_marks *marks, unsigned level,
                              struct count_mark from)
{
    int64_t id = mark_id(level), count = 0;
    if (id < from.id) /* the clock was set back since */
        id = from.id;
    enum iw_error error = count_between(domain, &marks->filter, from.id, id, &count);
    if (error == IW_OK)
        marks->marks[level] =
            (struct count_mark){id, from.count + count, clock_monotonic_ms() + mark_times[level].kept_ms};
    return error;
}

/* Counts the first mark completely; the others depend on it. */
static enum iw_error marks_begin(struct domain *domain, const struct order_filter *filter,
                                 struct count_marks *marks)
{
    *marks = (struct count_marks){.filter = *filter, .depth = 1};
    return mark_set(domain, marks, 0, (struct count_mark){0});
}

/* Renews the invalid marks.  The first one advances with the second, but is counted completely in time. */
static enum iw_error marks_renew(struct domain *domain, struct count_marks *marks)
{
    enum iw_error error = IW_OK;
    for (unsigned level = 1; error == IW_OK && level < marks->depth; level++) {
        if (mark_is_valid(marks, level))
            continue;
        if (level == 1) {
            int64_t until_ms = marks->marks[0].until_ms;
            error = mark_set(domain, marks, 0, marks->marks[0]);
            marks->marks[0].until_ms = until_ms;
        }
        if (error == IW_OK)
            error = mark_set(domain, marks, level, marks->marks[level - 1]);
    }
    return error;
}

static enum iw_error marks_count(struct domain *domain, struct count_marks *marks, int64_t *count)
{
    int64_t recent = 0;
    enum iw_error error = marks_renew(domain, marks);
    if (error != IW_OK)
        return error;
    const struct count_mark *last = &marks->marks[marks->depth - 1];
    error = count_between(domain, &marks->filter, last->id, 0, &recent);
    if (error != IW_OK)
        return error;
    *count = last->count + recent;
    /* One mark more or less for the next time. */
    if (recent >= recent_max && marks->depth < marks_max)
        marks->depth++;
    else if (marks->depth > 1 && last->count - last[-1].count + recent < recent_max / 2)
        marks->depth--;
    return IW_OK;
}

static enum iw_error count_by_marks(struct domain *domain, const struct order_filter *filter, int64_t *count)
{
    struct count_marks *marks = &marks_cache[slot_of(filter)];
    bool is_known = is_same(&marks->filter, filter);
    enum iw_error error = IW_OK;
    if (is_known && !mark_is_valid(marks, 0))
        error = marks_begin(domain, filter, marks);
    if (error != IW_OK || is_known)
        return error == IW_OK ? marks_count(domain, marks, count) : error;
    error = orders_count(&domain->store, filter, count);
    return error == IW_OK && *count >= marked_min ? marks_begin(domain, filter, marks) : error;
}

static enum iw_error count_of_status(struct domain *domain, const struct order_filter *filter, int64_t *count)
{
    struct count_by_status *cached = &status_cache[slot_of(filter)];
    if (is_same(&cached->filter, filter) && cached->until_ms > clock_monotonic_ms()) {
        *count = cached->count;
        return IW_OK;
    }
    enum iw_error error = orders_count(&domain->store, filter, count);
    if (error == IW_OK && *count >= status_cached_min)
        *cached = (struct count_by_status){*filter, *count, clock_monotonic_ms() + *count / counted_per_ms};
    return error;
}

enum iw_error order_count(struct domain *domain, const struct order_filter *filter, int64_t *count)
{
    if (filter->keyword != NULL)
        return orders_count(&domain->store, filter, count);
    return filter->status < 0 ? count_by_marks(domain, filter, count)
                              : count_of_status(domain, filter, count);
}
