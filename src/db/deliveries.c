#include "db/deliveries.h"

#include <stdlib.h>

#include "db/leases.h"
#include "db/transaction.h"

_Static_assert((int)deliveries_receiver_max <= (int)leases_rows_max,
               "one lease must take all deliveries of a receiver");

static const char *state_after(enum delivery_state state, enum delivery_event event)
{
    const char *name = delivery_state_name(delivery_next(state, event));
    if (name == NULL)
        abort(); /* Aborts on an illegal transition, which is a bug. */
    return name;
}

/*
 * The innermost query reads one index entry of each webhook with open deliveries, regardless of their
 * number ("Using index for group-by").  If the condition named only PENDING, MariaDB would read all open
 * deliveries.
 */
#define DUE_SQL                                                                                              \
    "(SELECT webhook_id, MIN(IF(status = 'PENDING', available_at, NULL)) AS available_at FROM (SELECT "      \
    "status, webhook_id, MIN(available_at) AS available_at FROM webhook_deliveries WHERE status IN "         \
    "('PENDING', 'SENDING') GROUP BY status, webhook_id) firsts GROUP BY webhook_id) due "

#define BUSY_SQL                                                                                             \
    "(SELECT webhook_id, COUNT(*) AS number FROM webhook_deliveries WHERE status = 'SENDING' GROUP BY "      \
    "webhook_id) busy "

enum iw_error deliveries_due(const struct db *db, int64_t now_ms, unsigned account_most, unsigned most,
                             struct deliveries_receiver **receivers, unsigned *count)
{
    struct db_rows rows;
    const struct db_value values[] = {db_time(now_ms), db_integer(deliveries_receiver_max),
                                      db_integer(account_most), db_integer(most)};
    enum iw_error error = db_run(
        db,
        "SELECT webhook_id, account_id, is_failing, url FROM (SELECT due.webhook_id, w.account_id, w.url, "
        "w.first_failure_at IS NOT NULL AS is_failing, due.available_at, ROW_NUMBER() OVER (PARTITION BY "
        "w.account_id ORDER BY w.first_failure_at IS NOT NULL, due.available_at, due.webhook_id) AS place "
        "FROM " DUE_SQL
        "JOIN webhooks w ON w.id = due.webhook_id JOIN accounts a ON a.id = w.account_id AND a.status = "
        "'active' LEFT JOIN " BUSY_SQL
        "ON busy.webhook_id = due.webhook_id WHERE due.available_at <= ? AND COALESCE(busy.number, 0) < ?) "
        "ranked WHERE place <= ? ORDER BY is_failing, place, available_at, webhook_id LIMIT ?",
        values, 4, &rows);
    if (error != IW_OK)
        return error;
    *receivers = arena_array(db->context->arena, rows.count + 1, sizeof **receivers);
    *count = (unsigned)rows.count;
    for (unsigned i = 0; i < *count; i++) {
        struct db_row columns = db_row(&rows, i);
        struct deliveries_receiver *receiver = &(*receivers)[i];
        *receiver = (struct deliveries_receiver){0};
        receiver->webhook_id = db_next_integer(&columns);
        receiver->account_id = db_next_integer(&columns);
        receiver->is_failing = db_next_bool(&columns);
        receiver->url = db_next_text(&columns);
    }
    return IW_OK;
}

/*
 * Locks the webhook's row, so that workers lease from it one after the other and together keep
 * deliveries_receiver_max. lease->webhook_id stays 0 while another worker has the lock.
 */
static enum iw_error lease_receiver(const struct db *db, const struct deliveries_request *request,
                                    struct deliveries_lease *lease, bool *is_active)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(request->webhook_id)};
    enum iw_error error = db_run(db,
                                 "SELECT account_id, url, is_active AND deleted_at IS NULL FROM webhooks "
                                 "WHERE id = ? FOR UPDATE SKIP LOCKED",
                                 values, 1, &rows);
    if (error != IW_OK || rows.count == 0)
        return error;
    lease->webhook_id = request->webhook_id;
    struct db_row columns = db_row(&rows, 0);
    lease->account_id = db_next_integer(&columns);
    lease->url = db_next_text(&columns);
    *is_active = db_next_bool(&columns);
    return IW_OK;
}

