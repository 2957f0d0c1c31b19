#include "store/inspect.h"

static const char *const order_columns[] = {
    "orderId",   "accountId", "type",      "channel",   "status",    "orderName", "strength",      "zeroCopy",
    "fileCount", "completed", "failed",    "results",   "thumbnail", "archive",   "archiveBytes",  "error",
    "requestId", "createdAt", "updatedAt", "startedAt", "endedAt",   "expiresAt", "filesDeletedAt"};
static const char order_sql[] =
    "SELECT CAST(id AS CHAR), account_id, type, channel, status, name, strength, zero_copy, file_count, "
    "completed_file_count, failed_file_count, result_count, thumbnail_store_key, zip_store_key, "
    "zip_size_bytes, error_code, request_id, created_at, updated_at, started_at, ended_at, expires_at, "
    "files_deleted_at FROM orders WHERE id = ?";

static const char *const file_columns[] = {"fileId", "position", "role",      "fileName",
                                           "status", "storeKey", "sizeBytes", "uploadedAt",
                                           "error",  "sentence", "note",      "noteText"};
static const char file_sql[] = "SELECT id, position, role, name, status, store_key, size_bytes, uploaded_at, "
                               "error_code, error_sentence, note_code, note_sentence FROM files WHERE "
                               "order_id = ? ORDER BY position, role";

static const char *const result_columns[] = {"resultId", "fileId",    "copy",    "name",     "storeKey",
                                             "format",   "sizeBytes", "widthPx", "heightPx", "createdAt"};
static const char result_sql[] = "SELECT id, file_id, copy, name, store_key, format, size_bytes, width_px, "
                                 "height_px, created_at FROM results WHERE order_id = ? ORDER BY id";

static const char *const job_columns[] = {"jobId",      "kind",      "fileId",   "status",      "attempt",
                                          "failures",   "deaths",    "reason",   "availableAt", "owner",
                                          "leaseUntil", "requestId", "updatedAt"};
static const char job_sql[] = "SELECT id, kind, file_id, status, attempt, failure_count, death_count, "
                              "reason, available_at, lease_owner, "
                              "lease_until, request_id, updated_at FROM jobs WHERE order_id = ? ORDER BY id";

static const char *const history_columns[] = {"at", "what"};
static const char history_sql[] =
    "SELECT at, what FROM ("
    "SELECT created_at AS at, 'created' AS what FROM orders WHERE id = ? "
    "UNION ALL SELECT uploaded_at, CONCAT('file ', id, ' uploaded') FROM files WHERE order_id = ? AND "
    "uploaded_at IS NOT NULL "
    "UNION ALL SELECT started_at, 'started' FROM orders WHERE id = ? AND started_at IS NOT NULL "
    "UNION ALL SELECT updated_at, CONCAT(kind, IF(file_id = 0, '', CONCAT(' of file ', file_id)), ' ', "
    "status, IF(reason IS NULL, '', CONCAT(' (', reason, ')'))) FROM jobs WHERE order_id = ? "
    "UNION ALL SELECT ended_at, 'ended' FROM orders WHERE id = ? AND ended_at IS NOT NULL "
    "UNION ALL SELECT files_deleted_at, 'files deleted' FROM orders WHERE id = ? AND files_deleted_at IS NOT "
    "NULL) AS events ORDER BY at";

static const char *const owner_columns[] = {"owner", "jobs", "leaseSeconds"};

enum iw_error inspect_order(const struct store *store, int64_t order_id,
                            struct inspect_table tables[inspect_order_tables])
{
    static const struct {
        const char *name;
        const char *const *columns;
        const char *sql;
        unsigned parameters;
    } parts[inspect_order_tables] = {{"order", order_columns, order_sql, 1},
                                     {"files", file_columns, file_sql, 1},
                                     {"results", result_columns, result_sql, 1},
                                     {"jobs", job_columns, job_sql, 1},
                                     {"history", history_columns, history_sql, 6}};
    struct db_value values[6];
    for (int i = 0; i < 6; i++)
        values[i] = db_integer(order_id);
    for (int i = 0; i < inspect_order_tables; i++) {
        tables[i] = (struct inspect_table){.name = parts[i].name, .columns = parts[i].columns};
        enum iw_error error = db_run(store, parts[i].sql, values, parts[i].parameters, &tables[i].rows);
        if (error != IW_OK)
            return error;
        if (tables[0].rows.count == 0)
            return context_fail(store->context, IW_ORDER_NOT_FOUND, NULL);
    }
    return IW_OK;
}

