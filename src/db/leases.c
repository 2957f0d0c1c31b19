#include "db/leases.h"

/* As many question marks as leases_rows_max; unused question marks are 0, which is no id. */
#define IDS "(?, ?, ?, ?, ?, ?, ?, ?)"

struct statements {
    const char *take;
    const char *renew;
    const char *release_owner;
    const char *release_silent;
    const char *owners;
    const char *stranded_find;
    const char *stranded_hasten;
    unsigned stranded_times; /* parameters of stranded_hasten: now, and the limits of STRANDED */
};

/*
 * The statements for one table. The members waiting and leased are its states, and find finds a stranded row.
 * A lost lease adds lost_set, and a stranded row gets hasten_set; stranded is the condition for such a row.
 * The limits bound the rows of one call.
 */
#define STATEMENTS(table, waiting, leased, find, lost_set, lost_limit, stranded, hasten_set, hasten_limit,   \
                   times)                                                                                    \
    {                                                                                                        \
        .take = "UPDATE " table " SET status = '" leased "', attempt = attempt + 1, lease_owner = ?, "       \
                "lease_until = UTC_TIMESTAMP(3) + INTERVAL ? SECOND, updated_at = COALESCE(?, "              \
                "UTC_TIMESTAMP(3)) WHERE id IN " IDS,                                                        \
        .renew = "UPDATE " table " SET lease_until = UTC_TIMESTAMP(3) + INTERVAL ? SECOND WHERE "            \
                 "status = '" leased "' AND lease_owner = ? AND FIND_IN_SET(id, ?)",                         \
        .release_owner =                                                                                     \
            "UPDATE " table " SET status = '" waiting "', reason = 'lease_lost', lease_owner "               \
            "= NULL, lease_until = NULL" lost_set " WHERE status = '" leased "' AND lease_owner = ?",        \
        .release_silent = "UPDATE " table " SET status = '" waiting "', reason = 'lease_lost', lease_owner " \
                          "= NULL, lease_until = NULL" lost_set " WHERE status = '" leased                   \
                          "' AND lease_until < UTC_TIMESTAMP(3) ORDER BY lease_until LIMIT " lost_limit,     \
        .owners = "SELECT DISTINCT lease_owner FROM " table " WHERE status = '" leased                       \
                  "' AND lease_owner LIKE CONCAT(?, '%')",                                                   \
        .stranded_find = find,                                                                               \
        .stranded_hasten = "UPDATE " table " SET " hasten_set " WHERE " stranded " LIMIT " hasten_limit,     \
        .stranded_times = times                                                                              \
    }

/* Finds the latest job of an account in one step of the index, regardless of the number of jobs. */
#define JOBS_LATEST(class)                                                                                   \
    "(SELECT available_at FROM jobs FORCE INDEX (jobs_next) WHERE status = 'queued' AND class = '" class     \
        "' AND account_id = a.id ORDER BY available_at DESC LIMIT 1)"
/* The limits are those of JOBS_STRANDED. */
#define JOBS_STRANDED_FIND                                                                                   \
    "SELECT 1 FROM accounts a WHERE " JOBS_LATEST("image") " > UTC_TIMESTAMP(3) + INTERVAL 16 MINUTE "       \
                                                           "OR " JOBS_LATEST(                                \
                                                               "transfer") " > UTC_TIMESTAMP(3) + INTERVAL " \
                                                                           "16 MINUTE UNION ALL SELECT 1 "   \
                                                                           "FROM jobs WHERE "                \
                                                                           "status = 'leased' AND "          \
                                                                           "lease_until > UTC_TIMESTAMP(3) " \
                                                                           "+ INTERVAL 61 MINUTE LIMIT 1"

/* Beyond job_wait_max_ms, and beyond the longest lease that the configuration permits. */
#define JOBS_STRANDED                                                                                        \
    "((status = 'queued' AND available_at > UTC_TIMESTAMP(3) + INTERVAL 16 MINUTE) OR (status = 'leased' "   \
    "AND lease_until > UTC_TIMESTAMP(3) + INTERVAL 61 MINUTE))"

/* A first attempt is due at once; the longest backoff is 24 h and a fifth. */
#define DELIVERIES_STRANDED "status = 'PENDING' AND ((attempt = 0 AND available_at > ?) OR available_at > ?)"
enum { first_attempt_ms = 5 * 60 * 1000, longest_backoff_ms = 30 * 60 * 60 * 1000 };

static const struct statements statements[LEASES_TABLE_COUNT] = {
    [LEASES_JOBS] =
        STATEMENTS("jobs", "queued", "leased", JOBS_STRANDED_FIND,
                   ", available_at = UTC_TIMESTAMP(3), updated_at = UTC_TIMESTAMP(3)", "200", JOBS_STRANDED,
                   "status = 'queued', reason = 'clock_set_back', lease_owner = NULL, "
                   "lease_until = NULL, available_at = UTC_TIMESTAMP(3), updated_at = "
                   "UTC_TIMESTAMP(3)",
                   "5000", 0),
    [LEASES_DELIVERIES] = STATEMENTS("webhook_deliveries", "PENDING", "SENDING",
                                     "SELECT 1 FROM webhook_deliveries WHERE " DELIVERIES_STRANDED " LIMIT 1",
                                     "", "500", DELIVERIES_STRANDED, "available_at = ?", "500", 3),
};

enum iw_error leases_take(const struct db *db, enum leases_table table, const struct leases_request *request,
                          const int64_t *ids, unsigned count)
{
    struct db_value values[3 + leases_rows_max] = {db_text(request->owner), db_integer(request->lease_s),
                                                   db_time(request->now_ms)};
    for (unsigned i = 0; i < leases_rows_max; i++)
        values[3 + i] = db_integer(i < count ? ids[i] : 0);
    return db_run(db, statements[table].take, values, 3 + leases_rows_max, NULL);
}

enum iw_error leases_renew(const struct db *db, enum leases_table table, const char *owner, const char *ids,
                           int64_t lease_s, int64_t *count)
{
    const struct db_value values[] = {db_integer(lease_s), db_text(owner), db_text(ids)};
    return query_change(db, statements[table].renew, values, 3, count);
}

enum iw_error leases_release_owner(const struct db *db, enum leases_table table, const char *owner,
                                   int64_t *count)
{
    const struct db_value values[] = {db_text(owner)};
    return query_change(db, statements[table].release_owner, values, 1, count);
}

enum iw_error leases_release_silent(const struct db *db, enum leases_table table, int64_t *count)
{
    return query_change(db, statements[table].release_silent, NULL, 0, count);
}

enum iw_error leases_hasten_stranded(const struct db *db, enum leases_table table, int64_t now_ms,
                                     int64_t *count)
{
    struct db_rows rows;
    unsigned times = statements[table].stranded_times;
    const struct db_value values[] = {db_time(now_ms), db_time(now_ms + first_attempt_ms),
                                      db_time(now_ms + longest_backoff_ms)};
    *count = 0;
    /* First runs a query without locks, because such rows exist only after a step of the clock. */
    enum iw_error error =
        db_run(db, statements[table].stranded_find, values + 1, times > 0 ? times - 1 : 0, &rows);
    if (error != IW_OK || rows.count == 0)
        return error;
    return query_change(db, statements[table].stranded_hasten, values, times, count);
}

enum iw_error leases_owners(const struct db *db, enum leases_table table, const char *prefix,
                            struct query_texts *owners)
{
    const struct db_value values[] = {db_text(prefix)};
    return query_texts(db, statements[table].owners, values, 1, owners);
}