static enum iw_error lease_secrets(const struct db *db, const struct deliveries_request *request,
                                   struct deliveries_lease *lease)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(request->webhook_id), db_time(request->now_ms),
                                      db_integer(deliveries_secrets_max)};
    enum iw_error error =
        db_run(db,
               "SELECT sealed FROM webhook_secrets WHERE webhook_id = ? AND (signs_until IS "
               "NULL OR signs_until > ?) ORDER BY id DESC LIMIT ?",
               values, 3, &rows);
    for (size_t row = 0; error == IW_OK && row < rows.count; row++) {
        struct db_row columns = db_row(&rows, row);
        struct delivery_secret *secret = &lease->secrets[lease->secret_count++];
        secret->sealed = db_next_bytes(&columns, &secret->size);
    }
    return error;
}

static enum iw_error lease_choose(const struct db *db, const struct deliveries_request *request,
                                  struct deliveries_lease *lease)
{
    struct db_rows rows;
    int64_t busy = 0;
    const struct db_value receiver[] = {db_integer(request->webhook_id)};
    enum iw_error error = query_number(
        db, "SELECT COUNT(*) FROM webhook_deliveries WHERE status = 'SENDING' AND webhook_id = ?", receiver,
        1, &busy);
    if (error != IW_OK)
        return error;
    int64_t room = deliveries_receiver_max - busy;
    if (room > request->most)
        room = request->most;
    if (room <= 0)
        return IW_OK;
    const struct db_value values[] = {db_integer(request->webhook_id), db_time(request->now_ms),
                                      db_integer(room)};
    error = db_run(db,
                   "SELECT id, event_id, attempt + 1, failure_count FROM webhook_deliveries WHERE status = "
                   "'PENDING' AND webhook_id = ? AND available_at <= ? ORDER BY available_at, id LIMIT ? FOR "
                   "UPDATE",
                   values, 3, &rows);
    for (size_t row = 0; error == IW_OK && row < rows.count; row++) {
        struct db_row columns = db_row(&rows, row);
        struct delivery *item = &lease->deliveries[lease->count++];
        *item = (struct delivery){0};
        item->id = db_next_integer(&columns);
        item->event_id = db_next_integer(&columns);
        item->attempt = db_next_integer(&columns);
        item->failures = db_next_integer(&columns);
    }
    return error;
}

static enum iw_error lease_write(const struct db *db, const struct deliveries_request *request,
                                 struct deliveries_lease *lease)
{
    bool is_active = false;
    *lease = (struct deliveries_lease){.count = 0};
    enum iw_error error = lease_receiver(db, request, lease, &is_active);
    if (error != IW_OK || lease->webhook_id == 0)
        return error;
    if (!is_active)
        return deliveries_cancel(db, request->webhook_id, "webhook_inactive", request->now_ms);
    error = lease_choose(db, request, lease);
    if (error != IW_OK || lease->count == 0)
        return error;
    error = lease_secrets(db, request, lease);
    if (error != IW_OK)
        return error;
    int64_t ids[deliveries_receiver_max];
    for (unsigned i = 0; i < lease->count; i++)
        ids[i] = lease->deliveries[i].id;
    const struct leases_request lease_request = {request->owner, request->lease_s, request->now_ms};
    return leases_take(db, LEASES_DELIVERIES, &lease_request, ids, lease->count);
}

enum iw_error deliveries_lease(const struct db *db, const struct deliveries_request *request,
                               struct deliveries_lease *lease)
{
    enum iw_error error;
    for (struct transaction t = transaction_begin(db); transaction_goes_on(&t, &error);) {
        error = lease_write(db, request, lease);
    }
    if (error != IW_OK)
        lease->count = 0;
    return error;
}

static enum iw_error fenced(struct context *context)
{
    context->reason = "fenced";
    return context_fail(context, IW_NOT_FOUND, "The delivery belongs to a later attempt.");
}

static enum iw_error record_delivery(const struct db *db, const struct deliveries_attempt *attempt)
{
    struct db_rows rows;
    const struct delivery_verdict *verdict = attempt->verdict;
    bool is_delivered = verdict->event == DELIVERY_EVENT_SUCCEED;
    const struct db_value values[] = {
        db_text(state_after(DELIVERY_SENDING, verdict->event)),
        db_integer(verdict->failures),
        db_time(attempt->now_ms + verdict->wait_ms),
        attempt->status > 0 ? db_integer(attempt->status) : db_null(),
        db_text(is_delivered ? NULL : attempt->reason),
        db_time(attempt->now_ms),
        db_time(is_delivered ? attempt->now_ms : 0),
        db_time(attempt->now_ms),
        db_integer(attempt->delivery->id),
        db_integer(attempt->delivery->attempt),
    };
    enum iw_error error =
        db_run(db,
               "UPDATE webhook_deliveries SET status = ?, failure_count = ?, available_at = ?, "
               "response_status = ?, reason = ?, tried_at = ?, delivered_at = COALESCE(?, delivered_at), "
               "lease_owner = NULL, lease_until = NULL, updated_at = ? WHERE id = ? AND attempt = ? AND "
               "status = 'SENDING'",
               values, 10, &rows);
    if (error != IW_OK || rows.affected == 1)
        return error;
    return fenced(db->context);
}

