#include "db/jobs.h"

#include <stdlib.h>

#include "db/leases.h"
#include "db/transaction.h"

/* As many question marks as jobs_lease_max; unused question marks are 0, which is no id. */
#define LEASE_IDS "(?, ?, ?, ?, ?, ?, ?, ?)"

_Static_assert((int)jobs_lease_max <= (int)leases_rows_max, "leases_take takes them all");

/* A fetch for a file that has a source URL and no bytes yet; otherwise a job of the order's type per text. */
#define INSERT_JOBS                                                                                          \
    "INSERT INTO jobs (account_id, order_id, file_id, copy, kind, available_at, request_id, created_at, "    \
    "updated_at) SELECT o.account_id, o.id, f.id, COALESCE(w.copy, 0), CASE WHEN f.source_url IS NOT NULL "  \
    "AND f.store_key IS NULL THEN 'fetch' WHEN o.type = 'antiAi' THEN 'protect' WHEN o.type = "              \
    "'watermarkEmbed' THEN 'embed' ELSE 'extract' END, UTC_TIMESTAMP(3), ?, UTC_TIMESTAMP(3), "              \
    "UTC_TIMESTAMP(3) FROM orders o JOIN files f ON f.order_id = o.id AND f.role = 'main' LEFT JOIN "        \
    "order_watermarks w ON w.order_id = o.id AND w.file_position = f.position AND (f.source_url IS NULL OR " \
    "f.store_key IS NOT NULL) WHERE o.id = ?"

void jobs_insert_for_order_add(struct query *query, const char *request_id, int64_t order_id)
{
    const struct db_value values[] = {db_text(request_id), db_integer(order_id)};
    query_append(query, INSERT_JOBS " ORDER BY f.position, w.copy", values, 2);
}

enum iw_error jobs_insert_for_order(const struct db *db, int64_t order_id)
{
    struct query query;
    query_init(&query, db->context->arena);
    jobs_insert_for_order_add(&query, db->context->request_id, order_id);
    return query_run(db, &query, NULL);
}

enum iw_error jobs_insert_for_file(const struct db *db, int64_t order_id, int64_t file_id)
{
    const struct db_value values[] = {db_text(db->context->request_id), db_integer(order_id),
                                      db_integer(file_id)};
    return db_run(db, INSERT_JOBS " AND f.id = ? ORDER BY w.copy", values, 3, NULL);
}

enum iw_error jobs_insert_archive(const struct db *db, int64_t order_id)
{
    const struct db_value values[] = {db_text(db->context->request_id), db_integer(order_id)};
    return db_run(
        db,
        "INSERT IGNORE INTO jobs (account_id, order_id, kind, available_at, request_id, created_at, "
        "updated_at) SELECT account_id, id, 'archive', UTC_TIMESTAMP(3), ?, UTC_TIMESTAMP(3), "
        "UTC_TIMESTAMP(3) FROM orders WHERE id = ?",
        values, 2, NULL);
}

enum iw_error jobs_insert_push(const struct db *db, const struct job *job)
{
    const struct db_value values[] = {db_integer(job->account_id), db_integer(job->order_id),
                                      db_integer(job->file_id), db_integer(job->copy),
                                      db_text(db->context->request_id)};
    return db_run(
        db,
        "INSERT INTO jobs (account_id, order_id, file_id, copy, kind, available_at, request_id, created_at, "
        "updated_at) VALUES (?, ?, ?, ?, 'push', UTC_TIMESTAMP(3), ?, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))",
        values, 5, NULL);
}

enum iw_error jobs_left(const struct db *db, int64_t order_id, int64_t file_id, int64_t *count)
{
    const struct db_value values[] = {db_integer(order_id), db_integer(file_id)};
    return query_number(
        db, "SELECT COUNT(*) FROM jobs WHERE order_id = ? AND file_id = ? AND status IN ('queued', 'leased')",
        values, 2, count);
}

/* The most accounts that one lease considers; the next lease starts with the remaining accounts. */
enum { turns_max = 64 };

/* An account with a due job. */
struct turn {
    int64_t account_id;
    bool is_suspended;  /* the account; its jobs wait */
    int64_t busy_count; /* leased jobs of the class, those of this lease included */
    int64_t own_count;  /* of these at this owner */
    unsigned given;     /* places in this lease */
};

