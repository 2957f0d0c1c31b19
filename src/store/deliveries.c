#include "store/deliveries.h"

#include <stdlib.h>
#include <string.h>

/* Rows of one sweep; what is left waits for the next. */
#define SWEEP_ROWS "500"

/* As many question marks as deliveries_receiver_max; unused ones are 0, which no delivery has. */
#define LEASE_IDS "(?, ?, ?)"

static const char *state_after(enum delivery_state state, enum delivery_event event)
{
    const char *name = delivery_state_name(delivery_next(state, event));
    if (name == NULL)
        abort(); /* An event that the table does not know is a mistake in the program. */
    return name;
}

/*
 * The innermost part reads one index entry of each webhook that waits or sends,
 * whatever the number of its deliveries ("Using index for group-by"); asking for
 * the one status alone makes MariaDB read them all.
 */
#define DUE_SQL                                                                                              \
    "(SELECT webhook_id, MIN(IF(status = 'PENDING', available_at, NULL)) AS available_at FROM (SELECT "      \
    "status, webhook_id, MIN(available_at) AS available_at FROM webhook_deliveries WHERE status IN "         \
    "('PENDING', 'SENDING') GROUP BY status, webhook_id) firsts GROUP BY webhook_id) due "

#define BUSY_SQL                                                                                             \
    "(SELECT webhook_id, COUNT(*) AS number FROM webhook_deliveries WHERE status = 'SENDING' GROUP BY "      \
    "webhook_id) busy "

enum iw_error deliveries_due(const struct store *store, int64_t now_ms, unsigned account_most, unsigned most,
                             struct deliveries_receiver **receivers, unsigned *count)
{
    struct db_rows rows;
    const struct db_value values[] = {db_time(now_ms), db_integer(deliveries_receiver_max),
                                      db_integer(account_most), db_integer(most)};
    enum iw_error error = db_run(
        store,
        "SELECT webhook_id, account_id, is_failing FROM (SELECT due.webhook_id, w.account_id, "
        "w.first_failure_at IS NOT NULL AS is_failing, due.available_at, ROW_NUMBER() OVER (PARTITION BY "
        "w.account_id ORDER BY w.first_failure_at IS NOT NULL, due.available_at, due.webhook_id) AS place "
        "FROM " DUE_SQL "JOIN webhooks w ON w.id = due.webhook_id LEFT JOIN " BUSY_SQL
        "ON busy.webhook_id = due.webhook_id WHERE due.available_at <= ? AND COALESCE(busy.number, 0) < ?) "
        "ranked WHERE place <= ? ORDER BY is_failing, place, available_at, webhook_id LIMIT ?",
        values, 4, &rows);
    if (error != IW_OK)
        return error;
    *receivers = arena_array(store->context->arena, rows.count + 1, sizeof **receivers);
    *count = (unsigned)rows.count;
    for (unsigned i = 0; i < *count; i++)
        (*receivers)[i] = (struct deliveries_receiver){.webhook_id = db_integer_of(db_at(&rows, i, 0)),
                                                       .account_id = db_integer_of(db_at(&rows, i, 1)),
                                                       .is_failing = db_integer_of(db_at(&rows, i, 2)) != 0};
    return IW_OK;
}

/* What deliveries_lease hands through its transaction. */
struct lease_work {
    int64_t webhook_id;
    const char *owner;
    int64_t lease_s;
    int64_t now_ms;
    unsigned most;
    struct deliveries_lease *lease;
};

/* The row is locked: workers take turns, so that together they keep to deliveries_receiver_max. */
static enum iw_error lease_receiver(const struct store *store, const struct lease_work *work, bool *is_there,
                                    bool *is_active)
{
    struct db_rows rows;
    struct deliveries_lease *lease = work->lease;
    const struct db_value values[] = {db_integer(work->webhook_id)};
    enum iw_error error = db_run(store,
                                 "SELECT account_id, url, is_active AND deleted_at IS NULL FROM webhooks "
                                 "WHERE id = ? FOR UPDATE SKIP LOCKED",
                                 values, 1, &rows);
    *is_there = error == IW_OK && rows.count > 0;
    if (!*is_there)
        return error;
    lease->webhook_id = work->webhook_id;
    lease->account_id = db_integer_of(db_at(&rows, 0, 0));
    lease->url = db_text_of(db_at(&rows, 0, 1));
    *is_active = db_integer_of(db_at(&rows, 0, 2)) != 0;
    return IW_OK;
}

