#include "domain/retention.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "domain/batch.h"
#include "domain/webhook_event.h"
#include "model/order.h"
#include "store/erasure.h"
#include "store/files.h"
#include "store/jobs.h"
#include "store/orders.h"
#include "store/quotas.h"

static const int64_t day_ms = 86400000;

/* ---- the files of one order ---- */

/* The argument of key_clear: collects every listed key except the kept ones. */
struct clearing {
    const struct domain *domain;
    struct storage *storage;
    struct query_texts kept;
    struct storage_key *keys;
    size_t count;
    size_t room;
};

bool retention_is_kept(struct arena *arena, const struct query_texts *kept, const struct storage_key *key)
{
    const char *text = storage_key_text(arena, key);
    for (unsigned i = 0; i < kept->count; i++)
        if (strcmp(kept->items[i], text) == 0)
            return true;
    return false;
}

static bool key_clear(void *user, const struct storage_key *key, const struct storage_facts *facts)
{
    struct clearing *clearing = user;
    struct arena *arena = clearing->domain->context->arena;
    (void)facts;
    if (retention_is_kept(arena, &clearing->kept, key))
        return true;
    if (clearing->count == clearing->room) {
        struct storage_key *before = clearing->keys;
        clearing->room = clearing->room == 0 ? 32 : 2 * clearing->room;
        clearing->keys = arena_array(arena, clearing->room, sizeof *clearing->keys);
        if (clearing->count > 0)
            memcpy(clearing->keys, before, clearing->count * sizeof *before);
    }
    clearing->keys[clearing->count++] = *key;
    return true;
}

static enum iw_error kinds_clear(struct clearing *clearing, int64_t order_id, const enum filekey_kind *kinds,
                                 unsigned count)
{
    struct context *context = clearing->domain->context;
    enum iw_error error = IW_OK;
    clearing->count = 0;
    for (unsigned i = 0; error == IW_OK && i < count; i++)
        error = storage_list(clearing->storage, context, kinds[i], order_id, key_clear, clearing);
    return error == IW_OK ? storage_delete_list(clearing->storage, context, clearing->keys, clearing->count)
                          : error;
}

enum iw_error retention_inputs_delete(const struct domain *domain, struct storage *storage, int64_t order_id)
{
    static const enum filekey_kind inputs[] = {FILEKEY_UPLOAD, FILEKEY_ORIGINAL};
    static const enum filekey_kind outputs[] = {FILEKEY_RESULT, FILEKEY_ZIP, FILEKEY_THUMBNAIL};
    struct clearing clearing = {.domain = domain, .storage = storage};
    enum iw_error error = kinds_clear(&clearing, order_id, inputs, 2);
    if (error == IW_OK)
        error = orders_store_keys(&domain->store, order_id, &clearing.kept);
    if (error == IW_OK)
        error = kinds_clear(&clearing, order_id, outputs, 3);
    return error;
}

enum iw_error retention_inputs_forget(const struct domain *domain, const int64_t *order_ids, unsigned count)
{
    return files_inputs_forget(&domain->store, order_ids, count);
}

enum iw_error retention_ended(const struct domain *domain, int64_t *order_ids, unsigned *count)
{
    return orders_ended_keep(&domain->store, order_ids, count);
}

enum iw_error retention_order_clear(const struct domain *domain, struct storage *storage, int64_t order_id)
{
    enum iw_error error = retention_inputs_delete(domain, storage, order_id);
    return error == IW_OK ? retention_inputs_forget(domain, &order_id, 1) : error;
}

/* ---- transitions ---- */

/* The argument of the transactions below: one order. */
struct aging {
    const struct domain *domain;
    struct storage *storage;
    int64_t order_id;
    int64_t now_ms;
    bool is_done;
    /* of a cancellation or deletion */
    int64_t account_id; /* the owner; 0: an operator cancels */
    bool is_forced;     /* also with results, which are deleted */
    enum order_status status;
};

/* False when the order changed since it was listed. */
static bool is_still_due(const struct aging *aging, const struct order_progress *order,
                         enum order_status status)
{
    return order->status == status && order->expires_at_ms != 0 && order->expires_at_ms <= aging->now_ms;
}

/* The error of the files of an order that ends early. */
struct ending {
    enum order_status next;
    enum iw_error code;
    const char *sentence;
};