static enum iw_error receiver_deactivate(const struct db *db, const struct deliveries_attempt *attempt,
                                         const char *reason, const char *delivery_reason)
{
    const struct db_value values[] = {db_text(reason), db_time(attempt->now_ms),
                                      db_integer(attempt->webhook_id)};
    enum iw_error error = db_run(db,
                                 "UPDATE webhooks SET is_active = FALSE, inactive_reason = ?, updated_at = ? "
                                 "WHERE id = ? AND is_active",
                                 values, 3, NULL);
    if (error != IW_OK)
        return error;
    return deliveries_cancel(db, attempt->webhook_id, delivery_reason, attempt->now_ms);
}

/* Writes the row of the webhook only if it changes. Sets *inactive_reason if the webhook was deactivated. */
static enum iw_error record_receiver(const struct db *db, const struct deliveries_attempt *attempt,
                                     int64_t first_failure_ms, const char **inactive_reason)
{
    if (attempt->verdict->event == DELIVERY_EVENT_SUCCEED) {
        const struct db_value values[] = {db_integer(attempt->webhook_id)};
        return first_failure_ms == 0
                   ? IW_OK
                   : db_run(db, "UPDATE webhooks SET first_failure_at = NULL WHERE id = ?", values, 1, NULL);
    }
    if (attempt->verdict->is_gone) {
        *inactive_reason = "RECEIVER_GONE";
        return receiver_deactivate(db, attempt, *inactive_reason, "receiver_gone");
    }
    if (delivery_is_hopeless(first_failure_ms, attempt->now_ms)) {
        *inactive_reason = "RECEIVER_FAILING";
        return receiver_deactivate(db, attempt, *inactive_reason, "receiver_failing");
    }
    const struct db_value values[] = {db_time(attempt->now_ms), db_integer(attempt->webhook_id)};
    return first_failure_ms != 0
               ? IW_OK
               : db_run(db, "UPDATE webhooks SET first_failure_at = ? WHERE id = ?", values, 2, NULL);
}

static enum iw_error record_exchange(const struct db *db, const struct deliveries_attempt *attempt)
{
    const struct deliveries_exchange *exchange = attempt->exchange;
    if (exchange == NULL)
        return IW_OK;
    const struct db_value values[] = {db_integer(attempt->delivery->id), db_text(exchange->headers),
                                      db_text(exchange->payload), db_text(exchange->answer)};
    return db_run(
        db,
        "INSERT INTO delivery_bodies (delivery_id, headers, payload, answer) VALUES (?, ?, ?, ?) ON "
        "DUPLICATE KEY UPDATE headers = VALUES(headers), payload = VALUES(payload), answer = "
        "VALUES(answer)",
        values, 4, NULL);
}

/*
 * Locks the webhook before the delivery, as all transactions do, so that no two transactions wait for each
 * other.
 */
static enum iw_error record_write(const struct db *db, const struct deliveries_attempt *attempt,
                                  const char **inactive_reason)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(attempt->webhook_id)};
    *inactive_reason = NULL;
    enum iw_error error = db_run(
        db, "SELECT first_failure_at, is_active FROM webhooks WHERE id = ? FOR UPDATE", values, 1, &rows);
    if (error != IW_OK)
        return error;
    if (rows.count == 0)
        return fenced(db->context);
    struct db_row columns = db_row(&rows, 0);
    int64_t first_failure_ms = db_next_integer(&columns);
    bool is_active = db_next_bool(&columns);
    error = record_delivery(db, attempt);
    if (error == IW_OK)
        error = record_exchange(db, attempt);
    return error == IW_OK && is_active ? record_receiver(db, attempt, first_failure_ms, inactive_reason)
                                       : error;
}

enum iw_error deliveries_record(const struct db *db, const struct deliveries_attempt *attempt,
                                const char **inactive_reason)
{
    enum iw_error error;
    for (struct transaction t = transaction_begin(db); transaction_goes_on(&t, &error);) {
        error = record_write(db, attempt, inactive_reason);
    }
    if (error != IW_OK)
        *inactive_reason = NULL;
    return error;
}

