#include "domain/orders/order_create.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "db/upload_checks.h"
#include "db/orders.h"
#include "db/transaction.h"
#include "service/redis/admission.h"
#include "service/redis/queue.h"
#include "service/redis/reserve.h"

enum {
    /* If an account makes a thousand orders a second, one new id in a million is taken already. */
    attempts_max = 4,
    first_check_ms = 1000,
    wait_first_ms = 5,
    wait_max_ms = 80
};

/* The end of a step.  order_create goes on while it is OPEN. */
enum creation_end {
    OPEN,
    CREATED,
    REPLAYED, /* the key has created the order before */
    REFUSED,  /* the context has the error: a refusal or a failure */
    AGAIN     /* the attempt had no effect and may be repeated; the context has the error of this attempt */
};

struct creation {
    struct domain *domain;
    struct admission *admission;
    const struct order_request *requested;
    struct order_view *view;
    struct quota_numbers limits;
    struct quota_claim claim;
};

/* ---- admission: rate limit, lock of the key, reserve of the quotas ---- */

static enum creation_end admit(struct creation *creation)
{
    const struct order_request *requested = creation->requested;
    const struct account *account = requested->account;
    const struct config *config = creation->domain->config;
    struct admission *admission = creation->admission;
    struct quota_claim *claim = &creation->claim;
    creation->limits = quota_limits(config, account->plan, &account->quotas);
    *claim = (struct quota_claim){.account_id = account->id,
                                  .amounts = order_request_amounts(requested),
                                  .upload_max_bytes = config->store_upload_max_bytes,
                                  .now_ms = clock_now_ms(),
                                  .limits = &creation->limits};
    const struct admission_creation asked = {order_type_name(requested->type), requested->key,
                                             requested->key_length, claim->amounts, claim->now_ms};
    if (admission_lock(admission, &asked) != IW_OK)
        return REFUSED;
    claim->is_covered = admission->is_covered;
    claim->reserve = admission->reserve;
    claim->ahead = claim->is_covered ? 0 : quota_ahead(claim, admission->used);
    return OPEN;
}

/* ---- replay: the order that the key created before ---- */

static enum creation_end replay(struct creation *creation)
{
    bool is_found = false;
    const struct order_request *requested = creation->requested;
    struct order_view *view = creation->view;
    const struct orders_key key = {requested->account->id, requested->type, requested->key,
                                   requested->key_length};
    if (orders_find_by_key(&creation->domain->db, &key, &view->order, &view->files, &is_found) != IW_OK)
        return REFUSED;
    if (!is_found)
        return OPEN;
    view->is_replay = true;
    if (memcmp(view->order.body_digest, requested->body_digest, sizeof requested->body_digest) == 0)
        return REPLAYED;
    context_fail(creation->domain->context, IW_IDEMPOTENCY_KEY_REUSED, NULL);
    return REFUSED;
}

/*
 * Waits for the order of a concurrent creation.  OPEN if the order does not appear, because that creation
 * failed, died or takes too long.  Then this creation continues, and the unique key in the database decides.
 */
static enum creation_end concurrent_wait(struct creation *creation)
{
    int64_t end_ms = clock_monotonic_ms() + admission_lock_ms;
    if (!creation->admission->is_lock_held_elsewhere)
        return OPEN;
    for (long pause_ms = wait_first_ms;; pause_ms = pause_ms * 2 < wait_max_ms ? pause_ms * 2 : wait_max_ms) {
        bool is_held = admission_lock_is_held(creation->admission);
        enum creation_end end = replay(creation);
        if (end != OPEN || !is_held || clock_monotonic_ms() >= end_ms)
            return end;
        nanosleep(&(struct timespec){.tv_nsec = pause_ms * 1000000}, NULL);
    }
}

/* ---- what refuses a new order, but not a replay ---- */

static enum creation_end targets_check(struct creation *creation)
{
    struct context *context = creation->domain->context;
    if (!order_request_is_expired(creation->requested))
        return OPEN;
    enum creation_end end = replay(creation);
    if (end != OPEN)
        return end;
    order_request_targets_check(context, creation->requested);
    return context_validated(context) == IW_OK ? OPEN : REFUSED;
}

static bool have_room(const struct domain *domain)
{
    return domain_database_check(domain) == IW_OK && domain_room_check(domain) == IW_OK;
}

static enum creation_end room_check(struct creation *creation)
{
    if (have_room(creation->domain))
        return OPEN;
    context_clear(creation->domain->context);
    enum creation_end end = replay(creation);
    /* The check is repeated for its error.  If files were deleted meanwhile, the order is created. */
    return end != OPEN || have_room(creation->domain) ? end : REFUSED;
}

/* ---- an attempt to write the order ---- */

/*
 * TWIN_EXISTS if the id or the idempotency key is taken, USAGE_LIMIT_EXCEEDED if a quota refuses the claim.
 * An order with texts needs a transaction around this function, any other order is one statement.
 */
static enum iw_error rows_write(struct creation *creation, struct order_row *row, int64_t *file_ids)
{
    struct domain *domain = creation->domain;
    struct quota_claim *claim = &creation->claim;
    enum iw_error error = IW_OK;
    if (row->type == ORDER_WATERMARK_EMBED)
        error = order_request_texts(domain, creation->requested, row, &claim->texts);
    if (error == IW_OK)
        error = quota_alone_check(domain->context, claim);
    /*
     * The client uploads to the object store, and no request starts the order. So a worker looks for the
     * uploads.
     */
    bool is_watched = domain_is_direct(domain) && row->type != ORDER_ANTI_AI && !row->is_started;
    if (error == IW_OK && is_watched)
        error = upload_checks_add(&domain->db, row->id, row->account_id, row->created_ms + first_check_ms);
    row->claim = quotas_claim_is_empty(claim) ? NULL : claim;
    return error == IW_OK ? orders_insert(&domain->db, row, file_ids) : error;
}

