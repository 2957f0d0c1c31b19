#include "store/jobs.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

/* Rows of one sweep; what is left waits for the next. */
#define SWEEP_ROWS "200"

/* As many question marks as jobs_lease_max; unused ones are 0, which no job has. */
#define LEASE_IDS "(?, ?, ?, ?, ?, ?, ?, ?)"

/*
 * A file that is still to come by its URL gets a fetch.  Any other gets the job of
 * its order's type, one for each of its watermark texts where it has some.
 */
#define INSERT_JOBS                                                                                          \
    "INSERT INTO jobs (account_id, order_id, file_id, copy, kind, available_at, request_id, created_at, "    \
    "updated_at) SELECT o.account_id, o.id, f.id, COALESCE(w.copy, 0), CASE WHEN f.source_url IS NOT NULL "  \
    "AND f.store_key IS NULL THEN 'fetch' WHEN o.type = 'antiAi' THEN 'protect' WHEN o.type = "              \
    "'watermarkEmbed' THEN 'embed' ELSE 'extract' END, UTC_TIMESTAMP(3), ?, UTC_TIMESTAMP(3), "              \
    "UTC_TIMESTAMP(3) FROM orders o JOIN files f ON f.order_id = o.id AND f.role = 'main' LEFT JOIN "        \
    "order_watermarks w ON w.order_id = o.id AND w.file_position = f.position AND (f.source_url IS NULL OR " \
    "f.store_key IS NOT NULL) WHERE o.id = ?"

const char jobs_insert_for_order_sql[] = INSERT_JOBS " ORDER BY f.position, w.copy";

enum iw_error jobs_insert_for_order(struct context *context, struct db *db, int64_t order_id)
{
    const struct db_value values[] = {db_text(context->request_id), db_integer(order_id)};
    return db_run(context, db, jobs_insert_for_order_sql, values, 2, NULL);
}

enum iw_error jobs_insert_for_file(struct context *context, struct db *db, int64_t order_id, int64_t file_id)
{
    const struct db_value values[] = {db_text(context->request_id), db_integer(order_id),
                                      db_integer(file_id)};
    return db_run(context, db, INSERT_JOBS " AND f.id = ? ORDER BY w.copy", values, 3, NULL);
}

enum iw_error jobs_insert_archive(struct context *context, struct db *db, int64_t order_id)
{
    const struct db_value values[] = {db_text(context->request_id), db_integer(order_id)};
    return db_run(
        context, db,
        "INSERT IGNORE INTO jobs (account_id, order_id, kind, available_at, request_id, created_at, "
        "updated_at) SELECT account_id, id, 'archive', UTC_TIMESTAMP(3), ?, UTC_TIMESTAMP(3), "
        "UTC_TIMESTAMP(3) FROM orders WHERE id = ?",
        values, 2, NULL);
}

/* What jobs_lease hands through its transaction. */
struct lease {
    const char *owner;
    int64_t lease_s;
    unsigned most;
    struct job *jobs;
    unsigned count;
    struct db_value ids[jobs_lease_max];
};

static enum iw_error lease_choose(struct context *context, struct db *db, struct lease *lease)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(lease->most)};
    enum iw_error error =
        db_run(context, db,
               "SELECT id FROM jobs WHERE status = 'queued' AND available_at <= UTC_TIMESTAMP(3) ORDER BY "
               "available_at, id LIMIT ? FOR UPDATE SKIP LOCKED",
               values, 1, &rows);
    if (error != IW_OK)
        return error;
    for (unsigned i = 0; i < jobs_lease_max; i++)
        lease->ids[i] = db_integer(i < rows.count ? db_integer_of(db_at(&rows, i, 0)) : 0);
    lease->count = (unsigned)rows.count;
    return IW_OK;
}

static enum iw_error lease_write(struct context *context, struct db *db, const struct lease *lease)
{
    struct db_value values[2 + jobs_lease_max] = {db_text(lease->owner), db_integer(lease->lease_s)};
    memcpy(values + 2, lease->ids, sizeof lease->ids);
    enum iw_error error =
        db_run(context, db,
               "UPDATE jobs SET status = 'leased', attempt = attempt + 1, lease_owner = ?, lease_until = "
               "UTC_TIMESTAMP(3) + INTERVAL ? SECOND, updated_at = UTC_TIMESTAMP(3) WHERE id IN " LEASE_IDS,
               values, 2 + jobs_lease_max, NULL);
    if (error != IW_OK)
        return error;
    return db_run(
        context, db,
        "UPDATE files f JOIN jobs j ON f.id = j.file_id SET f.status = 'processing', f.updated_at = "
        "UTC_TIMESTAMP(3) WHERE f.status IN ('pending', 'uploaded') AND j.id IN " LEASE_IDS,
        lease->ids, jobs_lease_max, NULL);
}