/* Ends a locked order early: files, jobs, counts, webhooks. */
static enum iw_error order_fail(const struct store *store, struct order_progress *order,
                                const struct ending *ending, int64_t now_ms)
{
    order->failed_count = order->file_count - order->completed_count;
    enum iw_error error = files_fail(store, order->id, ending->code, ending->sentence, now_ms);
    if (error == IW_OK)
        error = jobs_cancel(store, order->id);
    if (error == IW_OK)
        error = orders_error_write(store, order->id, ending->code);
    if (error == IW_OK)
        error = orders_progress_write(store, order, now_ms);
    if (error == IW_OK)
        error = orders_close(store, order, ending->next, now_ms, 0);
    if (error == IW_OK)
        error = webhook_order_ended(store, order->account_id, order->id, order->type, ending->next);
    return error;
}

/* Deletes all files of a locked order, then records it: after an interruption the rows still name them. */
static enum iw_error order_erase(const struct store *store, struct aging *aging)
{
    static const enum filekey_kind all[] = {FILEKEY_UPLOAD, FILEKEY_ORIGINAL, FILEKEY_RESULT, FILEKEY_ZIP,
                                            FILEKEY_THUMBNAIL};
    struct clearing clearing = {.domain = aging->domain, .storage = aging->storage};
    enum iw_error error = kinds_clear(&clearing, aging->order_id, all, FILEKEY_KIND_COUNT);
    if (error == IW_OK)
        error = quotas_order_erased(store, aging->order_id);
    return error == IW_OK ? orders_files_forget(store, aging->order_id, aging->now_ms) : error;
}

static enum iw_error cancel_work(const struct store *store, void *user)
{
    struct aging *aging = user;
    struct order_progress order;
    enum iw_error error = orders_progress_lock(store, aging->order_id, &order);
    if (error != IW_OK)
        return error;
    struct ending ending = {.code = IW_ORDER_CANCELLED,
                            .sentence = aging->account_id == 0 ? iw_error_sentence(IW_ORDER_CANCELLED)
                                                               : "The account deleted the order."};
    enum order_event event = order.status == ORDER_PENDING ? ORDER_EVENT_ABANDON : ORDER_EVENT_FAIL;
    if (!order_next(order.type, order.status, event, &ending.next))
        return context_fail(store->context, IW_VALIDATION_FAILED, "The order has ended: it is %s.",
                            order_status_name(order.status));
    if (!aging->is_forced && (order.result_count > 0 || order.completed_count > 0))
        return context_fail(store->context, IW_VALIDATION_FAILED,
                            "The order has results already; it ends by itself.  --force deletes them.");
    aging->status = ending.next;
    error = order_fail(store, &order, &ending, aging->now_ms);
    return error == IW_OK && aging->is_forced ? order_erase(store, aging) : error;
}

enum iw_error retention_cancel(const struct domain *domain, struct storage *storage, int64_t order_id,
                               bool is_forced)
{
    struct aging aging = {.domain = domain,
                          .storage = storage,
                          .order_id = order_id,
                          .now_ms = clock_now_ms(),
                          .is_forced = is_forced};
    enum iw_error error = db_transaction(&domain->store, cancel_work, &aging);
    return error == IW_OK ? retention_order_clear(domain, storage, order_id) : error;
}

/* A complete order expires now; of one that ended otherwise only files are left, if any. */
static enum iw_error delete_work(const struct store *store, void *user)
{
    struct aging *aging = user;
    struct order_progress order;
    enum iw_error error = orders_progress_lock(store, aging->order_id, &order);
    if (error == IW_OK && order.account_id != aging->account_id)
        return context_fail(store->context, IW_ORDER_NOT_FOUND, NULL);
    if (error != IW_OK)
        return error;
    if (!order_is_ended(order.status))
        return cancel_work(store, user);
    aging->status = order.status;
    error = order_erase(store, aging);
    if (error != IW_OK || !order_next(order.type, order.status, ORDER_EVENT_EXPIRE, &aging->status))
        return error;
    error = jobs_forget(store, order.id);
    return error == IW_OK ? orders_close(store, &order, aging->status, aging->now_ms, aging->now_ms) : error;
}

enum iw_error retention_delete(struct domain *domain, int64_t account_id, int64_t order_id,
                               enum order_status *status)
{
    domain->context->order_id = order_id;
    enum iw_error error = domain_storage_open(domain);
    if (error != IW_OK)
        return error;
    struct aging aging = {.domain = domain,
                          .storage = domain->storage,
                          .order_id = order_id,
                          .now_ms = clock_now_ms(),
                          .account_id = account_id,
                          .is_forced = true};
    error = db_transaction(&domain->store, delete_work, &aging);
    *status = aging.status;
    if (error == IW_OK)
        error = retention_inputs_forget(domain, &order_id, 1);
    if (error == IW_OK)
        log_event(LOG_INFO, domain->context, "order_deleted");
    return error;
}