static enum iw_error lease_secrets(const struct store *store, const struct lease_work *work)
{
    struct db_rows rows;
    struct deliveries_lease *lease = work->lease;
    const struct db_value values[] = {db_integer(work->webhook_id), db_time(work->now_ms),
                                      db_integer(deliveries_secrets_max)};
    enum iw_error error =
        db_run(store,
               "SELECT sealed FROM webhook_secrets WHERE webhook_id = ? AND (signs_until IS "
               "NULL OR signs_until > ?) ORDER BY id DESC LIMIT ?",
               values, 3, &rows);
    for (size_t row = 0; error == IW_OK && row < rows.count; row++) {
        const struct db_value *sealed = db_at(&rows, row, 0);
        lease->secrets[lease->secret_count++] =
            (struct delivery_secret){.sealed = db_text_of(sealed), .size = sealed->length};
    }
    return error;
}

static enum iw_error lease_choose(const struct store *store, const struct lease_work *work)
{
    struct db_rows busy, rows;
    struct deliveries_lease *lease = work->lease;
    const struct db_value receiver[] = {db_integer(work->webhook_id)};
    enum iw_error error =
        db_run(store, "SELECT COUNT(*) FROM webhook_deliveries WHERE status = 'SENDING' AND webhook_id = ?",
               receiver, 1, &busy);
    if (error != IW_OK)
        return error;
    int64_t room = deliveries_receiver_max - db_integer_of(db_at(&busy, 0, 0));
    if (room > work->most)
        room = work->most;
    if (room <= 0)
        return IW_OK;
    const struct db_value values[] = {db_integer(work->webhook_id), db_time(work->now_ms), db_integer(room)};
    error = db_run(store,
                   "SELECT id, event_id, attempt + 1, failure_count FROM webhook_deliveries WHERE status = "
                   "'PENDING' AND webhook_id = ? AND available_at <= ? ORDER BY available_at, id LIMIT ? FOR "
                   "UPDATE",
                   values, 3, &rows);
    for (size_t row = 0; error == IW_OK && row < rows.count; row++)
        lease->deliveries[lease->count++] = (struct delivery){
            .id = db_integer_of(db_at(&rows, row, 0)),
            .event_id = db_integer_of(db_at(&rows, row, 1)),
            .attempt = db_integer_of(db_at(&rows, row, 2)),
            .failures = db_integer_of(db_at(&rows, row, 3)),
        };
    return error;
}

static enum iw_error lease_write(const struct store *store, const struct lease_work *work)
{
    struct db_value values[4 + deliveries_receiver_max] = {
        db_text(state_after(DELIVERY_PENDING, DELIVERY_EVENT_LEASE)), db_text(work->owner),
        db_integer(work->lease_s), db_time(work->now_ms)};
    for (unsigned i = 0; i < deliveries_receiver_max; i++)
        values[4 + i] = db_integer(i < work->lease->count ? work->lease->deliveries[i].id : 0);
    return db_run(store,
                  "UPDATE webhook_deliveries SET status = ?, attempt = attempt + 1, lease_owner = ?, "
                  "lease_until = UTC_TIMESTAMP(3) + INTERVAL ? SECOND, updated_at = ? WHERE id IN " LEASE_IDS,
                  values, 4 + deliveries_receiver_max, NULL);
}

static enum iw_error lease_run(const struct store *store, void *user)
{
    struct lease_work *work = user;
    bool is_there = false, is_active = false;
    *work->lease = (struct deliveries_lease){.count = 0};
    enum iw_error error = lease_receiver(store, work, &is_there, &is_active);
    if (error != IW_OK || !is_there)
        return error;
    if (!is_active)
        return deliveries_cancel(store, work->webhook_id, "webhook_inactive", work->now_ms);
    error = lease_choose(store, work);
    if (error != IW_OK || work->lease->count == 0)
        return error;
    error = lease_secrets(store, work);
    return error == IW_OK ? lease_write(store, work) : error;
}