struct lease {
    const struct jobs_wish *wish;
    unsigned most;
    struct job *jobs;
    unsigned count;
    struct turn turns[turns_max];
    unsigned turn_count;
    int64_t cursor; /* the account after which the next lease starts */
    int64_t ids[jobs_lease_max];
};

/*
 * Finds the next account with a queued job, and whether the job is due, in one step of the index, regardless
 * of the number of jobs.
 */
static enum iw_error turn_after(const struct db *db, const struct lease *lease, int64_t *account_id,
                                bool *is_due, bool *is_found)
{
    struct db_rows rows;
    const struct db_value values[] = {db_text(job_class_name(lease->wish->class)), db_integer(*account_id)};
    enum iw_error error =
        db_run(db,
               "SELECT account_id, available_at <= UTC_TIMESTAMP(3) FROM jobs WHERE status = 'queued' AND "
               "class = ? AND account_id > ? ORDER BY account_id, available_at LIMIT 1",
               values, 2, &rows);
    *is_found = error == IW_OK && rows.count > 0;
    if (!*is_found)
        return error;
    struct db_row columns = db_row(&rows, 0);
    *account_id = db_next_integer(&columns);
    *is_due = db_next_bool(&columns);
    return IW_OK;
}

/*
 * Makes one round through all accounts with due jobs from the cursor on, because the first of them were
 * served the longest ago.
 */
static enum iw_error turns_read(const struct db *db, struct lease *lease)
{
    int64_t begin = *lease->wish->cursor, account_id = begin;
    bool is_due = false, is_round = false, is_found = false;
    enum iw_error error = IW_OK;
    lease->turn_count = 0;
    lease->cursor = begin;
    for (unsigned steps = 0; steps < turns_max; steps++) {
        error = turn_after(db, lease, &account_id, &is_due, &is_found);
        if (error == IW_OK && !is_found && !is_round && begin > 0) {
            is_round = true;
            account_id = 0;
            continue;
        }
        if (error != IW_OK || !is_found || (is_round && account_id > begin))
            break;
        lease->cursor = account_id;
        if (is_due)
            lease->turns[lease->turn_count++] = (struct turn){.account_id = account_id};
    }
    return error;
}

static struct turn *turn_find(struct lease *lease, int64_t account_id)
{
    for (unsigned i = 0; i < lease->turn_count; i++)
        if (lease->turns[i].account_id == account_id)
            return &lease->turns[i];
    return NULL;
}

/* turns_max question marks; unused question marks are 0, which is no id. */
#define TURNS_8 "?, ?, ?, ?, ?, ?, ?, ?"
#define TURN_IDS                                                                                             \
    "(" TURNS_8 ", " TURNS_8 ", " TURNS_8 ", " TURNS_8 ", " TURNS_8 ", " TURNS_8 ", " TURNS_8 ", " TURNS_8 ")"

/*
 * Reads the leased jobs of each account, and which accounts of this lease are suspended, in one statement
 * with few rows, because places are few.
 */
static enum iw_error turns_count(const struct db *db, struct lease *lease)
{
    struct db_rows rows;
    struct db_value values[2 + turns_max] = {db_text(lease->wish->owner),
                                             db_text(job_class_name(lease->wish->class))};
    for (unsigned i = 0; i < turns_max; i++)
        values[2 + i] = db_integer(i < lease->turn_count ? lease->turns[i].account_id : 0);
    enum iw_error error =
        db_run(db,
               "SELECT account_id, COUNT(*), SUM(lease_owner = ?), 0 FROM jobs WHERE status = 'leased' AND "
               "class = ? GROUP BY account_id UNION ALL SELECT id, 0, 0, 1 FROM accounts WHERE status = "
               "'suspended' AND id IN " TURN_IDS,
               values, 2 + turns_max, &rows);
    for (size_t row = 0; error == IW_OK && row < rows.count; row++) {
        struct db_row columns = db_row(&rows, row);
        struct turn *turn = turn_find(lease, db_next_integer(&columns));
        if (turn == NULL)
            continue;
        turn->busy_count += db_next_integer(&columns);
        turn->own_count += db_next_integer(&columns);
        turn->is_suspended |= db_next_bool(&columns);
    }
    return error;
}

