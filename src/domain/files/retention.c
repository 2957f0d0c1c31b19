#include "domain/files/retention.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "db/erasure.h"
#include "db/files.h"
#include "db/jobs.h"
#include "db/orders.h"
#include "db/quotas.h"
#include "db/transaction.h"
#include "domain/webhooks/webhook_event.h"
#include "model/order.h"

static const int64_t day_ms = 86400000;

void retention_batch_begin(struct retention_batch *batch, const struct domain *caller)
{
    *batch = (struct retention_batch){.caller = caller, .domain = *caller};
    context_init(&batch->context, caller->context->arena, caller->context->request_id);
    domain_context_set(&batch->domain, &batch->context);
}

enum iw_error retention_batch_next(struct retention_batch *batch, enum iw_error error, int64_t order_id)
{
    struct context *caller = batch->caller->context;
    if (error == IW_OK) {
        context_order_end(&batch->context);
        return IW_OK;
    }
    batch->context.order_id = order_id;
    if (caller->error == IW_OK)
        *caller = batch->context;
    bool is_of_store = error == IW_SERVICE_UNAVAILABLE && !db_has_failed(batch->domain.db.connection);
    context_init(&batch->context, caller->arena, caller->request_id);
    batch->stuck += is_of_store;
    return is_of_store ? IW_OK : error;
}

enum iw_error retention_batch_end(const struct retention_batch *batch, enum iw_error error)
{
    return error != IW_OK ? error : batch->caller->context->error;
}

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
        error = orders_store_keys(&domain->db, order_id, &clearing.kept);
    if (error == IW_OK)
        error = kinds_clear(&clearing, order_id, outputs, 3);
    return error;
}

enum iw_error retention_inputs_forget(const struct domain *domain, const int64_t *order_ids, unsigned count)
{
    return files_inputs_forget(&domain->db, order_ids, count);
}

enum iw_error retention_ended(const struct domain *domain, int64_t *order_ids, unsigned *count)
{
    return orders_ended_keep(&domain->db, order_ids, count);
}

enum iw_error retention_order_clear(const struct domain *domain, struct storage *storage, int64_t order_id)
{
    enum iw_error error = retention_inputs_delete(domain, storage, order_id);
    return error == IW_OK ? retention_inputs_forget(domain, &order_id, 1) : error;
}

/* ---- transitions ---- */

/* What the transactions below have in common. */
struct aging {
    const struct domain *domain;
    struct storage *storage;
    int64_t now_ms;
};

/* The error of the files of an order that ends early. */
struct order_ending {
    enum order_status next;
    enum iw_error code;
    const char *sentence;
};

/* Ends a locked order early: files, jobs, counts, webhooks. */
static enum iw_error order_fail(const struct aging *aging, struct order_progress *order,
                                const struct order_ending *ending)
{
    const struct db *db = &aging->domain->db;
    order->failed_count = order->file_count - order->completed_count;
    enum iw_error error = files_fail(db, order->id, ending->code, ending->sentence, aging->now_ms);
    if (error == IW_OK)
        error = jobs_cancel(db, order->id);
    if (error == IW_OK)
        error = orders_error_write(db, order->id, ending->code);
    if (error == IW_OK)
        error = orders_progress_write(db, order, aging->now_ms);
    if (error == IW_OK)
        error = orders_close(db, order, ending->next, aging->now_ms, 0);
    if (error == IW_OK)
        error = webhook_order_ended(aging->domain, order->account_id, order->id, order->type, ending->next);
    return error;
}

/*
 * Deletes all files of a locked order, then records this, so that the rows still name the files after an
 * interruption.
 */
static enum iw_error order_erase(const struct aging *aging, int64_t order_id)
{
    static const enum filekey_kind all[] = {FILEKEY_UPLOAD, FILEKEY_ORIGINAL, FILEKEY_RESULT, FILEKEY_ZIP,
                                            FILEKEY_THUMBNAIL};
    struct clearing clearing = {.domain = aging->domain, .storage = aging->storage};
    enum iw_error error = kinds_clear(&clearing, order_id, all, FILEKEY_KIND_COUNT);
    if (error == IW_OK)
        error = quotas_order_erased(&aging->domain->db, order_id);
    return error == IW_OK ? orders_files_forget(&aging->domain->db, order_id, aging->now_ms) : error;
}