enum iw_error inspect_owners(const struct store *store, struct inspect_table *table)
{
    *table = (struct inspect_table){.name = "owners", .columns = owner_columns};
    return db_run(
        store,
        "SELECT lease_owner, COUNT(*), TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(3), MIN(lease_until)) FROM "
        "jobs WHERE status = 'leased' GROUP BY lease_owner ORDER BY lease_owner",
        NULL, 0, &table->rows);
}

enum iw_error inspect_orders(const struct store *store, const struct inspect_wanted *wanted,
                             struct inspect_table *table)
{
    static const char *const columns[] = {"orderId", "accountId", "account", "type",  "status",
                                          "files",   "done",      "failed",  "error", "createdAt"};
    const struct db_value values[] = {db_text(wanted->account),    db_text(wanted->account),
                                      db_text(wanted->account),    db_text(wanted->status),
                                      db_text(wanted->status),     db_text(wanted->request_id),
                                      db_text(wanted->request_id), db_text(wanted->name),
                                      db_text(wanted->name),       db_integer(wanted->most)};
    *table = (struct inspect_table){.name = "orders", .columns = columns};
    return db_run(
        store,
        "SELECT CAST(o.id AS CHAR), o.account_id, a.name, o.type, o.status, o.file_count, "
        "o.completed_file_count, o.failed_file_count, o.error_code, o.created_at FROM orders o JOIN "
        "accounts a ON a.id = o.account_id WHERE (? IS NULL OR a.name = ? OR CAST(a.id AS CHAR) = ?) AND "
        "(? IS NULL OR o.status = ?) AND (? IS NULL OR o.request_id = CONVERT(? USING ascii)) AND (? IS NULL "
        "OR INSTR(o.name, "
        "?) > 0) ORDER BY o.id DESC LIMIT ?",
        values, sizeof values / sizeof values[0], &table->rows);
}

enum iw_error inspect_dead(const struct store *store, int64_t most, struct inspect_table *table)
{
    static const char *const columns[] = {"jobId",    "kind",   "orderId", "fileId",   "attempts",
                                          "failures", "deaths", "reason",  "failedAt", "orderStatus"};
    const struct db_value values[] = {db_integer(most)};
    *table = (struct inspect_table){.name = "dead", .columns = columns};
    return db_run(
        store,
        "SELECT j.id, j.kind, CAST(j.order_id AS CHAR), j.file_id, j.attempt, j.failure_count, "
        "j.death_count, j.reason, j.updated_at, o.status FROM jobs j JOIN orders o ON o.id = j.order_id "
        "WHERE j.status = 'failed' ORDER BY j.id DESC LIMIT ?",
        values, 1, &table->rows);
}

enum iw_error inspect_webhooks(const struct store *store, const char *account, struct inspect_table *table)
{
    static const char *const columns[] = {"webhookId", "account", "name",   "url",       "active",
                                          "why",       "pending", "failed", "delivered", "failingSince"};
    const struct db_value values[] = {db_text(account), db_text(account), db_text(account)};
    *table = (struct inspect_table){.name = "webhooks", .columns = columns};
    return db_run(store,
                  "SELECT w.id, a.name, w.name, w.url, w.is_active, w.inactive_reason, COUNT(IF(d.status IN "
                  "('PENDING', "
                  "'SENDING'), 1, NULL)), COUNT(IF(d.status = 'FAILED', 1, NULL)), COUNT(IF(d.status = "
                  "'DELIVERED', 1, NULL)), "
                  "w.first_failure_at FROM webhooks w JOIN accounts a ON a.id = w.account_id LEFT JOIN "
                  "webhook_deliveries d ON "
                  "d.webhook_id = w.id WHERE w.deleted_at IS NULL AND (? IS NULL OR a.name = ? OR CAST(a.id "
                  "AS CHAR) = ?) GROUP "
                  "BY w.id ORDER BY w.id",
                  values, 3, &table->rows);
}

enum iw_error inspect_failed_events(const struct store *store, int64_t webhook_id, int64_t **event_ids,
                                    unsigned *count)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(webhook_id)};
    enum iw_error error = db_run(store,
                                 "SELECT event_id FROM webhook_deliveries WHERE webhook_id = ? AND status = "
                                 "'FAILED' ORDER BY event_id",
                                 values, 1, &rows);
    if (error != IW_OK)
        return error;
    *event_ids = arena_array(store->context->arena, rows.count + 1, sizeof **event_ids);
    *count = (unsigned)rows.count;
    for (unsigned i = 0; i < *count; i++)
        (*event_ids)[i] = db_integer_of(db_at(&rows, i, 0));
    return IW_OK;
}