/* Gives each place to the account with the fewest leased jobs; of equals, to the first. */
static void turns_give(struct lease *lease)
{
    for (unsigned place = 0; place < lease->most; place++) {
        struct turn *next = NULL;
        for (unsigned i = 0; i < lease->turn_count; i++) {
            struct turn *turn = &lease->turns[i];
            bool is_full = turn->own_count >= lease->wish->account_most;
            if (!is_full && !turn->is_suspended && (next == NULL || turn->busy_count < next->busy_count))
                next = turn;
        }
        if (next == NULL)
            return;
        next->busy_count++;
        next->own_count++;
        next->given++;
    }
}

/* Locks the jobs for an account's places. */
static enum iw_error turn_choose(const struct db *db, struct lease *lease, const struct turn *turn)
{
    struct query_ids found;
    const struct db_value values[] = {db_text(job_class_name(lease->wish->class)),
                                      db_integer(turn->account_id), db_integer(turn->given)};
    enum iw_error error = query_ids(
        db,
        "SELECT id FROM jobs WHERE status = 'queued' AND class = ? AND account_id = ? AND available_at "
        "<= UTC_TIMESTAMP(3) ORDER BY available_at, id LIMIT ? FOR UPDATE SKIP LOCKED",
        values, 3, &found);
    for (unsigned i = 0; error == IW_OK && i < found.count && lease->count < jobs_lease_max; i++)
        lease->ids[lease->count++] = found.items[i];
    return error;
}

static enum iw_error lease_choose(const struct db *db, struct lease *lease)
{
    lease->count = 0;
    enum iw_error error = turns_read(db, lease);
    if (error == IW_OK && lease->turn_count > 0)
        error = turns_count(db, lease);
    turns_give(lease);
    for (unsigned i = 0; error == IW_OK && i < lease->turn_count; i++) {
        if (lease->turns[i].given == 0)
            continue;
        lease->cursor = lease->turns[i].account_id;
        error = turn_choose(db, lease, &lease->turns[i]);
    }
    return error;
}

/* Fails on an unknown word, which means that the database is newer than the program. */
static enum iw_error job_read(struct context *context, struct db_row *columns, struct job *job)
{
    *job = (struct job){.strength = ORDER_STRENGTH_STANDARD};
    job->id = db_next_integer(columns);
    job->account_id = db_next_integer(columns);
    job->order_id = db_next_integer(columns);
    job->file_id = db_next_integer(columns);
    const char *kind = db_next_text(columns);
    job->attempt = db_next_integer(columns);
    job->failures = db_next_integer(columns);
    job->deaths = db_next_integer(columns);
    const char *type = db_next_text(columns), *strength = db_next_text(columns);
    job->is_zero_copy = db_next_bool(columns);
    job->has_thumbnail = db_next_bool(columns);
    job->file_name = db_next_text(columns);
    job->store_key = db_next_text(columns);
    job->position = db_next_integer(columns);
    job->request_id = db_next_text(columns);
    job->trace_id = db_next_text(columns);
    job->queued_ms = db_next_integer(columns);
    job->copy = db_next_integer(columns);
    job->has_original = db_next_bool(columns);
    job->original_key = db_next_text(columns);
    job->source_url = db_next_text(columns);
    job->target_url = db_next_text(columns);
    job->target_expires_ms = db_next_integer(columns);
    job->result_key = db_next_text(columns);
    job->result_format = format_by_name(db_next_text(columns));
    job->was_lost = db_next_bool(columns);
    job->target_headers = db_next_text(columns);
    job->etag = db_next_text(columns);
    job->original_etag = db_next_text(columns);
    job->error_code = db_next_text(columns);
    job->error_sentence = db_next_text(columns);
    if (!job_kind_read(kind, &job->kind) || !order_type_read(type, &job->order_type) ||
        (strength != NULL && !order_strength_read(strength, &job->strength))) {
        context_cause(context, "job %lld has a kind, type or strength that this program does not know",
                      (long long)job->id);
        return context_fail(context, IW_SERVER_INTERNAL_ERROR, NULL);
    }
    return IW_OK;
}

