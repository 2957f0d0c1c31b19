#include "domain/people/throttle.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "db/attempts.h"
#include "db/transaction.h"

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

/* The counters of an attempt. */
struct counters {
    struct {
        enum counter counter;
        bool is_ignored; /* it counts, but no attempt waits for it */
        uint8_t digest[32];
    } of[counters_max];
    unsigned count;
    int64_t now_ms;
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

static void counter_add(struct counters *counters, enum counter counter, struct arena *arena,
                        const char *what, const char *text)
{
    const char *name =
        arena_printf(arena, "%s:%s%s%s", limits[counter].name, what, what[0] != '\0' ? ":" : "", text);
    counters->of[counters->count].counter = counter;
    crypto_sha256(name, strlen(name), counters->of[counters->count++].digest);
}

static struct counters counters_of(struct arena *arena, const struct throttle_try *attempt)
{
    struct counters counters = {.now_ms = clock_now_ms()};
    const char *network = throttle_network(arena, attempt->address);
    counter_add(&counters, BY_NETWORK, arena, attempt->what, network);
    counter_add(&counters, BY_PAIR, arena, attempt->what,
                arena_printf(arena, "%s %s", network, attempt->user_name));
    counter_add(&counters, BY_USER, arena, attempt->what, attempt->user_name);
    counters.of[counters.count - 1].is_ignored = attempt->is_known;
    return counters;
}

static struct counters session_counters(struct arena *arena, int64_t session_id)
{
    struct counters counters = {.now_ms = clock_now_ms()};
    counter_add(&counters, BY_SESSION, arena, "", arena_printf(arena, "%lld", (long long)session_id));
    return counters;
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

/*
 * Counts an attempt, or sets *wait_ms until the next one.  A refused attempt writes no row, because the
 * network comes first and already has a row.
 */
static enum iw_error counters_write(const struct db *db, const struct counters *counters, int64_t *wait_ms)
{
    struct attempts_row rows[counters_max];
    *wait_ms = 0;
    for (unsigned i = 0; i < counters->count; i++) {
        rows[i] = (struct attempts_row){.name_digest = counters->of[i].digest};
        enum iw_error error = attempts_lock(db, &rows[i]);
        if (error != IW_OK)
            return error;
        if (rows[i].next_ms > counters->now_ms && !counters->of[i].is_ignored) {
            *wait_ms = rows[i].next_ms - counters->now_ms;
            return IW_OK;
        }
    }
    enum iw_error error = IW_OK;
    for (unsigned i = 0; error == IW_OK && i < counters->count; i++) {
        row_count(&rows[i], counters->now_ms, counters->of[i].counter);
        error = attempts_write(db, &rows[i]);
    }
    return error;
}

static enum iw_error enter(struct domain *domain, const struct counters *counters)
{
    int64_t wait_ms = 0;
    enum iw_error error;
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        error = counters_write(&domain->db, counters, &wait_ms);
    }
    if (error != IW_OK || wait_ms == 0)
        return error;
    domain->context->retry_after_s = (unsigned)((wait_ms + 999) / 1000);
    domain->context->reason = "sign_in_attempts";
    return context_fail(domain->context, IW_SIGN_IN_LIMITED, "Too many attempts; try again in %u s.",
                        domain->context->retry_after_s);
}

/* The network keeps its other attempts; those of the user are forgotten. */
static enum iw_error counters_clear(struct domain *domain, const struct counters *counters)
{
    enum iw_error error;
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        for (unsigned i = 0; error == IW_OK && i < counters->count; i++) {
            struct attempts_row row = {.name_digest = counters->of[i].digest};
            error = attempts_lock(&domain->db, &row);
            row.attempts = counters->of[i].counter == BY_NETWORK && row.attempts > 0 ? row.attempts - 1 : 0;
            row.tried_ms = row.next_ms = counters->now_ms;
            if (error == IW_OK)
                error = attempts_write(&domain->db, &row);
        }
    }
    return error;
}

enum iw_error throttle_enter(struct domain *domain, const struct throttle_try *attempt)
{
    const struct counters counters = counters_of(domain->context->arena, attempt);
    return enter(domain, &counters);
}

enum iw_error throttle_clear(struct domain *domain, const struct throttle_try *attempt)
{
    const struct counters counters = counters_of(domain->context->arena, attempt);
    return counters_clear(domain, &counters);
}

enum iw_error throttle_session_enter(struct domain *domain, int64_t session_id)
{
    const struct counters counters = session_counters(domain->context->arena, session_id);
    return enter(domain, &counters);
}

enum iw_error throttle_session_clear(struct domain *domain, int64_t session_id)
{
    const struct counters counters = session_counters(domain->context->arena, session_id);
    return counters_clear(domain, &counters);
}

enum iw_error throttle_spend(const struct domain *domain, const char *name, int64_t most, int64_t window_s,
                             unsigned *wait_s)
{
    uint8_t digest[32];
    enum iw_error error;
    crypto_sha256(name, strlen(name), digest);
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        struct attempts_row row = {.name_digest = digest};
        *wait_s = 0;
        error = attempts_lock(&domain->db, &row);
        if (error != IW_OK)
            continue;
        int64_t now_ms = clock_now_ms();
        if (row.next_ms <= now_ms) {
            row.attempts = 0;
            row.next_ms = now_ms + window_s * 1000;
        }
        row.tried_ms = now_ms;
        if (row.attempts++ < most)
            error = attempts_write(&domain->db, &row);
        else
            *wait_s = (unsigned)((row.next_ms - now_ms + 999) / 1000);
    }
    return error;
}

enum iw_error throttle_refund(const struct domain *domain, const char *name)
{
    uint8_t digest[32];
    int64_t now_ms = clock_now_ms();
    const struct attempts_row row = {.name_digest = digest, .tried_ms = now_ms, .next_ms = now_ms};
    crypto_sha256(name, strlen(name), digest);
    return attempts_write(&domain->db, &row);
}
