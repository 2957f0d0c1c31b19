#include "domain/throttle.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "store/attempts.h"

enum {
    user_free = 5,
    user_wait_max_s = 300,
    /* An office or a mobile network shares an address. */
    address_free = 30,
    address_wait_max_s = 900,
    forget_ms = 24 * 60 * 60 * 1000
};

/* The argument of both transactions. */
struct throttle_work {
    uint8_t user[32];
    uint8_t address[32];
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

static struct throttle_work work_of(const struct domain *domain, const char *user_name, const char *address)
{
    struct throttle_work work = {.now_ms = clock_now_ms()};
    struct arena *arena = domain->context->arena;
    const char *user = arena_printf(arena, "user:%s", user_name);
    const char *network = arena_printf(arena, "address:%s", throttle_network(arena, address));
    crypto_sha256(user, strlen(user), work.user);
    crypto_sha256(network, strlen(network), work.address);
    return work;
}

/* Counts an attempt in a row. */
static void row_count(struct attempts_row *row, int64_t now_ms, int64_t free, int64_t wait_max_s)
{
    row->attempts = now_ms - row->tried_ms > forget_ms ? 1 : row->attempts + 1;
    row->tried_ms = row->next_ms = now_ms;
    int64_t over = row->attempts - free;
    if (over < 0)
        return;
    int64_t wait_s = over < 20 ? (int64_t)1 << over : wait_max_s;
    row->next_ms += (wait_s < wait_max_s ? wait_s : wait_max_s) * 1000;
}

static enum iw_error enter_work(const struct store *store, void *user)
{
    struct throttle_work *work = user;
    struct attempts_row by_user = {.name_digest = work->user}, by_address = {.name_digest = work->address};
    enum iw_error error = attempts_lock(store, &by_address);
    if (error == IW_OK)
        error = attempts_lock(store, &by_user);
    if (error != IW_OK)
        return error;
    int64_t next_ms = by_user.next_ms > by_address.next_ms ? by_user.next_ms : by_address.next_ms;
    work->wait_ms = next_ms > work->now_ms ? next_ms - work->now_ms : 0;
    if (work->wait_ms > 0)
        return IW_OK;
    row_count(&by_user, work->now_ms, user_free, user_wait_max_s);
    row_count(&by_address, work->now_ms, address_free, address_wait_max_s);
    error = attempts_write(store, &by_address);
    return error == IW_OK ? attempts_write(store, &by_user) : error;
}

enum iw_error throttle_enter(struct domain *domain, const char *user_name, const char *address)
{
    struct throttle_work work = work_of(domain, user_name, address);
    enum iw_error error = db_transaction(&domain->store, enter_work, &work);
    if (error != IW_OK || work.wait_ms == 0)
        return error;
    domain->context->retry_after_s = (unsigned)((work.wait_ms + 999) / 1000);
    domain->context->reason = "sign_in_attempts";
    return context_fail(domain->context, IW_SIGN_IN_LIMITED, "Too many attempts; try again in %u s.",
                        domain->context->retry_after_s);
}

static enum iw_error clear_work(const struct store *store, void *user)
{
    struct throttle_work *work = user;
    struct attempts_row by_user = {.name_digest = work->user}, by_address = {.name_digest = work->address};
    enum iw_error error = attempts_lock(store, &by_address);
    if (error == IW_OK)
        error = attempts_lock(store, &by_user);
    if (error != IW_OK)
        return error;
    by_user.attempts = 0;
    by_address.attempts -= by_address.attempts > 0;
    by_user.tried_ms = by_user.next_ms = work->now_ms;
    by_address.tried_ms = by_address.next_ms = work->now_ms;
    error = attempts_write(store, &by_address);
    return error == IW_OK ? attempts_write(store, &by_user) : error;
}

enum iw_error throttle_clear(struct domain *domain, const char *user_name, const char *address)
{
    struct throttle_work work = work_of(domain, user_name, address);
    return db_transaction(&domain->store, clear_work, &work);
}
