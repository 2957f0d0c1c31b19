#include "domain/retention.h"

#include <stdlib.h>
#include <string.h>

#include <imgward/fault.h>

#include "base/clock.h"
#include "base/log.h"
#include "domain/webhook.h"
#include "model/order.h"
#include "store/closing.h"
#include "store/jobs.h"

/* Deletes the keys of a kind that are not among those to keep. */
struct clearing {
    const struct domain *domain;
    struct storage *storage;
    const char **kept;
    unsigned kept_count;
    enum iw_error error;
};

static bool is_kept(const struct clearing *clearing, const struct storage_key *key)
{
    const char *text = storage_key_text(clearing->domain->context->arena, key);
    for (unsigned i = 0; i < clearing->kept_count; i++)
        if (strcmp(clearing->kept[i], text) == 0)
            return true;
    return false;
}

static bool key_clear(void *user, const struct storage_key *key, const struct storage_facts *facts)
{
    struct clearing *clearing = user;
    (void)facts;
    if (!is_kept(clearing, key))
        clearing->error = storage_delete(clearing->storage, clearing->domain->context, key);
    return clearing->error == IW_OK;
}

static enum iw_error kinds_clear(struct clearing *clearing, int64_t order_id, const enum filekey_kind *kinds,
                                 unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        enum iw_error error = storage_list(clearing->storage, clearing->domain->context, kinds[i], order_id,
                                           key_clear, clearing);
        if (error != IW_OK || clearing->error != IW_OK)
            return error != IW_OK ? error : clearing->error;
    }
    return IW_OK;
}

enum iw_error retention_inputs_delete(const struct domain *domain, struct storage *storage, int64_t order_id)
{
    static const enum filekey_kind inputs[] = {FILEKEY_UPLOAD, FILEKEY_ORIGINAL};
    static const enum filekey_kind outputs[] = {FILEKEY_RESULT, FILEKEY_ZIP, FILEKEY_THUMBNAIL};
    struct clearing clearing = {.domain = domain, .storage = storage};
    enum iw_error error = kinds_clear(&clearing, order_id, inputs, 2);
    if (error == IW_OK)
        error = closing_keys(&domain->store, order_id, &clearing.kept, &clearing.kept_count);
    if (error == IW_OK)
        error = kinds_clear(&clearing, order_id, outputs, 3);
    fault_point(FAULT_CLEAR_DELETED);
    return error;
}

enum iw_error retention_inputs_forget(const struct domain *domain, const int64_t *order_ids, unsigned count)
{
    enum iw_error error = closing_inputs_forget(&domain->store, order_ids, count);
    fault_point(FAULT_CLEAR_FORGOTTEN);
    return error;
}

enum iw_error retention_ended(const struct domain *domain, int64_t *order_ids, unsigned *count)
{
    return closing_ended(&domain->store, order_ids, count);
}

enum iw_error retention_order_clear(const struct domain *domain, struct storage *storage, int64_t order_id)
{
    enum iw_error error = retention_inputs_delete(domain, storage, order_id);
    return error == IW_OK ? retention_inputs_forget(domain, &order_id, 1) : error;
}

/* One order that goes through a transaction. */
struct aging {
    const struct domain *domain;
    struct storage *storage;
    int64_t order_id;
    int64_t now_ms;
    bool is_done;
};

/* False when the order is not what the list said any more. */
static bool is_still_due(const struct aging *aging, const struct order_progress *order,
                         enum order_status status)
{
    return order->status == status && order->expires_at_ms != 0 && order->expires_at_ms <= aging->now_ms;
}

/* Ends a locked order that has no result: files, jobs, counts, webhooks; error is what its files read. */
static enum iw_error order_fail(const struct store *store, struct order_progress *order,
                                enum order_status next, enum iw_error code, int64_t now_ms)
{
    order->failed_count = order->file_count;
    enum iw_error error = closing_files_fail(store, order->id, code, now_ms);
    if (error == IW_OK)
        error = jobs_cancel(store, order->id);
    if (error == IW_OK)
        error = closing_order_error(store, order->id, code);
    if (error == IW_OK)
        error = closing_order_count(store, order, now_ms);
    if (error == IW_OK)
        error = closing_order_close(store, order, next, now_ms, 0);
    if (error == IW_OK)
        error = webhook_order_ended(store, order->account_id, order->id, order->type, next);
    return error;
}