static enum iw_error abandon_work(const struct store *store, void *user)
{
    struct aging *aging = user;
    struct order_progress order;
    struct ending ending = {.code = IW_UPLOAD_EXPIRED, .sentence = iw_error_sentence(IW_UPLOAD_EXPIRED)};
    aging->is_done = false;
    enum iw_error error = orders_progress_lock(store, aging->order_id, &order);
    if (error != IW_OK || !is_still_due(aging, &order, ORDER_PENDING) ||
        !order_next(order.type, order.status, ORDER_EVENT_ABANDON, &ending.next))
        return error;
    aging->is_done = true;
    return order_fail(store, &order, &ending, aging->now_ms);
}

static enum iw_error expire_work(const struct store *store, void *user)
{
    struct aging *aging = user;
    struct order_progress order;
    enum order_status next;
    aging->is_done = false;
    enum iw_error error = orders_progress_lock(store, aging->order_id, &order);
    if (error != IW_OK || !is_still_due(aging, &order, ORDER_COMPLETE) ||
        !order_next(order.type, order.status, ORDER_EVENT_EXPIRE, &next))
        return error;
    aging->is_done = true;
    error = order_erase(store, aging);
    if (error == IW_OK)
        error = jobs_forget(store, order.id);
    if (error == IW_OK)
        error = orders_close(store, &order, next, aging->now_ms, order.expires_at_ms);
    return error;
}

/* ---- all due orders ---- */

typedef enum iw_error aging_work(const struct store *store, void *user);

static enum iw_error order_age(struct aging *aging, enum order_status status, aging_work *work,
                               unsigned *count)
{
    struct context *context = aging->domain->context;
    enum iw_error error = db_transaction(&aging->domain->store, work, aging);
    if (error != IW_OK || !aging->is_done)
        return error;
    (*count)++;
    context->order_id = aging->order_id;
    log_event(LOG_INFO, context, status == ORDER_PENDING ? "order_abandoned" : "order_expired");
    context->order_id = 0;
    return status == ORDER_PENDING ? retention_order_clear(aging->domain, aging->storage, aging->order_id)
                                   : IW_OK;
}

/* Runs work on every due order of a status, in pages of max.  Stuck orders stay first and are skipped. */
static enum iw_error orders_age(const struct domain *domain, struct storage *storage,
                                enum order_status status, unsigned max, aging_work *work, unsigned *count)
{
    struct query_ids due = {.count = 0};
    unsigned stuck_before;
    struct batch batch;
    batch_begin(&batch, domain);
    struct aging aging = {.domain = &batch.domain, .storage = storage, .now_ms = clock_now_ms()};
    enum iw_error error;
    *count = 0;
    do {
        stuck_before = batch.stuck;
        error = orders_overdue(&batch.domain.store, status, aging.now_ms, max, batch.stuck, &due);
        error = batch_next(&batch, error, 0);
        for (unsigned i = 0; error == IW_OK && i < due.count; i++) {
            aging.order_id = due.items[i];
            error = batch_next(&batch, order_age(&aging, status, work, count), aging.order_id);
        }
    } while (error == IW_OK && due.count == max && batch.stuck > stuck_before && batch.stuck < max);
    return batch_end(&batch, error);
}

enum iw_error retention_abandon(const struct domain *domain, struct storage *storage, unsigned max,
                                unsigned *count)
{
    return orders_age(domain, storage, ORDER_PENDING, max, abandon_work, count);
}

enum iw_error retention_expire(const struct domain *domain, struct storage *storage, unsigned max,
                               unsigned *count)
{
    return orders_age(domain, storage, ORDER_COMPLETE, max, expire_work, count);
}

/* ---- orders that wait for ever ---- */

static enum iw_error stuck_work(const struct store *store, void *user)
{
    struct aging *aging = user;
    struct order_progress order;
    struct ending ending = {.code = IW_PROCESSING_CRASHED,
                            .sentence = iw_error_sentence(IW_PROCESSING_CRASHED)};
    aging->is_done = false;
    enum iw_error error = orders_progress_lock(store, aging->order_id, &order);
    if (error != IW_OK || !order_next(order.type, order.status, ORDER_EVENT_FAIL, &ending.next))
        return error;
    aging->is_done = true;
    error = order_fail(store, &order, &ending, aging->now_ms);
    return error == IW_OK ? order_erase(store, aging) : error;
}