static enum iw_error lease_write(const struct db *db, struct lease *lease)
{
    struct db_rows rows;
    struct db_value ids[jobs_lease_max];
    const struct leases_request request = {.owner = lease->wish->owner, .lease_s = lease->wish->lease_s};
    enum iw_error error = lease_choose(db, lease);
    if (error != IW_OK || lease->count == 0)
        return error;
    for (unsigned i = 0; i < jobs_lease_max; i++)
        ids[i] = db_integer(i < lease->count ? lease->ids[i] : 0);
    error = leases_take(db, LEASES_JOBS, &request, lease->ids, lease->count);
    if (error == IW_OK)
        error = db_run(
            db,
            "UPDATE files f JOIN jobs j ON f.id = j.file_id SET f.status = 'processing', f.updated_at = "
            "UTC_TIMESTAMP(3) WHERE f.status IN ('pending', 'uploaded') AND j.id IN " LEASE_IDS,
            ids, jobs_lease_max, NULL);
    if (error == IW_OK)
        error = db_run(
            db,
            "SELECT j.id, j.account_id, j.order_id, j.file_id, j.kind, j.attempt, j.failure_count, "
            "j.death_count, o.type, o.strength, o.zero_copy, f.thumbnail_store_key IS NOT NULL, "
            "f.name, f.store_key, "
            "f.position, j.request_id, o.trace_id, TIMESTAMPDIFF(MICROSECOND, j.available_at, "
            "UTC_TIMESTAMP(3)) DIV 1000, j.copy, o.include_original, g.store_key, f.source_url, "
            "f.target_url, f.target_expires_at, r.store_key, r.format, j.reason <=> 'lease_lost', "
            "f.target_headers, "
            "f.etag, "
            "g.etag, COALESCE(f.error_code, g.error_code), COALESCE(f.error_sentence, g.error_sentence) FROM "
            "jobs j "
            "JOIN orders o ON "
            "o.id = j.order_id LEFT "
            "JOIN files f ON f.id = j.file_id LEFT JOIN files g ON g.order_id = j.order_id AND g.role = "
            "'original' AND g.position = f.position LEFT JOIN results r ON r.file_id = j.file_id AND r.copy "
            "= "
            "j.copy WHERE j.id IN " LEASE_IDS " ORDER BY j.id",
            ids, jobs_lease_max, &rows);
    lease->count = 0;
    for (size_t row = 0; error == IW_OK && row < rows.count && row < lease->most; row++) {
        struct db_row columns = db_row(&rows, row);
        error = job_read(db->context, &columns, &lease->jobs[lease->count++]);
    }
    return error;
}

enum iw_error jobs_lease(const struct db *db, const struct jobs_wish *wish, unsigned most, struct job *jobs,
                         unsigned *count)
{
    struct lease lease = {.wish = wish, .most = most < jobs_lease_max ? most : jobs_lease_max, .jobs = jobs};
    *count = 0;
    enum iw_error error;
    for (struct transaction t = transaction_begin(db); transaction_goes_on(&t, &error);) {
        error = lease_write(db, &lease);
    }
    if (error == IW_OK) {
        *count = lease.count;
        *wish->cursor = lease.cursor;
    }
    return error;
}

enum iw_error jobs_move(const struct db *db, const struct job *job, const struct job_verdict *verdict,
                        const char *reason, bool *is_fenced)
{
    struct db_rows rows;
    enum job_state next = job_next(JOB_LEASED, verdict->event);
    if (next == JOB_NONE)
        abort(); /* Aborts on an illegal transition, which is a bug. */
    const struct db_value values[] = {db_text(job_state_name(next)),
                                      db_integer(verdict->failures),
                                      db_integer(verdict->deaths),
                                      db_integer(verdict->wait_ms * 1000),
                                      db_text(reason),
                                      db_integer(job->id),
                                      db_integer(job->attempt)};
    enum iw_error error = db_run(
        db,
        "UPDATE jobs SET status = ?, failure_count = ?, death_count = ?, available_at = "
        "UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND, reason = ?, lease_owner = NULL, lease_until = NULL, "
        "updated_at = UTC_TIMESTAMP(3) WHERE id = ? AND attempt = ? AND status = 'leased'",
        values, 7, &rows);
    *is_fenced = error == IW_OK && rows.affected != 1;
    return error;
}