enum iw_error deliveries_lease(const struct store *store, int64_t webhook_id, const char *owner,
                               int64_t lease_s, int64_t now_ms, unsigned most, struct deliveries_lease *lease)
{
    struct lease_work work = {.webhook_id = webhook_id,
                              .owner = owner,
                              .lease_s = lease_s,
                              .now_ms = now_ms,
                              .most = most,
                              .lease = lease};
    enum iw_error error = db_transaction(store, lease_run, &work);
    if (error != IW_OK)
        lease->count = 0;
    return error;
}

/* What deliveries_record hands through its transaction. */
struct record {
    int64_t webhook_id;
    const struct delivery *delivery;
    const struct delivery_verdict *verdict;
    int64_t status;
    const char *reason;
    int64_t now_ms;
    const char *inactive_reason;
};

static enum iw_error fenced(struct context *context)
{
    context->reason = "fenced";
    return context_fail(context, IW_NOT_FOUND, "The delivery belongs to a later attempt.");
}

static enum iw_error record_delivery(const struct store *store, const struct record *record)
{
    struct db_rows rows;
    const struct delivery_verdict *verdict = record->verdict;
    bool is_delivered = verdict->event == DELIVERY_EVENT_SUCCEED;
    const struct db_value values[] = {
        db_text(state_after(DELIVERY_SENDING, verdict->event)),
        db_integer(verdict->failures),
        db_time(record->now_ms + verdict->wait_ms),
        record->status > 0 ? db_integer(record->status) : db_null(),
        db_text(is_delivered ? NULL : record->reason),
        db_time(record->now_ms),
        db_time(is_delivered ? record->now_ms : 0),
        db_time(record->now_ms),
        db_integer(record->delivery->id),
        db_integer(record->delivery->attempt),
    };
    enum iw_error error =
        db_run(store,
               "UPDATE webhook_deliveries SET status = ?, failure_count = ?, available_at = ?, "
               "response_status = ?, reason = ?, tried_at = ?, delivered_at = COALESCE(?, delivered_at), "
               "lease_owner = NULL, lease_until = NULL, updated_at = ? WHERE id = ? AND attempt = ? AND "
               "status = 'SENDING'",
               values, 10, &rows);
    if (error != IW_OK || rows.affected == 1)
        return error;
    return fenced(store->context);
}

static enum iw_error receiver_deactivate(const struct store *store, struct record *record, const char *reason,
                                         const char *delivery_reason)
{
    const struct db_value values[] = {db_text(reason), db_time(record->now_ms),
                                      db_integer(record->webhook_id)};
    enum iw_error error = db_run(store,
                                 "UPDATE webhooks SET is_active = FALSE, inactive_reason = ?, updated_at = ? "
                                 "WHERE id = ? AND is_active",
                                 values, 3, NULL);
    if (error != IW_OK)
        return error;
    record->inactive_reason = reason;
    return deliveries_cancel(store, record->webhook_id, delivery_reason, record->now_ms);
}

/* Writes the row of the webhook only when something about it changes. */
static enum iw_error record_receiver(const struct store *store, struct record *record,
                                     int64_t first_failure_ms)
{
    if (record->verdict->event == DELIVERY_EVENT_SUCCEED) {
        const struct db_value values[] = {db_integer(record->webhook_id)};
        return first_failure_ms == 0
                   ? IW_OK
                   : db_run(store, "UPDATE webhooks SET first_failure_at = NULL WHERE id = ?", values, 1,
                            NULL);
    }
    if (record->verdict->is_gone)
        return receiver_deactivate(store, record, "RECEIVER_GONE", "receiver_gone");
    if (delivery_is_hopeless(first_failure_ms, record->now_ms))
        return receiver_deactivate(store, record, "RECEIVER_FAILING", "receiver_failing");
    const struct db_value values[] = {db_time(record->now_ms), db_integer(record->webhook_id)};
    return first_failure_ms != 0
               ? IW_OK
               : db_run(store, "UPDATE webhooks SET first_failure_at = ? WHERE id = ?", values, 2, NULL);
}

