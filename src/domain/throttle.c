#include "domain/throttle.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "store/attempts.h"

enum { counters_max = 3, forget_ms = 24 * 60 * 60 * 1000 };

/* What is counted.  The counters of an attempt are locked in this order. */
enum counter { BY_NETWORK, BY_PAIR, BY_USER, BY_SESSION, COUNTER_COUNT };

static const struct {
    const char *name;
    int64_t free;
    int64_t wait_max_s;
} limits[COUNTER_COUNT] = {
    /* An office or a mobile network shares an address. */
    [BY_NETWORK] = {"address", 30, 900},
    [BY_PAIR] = {"pair", 5, 300},
    /* Attempts from many networks. */
    [BY_USER] = {"user", 100, 300},
    [BY_SESSION] = {"session", 5, 300},
};

/* The argument of the transactions. */
struct throttle_work {
    struct {
        enum counter counter;
        bool is_ignored; /* it counts, but no attempt waits for it */
        uint8_t digest[32];
    } of[counters_max];
    unsigned count;
    int64_t now_ms;
    int64_t wait_ms; /* until the next attempt; 0: it is counted */
};

const char *throttle_network(struct arena *arena, const char *address)
{
    static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};
    uint8_t bytes[16];
    char network[INET6_ADDRSTRLEN];
    if (inet_pton(AF_INET6, address, bytes) != 1 || memcmp(bytes, mapped, sizeof mapped) == 0)
        return address;
    memset(bytes + 8, 0, 8);
    return arena_text(arena, inet_ntop(AF_INET6, bytes, network, sizeof network));
}

static void counter_add(struct throttle_work *work, enum counter counter, struct arena *arena,
                        const char *what, const char *text)
{
    const char *name =
        arena_printf(arena, "%s:%s%s%s", limits[counter].name, what, what[0] != '\0' ? ":" : "", text);
    work->of[work->count].counter = counter;
    crypto_sha256(name, strlen(name), work->of[work->count++].digest);
}

static struct throttle_work work_of(struct arena *arena, const struct throttle_try *attempt)
{
    struct throttle_work work = {.now_ms = clock_now_ms()};
    const char *network = throttle_network(arena, attempt->address);
    counter_add(&work, BY_NETWORK, arena, attempt->what, network);
    counter_add(&work, BY_PAIR, arena, attempt->what,
                arena_printf(arena, "%s %s", network, attempt->user_name));
    counter_add(&work, BY_USER, arena, attempt->what, attempt->user_name);
    work.of[work.count - 1].is_ignored = attempt->is_known;
    return work;
}

static struct throttle_work session_work(struct arena *arena, int64_t session_id)
{
    struct throttle_work work = {.now_ms = clock_now_ms()};
    counter_add(&work, BY_SESSION, arena, "", arena_printf(arena, "%lld", (long long)session_id));
    return work;
}

/* Counts an attempt in a row. */
static void row_count(struct attempts_row *row, int64_t now_ms, enum counter counter)
{
    row->attempts = now_ms - row->tried_ms > forget_ms ? 1 : row->attempts + 1;
    row->tried_ms = row->next_ms = now_ms;
    int64_t over = row->attempts - limits[counter].free, wait_max_s = limits[counter].wait_max_s;
    if (over < 0)
        return;
    int64_t wait_s = over < 20 ? (int64_t)1 << over : wait_max_s;
    row->next_ms += (wait_s < wait_max_s ? wait_s : wait_max_s) * 1000;
}