/* Deletes the files of a locked complete order, and ends it. */
static enum iw_error order_expire(const struct aging *aging, const struct order_progress *order,
                                  enum order_status next, int64_t expires_at_ms)
{
    const struct db *db = &aging->domain->db;
    enum iw_error error = order_erase(aging, order->id);
    if (error == IW_OK)
        error = jobs_forget(db, order->id);
    return error == IW_OK ? orders_close(db, order, next, aging->now_ms, expires_at_ms) : error;
}

/*
 * Ends a locked order early and sets the status. With is_forced also an order with results, which are
 * deleted.
 */
static enum iw_error order_cancel(const struct aging *aging, struct order_progress *order,
                                  const char *sentence, bool is_forced, enum order_status *status)
{
    struct order_ending ending = {.code = IW_ORDER_CANCELLED, .sentence = sentence};
    enum order_event event = order->status == ORDER_PENDING ? ORDER_EVENT_ABANDON : ORDER_EVENT_FAIL;
    if (!order_next(order->type, order->status, event, &ending.next))
        return context_fail(aging->domain->context, IW_VALIDATION_FAILED, "The order has ended: it is %s.",
                            order_status_name(order->status));
    if (!is_forced && (order->result_count > 0 || order->completed_count > 0))
        return context_fail(
            aging->domain->context, IW_VALIDATION_FAILED,
            "The order already has results and will end by itself; --force deletes the results.");
    *status = ending.next;
    enum iw_error error = order_fail(aging, order, &ending);
    return error == IW_OK && is_forced ? order_erase(aging, order->id) : error;
}

enum iw_error retention_cancel(const struct domain *domain, struct storage *storage, int64_t order_id,
                               bool is_forced)
{
    enum iw_error error;
    const struct aging aging = {domain, storage, clock_now_ms()};
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        struct order_progress order;
        enum order_status status;
        error = orders_progress_lock(&domain->db, order_id, &order);
        if (error == IW_OK)
            error = order_cancel(&aging, &order, iw_error_sentence(IW_ORDER_CANCELLED), is_forced, &status);
    }
    return error == IW_OK ? retention_order_clear(domain, storage, order_id) : error;
}

/* A complete order expires now. If the order ended otherwise, only files may be left. */
static enum iw_error order_delete(const struct aging *aging, int64_t account_id, int64_t order_id,
                                  enum order_status *status)
{
    struct order_progress order;
    enum iw_error error = orders_progress_lock(&aging->domain->db, order_id, &order);
    if (error == IW_OK && order.account_id != account_id)
        return context_fail(aging->domain->context, IW_ORDER_NOT_FOUND, NULL);
    if (error != IW_OK)
        return error;
    context_trace_join(aging->domain->context, order.trace_id);
    if (!order_is_ended(order.status))
        return order_cancel(aging, &order, "The account deleted the order.", true, status);
    *status = order.status;
    if (order_next(order.type, order.status, ORDER_EVENT_EXPIRE, status))
        return order_expire(aging, &order, *status, aging->now_ms);
    return order_erase(aging, order_id);
}

enum iw_error retention_delete(struct domain *domain, int64_t account_id, int64_t order_id,
                               enum order_status *status)
{
    domain->context->order_id = order_id;
    enum iw_error error = domain_storage_open(domain);
    if (error != IW_OK)
        return error;
    const struct aging aging = {domain, domain->storage, clock_now_ms()};
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        error = order_delete(&aging, account_id, order_id, status);
    }
    if (error == IW_OK)
        error = retention_inputs_forget(domain, &order_id, 1);
    if (error == IW_OK)
        log_event(LOG_INFO, domain->context, "order_deleted");
    return error;
}

/* ---- all due orders ---- */

/*
 * Ends an order whose time is over: a pending order fails, a complete order expires. *is_done is true if
 * the order was due.
 */