static enum iw_error cancel_work(const struct store *store, void *user)
{
    struct aging *aging = user;
    struct order_progress order;
    enum order_status next;
    enum iw_error error = closing_order_lock(store, aging->order_id, &order);
    if (error != IW_OK)
        return error;
    enum order_event event = order.status == ORDER_PENDING ? ORDER_EVENT_ABANDON : ORDER_EVENT_FAIL;
    if (!order_next(order.type, order.status, event, &next))
        return context_fail(store->context, IW_VALIDATION_FAILED, "The order has ended: it is %s.",
                            order_status_name(order.status));
    if (order.result_count > 0 || order.completed_count > 0)
        return context_fail(store->context, IW_VALIDATION_FAILED,
                            "The order has results already; it ends by itself.");
    return order_fail(store, &order, next, IW_ORDER_CANCELLED, aging->now_ms);
}

enum iw_error retention_cancel(const struct domain *domain, struct storage *storage, int64_t order_id)
{
    struct aging aging = {
        .domain = domain, .storage = storage, .order_id = order_id, .now_ms = clock_now_ms()};
    enum iw_error error = db_transaction(&domain->store, cancel_work, &aging);
    return error == IW_OK ? retention_order_clear(domain, storage, order_id) : error;
}

static enum iw_error abandon_work(const struct store *store, void *user)
{
    struct aging *aging = user;
    struct order_progress order;
    enum order_status next;
    aging->is_done = false;
    enum iw_error error = closing_order_lock(store, aging->order_id, &order);
    if (error != IW_OK || !is_still_due(aging, &order, ORDER_PENDING) ||
        !order_next(order.type, order.status, ORDER_EVENT_ABANDON, &next))
        return error;
    aging->is_done = true;
    return order_fail(store, &order, next, IW_UPLOAD_EXPIRED, aging->now_ms);
}

/* The files go first: dying in between leaves an order that is still due. */
static enum iw_error expire_work(const struct store *store, void *user)
{
    static const enum filekey_kind all[] = {FILEKEY_UPLOAD, FILEKEY_ORIGINAL, FILEKEY_RESULT, FILEKEY_ZIP,
                                            FILEKEY_THUMBNAIL};
    struct aging *aging = user;
    struct order_progress order;
    struct clearing clearing = {.domain = aging->domain, .storage = aging->storage};
    enum order_status next;
    aging->is_done = false;
    enum iw_error error = closing_order_lock(store, aging->order_id, &order);
    if (error != IW_OK || !is_still_due(aging, &order, ORDER_COMPLETE) ||
        !order_next(order.type, order.status, ORDER_EVENT_EXPIRE, &next))
        return error;
    aging->is_done = true;
    error = kinds_clear(&clearing, order.id, all, FILEKEY_KIND_COUNT);
    fault_point(FAULT_AGE_FILES_DELETED);
    if (error == IW_OK)
        error = closing_files_forget(store, order.id, aging->now_ms);
    if (error == IW_OK)
        error = jobs_forget(store, order.id);
    if (error == IW_OK)
        error = closing_order_close(store, &order, next, aging->now_ms, order.expires_at_ms);
    return error;
}

/*
 * Work on many orders: each has the context to itself, and what the store refuses
 * of one keeps none of the others waiting.  The first error stays with the caller.
 */
struct round {
    const struct domain *domain; /* the caller's */
    struct domain own;
    struct context context;
    unsigned stuck; /* orders that the store refused */
};

static void round_begin(struct round *round, const struct domain *domain)
{
    *round = (struct round){.domain = domain, .own = *domain};
    context_init(&round->context, domain->context->arena, domain->context->request_id);
    domain_context_set(&round->own, &round->context);
}

/* After an order, or a question to the database: IW_OK when the round may go on. */
static enum iw_error round_next(struct round *round, enum iw_error error, int64_t order_id)
{
    const char *reason = round->context.reason;
    if (error == IW_OK)
        return IW_OK;
    round->context.order_id = order_id;
    if (round->domain->context->error == IW_OK)
        *round->domain->context = round->context;
    bool is_of_store =
        error == IW_SERVICE_UNAVAILABLE && reason != NULL && strcmp(reason, "store_failed") == 0;
    context_init(&round->context, round->domain->context->arena, round->domain->context->request_id);
    round->stuck += is_of_store;
    return is_of_store ? IW_OK : error;
}

static enum iw_error round_end(const struct round *round, enum iw_error error)
{
    return error != IW_OK ? error : round->domain->context->error;
}

typedef enum iw_error aging_work(const struct store *store, void *user);