enum iw_error retention_stuck(const struct domain *domain, struct storage *storage, unsigned max,
                              int64_t *after_id, unsigned *count)
{
    struct query_ids stuck = {.count = 0};
    struct batch batch;
    struct aging aging = {.storage = storage, .now_ms = clock_now_ms()};
    int64_t before_ms = aging.now_ms - domain->config->orders_stuck_s * 1000;
    batch_begin(&batch, domain);
    aging.domain = &batch.domain;
    *count = 0;
    enum iw_error error =
        orders_stuck(&batch.domain.store, after_id, order_id_make(before_ms, 0), max, &stuck);
    error = batch_next(&batch, error, 0);
    for (unsigned i = 0; error == IW_OK && i < stuck.count; i++) {
        aging.order_id = stuck.items[i];
        error = batch_next(&batch, db_transaction(&batch.domain.store, stuck_work, &aging), aging.order_id);
        if (error != IW_OK || !aging.is_done)
            continue;
        (*count)++;
        error =
            batch_next(&batch, retention_inputs_forget(&batch.domain, &aging.order_id, 1), aging.order_id);
        domain->context->order_id = aging.order_id;
        log_event(LOG_ERROR, domain->context, "order_stuck", LOG_TEXT("reason", "retried_for_too_long"));
        domain->context->order_id = 0;
    }
    return batch_end(&batch, error);
}

/* ---- rows ---- */

static enum iw_error forget_work(const struct store *store, void *user)
{
    const struct aging *aging = user;
    struct order_progress order;
    enum iw_error error = orders_progress_lock(store, aging->order_id, &order);
    return error == IW_OK ? orders_forget(store, aging->order_id) : error;
}

enum iw_error retention_forget(const struct domain *domain, unsigned max, int64_t *after_id, unsigned *count)
{
    struct query_ids old = {.count = 0};
    struct aging aging = {.domain = domain, .now_ms = clock_now_ms()};
    int64_t before_ms = aging.now_ms - domain->config->orders_rows_kept_days * day_ms;
    *count = 0;
    if (domain->config->orders_rows_kept_days == 0)
        return IW_OK;
    enum iw_error error =
        orders_outdated(&domain->store, after_id, order_id_make(before_ms, 0), before_ms, max, &old);
    for (; error == IW_OK && *count < old.count; ++*count) {
        aging.order_id = old.items[*count];
        error = db_transaction(&domain->store, forget_work, &aging);
    }
    if (*count > 0)
        log_event(LOG_INFO, domain->context, "orders_forgotten", LOG_NUMBER("orders", *count));
    return error;
}

/* ---- accounts ---- */

static enum iw_error remove_work(const struct store *store, void *user)
{
    struct aging *aging = user;
    struct order_progress order;
    enum iw_error error = orders_progress_lock(store, aging->order_id, &order);
    if (error != IW_OK)
        return error;
    error = order_is_ended(order.status) ? order_erase(store, aging) : cancel_work(store, aging);
    return error == IW_OK ? orders_forget(store, aging->order_id) : error;
}

/* Late results of its jobs are refused, because the order is gone. */
static enum iw_error orders_remove(const struct domain *domain, struct storage *storage,
                                   const struct query_ids *orders)
{
    struct batch batch;
    enum iw_error error = IW_OK;
    batch_begin(&batch, domain);
    struct aging aging = {
        .domain = &batch.domain, .storage = storage, .now_ms = clock_now_ms(), .is_forced = true};
    for (unsigned i = 0; error == IW_OK && i < orders->count; i++) {
        aging.order_id = orders->items[i];
        error = batch_next(&batch, db_transaction(&batch.domain.store, remove_work, &aging), aging.order_id);
    }
    return batch_end(&batch, error);
}

enum iw_error retention_account_delete(const struct domain *domain, struct storage *storage, unsigned max,
                                       bool *is_busy)
{
    int64_t account_id;
    bool is_gone = false;
    struct query_ids orders = {.count = 0};
    enum iw_error error = erasure_due(&domain->store, clock_now_ms(), &account_id);
    *is_busy = error == IW_OK && account_id != 0;
    if (!*is_busy)
        return error;
    error = erasure_orders(&domain->store, account_id, max, &orders);
    if (error == IW_OK && orders.count > 0)
        return orders_remove(domain, storage, &orders);
    if (error == IW_OK)
        error = erasure_step(&domain->store, account_id, &is_gone);
    if (error == IW_OK && is_gone)
        log_event(LOG_INFO, domain->context, "account_deleted", LOG_NUMBER("account", account_id));
    return error;
}