/* Names that the program does not know mean that the database is newer than it. */
static enum iw_error job_take(struct context *context, const struct db_rows *rows, size_t row,
                              struct job *job)
{
    const char *strength = db_text_of(db_at(rows, row, 9));
    *job = (struct job){
        .id = db_integer_of(db_at(rows, row, 0)),
        .account_id = db_integer_of(db_at(rows, row, 1)),
        .order_id = db_integer_of(db_at(rows, row, 2)),
        .file_id = db_integer_of(db_at(rows, row, 3)),
        .attempt = db_integer_of(db_at(rows, row, 5)),
        .failures = db_integer_of(db_at(rows, row, 6)),
        .deaths = db_integer_of(db_at(rows, row, 7)),
        .is_zero_copy = db_integer_of(db_at(rows, row, 10)) != 0,
        .has_thumbnail = db_integer_of(db_at(rows, row, 11)) != 0,
        .file_name = db_text_of(db_at(rows, row, 12)),
        .store_key = db_text_of(db_at(rows, row, 13)),
        .position = db_integer_of(db_at(rows, row, 14)),
        .request_id = db_text_of(db_at(rows, row, 15)),
        .strength = ORDER_STRENGTH_HIGH,
    };
    if (!job_kind_read(db_text_of(db_at(rows, row, 4)), &job->kind) ||
        !order_type_read(db_text_of(db_at(rows, row, 8)), &job->order_type) ||
        (strength != NULL && !order_strength_read(strength, &job->strength))) {
        context_cause(context, "job %lld has a kind, type or strength that is unknown here",
                      (long long)job->id);
        return context_fail(context, IW_SERVER_INTERNAL_ERROR, NULL);
    }
    return IW_OK;
}

static enum iw_error lease_read(struct context *context, struct db *db, struct lease *lease)
{
    struct db_rows rows;
    enum iw_error error =
        db_run(context, db,
               "SELECT j.id, j.account_id, j.order_id, j.file_id, j.kind, j.attempt, j.failure_count, "
               "j.death_count, o.type, o.strength, o.zero_copy, o.has_thumbnail, f.name, f.store_key, "
               "f.position, j.request_id FROM jobs j JOIN orders o ON o.id = j.order_id LEFT JOIN files f ON "
               "f.id = j.file_id WHERE j.id IN " LEASE_IDS " ORDER BY j.id",
               lease->ids, jobs_lease_max, &rows);
    lease->count = 0;
    for (size_t row = 0; error == IW_OK && row < rows.count && row < lease->most; row++)
        error = job_take(context, &rows, row, &lease->jobs[lease->count++]);
    return error;
}

static enum iw_error lease_work(struct context *context, struct db *db, void *user)
{
    struct lease *lease = user;
    enum iw_error error = lease_choose(context, db, lease);
    if (error != IW_OK || lease->count == 0)
        return error;
    error = lease_write(context, db, lease);
    return error == IW_OK ? lease_read(context, db, lease) : error;
}

enum iw_error jobs_lease(struct context *context, struct db *db, const char *owner, int64_t lease_s,
                         unsigned most, struct job *jobs, unsigned *count)
{
    struct lease lease = {.owner = owner,
                          .lease_s = lease_s,
                          .most = most < jobs_lease_max ? most : jobs_lease_max,
                          .jobs = jobs};
    *count = 0;
    enum iw_error error = db_transaction(context, db, lease_work, &lease);
    if (error == IW_OK)
        *count = lease.count;
    return error;
}

enum iw_error jobs_renew(struct context *context, struct db *db, const char *owner, int64_t lease_s,
                         int64_t *count)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(lease_s), db_text(owner)};
    enum iw_error error = db_run(context, db,
                                 "UPDATE jobs SET lease_until = UTC_TIMESTAMP(3) + INTERVAL ? SECOND WHERE "
                                 "status = 'leased' AND lease_owner = ?",
                                 values, 2, &rows);
    if (error == IW_OK)
        *count = rows.affected;
    return error;
}

