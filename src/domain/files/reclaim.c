#include "domain/files/reclaim.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "db/orders.h"
#include "domain/files/retention.h"
#include "model/order.h"

enum {
    orders_max = 1000, /* of one list of the store */
    rows_max = 200,    /* of one query */
    grace_ms = 60 * 60 * 1000,
    day_ms = 24 * 60 * 60 * 1000
};

/* ---- inputs ---- */

/*
 * Collects orders with inputs that are too old to be pending. The store lists the keys of an order one after
 * another, so comparing with the last id avoids duplicates.
 */
struct old_orders {
    int64_t ids[orders_max];
    unsigned count;
    int64_t before_ms;
};

static bool order_add(void *user, const struct storage_key *key, const struct storage_facts *facts)
{
    struct old_orders *orders = user;
    bool is_new = orders->count == 0 || orders->ids[orders->count - 1] != key->order_id;
    (void)facts;
    if (is_new && order_id_time_ms(key->order_id) < orders->before_ms)
        orders->ids[orders->count++] = key->order_id;
    return orders->count < orders_max;
}

/* Deletes inputs that rows of finished orders still name because a process died before it deleted them. */
static enum iw_error named_reclaim(const struct domain *domain, struct storage *storage, int64_t pending_ms,
                                   unsigned *count)
{
    struct query_ids found = {.count = rows_max};
    int64_t from = order_id_make(clock_now_ms() - pending_ms - 3 * (int64_t)day_ms, 0);
    struct retention_batch batch;
    retention_batch_begin(&batch, domain);
    enum iw_error error = IW_OK;
    while (error == IW_OK && found.count == rows_max) {
        error = orders_uncleared(&batch.domain.db, from, rows_max, &found);
        error = retention_batch_next(&batch, error, 0);
        for (unsigned i = 0; error == IW_OK && i < found.count; i++) {
            from = found.items[i] + 1;
            error = retention_batch_next(
                &batch, retention_order_clear(&batch.domain, storage, found.items[i]), found.items[i]);
            (*count)++;
        }
    }
    return retention_batch_end(&batch, error);
}

/* Deletes inputs that no row names, of orders that ended long ago or do not exist. */
static enum iw_error unnamed_reclaim(const struct domain *domain, struct storage *storage, int64_t pending_ms,
                                     unsigned *count)
{
    struct context *context = domain->context;
    struct old_orders *orders = arena_alloc(context->arena, sizeof *orders);
    orders->before_ms = clock_now_ms() - pending_ms - grace_ms;
    enum iw_error error = storage_list(storage, context, FILEKEY_UPLOAD, 0, order_add, orders);
    /* A client can send only the original after the end of the order. */
    if (error == IW_OK && storage_is_direct(storage) && orders->count < orders_max)
        error = storage_list(storage, context, FILEKEY_ORIGINAL, 0, order_add, orders);
    for (unsigned i = 0; error == IW_OK && i < orders->count; i++) {
        enum order_status status = ORDER_FAILED;
        error = orders_status(&domain->db, orders->ids[i], &status);
        if (error == IW_ORDER_NOT_FOUND) {
            context_clear(context);
            error = IW_OK;
        }
        if (error != IW_OK || !order_is_ended(status))
            continue;
        error = retention_order_clear(domain, storage, orders->ids[i]);
        (*count)++;
    }
    return error;
}

enum iw_error reclaim_inputs(const struct domain *domain, struct storage *storage, unsigned *count)
{
    int64_t pending_ms = domain->config->orders_pending_s * 1000;
    *count = 0;
    enum iw_error error = named_reclaim(domain, storage, pending_ms, count);
    return error == IW_OK ? unnamed_reclaim(domain, storage, pending_ms, count) : error;
}

/* ---- files that no row names ---- */

/* Files of one step of a walk that are older than the grace period. */
struct old_files {
    struct arena *arena;
    struct storage_key *keys;
    unsigned count;
    unsigned room;
    unsigned seen;
    int64_t before_ms;
};