enum iw_error jobs_counts(const struct db *db, struct jobs_count **counts, unsigned *count)
{
    struct db_rows rows;
    enum iw_error error =
        db_run(db,
               "SELECT kind, status, COUNT(*), IF(status IN ('queued', 'leased'), GREATEST(0, "
               "TIMESTAMPDIFF(SECOND, MIN(available_at), UTC_TIMESTAMP(3))), 0) FROM jobs WHERE status IN "
               "('queued', 'leased') OR updated_at > UTC_TIMESTAMP(3) - INTERVAL 1 DAY GROUP BY kind, status "
               "ORDER BY kind, status",
               NULL, 0, &rows);
    if (error != IW_OK)
        return error;
    *counts = arena_array(db->context->arena, rows.count + 1, sizeof **counts);
    *count = 0;
    for (size_t row = 0; row < rows.count; row++) {
        struct db_row columns = db_row(&rows, row);
        struct jobs_count *one = &(*counts)[*count];
        bool is_known = job_kind_read(db_next_text(&columns), &one->kind);
        one->state = job_state_by_name(db_next_text(&columns));
        one->count = db_next_integer(&columns);
        one->oldest_s = db_next_integer(&columns);
        *count += is_known;
    }
    return IW_OK;
}

enum iw_error jobs_hurry(const struct db *db, int64_t order_id, int64_t *count)
{
    const struct db_value values[] = {db_integer(order_id)};
    return query_change(db,
                        "UPDATE jobs SET available_at = UTC_TIMESTAMP(3), failure_count = 0, death_count = "
                        "0, reason = 'hurried', updated_at = UTC_TIMESTAMP(3) WHERE order_id = ? AND status "
                        "= 'queued'",
                        values, 1, count);
}

enum iw_error jobs_forget(const struct db *db, int64_t order_id)
{
    const struct db_value values[] = {db_integer(order_id)};
    return db_run(db, "DELETE FROM jobs WHERE order_id = ? AND status IN ('done', 'failed', 'refused')",
                  values, 1, NULL);
}

enum iw_error jobs_reopen(const struct db *db, int64_t order_id, int64_t *count)
{
    const struct db_value values[] = {db_text(job_state_name(job_next(JOB_FAILED, JOB_EVENT_REOPEN))),
                                      db_integer(order_id)};
    return query_change(
        db,
        "UPDATE jobs SET status = ?, available_at = UTC_TIMESTAMP(3), failure_count = 0, death_count = "
        "0, reason = 'reopened', updated_at = UTC_TIMESTAMP(3) WHERE order_id = ? AND status IN "
        "('failed', 'refused') AND kind NOT IN ('push', 'archive')",
        values, 2, count);
}

enum iw_error jobs_lost(const struct db *db, int64_t order_id, int64_t *count)
{
    const struct db_value values[] = {db_integer(order_id)};
    return query_number(
        db,
        "SELECT COUNT(*) FROM jobs WHERE order_id = ? AND status IN ('failed', 'refused') AND kind = 'push'",
        values, 1, count);
}

enum iw_error jobs_cancel(const struct db *db, int64_t order_id)
{
    const struct db_value values[] = {db_text(job_state_name(job_next(JOB_QUEUED, JOB_EVENT_CANCEL))),
                                      db_integer(order_id)};
    return db_run(
        db,
        "UPDATE jobs SET status = ?, reason = 'cancelled', updated_at = UTC_TIMESTAMP(3) WHERE order_id = "
        "? AND status = 'queued'",
        values, 2, NULL);
}

enum iw_error jobs_inspect_owners(const struct db *db, struct query_table *table)
{
    static const char *const columns[] = {"owner", "jobs", "leaseSeconds"};
    *table = (struct query_table){.name = "owners", .columns = columns};
    return db_run(
        db,
        "SELECT lease_owner, COUNT(*), TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(3), MIN(lease_until)) FROM "
        "jobs WHERE status = 'leased' GROUP BY lease_owner ORDER BY lease_owner",
        NULL, 0, &table->rows);
}

enum iw_error jobs_inspect_failed(const struct db *db, int64_t most, struct query_table *table)
{
    static const char *const columns[] = {"jobId",    "kind",   "orderId", "fileId",   "attempts",
                                          "failures", "deaths", "reason",  "failedAt", "orderStatus"};
    const struct db_value values[] = {db_integer(most)};
    *table = (struct query_table){.name = "dead", .columns = columns};
    return db_run(
        db,
        "SELECT j.id, j.kind, CAST(j.order_id AS CHAR), j.file_id, j.attempt, j.failure_count, "
        "j.death_count, j.reason, j.updated_at, o.status FROM jobs j JOIN orders o ON o.id = j.order_id "
        "WHERE j.status = 'failed' ORDER BY j.id DESC LIMIT ?",
        values, 1, &table->rows);
}