enum iw_error jobs_move(struct context *context, struct db *db, const struct job *job,
                        const struct job_verdict *verdict, const char *reason)
{
    struct db_rows rows;
    enum job_state next = job_next(JOB_LEASED, verdict->event);
    if (next == JOB_NONE)
        abort(); /* An event that a leased job does not know is a mistake in the program. */
    const struct db_value values[] = {db_text(job_state_name(next)),
                                      db_integer(verdict->failures),
                                      db_integer(verdict->deaths),
                                      db_integer(verdict->wait_ms * 1000),
                                      db_text(reason),
                                      db_integer(job->id),
                                      db_integer(job->attempt)};
    enum iw_error error = db_run(
        context, db,
        "UPDATE jobs SET status = ?, failure_count = ?, death_count = ?, available_at = "
        "UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND, reason = ?, lease_owner = NULL, lease_until = NULL, "
        "updated_at = UTC_TIMESTAMP(3) WHERE id = ? AND attempt = ? AND status = 'leased'",
        values, 7, &rows);
    if (error != IW_OK || rows.affected == 1)
        return error;
    context->reason = "fenced";
    return context_fail(context, IW_NOT_FOUND, "The job belongs to a later attempt.");
}

/* The event is JOB_EVENT_LOSE for both ways a lease is taken back. */
#define LOSE_SQL                                                                                             \
    "UPDATE jobs SET status = 'queued', reason = 'lease_lost', lease_owner = NULL, lease_until = NULL, "     \
    "available_at = UTC_TIMESTAMP(3), updated_at = UTC_TIMESTAMP(3) WHERE status = 'leased' AND "

enum iw_error jobs_release_owner(struct context *context, struct db *db, const char *owner, int64_t *count)
{
    struct db_rows rows;
    const struct db_value values[] = {db_text(owner)};
    enum iw_error error = db_run(context, db, LOSE_SQL "lease_owner = ?", values, 1, &rows);
    if (error == IW_OK)
        *count = rows.affected;
    return error;
}

enum iw_error jobs_release_silent(struct context *context, struct db *db, int64_t *count)
{
    struct db_rows rows;
    enum iw_error error =
        db_run(context, db, LOSE_SQL "lease_until < UTC_TIMESTAMP(3) ORDER BY lease_until LIMIT " SWEEP_ROWS,
               NULL, 0, &rows);
    if (error == IW_OK)
        *count = rows.affected;
    return error;
}

enum iw_error jobs_owners(struct context *context, struct db *db, const char *prefix, const char ***owners,
                          unsigned *count)
{
    struct db_rows rows;
    const struct db_value values[] = {db_text(prefix)};
    enum iw_error error = db_run(context, db,
                                 "SELECT DISTINCT lease_owner FROM jobs WHERE status = 'leased' AND "
                                 "lease_owner LIKE CONCAT(?, '%')",
                                 values, 1, &rows);
    if (error != IW_OK)
        return error;
    *owners = arena_array(context->arena, rows.count + 1, sizeof **owners);
    *count = (unsigned)rows.count;
    for (unsigned i = 0; i < *count; i++)
        (*owners)[i] = db_text_of(db_at(&rows, i, 0));
    return IW_OK;
}

enum iw_error jobs_counts(struct context *context, struct db *db, struct jobs_count **counts, unsigned *count)
{
    struct db_rows rows;
    enum iw_error error =
        db_run(context, db,
               "SELECT kind, status, COUNT(*), IF(status IN ('queued', 'leased'), GREATEST(0, "
               "TIMESTAMPDIFF(SECOND, MIN(available_at), UTC_TIMESTAMP(3))), 0) FROM jobs WHERE status IN "
               "('queued', 'leased') OR updated_at > UTC_TIMESTAMP(3) - INTERVAL 1 DAY GROUP BY kind, status "
               "ORDER BY kind, status",
               NULL, 0, &rows);
    if (error != IW_OK)
        return error;
    *counts = arena_array(context->arena, rows.count + 1, sizeof **counts);
    *count = 0;
    for (size_t row = 0; row < rows.count; row++) {
        struct jobs_count *one = &(*counts)[*count];
        one->state = job_state_by_name(db_text_of(db_at(&rows, row, 1)));
        one->count = db_integer_of(db_at(&rows, row, 2));
        one->oldest_s = db_integer_of(db_at(&rows, row, 3));
        if (job_kind_read(db_text_of(db_at(&rows, row, 0)), &one->kind))
            (*count)++;
    }
    return IW_OK;
}