/* Webhook first, delivery second, as everywhere: no two transactions wait for each other. */
static enum iw_error record_run(const struct store *store, void *user)
{
    struct record *record = user;
    struct db_rows rows;
    const struct db_value values[] = {db_integer(record->webhook_id)};
    record->inactive_reason = NULL;
    enum iw_error error = db_run(
        store, "SELECT first_failure_at, is_active FROM webhooks WHERE id = ? FOR UPDATE", values, 1, &rows);
    if (error != IW_OK)
        return error;
    if (rows.count == 0)
        return fenced(store->context);
    int64_t first_failure_ms = db_integer_of(db_at(&rows, 0, 0));
    bool is_active = db_integer_of(db_at(&rows, 0, 1)) != 0;
    error = record_delivery(store, record);
    return error == IW_OK && is_active ? record_receiver(store, record, first_failure_ms) : error;
}

enum iw_error deliveries_record(const struct store *store, int64_t webhook_id,
                                const struct delivery *delivery, const struct delivery_verdict *verdict,
                                int64_t status, const char *reason, int64_t now_ms,
                                const char **inactive_reason)
{
    struct record record = {.webhook_id = webhook_id,
                            .delivery = delivery,
                            .verdict = verdict,
                            .status = status,
                            .reason = reason,
                            .now_ms = now_ms};
    enum iw_error error = db_transaction(store, record_run, &record);
    *inactive_reason = error == IW_OK ? record.inactive_reason : NULL;
    return error;
}

enum iw_error deliveries_postpone(const struct store *store, const struct delivery *delivery,
                                  const char *reason, int64_t until_ms)
{
    const struct db_value values[] = {db_text(state_after(DELIVERY_SENDING, DELIVERY_EVENT_POSTPONE)),
                                      db_time(until_ms), db_text(reason), db_integer(delivery->id),
                                      db_integer(delivery->attempt)};
    return db_run(store,
                  "UPDATE webhook_deliveries SET status = ?, available_at = ?, reason = ?, lease_owner = "
                  "NULL, lease_until = NULL WHERE id = ? AND attempt = ? AND status = 'SENDING'",
                  values, 5, NULL);
}

enum iw_error deliveries_cancel(const struct store *store, int64_t webhook_id, const char *reason,
                                int64_t now_ms)
{
    const struct db_value values[] = {db_text(state_after(DELIVERY_PENDING, DELIVERY_EVENT_CANCEL)),
                                      db_text(reason), db_time(now_ms), db_integer(webhook_id)};
    return db_run(store,
                  "UPDATE webhook_deliveries SET status = ?, reason = ?, lease_owner = NULL, lease_until = "
                  "NULL, updated_at = ? WHERE webhook_id = ? AND status IN ('PENDING', 'SENDING')",
                  values, 4, NULL);
}

enum iw_error deliveries_repeat(const struct store *store, int64_t webhook_id, int64_t event_id,
                                int64_t now_ms)
{
    struct db_rows rows;
    const struct db_value values[] = {db_text(state_after(DELIVERY_FAILED, DELIVERY_EVENT_REPEAT)),
                                      db_time(now_ms), db_time(now_ms), db_integer(webhook_id),
                                      db_integer(event_id)};
    enum iw_error error =
        db_run(store,
               "UPDATE webhook_deliveries SET status = ?, failure_count = 0, attempt = attempt + 1, "
               "available_at = ?, updated_at = ? WHERE webhook_id = ? AND event_id = ? AND status IN "
               "('PENDING', 'DELIVERED', 'FAILED')",
               values, 5, &rows);
    return error == IW_OK && rows.affected == 0 ? IW_NOT_FOUND : error;
}

/* The event is DELIVERY_EVENT_LOSE for both ways a lease is taken back. */
#define LOSE_SQL                                                                                             \
    "UPDATE webhook_deliveries SET status = 'PENDING', reason = 'lease_lost', lease_owner = NULL, "          \
    "lease_until = NULL WHERE status = 'SENDING' AND "

enum iw_error deliveries_release_owner(const struct store *store, const char *owner, int64_t *count)
{
    struct db_rows rows;
    const struct db_value values[] = {db_text(owner)};
    enum iw_error error = db_run(store, LOSE_SQL "lease_owner = ?", values, 1, &rows);
    if (error == IW_OK)
        *count = rows.affected;
    return error;
}

