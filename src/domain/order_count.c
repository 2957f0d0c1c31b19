/*
 * Counting a large account's orders without counting them all each time.
 *
 * Orders are never deleted, never change their type and channel, and their ids grow with time.  So how many
 * there are up to an id of a while ago does not change, and this process remembers it: up to a minute ago for
 * minutes, carried on by what came since; and where so many orders come that a minute of them is a lot, up to
 * some seconds ago for some seconds.  Only what is younger is counted for every list.
 *
 * What can be wrong with it: an order that was committed later than after_ms of a line, counted from the
 * making of its id, may be missing for as long as that line is kept, from one second to some minutes.
 *
 * A status changes, so orders of one status are all counted, and where they are very many, the sum is
 * remembered for as long as makes counting a small part of the work.  Small accounts are always counted
 * whole.
 */
#include "domain/order.h"

#include "base/clock.h"

enum {
    slots = 64,
    lines_max = 4,
    large = 1000,
    /* Young orders that are worth a line closer by. */
    many = 500,
    /* Of one status: from how many on they are remembered, and how many of them make a millisecond. */
    huge = 20000,
    counted_in_a_ms = 100
};

/*
 * How far back a line is drawn, and for how long it is good.  Nearly every creation takes less than a second
 * from making its id to its commit, and none more than a minute, clock differences included.
 */
static const struct {
    int64_t after_ms;
    int64_t kept_ms;
} drawn[lines_max] = {{60000, 600000}, {15000, 15000}, {4000, 4000}, {1000, 1000}};

/* How many orders there are up to an id. */
struct line {
    int64_t id;
    int64_t count;
    int64_t until_ms; /* monotonic; 0: not known */
};

/* What is known of a filter that narrows to things that never change. */
struct tally {
    struct order_filter filter; /* without keyword */
    struct line lines[lines_max];
    unsigned depth; /* so many lines are worth their counting */
};

/* What is known of a filter by status. */
struct sum {
    struct order_filter filter;
    int64_t count;
    int64_t until_ms;
};

static struct tally tallies[slots];
static struct sum sums[slots];

static bool is_lasting(const struct order_filter *filter)
{
    return filter->status < 0 && filter->keyword == NULL;
}

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

/* Where a line would be drawn now. */
static int64_t line_id(unsigned level)
{
    return order_id_make(clock_now_ms() - drawn[level].after_ms, 0);
}

/* A line is good for its time, and while it lies as far back as it was drawn: a clock may be set back. */
static bool is_good(const struct tally *tally, unsigned level)
{
    const struct line *line = &tally->lines[level];
    return line->until_ms > clock_monotonic_ms() && line->id <= line_id(level);
}

static enum iw_error count_between(struct domain *domain, const struct order_filter *filter, int64_t above,
                                   int64_t up_to, int64_t *count)
{
    struct order_filter part = *filter;
    part.id_above = above;
    part.id_up_to = up_to;
    return orders_count(&domain->store, &part, count);
}

/* Draws a line by counting from one further back. */
static enum iw_error line_draw(struct domain *domain, struct tally *tally, unsigned level, struct line from)
{
    int64_t id = line_id(level), count;
    if (id < from.id) /* a clock that was set back this very moment */
        id = from.id;
    enum iw_error error = count_between(domain, &tally->filter, from.id, id, &count);
    if (error == IW_OK)
        tally->lines[level] =
            (struct line){id, from.count + count, clock_monotonic_ms() + drawn[level].kept_ms};
    return error;
}

/* The first line, counted whole; the others are no good without it. */
static enum iw_error tally_begin(struct domain *domain, const struct order_filter *filter,
                                 struct tally *tally)
{
    *tally = (struct tally){.filter = *filter, .depth = 1};
    return line_draw(domain, tally, 0, (struct line){0});
}

/* Carries the first line on; it is not counted whole the later for it. */
static enum iw_error tally_carry_on(struct domain *domain, struct tally *tally)
{
    int64_t until_ms = tally->lines[0].until_ms;
    enum iw_error error = line_draw(domain, tally, 0, tally->lines[0]);
    tally->lines[0].until_ms = until_ms;
    return error;
}

/* Draws the lines that are wanted and are no good any more. */
static enum iw_error lines_draw(struct domain *domain, struct tally *tally)
{
    enum iw_error error = IW_OK;
    for (unsigned level = 1; error == IW_OK && level < tally->depth; level++) {
        if (is_good(tally, level))
            continue;
        if (level == 1)
            error = tally_carry_on(domain, tally);
        if (error == IW_OK)
            error = line_draw(domain, tally, level, tally->lines[level - 1]);
    }
    return error;
}

/* One line more or less for the next time. */
static void depth_choose(struct tally *tally, int64_t young)
{
    const struct line *last = &tally->lines[tally->depth - 1];
    if (young >= many && tally->depth < lines_max)
        tally->depth++;
    else if (tally->depth > 1 && last->count - last[-1].count + young < many / 2)
        tally->depth--;
}

static enum iw_error tally_count(struct domain *domain, struct tally *tally, int64_t *count)
{
    int64_t young;
    enum iw_error error = lines_draw(domain, tally);
    if (error != IW_OK)
        return error;
    const struct line *last = &tally->lines[tally->depth - 1];
    error = count_between(domain, &tally->filter, last->id, 0, &young);
    if (error != IW_OK)
        return error;
    *count = last->count + young;
    depth_choose(tally, young);
    return IW_OK;
}

static enum iw_error lasting_count(struct domain *domain, const struct order_filter *filter, int64_t *count)
{
    struct tally *tally = &tallies[slot_of(filter)];
    bool is_known = is_same(&tally->filter, filter);
    enum iw_error error = IW_OK;
    if (is_known && !is_good(tally, 0))
        error = tally_begin(domain, filter, tally);
    if (error != IW_OK || is_known)
        return error == IW_OK ? tally_count(domain, tally, count) : error;
    error = orders_count(&domain->store, filter, count);
    return error == IW_OK && *count >= large ? tally_begin(domain, filter, tally) : error;
}

static enum iw_error changing_count(struct domain *domain, const struct order_filter *filter, int64_t *count)
{
    struct sum *sum = &sums[slot_of(filter)];
    if (is_same(&sum->filter, filter) && sum->until_ms > clock_monotonic_ms()) {
        *count = sum->count;
        return IW_OK;
    }
    enum iw_error error = orders_count(&domain->store, filter, count);
    if (error == IW_OK && *count >= huge)
        *sum = (struct sum){*filter, *count, clock_monotonic_ms() + *count / counted_in_a_ms};
    return error;
}

enum iw_error order_count(struct domain *domain, const struct order_filter *filter, int64_t *count)
{
    if (is_lasting(filter))
        return lasting_count(domain, filter, count);
    if (filter->keyword == NULL)
        return changing_count(domain, filter, count);
    return orders_count(&domain->store, filter, count);
}