static enum iw_error due_end(const struct aging *aging, int64_t order_id, enum order_status status,
                             bool *is_done)
{
    enum iw_error error;
    const struct db *db = &aging->domain->db;
    enum order_event event = status == ORDER_PENDING ? ORDER_EVENT_ABANDON : ORDER_EVENT_EXPIRE;
    for (struct transaction t = transaction_begin(db); transaction_goes_on(&t, &error);) {
        struct order_progress order;
        struct order_ending ending = {.code = IW_UPLOAD_EXPIRED,
                                      .sentence = iw_error_sentence(IW_UPLOAD_EXPIRED)};
        error = orders_progress_lock(db, order_id, &order);
        /* The order may have changed since it was listed. */
        *is_done = error == IW_OK && order.status == status && order.expires_at_ms != 0 &&
                   order.expires_at_ms <= aging->now_ms &&
                   order_next(order.type, order.status, event, &ending.next);
        if (*is_done)
            context_trace_join(db->context, order.trace_id);
        if (*is_done && status == ORDER_PENDING)
            error = order_fail(aging, &order, &ending);
        else if (*is_done)
            error = order_expire(aging, &order, ending.next, order.expires_at_ms);
    }
    return error;
}

static enum iw_error order_age(const struct aging *aging, int64_t order_id, enum order_status status,
                               unsigned *count)
{
    bool is_done = false;
    struct context *context = aging->domain->context;
    enum iw_error error = due_end(aging, order_id, status, &is_done);
    if (error != IW_OK || !is_done)
        return error;
    (*count)++;
    context->order_id = order_id;
    log_event(LOG_INFO, context, status == ORDER_PENDING ? "order_abandoned" : "order_expired");
    return status == ORDER_PENDING ? retention_order_clear(aging->domain, aging->storage, order_id) : IW_OK;
}

/* Ends every due order of a status, in pages of max.  Stuck orders stay first and are skipped. */
static enum iw_error orders_age(const struct domain *domain, struct storage *storage,
                                enum order_status status, unsigned max, unsigned *count)
{
    struct query_ids due = {.count = 0};
    unsigned stuck_before;
    struct retention_batch batch;
    retention_batch_begin(&batch, domain);
    const struct aging aging = {&batch.domain, storage, clock_now_ms()};
    enum iw_error error;
    *count = 0;
    do {
        stuck_before = batch.stuck;
        error = orders_overdue(&batch.domain.db, status, aging.now_ms, max, batch.stuck, &due);
        error = retention_batch_next(&batch, error, 0);
        for (unsigned i = 0; error == IW_OK && i < due.count; i++)
            error =
                retention_batch_next(&batch, order_age(&aging, due.items[i], status, count), due.items[i]);
    } while (error == IW_OK && due.count == max && batch.stuck > stuck_before && batch.stuck < max);
    return retention_batch_end(&batch, error);
}

enum iw_error retention_abandon(const struct domain *domain, struct storage *storage, unsigned max,
                                unsigned *count)
{
    return orders_age(domain, storage, ORDER_PENDING, max, count);
}

enum iw_error retention_expire(const struct domain *domain, struct storage *storage, unsigned max,
                               unsigned *count)
{
    return orders_age(domain, storage, ORDER_COMPLETE, max, count);
}

/* ---- orders that wait for ever ---- */

/* Fails an order in progress. *is_done is true if it was one. */
static enum iw_error stuck_end(const struct aging *aging, int64_t order_id, bool *is_done)
{
    enum iw_error error;
    const struct db *db = &aging->domain->db;
    for (struct transaction t = transaction_begin(db); transaction_goes_on(&t, &error);) {
        struct order_progress order;
        struct order_ending ending = {.code = IW_PROCESSING_CRASHED,
                                      .sentence = iw_error_sentence(IW_PROCESSING_CRASHED)};
        error = orders_progress_lock(db, order_id, &order);
        *is_done = error == IW_OK && order_next(order.type, order.status, ORDER_EVENT_FAIL, &ending.next);
        if (*is_done) {
            context_trace_join(db->context, order.trace_id);
            error = order_fail(aging, &order, &ending);
        }
        if (*is_done && error == IW_OK)
            error = order_erase(aging, order_id);
    }
    return error;
}

static enum iw_error stuck_age(const struct aging *aging, int64_t order_id, unsigned *count)
{
    bool is_done = false;
    struct context *context = aging->domain->context;
    enum iw_error error = stuck_end(aging, order_id, &is_done);
    if (error != IW_OK || !is_done)
        return error;
    (*count)++;
    context->order_id = order_id;
    log_event(LOG_ERROR, context, "order_stuck", LOG_TEXT("reason", "retried_for_too_long"));
    return retention_inputs_forget(aging->domain, &order_id, 1);
}