enum iw_error inspect_rates(const struct store *store, struct inspect_table *table)
{
    static const char *const columns[] = {"what", "lastMinute", "lastHour"};
    *table = (struct inspect_table){.name = "rates", .columns = columns};
    return db_run(
        store,
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

/* Orders of one step: at most a hundred files with ten copies each. */
#define STEP_ORDERS "50"

static enum iw_error step_read(const struct store *store, int64_t after, int64_t *last, int64_t *orders)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(after)};
    enum iw_error error =
        db_run(store,
               "SELECT COALESCE(MAX(id), 0), COUNT(*) FROM (SELECT id FROM orders WHERE id > ? ORDER BY id "
               "LIMIT " STEP_ORDERS ") step",
               values, 1, &rows);
    if (error != IW_OK)
        return error;
    *last = db_integer_of(db_at(&rows, 0, 0));
    *orders = db_integer_of(db_at(&rows, 0, 1));
    return IW_OK;
}

static void file_take(const struct db_rows *rows, size_t row, struct inspect_file *file)
{
    const struct db_value *digest = db_at(rows, row, 3);
    *file = (struct inspect_file){
        .store_key = db_text_of(db_at(rows, row, 0)),
        .size_bytes = db_integer_of(db_at(rows, row, 1)),
        .order_id = db_integer_of(db_at(rows, row, 2)),
        .digest = digest->type != DB_NULL && digest->length == 32 ? (const uint8_t *)digest->text : NULL};
}

enum iw_error inspect_files(const struct store *store, int64_t *after_order_id, int64_t *orders,
                            struct inspect_file **files, unsigned *count)
{
    struct db_rows rows;
    int64_t from = *after_order_id, last;
    enum iw_error error = step_read(store, from, &last, orders);
    *count = 0;
    if (error != IW_OK || *orders == 0)
        return error;
    const struct db_value values[] = {db_integer(from), db_integer(last), db_integer(from), db_integer(last),
                                      db_integer(from), db_integer(last), db_integer(from), db_integer(last)};
    error = db_run(
        store,
        "SELECT r.store_key, r.size_bytes, r.order_id, r.digest FROM results r JOIN orders o ON o.id = "
        "r.order_id WHERE o.files_deleted_at IS NULL AND r.order_id > ? AND r.order_id <= ? "
        "UNION ALL SELECT zip_store_key, COALESCE(zip_size_bytes, -1), id, zip_digest FROM orders WHERE "
        "zip_store_key IS NOT NULL AND id > ? AND id <= ? "
        "UNION ALL SELECT thumbnail_store_key, -1, id, thumbnail_digest FROM orders WHERE "
        "thumbnail_store_key IS NOT NULL AND id > ? AND id <= ? "
        "UNION ALL SELECT f.store_key, COALESCE(f.size_bytes, -1), f.order_id, f.digest FROM files f JOIN "
        "orders o ON o.id = f.order_id WHERE f.store_key IS NOT NULL AND o.status IN ('pending', "
        "'inProgress') AND f.order_id > ? AND f.order_id <= ?",
        values, 8, &rows);
    if (error != IW_OK)
        return error;
    *files = arena_array(store->context->arena, rows.count + 1, sizeof **files);
    *count = (unsigned)rows.count;
    for (unsigned i = 0; i < *count; i++)
        file_take(&rows, i, &(*files)[i]);
    *after_order_id = last;
    return IW_OK;
}

enum iw_error inspect_order_count(const struct store *store, int64_t *count)
{
    struct db_rows rows;
    enum iw_error error = db_run(store, "SELECT COUNT(*) FROM orders", NULL, 0, &rows);
    if (error == IW_OK)
        *count = db_integer_of(db_at(&rows, 0, 0));
    return error;
}

enum iw_error inspect_server(const struct store *store, struct inspect_server *server)
{
    struct db_rows rows;
    enum iw_error error = db_run(
        store,
        "SELECT VERSION(), @@SESSION.sql_mode, @@SESSION.character_set_connection, "
        "(SELECT default_character_set_name FROM information_schema.schemata WHERE schema_name = "
        "DATABASE()), UTC_TIMESTAMP(3), @@max_allowed_packet, IF(@@read_only, 1, 0), @@max_connections",
        NULL, 0, &rows);
    if (error != IW_OK)
        return error;
    *server = (struct inspect_server){
        .version = db_text_of(db_at(&rows, 0, 0)),
        .sql_mode = db_text_of(db_at(&rows, 0, 1)),
        .connection_set = db_text_of(db_at(&rows, 0, 2)),
        .database_set = db_text_of(db_at(&rows, 0, 3)),
        .now_ms = db_integer_of(db_at(&rows, 0, 4)),
        .packet_bytes = db_integer_of(db_at(&rows, 0, 5)),
        .is_read_only = db_integer_of(db_at(&rows, 0, 6)) != 0,
        .connections_max = db_integer_of(db_at(&rows, 0, 7)),
    };
    return IW_OK;
}