static enum iw_error order_age(struct aging *aging, enum order_status status, aging_work *work,
                               unsigned *count)
{
    struct context *context = aging->domain->context;
    enum iw_error error = db_transaction(&aging->domain->store, work, aging);
    if (error != IW_OK || !aging->is_done)
        return error;
    fault_point(FAULT_AGE_RECORDED);
    (*count)++;
    context->order_id = aging->order_id;
    log_event(LOG_INFO, context, status == ORDER_PENDING ? "order_abandoned" : "order_expired");
    context->order_id = 0;
    return status == ORDER_PENDING ? retention_order_clear(aging->domain, aging->storage, aging->order_id)
                                   : IW_OK;
}

/* Runs work on every order of a status that is due, most of them at a time; those that are stuck stay in
 * front. */
static enum iw_error orders_age(const struct domain *domain, struct storage *storage,
                                enum order_status status, unsigned most, aging_work *work, unsigned *count)
{
    int64_t *order_ids;
    unsigned due = 0, stuck_before;
    struct round round;
    round_begin(&round, domain);
    struct aging aging = {.domain = &round.own, .storage = storage, .now_ms = clock_now_ms()};
    enum iw_error error;
    *count = 0;
    do {
        stuck_before = round.stuck;
        error = closing_overdue(&round.own.store, status, aging.now_ms, most, round.stuck, &order_ids, &due);
        error = round_next(&round, error, 0);
        for (unsigned i = 0; error == IW_OK && i < due; i++) {
            aging.order_id = order_ids[i];
            error = round_next(&round, order_age(&aging, status, work, count), aging.order_id);
        }
    } while (error == IW_OK && due == most && round.stuck > stuck_before && round.stuck < most);
    return round_end(&round, error);
}

enum iw_error retention_abandon(const struct domain *domain, struct storage *storage, unsigned most,
                                unsigned *count)
{
    return orders_age(domain, storage, ORDER_PENDING, most, abandon_work, count);
}

enum iw_error retention_expire(const struct domain *domain, struct storage *storage, unsigned most,
                               unsigned *count)
{
    return orders_age(domain, storage, ORDER_COMPLETE, most, expire_work, count);
}

enum {
    reclaim_max = 1000,
    reclaim_rows = 200,
    reclaim_grace_ms = 60 * 60 * 1000,
    day_ms = 24 * 60 * 60 * 1000
};

/* Orders that have inputs and are too old to be pending, each once where the store lists an order's keys side
 * by side. */
struct reclaim {
    int64_t order_ids[reclaim_max];
    unsigned count;
    int64_t before_ms;
};

static bool order_note(void *user, const struct storage_key *key, const struct storage_facts *facts)
{
    struct reclaim *reclaim = user;
    bool is_new = reclaim->count == 0 || reclaim->order_ids[reclaim->count - 1] != key->order_id;
    (void)facts;
    if (is_new && order_id_time_ms(key->order_id) < reclaim->before_ms)
        reclaim->order_ids[reclaim->count++] = key->order_id;
    return reclaim->count < reclaim_max;
}

/* Inputs that rows of ended orders still name: somebody died between the end and the clearing. */
static enum iw_error named_reclaim(const struct domain *domain, struct storage *storage, int64_t pending_ms,
                                   unsigned *count)
{
    int64_t *order_ids;
    unsigned found = reclaim_rows;
    int64_t from = order_id_make(clock_now_ms() - pending_ms - 3 * (int64_t)day_ms, 0);
    struct round round;
    round_begin(&round, domain);
    enum iw_error error = IW_OK;
    while (error == IW_OK && found == reclaim_rows) {
        error = closing_uncleared(&round.own.store, from, reclaim_rows, &order_ids, &found);
        error = round_next(&round, error, 0);
        for (unsigned i = 0; error == IW_OK && i < found; i++) {
            from = order_ids[i] + 1;
            error =
                round_next(&round, retention_order_clear(&round.own, storage, order_ids[i]), order_ids[i]);
            (*count)++;
        }
    }
    return round_end(&round, error);
}

/* Inputs that no row names, of orders that ended long ago or never were. */
static enum iw_error unnamed_reclaim(const struct domain *domain, struct storage *storage, int64_t pending_ms,
                                     unsigned *count)
{
    struct context *context = domain->context;
    struct reclaim *reclaim = arena_alloc(context->arena, sizeof *reclaim);
    reclaim->before_ms = clock_now_ms() - pending_ms - reclaim_grace_ms;
    enum iw_error error = storage_list(storage, context, FILEKEY_UPLOAD, 0, order_note, reclaim);
    for (unsigned i = 0; error == IW_OK && i < reclaim->count; i++) {
        enum order_status status = ORDER_FAILED;
        error = closing_order_status(&domain->store, reclaim->order_ids[i], &status);
        if (error == IW_ORDER_NOT_FOUND) {
            context_clear(context);
            error = IW_OK;
        }
        if (error != IW_OK || !order_is_ended(status))
            continue;
        error = retention_order_clear(domain, storage, reclaim->order_ids[i]);
        (*count)++;
    }
    return error;
}