enum iw_error jobs_inspect_rates(const struct db *db, struct query_table *table)
{
    static const char *const columns[] = {"what", "lastMinute", "lastHour"};
    *table = (struct query_table){.name = "rates", .columns = columns};
    return db_run(
        db,
        "SELECT 'jobs done', COUNT(IF(updated_at > UTC_TIMESTAMP(3) - INTERVAL 1 MINUTE, 1, NULL)), COUNT(*) "
        "FROM "
        "jobs WHERE status = 'done' AND updated_at > UTC_TIMESTAMP(3) - INTERVAL 1 HOUR "
        "UNION ALL SELECT 'jobs failed', COUNT(IF(updated_at > UTC_TIMESTAMP(3) - INTERVAL 1 MINUTE, 1, "
        "NULL)), "
        "COUNT(*) FROM jobs WHERE status = 'failed' AND updated_at > UTC_TIMESTAMP(3) - INTERVAL 1 HOUR "
        "UNION ALL SELECT 'orders made', COUNT(IF(created_at > UTC_TIMESTAMP(3) - INTERVAL 1 MINUTE, 1, "
        "NULL)), "
        "COUNT(*) FROM orders WHERE created_at > UTC_TIMESTAMP(3) - INTERVAL 1 HOUR "
        "UNION ALL SELECT 'deliveries', COUNT(IF(delivered_at > UTC_TIMESTAMP(3) - INTERVAL 1 MINUTE, 1, "
        "NULL)), "
        "COUNT(*) FROM webhook_deliveries WHERE status = 'DELIVERED' AND updated_at > UTC_TIMESTAMP(3) - "
        "INTERVAL 1 "
        "HOUR",
        NULL, 0, &table->rows);
}

enum iw_error jobs_failed_page(const struct db *db, int64_t limit, int64_t offset, struct jobs_failed **jobs,
                               size_t *count, int64_t *total)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(limit), db_integer(offset)};
    enum iw_error error =
        query_number(db, "SELECT COUNT(*) FROM jobs WHERE status = 'failed'", NULL, 0, total);
    if (error == IW_OK)
        error = db_run(
            db,
            "SELECT j.id, j.kind, j.order_id, j.account_id, j.attempt, j.reason, j.updated_at, o.status = "
            "'inProgress' FROM jobs j JOIN orders o ON o.id = j.order_id WHERE j.status = 'failed' ORDER BY "
            "j.id DESC LIMIT ? OFFSET ?",
            values, 2, &rows);
    if (error != IW_OK)
        return error;
    *jobs = arena_array(db->context->arena, rows.count + 1, sizeof **jobs);
    *count = rows.count;
    for (size_t row = 0; row < rows.count; row++) {
        struct db_row columns = db_row(&rows, row);
        struct jobs_failed *job = &(*jobs)[row];
        *job = (struct jobs_failed){0};
        job->id = db_next_integer(&columns);
        job->kind = db_next_text(&columns);
        job->order_id = db_next_integer(&columns);
        job->account_id = db_next_integer(&columns);
        job->attempts = db_next_integer(&columns);
        job->reason = db_next_text(&columns);
        job->updated_ms = db_next_integer(&columns);
        job->is_retryable = db_next_bool(&columns);
    }
    return IW_OK;
}

enum iw_error jobs_failed_order(const struct db *db, int64_t id, int64_t *order_id)
{
    const struct db_value values[] = {db_integer(id)};
    *order_id = 0;
    return query_number(db,
                        "SELECT j.order_id FROM jobs j JOIN orders o ON o.id = j.order_id WHERE j.id = ? AND "
                        "j.status = 'failed' AND o.status = 'inProgress'",
                        values, 1, order_id);
}

enum iw_error jobs_retry_request(const struct db *db, int64_t id, int64_t now_ms)
{
    const struct db_value values[] = {db_integer(id), db_time(now_ms)};
    return db_run(db, "INSERT IGNORE INTO job_retries (job_id, requested_at) VALUES (?, ?)", values, 2, NULL);
}

enum iw_error jobs_retry_take(const struct db *db, struct query_ids *ids)
{
    return query_ids(db, "SELECT job_id FROM job_retries ORDER BY requested_at LIMIT 20", NULL, 0, ids);
}

enum iw_error jobs_retry_done(const struct db *db, int64_t id)
{
    const struct db_value values[] = {db_integer(id)};
    return db_run(db, "DELETE FROM job_retries WHERE job_id = ?", values, 1, NULL);
}