static bool file_add(void *user, const struct storage_key *key, const struct storage_facts *facts)
{
    struct old_files *files = user;
    files->seen++;
    if (facts->modified_ms >= files->before_ms)
        return true;
    if (files->count == files->room) {
        struct storage_key *before = files->keys;
        files->room = files->room == 0 ? 64 : 2 * files->room;
        files->keys = arena_array(files->arena, files->room, sizeof *files->keys);
        if (files->count > 0)
            memcpy(files->keys, before, files->count * sizeof *before);
    }
    files->keys[files->count++] = *key;
    return true;
}

static int by_order(const void *one, const void *other)
{
    int64_t a = ((const struct storage_key *)one)->order_id,
            b = ((const struct storage_key *)other)->order_id;
    return (a > b) - (a < b);
}

/*
 * Deletes the files of one order that no row names: outputs once it has ended, inputs while it is pending
 * (the answer of a commit was lost).  reclaim_inputs deletes those of ended orders.  Reads the status before
 * the keys: the last transaction of an order ends it, and no row names an output later.  The row of an input
 * names it within seconds, long before the grace period is over.
 */
static enum iw_error order_files_delete(const struct domain *domain, struct storage *storage,
                                        const struct storage_key *keys, unsigned key_count, unsigned *count)
{
    struct context *context = domain->context;
    struct query_texts kept = {.count = 0};
    enum order_status status = ORDER_PENDING;
    enum iw_error error = orders_status(&domain->db, keys->order_id, &status);
    if (error == IW_ORDER_NOT_FOUND)
        context_clear(context);
    bool is_pending = status == ORDER_PENDING;
    if (error == IW_ORDER_NOT_FOUND || (error == IW_OK && !is_pending && !order_is_ended(status)))
        return IW_OK;
    if (error == IW_OK)
        error = orders_store_keys(&domain->db, keys->order_id, &kept);
    for (unsigned i = 0; error == IW_OK && i < key_count; i++) {
        bool is_input = keys[i].kind == FILEKEY_UPLOAD || keys[i].kind == FILEKEY_ORIGINAL;
        /* Version 0 is the object of an upload URL, which has no row before the order starts. */
        if (is_input != is_pending || keys[i].version == 0 ||
            retention_is_kept(context->arena, &kept, &keys[i]))
            continue;
        error = storage_delete(storage, context, &keys[i]);
        *count += error == IW_OK;
    }
    return error;
}

static enum iw_error step_reclaim(const struct domain *domain, struct storage *storage,
                                  struct storage_cursor *cursor, unsigned *seen, unsigned *count)
{
    struct old_files files = {.arena = domain->context->arena, .before_ms = clock_now_ms() - grace_ms};
    struct storage_cursor next = *cursor;
    enum iw_error error = storage_walk(storage, domain->context, &next, file_add, &files);
    if (files.count > 0)
        qsort(files.keys, files.count, sizeof *files.keys, by_order);
    for (unsigned from = 0, to; error == IW_OK && from < files.count; from = to) {
        for (to = from + 1; to < files.count && by_order(&files.keys[from], &files.keys[to]) == 0;)
            to++;
        error = order_files_delete(domain, storage, files.keys + from, to - from, count);
    }
    *seen += files.seen;
    if (error == IW_OK)
        *cursor = next;
    return error;
}

enum iw_error reclaim_files(const struct domain *domain, struct storage *storage,
                            struct storage_cursor *cursor, unsigned keys_max, unsigned *count)
{
    unsigned seen = 0;
    enum iw_error error = IW_OK;
    *count = 0;
    while (error == IW_OK && seen < keys_max) {
        error = step_reclaim(domain, storage, cursor, &seen, count);
        if (storage_cursor_is_start(cursor))
            break;
    }
    return error;
}