/* A taken key is a replay, a taken id is not. */
static enum creation_end twin_judge(struct creation *creation)
{
    context_clear(creation->domain->context);
    enum creation_end end = replay(creation);
    if (end != OPEN)
        return end;
    context_fail(creation->domain->context, IW_SERVER_INTERNAL_ERROR, NULL);
    return AGAIN;
}

/* True after a deadlock or a lock wait timeout, which the next attempt may not meet. */
static bool is_conflict(const struct domain *domain)
{
    return domain->context->error == IW_SERVICE_UNAVAILABLE && db_is_conflict(domain->db.connection);
}

/* After a creation that a limit of the account never allows: a replay, if the limit was higher before. */
static enum creation_end limits_judge(struct creation *creation)
{
    struct context *context = creation->domain->context;
    context_clear(context);
    enum creation_end end = replay(creation);
    if (end != OPEN)
        return end;
    /* The check is repeated for its error. */
    if (quota_alone_check(context, &creation->claim) != IW_OK)
        return REFUSED;
    context_fail(context, IW_SERVER_INTERNAL_ERROR, NULL);
    return AGAIN;
}

/* After a refusal by a quota, tries again without the claim ahead, or if the quota has room meanwhile. */
static enum creation_end quota_judge(struct creation *creation)
{
    struct context *context = creation->domain->context;
    bool was_ahead = creation->claim.ahead > 0;
    creation->claim.ahead = 0;
    if (was_ahead)
        return AGAIN;
    context_clear(context);
    if (quota_refuse(creation->domain, &creation->claim, &creation->view->refusal) != IW_OK)
        return is_conflict(creation->domain) ? AGAIN : REFUSED;
    context_fail(context, IW_USAGE_LIMIT_EXCEEDED, NULL);
    return AGAIN;
}

static enum creation_end attempt(struct creation *creation)
{
    enum iw_error error;
    struct order_row row;
    const struct db *db = &creation->domain->db;
    struct arena *arena = creation->domain->context->arena;
    order_request_row(creation->domain, creation->requested, &row);
    creation->claim.now_ms = row.created_ms;
    int64_t *file_ids = arena_array(arena, row.file_rows, sizeof *file_ids);
    if (row.type != ORDER_WATERMARK_EMBED)
        error = rows_write(creation, &row, file_ids);
    else
        for (struct transaction t = transaction_begin(db); transaction_goes_on(&t, &error);) {
            error = rows_write(creation, &row, file_ids);
        }
    if (error == IW_TWIN_EXISTS)
        return twin_judge(creation);
    if (error == IW_VALIDATION_FAILED)
        return limits_judge(creation);
    if (error == IW_USAGE_LIMIT_EXCEEDED)
        return quota_judge(creation);
    if (error != IW_OK)
        return is_conflict(creation->domain) ? AGAIN : REFUSED;
    order_request_view(arena, &row, file_ids, creation->view);
    return CREATED;
}

static enum creation_end order_write(struct creation *creation)
{
    enum creation_end end = AGAIN;
    for (int count = 0; end == AGAIN && count < attempts_max; count++) {
        context_clear(creation->domain->context);
        end = attempt(creation);
    }
    return end == AGAIN ? REFUSED : end;
}

/* ---- the end ---- */

/* After a creation, stores the advance claim as the reserve; after a failed one, releases its claim. */
static void reserve_return(const struct domain *domain, const struct quota_claim *claim, bool is_created)
{
    const struct quota_amounts *own = &claim->amounts;
    struct quota_reserve reserve = {{0}, quota_term(claim->now_ms)};
    if (is_created)
        reserve.amounts = (struct quota_amounts){own->orders * claim->ahead, own->files * claim->ahead,
                                                 own->uploads * claim->ahead};
    else if (claim->is_covered)
        reserve.amounts = *own;
    else
        reserve = claim->reserve;
    if (reserve.amounts.orders > 0 || reserve.amounts.files > 0)
        reserve_put(domain->redis, domain->context, domain->config->redis_prefix, claim->account_id,
                    &reserve);
}

enum iw_error order_create(struct domain *domain, struct admission *admission,
                           const struct order_request *requested, struct order_view *view)
{
    static enum creation_end (*const steps[])(struct creation *) = {admit, concurrent_wait, targets_check,
                                                                    room_check, order_write};
    struct creation creation = {
        .domain = domain, .admission = admission, .requested = requested, .view = view};
    enum creation_end end = OPEN;
    view->refusal.limit = 0;
    for (size_t i = 0; end == OPEN && i < sizeof steps / sizeof steps[0]; i++)
        end = steps[i](&creation);
    reserve_return(domain, &creation.claim, end == CREATED);
    if (end == REFUSED) {
        admission_lock_release(admission);
        return domain->context->error;
    }
    domain->context->order_id = view->order.id;
    if (end == REPLAYED)
        context_trace_join(domain->context, view->order.trace_id);
    /* An order with only source URLs starts at once. */
    if (end == CREATED && view->order.status == ORDER_IN_PROGRESS)
        queue_notify(domain->redis, domain->config, domain->context, view->order.id);
    return IW_OK;
}