/* A refused attempt writes no row: the network comes first, and its row is there already. */
static enum iw_error enter_work(const struct store *store, void *user)
{
    struct throttle_work *work = user;
    struct attempts_row rows[counters_max];
    work->wait_ms = 0;
    for (unsigned i = 0; i < work->count; i++) {
        rows[i] = (struct attempts_row){.name_digest = work->of[i].digest};
        enum iw_error error = attempts_lock(store, &rows[i]);
        if (error != IW_OK)
            return error;
        if (rows[i].next_ms > work->now_ms && !work->of[i].is_ignored) {
            work->wait_ms = rows[i].next_ms - work->now_ms;
            return IW_OK;
        }
    }
    enum iw_error error = IW_OK;
    for (unsigned i = 0; error == IW_OK && i < work->count; i++) {
        row_count(&rows[i], work->now_ms, work->of[i].counter);
        error = attempts_write(store, &rows[i]);
    }
    return error;
}

static enum iw_error enter(struct domain *domain, struct throttle_work *work)
{
    enum iw_error error = db_transaction(&domain->store, enter_work, work);
    if (error != IW_OK || work->wait_ms == 0)
        return error;
    domain->context->retry_after_s = (unsigned)((work->wait_ms + 999) / 1000);
    domain->context->reason = "sign_in_attempts";
    return context_fail(domain->context, IW_SIGN_IN_LIMITED, "Too many attempts; try again in %u s.",
                        domain->context->retry_after_s);
}

/* The network keeps its other attempts; those of the user are forgotten. */
static enum iw_error clear_work(const struct store *store, void *user)
{
    struct throttle_work *work = user;
    enum iw_error error = IW_OK;
    for (unsigned i = 0; error == IW_OK && i < work->count; i++) {
        struct attempts_row row = {.name_digest = work->of[i].digest};
        error = attempts_lock(store, &row);
        row.attempts = work->of[i].counter == BY_NETWORK && row.attempts > 0 ? row.attempts - 1 : 0;
        row.tried_ms = row.next_ms = work->now_ms;
        if (error == IW_OK)
            error = attempts_write(store, &row);
    }
    return error;
}

enum iw_error throttle_enter(struct domain *domain, const struct throttle_try *attempt)
{
    struct throttle_work work = work_of(domain->context->arena, attempt);
    return enter(domain, &work);
}

enum iw_error throttle_clear(struct domain *domain, const struct throttle_try *attempt)
{
    struct throttle_work work = work_of(domain->context->arena, attempt);
    return db_transaction(&domain->store, clear_work, &work);
}

enum iw_error throttle_forgive(const struct store *store, const struct throttle_try *attempt)
{
    struct throttle_work work = work_of(store->context->arena, attempt);
    return clear_work(store, &work);
}

enum iw_error throttle_session_enter(struct domain *domain, int64_t session_id)
{
    struct throttle_work work = session_work(domain->context->arena, session_id);
    return enter(domain, &work);
}

enum iw_error throttle_session_clear(struct domain *domain, int64_t session_id)
{
    struct throttle_work work = session_work(domain->context->arena, session_id);
    return db_transaction(&domain->store, clear_work, &work);
}

enum iw_error throttle_spend(const struct store *store, const char *name, int64_t most, int64_t window_s,
                             unsigned *wait_s)
{
    uint8_t digest[32];
    int64_t now_ms = clock_now_ms();
    struct attempts_row row = {.name_digest = digest};
    crypto_sha256(name, strlen(name), digest);
    enum iw_error error = attempts_lock(store, &row);
    *wait_s = 0;
    if (error != IW_OK)
        return error;
    if (row.next_ms <= now_ms) {
        row.attempts = 0;
        row.next_ms = now_ms + window_s * 1000;
    }
    if (row.attempts >= most) {
        *wait_s = (unsigned)((row.next_ms - now_ms + 999) / 1000);
        return IW_OK;
    }
    row.attempts++;
    row.tried_ms = now_ms;
    return attempts_write(store, &row);
}

enum iw_error throttle_refund(const struct store *store, const char *name)
{
    uint8_t digest[32];
    const struct attempts_row row = {
        .name_digest = digest, .tried_ms = clock_now_ms(), .next_ms = clock_now_ms()};
    crypto_sha256(name, strlen(name), digest);
    return attempts_write(store, &row);
}