enum iw_error retention_stuck(const struct domain *domain, struct storage *storage, unsigned max,
                              int64_t *after_id, unsigned *count)
{
    struct query_ids stuck = {.count = 0};
    struct retention_batch batch;
    retention_batch_begin(&batch, domain);
    const struct aging aging = {&batch.domain, storage, clock_now_ms()};
    int64_t before_ms = aging.now_ms - domain->config->orders_stuck_s * 1000;
    *count = 0;
    enum iw_error error = orders_stuck(&batch.domain.db, after_id, order_id_make(before_ms, 0), max, &stuck);
    error = retention_batch_next(&batch, error, 0);
    for (unsigned i = 0; error == IW_OK && i < stuck.count; i++)
        error = retention_batch_next(&batch, stuck_age(&aging, stuck.items[i], count), stuck.items[i]);
    return retention_batch_end(&batch, error);
}

/* ---- rows ---- */

enum iw_error retention_forget(const struct domain *domain, unsigned max, int64_t *after_id, unsigned *count)
{
    struct query_ids old = {.count = 0};
    const struct db *db = &domain->db;
    int64_t before_ms = clock_now_ms() - domain->config->orders_rows_kept_days * day_ms;
    *count = 0;
    if (domain->config->orders_rows_kept_days == 0)
        return IW_OK;
    enum iw_error error = orders_outdated(db, after_id, order_id_make(before_ms, 0), before_ms, max, &old);
    for (; error == IW_OK && *count < old.count; ++*count)
        for (struct transaction t = transaction_begin(db); transaction_goes_on(&t, &error);) {
            struct order_progress order;
            error = orders_progress_lock(db, old.items[*count], &order);
            if (error == IW_OK)
                error = orders_forget(db, old.items[*count]);
        }
    if (*count > 0)
        log_event(LOG_INFO, domain->context, "orders_forgotten", LOG_NUMBER("orders", *count));
    return error;
}

/* ---- accounts ---- */

static enum iw_error order_remove(const struct aging *aging, int64_t order_id)
{
    enum iw_error error;
    const struct db *db = &aging->domain->db;
    for (struct transaction t = transaction_begin(db); transaction_goes_on(&t, &error);) {
        struct order_progress order;
        enum order_status status;
        error = orders_progress_lock(db, order_id, &order);
        if (error == IW_OK && order_is_ended(order.status))
            error = order_erase(aging, order_id);
        else if (error == IW_OK)
            error = order_cancel(aging, &order, iw_error_sentence(IW_ORDER_CANCELLED), true, &status);
        if (error == IW_OK)
            error = orders_forget(db, order_id);
    }
    return error;
}

/* Late results of jobs are refused, because the order is gone. */
static enum iw_error orders_remove(const struct domain *domain, struct storage *storage,
                                   const struct query_ids *orders)
{
    struct retention_batch batch;
    enum iw_error error = IW_OK;
    retention_batch_begin(&batch, domain);
    const struct aging aging = {&batch.domain, storage, clock_now_ms()};
    for (unsigned i = 0; error == IW_OK && i < orders->count; i++)
        error = retention_batch_next(&batch, order_remove(&aging, orders->items[i]), orders->items[i]);
    return retention_batch_end(&batch, error);
}

enum iw_error retention_account_delete(const struct domain *domain, struct storage *storage, unsigned max,
                                       bool *is_busy)
{
    int64_t account_id;
    bool is_gone = false;
    struct query_ids orders = {.count = 0};
    enum iw_error error = erasure_due(&domain->db, clock_now_ms(), &account_id);
    *is_busy = error == IW_OK && account_id != 0;
    if (!*is_busy)
        return error;
    error = erasure_orders(&domain->db, account_id, max, &orders);
    if (error == IW_OK && orders.count > 0)
        return orders_remove(domain, storage, &orders);
    if (error == IW_OK)
        error = erasure_step(&domain->db, account_id, &is_gone);
    if (error == IW_OK && is_gone)
        log_event(LOG_INFO, domain->context, "account_deleted", LOG_NUMBER("account", account_id));
    return error;
}
