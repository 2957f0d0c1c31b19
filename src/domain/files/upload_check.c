#include "domain/files/upload_check.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "db/checks.h"
#include "domain/orders/intake.h"
#include "domain/orders/order_confirm.h"
#include "domain/orders/order_query.h"

enum {
    take_ms = 30 * 1000, /* another worker may look again after this worker died */
    pause_least_ms = 1000,
    pause_most_ms = 600 * 1000,
    age_parts = 4,           /* the pause is a quarter of the order's age */
    unwritten_ms = 60 * 1000 /* the row of a check is older than its order; a creation takes no longer */
};

/* Starts the order if all uploads are there. Sets *is_over if there is nothing left to look for. */
static enum iw_error order_look(struct domain *domain, const struct check *check, bool *is_over)
{
    struct order_view view;
    enum order_status status;
    bool is_complete = false;
    int64_t age_ms = clock_now_ms() - order_id_time_ms(check->order_id);
    *is_over = false;
    enum iw_error error = order_find(domain, check->account_id, check->order_id, &view);
    if (error == IW_ORDER_NOT_FOUND) {
        context_clear(domain->context);
        *is_over = age_ms > unwritten_ms;
        return IW_OK;
    }
    if (error == IW_OK && view.order.status == ORDER_PENDING)
        error = intake_is_complete(domain, &view, &is_complete);
    if (error == IW_OK && is_complete)
        error = order_confirm(domain, check->account_id, check->order_id, &status);
    *is_over = error == IW_OK && (is_complete || view.order.status != ORDER_PENDING);
    /* An upload was replaced at this moment. */
    if (error == IW_ORDER_FILE_NOT_UPLOADED || error == IW_ORDER_NOT_PENDING) {
        context_clear(domain->context);
        return IW_OK;
    }
    return error;
}

/* A failure of the object store is logged and delays the order; one of the database ends the run. */
static enum iw_error check_run(struct domain *domain, const struct check *check)
{
    bool is_over = false;
    int64_t now_ms = clock_now_ms(), pause_ms = (now_ms - order_id_time_ms(check->order_id)) / age_parts;
    const char *reason;
    enum iw_error error = order_look(domain, check, &is_over);
    pause_ms = pause_ms < pause_least_ms  ? pause_least_ms
               : pause_ms > pause_most_ms ? pause_most_ms
                                          : pause_ms;
    domain->context->order_id = check->order_id;
    reason = domain->context->reason;
    if (error != IW_OK && reason != NULL && strncmp(reason, "store_", 6) == 0) {
        log_failure(domain->context, "upload_check_failed");
        context_clear(domain->context);
        error = IW_OK;
    }
    if (error == IW_OK)
        error = is_over ? checks_delete(&domain->db, check->order_id)
                        : checks_move(&domain->db, check->order_id, now_ms + pause_ms);
    domain->context->order_id = 0;
    return error;
}

enum iw_error upload_checks_run(struct domain *domain, bool *is_more)
{
    struct check checks[checks_max];
    unsigned count = 0;
    int64_t now_ms = clock_now_ms();
    enum iw_error error = checks_take(&domain->db, now_ms, now_ms + take_ms, checks, &count);
    for (unsigned i = 0; error == IW_OK && i < count; i++)
        error = check_run(domain, &checks[i]);
    *is_more = count == checks_max;
    return error;
}

enum iw_error upload_check_hasten(struct domain *domain, const char *object_name)
{
    struct storage_key key;
    const char *prefix = domain->config->store_s3_prefix;
    size_t length = strlen(prefix);
    bool is_ours = strncmp(object_name, prefix, length) == 0 && storage_key_read(object_name + length, &key);
    bool is_upload =
        is_ours && key.version == 0 && (key.kind == FILEKEY_UPLOAD || key.kind == FILEKEY_ORIGINAL);
    return is_upload ? checks_move(&domain->db, key.order_id, clock_now_ms()) : IW_OK;
}