enum iw_error retention_reclaim(const struct domain *domain, struct storage *storage, unsigned *count)
{
    int64_t pending_ms = domain->config->orders_pending_s * 1000;
    *count = 0;
    fault_point(FAULT_RECLAIM_BEGUN);
    enum iw_error error = named_reclaim(domain, storage, pending_ms, count);
    return error == IW_OK ? unnamed_reclaim(domain, storage, pending_ms, count) : error;
}

/* ---- what nobody names ---- */

/* Outputs of one part of the store that are old enough to be nobody's. */
struct orphans {
    struct arena *arena;
    struct storage_key *keys;
    unsigned count;
    unsigned room;
    unsigned seen;
    int64_t before_ms;
};

static bool orphan_note(void *user, const struct storage_key *key, const struct storage_facts *facts)
{
    struct orphans *orphans = user;
    orphans->seen++;
    if (facts->modified_ms >= orphans->before_ms)
        return true;
    if (orphans->count == orphans->room) {
        struct storage_key *before = orphans->keys;
        orphans->room = orphans->room == 0 ? 64 : 2 * orphans->room;
        orphans->keys = arena_array(orphans->arena, orphans->room, sizeof *orphans->keys);
        if (orphans->count > 0)
            memcpy(orphans->keys, before, orphans->count * sizeof *before);
    }
    orphans->keys[orphans->count++] = *key;
    return true;
}

static int by_order(const void *one, const void *other)
{
    int64_t a = ((const struct storage_key *)one)->order_id,
            b = ((const struct storage_key *)other)->order_id;
    return (a > b) - (a < b);
}

/*
 * The status first, the keys after it: what the last transaction of an order names is there when its end is
 * seen, and nothing is named later.
 */
static enum iw_error order_orphans_delete(const struct domain *domain, struct storage *storage,
                                          const struct storage_key *keys, unsigned key_count, unsigned *count)
{
    struct context *context = domain->context;
    struct clearing clearing = {.domain = domain, .storage = storage};
    enum order_status status = ORDER_PENDING;
    enum iw_error error = closing_order_status(&domain->store, keys->order_id, &status);
    if (error == IW_ORDER_NOT_FOUND)
        context_clear(context);
    if (error == IW_ORDER_NOT_FOUND || (error == IW_OK && !order_is_ended(status)))
        return IW_OK;
    if (error == IW_OK)
        error = closing_keys(&domain->store, keys->order_id, &clearing.kept, &clearing.kept_count);
    for (unsigned i = 0; error == IW_OK && i < key_count; i++) {
        if (is_kept(&clearing, &keys[i]))
            continue;
        error = storage_delete(storage, context, &keys[i]);
        *count += error == IW_OK;
    }
    return error;
}

static enum iw_error part_orphans(const struct domain *domain, struct storage *storage, unsigned part,
                                  unsigned *seen, unsigned *count)
{
    static const enum filekey_kind outputs[] = {FILEKEY_RESULT, FILEKEY_ZIP, FILEKEY_THUMBNAIL};
    struct orphans orphans = {.arena = domain->context->arena,
                              .before_ms = clock_now_ms() - reclaim_grace_ms};
    enum iw_error error = IW_OK;
    for (int i = 0; error == IW_OK && i < 3; i++)
        error = storage_list_part(storage, domain->context, outputs[i], part, orphan_note, &orphans);
    if (orphans.count > 0)
        qsort(orphans.keys, orphans.count, sizeof *orphans.keys, by_order);
    for (unsigned from = 0, to; error == IW_OK && from < orphans.count; from = to) {
        for (to = from + 1; to < orphans.count && by_order(&orphans.keys[from], &orphans.keys[to]) == 0;)
            to++;
        error = order_orphans_delete(domain, storage, orphans.keys + from, to - from, count);
    }
    *seen += orphans.seen;
    return error;
}

enum iw_error retention_orphans(const struct domain *domain, struct storage *storage, unsigned *part,
                                unsigned keys_enough, unsigned *count)
{
    unsigned seen = 0;
    enum iw_error error = IW_OK;
    *count = 0;
    while (error == IW_OK && seen < keys_enough) {
        error = part_orphans(domain, storage, *part, &seen, count);
        if (error == IW_OK)
            *part = (*part + 1) % storage_part_count;
        if (*part == 0)
            break;
    }
    return error;
}