enum iw_error deliveries_exchange_find(const struct db *db, int64_t webhook_id, int64_t event_id,
                                       struct deliveries_exchange *exchange, bool *is_found)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(webhook_id), db_integer(event_id)};
    enum iw_error error =
        db_run(db,
               "SELECT b.headers, b.payload, b.answer FROM webhook_deliveries d JOIN "
               "delivery_bodies b ON b.delivery_id = d.id WHERE d.webhook_id = ? AND d.event_id = ?",
               values, 2, &rows);
    *is_found = error == IW_OK && rows.count > 0;
    if (!*is_found)
        return error;
    struct db_row columns = db_row(&rows, 0);
    exchange->headers = db_next_text(&columns);
    exchange->payload = db_next_text(&columns);
    exchange->answer = db_next_text(&columns);
    return IW_OK;
}

enum iw_error deliveries_postpone(const struct db *db, const struct delivery *delivery, const char *reason,
                                  int64_t until_ms)
{
    const struct db_value values[] = {db_text(state_after(DELIVERY_SENDING, DELIVERY_EVENT_POSTPONE)),
                                      db_time(until_ms), db_text(reason), db_integer(delivery->id),
                                      db_integer(delivery->attempt)};
    return db_run(db,
                  "UPDATE webhook_deliveries SET status = ?, available_at = ?, reason = ?, lease_owner = "
                  "NULL, lease_until = NULL WHERE id = ? AND attempt = ? AND status = 'SENDING'",
                  values, 5, NULL);
}

enum iw_error deliveries_insert(const struct db *db, int64_t event_id, int64_t account_id, int64_t webhook_id,
                                int64_t now_ms)
{
    const struct db_value values[] = {db_integer(event_id),  db_time(now_ms),        db_time(now_ms),
                                      db_time(now_ms),       db_integer(account_id), db_integer(webhook_id),
                                      db_integer(webhook_id)};
    return db_run(db,
                  "INSERT INTO webhook_deliveries (webhook_id, event_id, available_at, created_at, "
                  "updated_at) SELECT id, ?, ?, ?, ? FROM webhooks WHERE account_id = ? AND is_active AND "
                  "deleted_at IS NULL AND (? = 0 OR id = ?)",
                  values, 7, NULL);
}

enum iw_error deliveries_cancel(const struct db *db, int64_t webhook_id, const char *reason, int64_t now_ms)
{
    const struct db_value values[] = {db_text(state_after(DELIVERY_PENDING, DELIVERY_EVENT_CANCEL)),
                                      db_text(reason), db_time(now_ms), db_integer(webhook_id)};
    return db_run(db,
                  "UPDATE webhook_deliveries SET status = ?, reason = ?, lease_owner = NULL, lease_until = "
                  "NULL, updated_at = ? WHERE webhook_id = ? AND status IN ('PENDING', 'SENDING')",
                  values, 4, NULL);
}

enum iw_error deliveries_repeat(const struct db *db, int64_t webhook_id, int64_t event_id, int64_t now_ms,
                                bool *is_repeated)
{
    int64_t affected = 0;
    const struct db_value values[] = {db_text(state_after(DELIVERY_FAILED, DELIVERY_EVENT_REPEAT)),
                                      db_time(now_ms), db_time(now_ms), db_integer(webhook_id),
                                      db_integer(event_id)};
    enum iw_error error =
        query_change(db,
                     "UPDATE webhook_deliveries SET status = ?, failure_count = 0, attempt = attempt + 1, "
                     "available_at = ?, updated_at = ? WHERE webhook_id = ? AND event_id = ? AND status IN "
                     "('PENDING', 'DELIVERED', 'FAILED')",
                     values, 5, &affected);
    *is_repeated = affected > 0;
    return error;
}

enum iw_error deliveries_forget(const struct db *db, int64_t before_ms, int64_t *count)
{
    const struct db_value values[] = {db_time(before_ms)};
    return query_change(
        db,
        "DELETE FROM webhook_deliveries WHERE status IN ('DELIVERED', 'FAILED') AND updated_at < "
        "? LIMIT 500",
        values, 1, count);
}

enum iw_error deliveries_status_counts(const struct db *db, struct query_count **counts, unsigned *count)
{
    return query_counts(
        db, "SELECT LOWER(status), COUNT(*) FROM webhook_deliveries GROUP BY webhook_deliveries.status",
        counts, count);
}

enum iw_error deliveries_failed(const struct db *db, int64_t webhook_id, struct query_ids *event_ids)
{
    const struct db_value values[] = {db_integer(webhook_id)};
    return query_ids(db,
                     "SELECT event_id FROM webhook_deliveries WHERE webhook_id = ? AND status = "
                     "'FAILED' ORDER BY event_id",
                     values, 1, event_ids);
}