enum iw_error deliveries_release_silent(const struct store *store, int64_t *count)
{
    struct db_rows rows;
    enum iw_error error =
        db_run(store, LOSE_SQL "lease_until < UTC_TIMESTAMP(3) ORDER BY lease_until LIMIT " SWEEP_ROWS, NULL,
               0, &rows);
    if (error == IW_OK)
        *count = rows.affected;
    return error;
}

/* A first try is due when it is written; the longest wait of the schedule is 24 h and a fifth. */
enum iw_error deliveries_hasten_stranded(const struct store *store, int64_t now_ms, int64_t *count)
{
    enum { first_ms = 5 * 60 * 1000, longest_ms = 30 * 60 * 60 * 1000 };
    struct db_rows rows;
    const struct db_value values[] = {db_time(now_ms), db_time(now_ms + first_ms),
                                      db_time(now_ms + longest_ms)};
    enum iw_error error = db_run(
        store,
        "UPDATE webhook_deliveries SET available_at = ? WHERE status = 'PENDING' AND ((attempt = 0 AND "
        "available_at > ?) OR available_at > ?) LIMIT " SWEEP_ROWS,
        values, 3, &rows);
    if (error == IW_OK)
        *count = rows.affected;
    return error;
}

enum iw_error deliveries_owners(const struct store *store, const char *prefix, const char ***owners,
                                unsigned *count)
{
    struct db_rows rows;
    const struct db_value values[] = {db_text(prefix)};
    enum iw_error error = db_run(store,
                                 "SELECT DISTINCT lease_owner FROM webhook_deliveries WHERE status = "
                                 "'SENDING' AND lease_owner LIKE CONCAT(?, '%')",
                                 values, 1, &rows);
    if (error != IW_OK)
        return error;
    *owners = arena_array(store->context->arena, rows.count + 1, sizeof **owners);
    *count = (unsigned)rows.count;
    for (unsigned i = 0; i < *count; i++)
        (*owners)[i] = db_text_of(db_at(&rows, i, 0));
    return IW_OK;
}

enum iw_error deliveries_subject(const struct store *store, int64_t event_id,
                                 struct delivery_subject *subject)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(event_id)};
    enum iw_error error = db_run(
        store, "SELECT account_id, type, occurred_at, sequence, order_id FROM webhook_events WHERE id = ?",
        values, 1, &rows);
    if (error != IW_OK)
        return error;
    if (rows.count == 0)
        return IW_NOT_FOUND;
    *subject = (struct delivery_subject){
        .event_id = event_id,
        .account_id = db_integer_of(db_at(&rows, 0, 0)),
        .event_type = db_text_of(db_at(&rows, 0, 1)),
        .occurred_ms = db_integer_of(db_at(&rows, 0, 2)),
        .sequence = db_integer_of(db_at(&rows, 0, 3)),
        .order_id = db_integer_of(db_at(&rows, 0, 4)),
    };
    return IW_OK;
}

/* In the order in which rows point at each other. */
static const char *const forget_sql[] = {
    "DELETE FROM webhook_deliveries WHERE status IN ('DELIVERED', 'FAILED') AND updated_at < ? "
    "LIMIT " SWEEP_ROWS,
    "DELETE FROM webhook_events WHERE occurred_at < ? AND NOT EXISTS (SELECT 1 FROM webhook_deliveries d "
    "WHERE d.event_id = webhook_events.id) ORDER BY occurred_at LIMIT " SWEEP_ROWS,
    "DELETE FROM webhooks WHERE deleted_at < ? AND NOT EXISTS (SELECT 1 FROM webhook_deliveries d WHERE "
    "d.webhook_id = webhooks.id) LIMIT " SWEEP_ROWS,
};

enum iw_error deliveries_forget(const struct store *store, int64_t before_ms, int64_t *count)
{
    struct db_rows rows;
    const struct db_value values[] = {db_time(before_ms)};
    *count = 0;
    for (size_t i = 0; i < sizeof forget_sql / sizeof forget_sql[0]; i++) {
        enum iw_error error = db_run(store, forget_sql[i], values, 1, &rows);
        if (error != IW_OK)
            return error;
        *count += rows.affected;
    }
    return IW_OK;
}
