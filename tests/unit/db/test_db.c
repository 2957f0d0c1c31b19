/* Mapping of the database driver's errors. The driver is simulated, so no server is needed. */
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "db/db.h"
#include "runner.h"

struct st_mysql;

/* The simulated driver: connecting always works, and every query fails with this number. */
static unsigned next_number;
static unsigned closed;

struct st_mysql *__wrap_mysql_real_connect(struct st_mysql *connection, const char *host, const char *user,
                                           const char *password, const char *database, unsigned port,
                                           const char *socket, unsigned long flags);
int __wrap_mysql_real_query(struct st_mysql *connection, const char *sql, unsigned long length);
unsigned __wrap_mysql_errno(struct st_mysql *connection);
const char *__wrap_mysql_error(struct st_mysql *connection);
void __wrap_mysql_close(struct st_mysql *connection);
void __real_mysql_close(struct st_mysql *connection);

struct st_mysql *__wrap_mysql_real_connect(struct st_mysql *connection, const char *host, const char *user,
                                           const char *password, const char *database, unsigned port,
                                           const char *socket, unsigned long flags)
{
    (void)host, (void)user, (void)password, (void)database, (void)port, (void)socket, (void)flags;
    return connection;
}

int __wrap_mysql_real_query(struct st_mysql *connection, const char *sql, unsigned long length)
{
    (void)connection, (void)sql, (void)length;
    return 1;
}

unsigned __wrap_mysql_errno(struct st_mysql *connection)
{
    (void)connection;
    return next_number;
}

const char *__wrap_mysql_error(struct st_mysql *connection)
{
    (void)connection;
    return "what the server said";
}

void __wrap_mysql_close(struct st_mysql *connection)
{
    closed++;
    __real_mysql_close(connection);
}

/* Errors of the driver, with the numbers that MariaDB documents, and the expected mapping. */
struct row {
    unsigned number;
    const char *name;
    enum iw_error error;
    const char *reason; /* NULL if there is none */
    bool is_closed;     /* the connection is closed */
    bool is_conflict;   /* the transaction is repeated */
};

static const struct row rows[] = {
    /* Disk errors. */
    {1021, "ER_DISK_FULL", IW_SERVICE_UNAVAILABLE, "database_refuses", false, false},
    {1026, "ER_ERROR_ON_WRITE", IW_SERVICE_UNAVAILABLE, "database_refuses", false, false},
    {1030, "ER_GET_ERRNO", IW_SERVICE_UNAVAILABLE, "database_refuses", false, false},
    {1114, "ER_RECORD_FILE_FULL", IW_SERVICE_UNAVAILABLE, "database_refuses", false, false},
    /* Memory, locks and timeouts. */
    {1037, "ER_OUTOFMEMORY", IW_SERVICE_UNAVAILABLE, "database_refuses", false, false},
    {1038, "ER_OUT_OF_SORTMEMORY", IW_SERVICE_UNAVAILABLE, "database_refuses", false, false},
    {1041, "ER_OUT_OF_RESOURCES", IW_SERVICE_UNAVAILABLE, "database_refuses", false, false},
    {1206, "ER_LOCK_TABLE_FULL", IW_SERVICE_UNAVAILABLE, "database_refuses", false, false},
    {1461, "ER_MAX_PREPARED_STMT_COUNT_REACHED", IW_SERVICE_UNAVAILABLE, "database_refuses", false, false},
    {1969, "ER_STATEMENT_TIMEOUT", IW_SERVICE_UNAVAILABLE, "statement_timeout", false, false},
    {1205, "ER_LOCK_WAIT_TIMEOUT", IW_SERVICE_UNAVAILABLE, "database_conflict", false, true},
    {1213, "ER_LOCK_DEADLOCK", IW_SERVICE_UNAVAILABLE, "database_conflict", false, true},
    {1467, "ER_AUTOINC_READ_FAILED", IW_SERVICE_UNAVAILABLE, "database_conflict", false, true},
    /* Read-only. */
    {1290, "ER_OPTION_PREVENTS_STATEMENT", IW_SERVICE_UNAVAILABLE, "database_refuses", false, false},
    {1792, "ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION", IW_SERVICE_UNAVAILABLE, "database_refuses", false,
     false},
    /* Connection errors. */
    {1040, "ER_CON_COUNT_ERROR", IW_SERVICE_UNAVAILABLE, "database_away", true, false},
    {1047, "ER_UNKNOWN_COM_ERROR (Galera: not ready)", IW_SERVICE_UNAVAILABLE, "database_away", true, false},
    {1180, "ER_ERROR_DURING_COMMIT", IW_SERVICE_UNAVAILABLE, "database_away", true, false},
    {1053, "ER_SERVER_SHUTDOWN", IW_SERVICE_UNAVAILABLE, "database_away", true, false},
    {1077, "ER_NORMAL_SHUTDOWN", IW_SERVICE_UNAVAILABLE, "database_away", true, false},
    {1184, "ER_NEW_ABORTING_CONNECTION", IW_SERVICE_UNAVAILABLE, "database_away", true, false},
    {1317, "ER_QUERY_INTERRUPTED", IW_SERVICE_UNAVAILABLE, "database_away", true, false},
    {1927, "ER_CONNECTION_KILLED", IW_SERVICE_UNAVAILABLE, "database_away", true, false},
    {2002, "CR_CONNECTION_ERROR", IW_SERVICE_UNAVAILABLE, "database_away", true, false},
    {2003, "CR_CONN_HOST_ERROR", IW_SERVICE_UNAVAILABLE, "database_away", true, false},
    {2006, "CR_SERVER_GONE_ERROR", IW_SERVICE_UNAVAILABLE, "database_away", true, false},
    {2008, "CR_OUT_OF_MEMORY", IW_SERVICE_UNAVAILABLE, "database_away", true, false},
    {2013, "CR_SERVER_LOST", IW_SERVICE_UNAVAILABLE, "database_away", true, false},
    {2014, "CR_COMMANDS_OUT_OF_SYNC", IW_SERVICE_UNAVAILABLE, "database_away", true, false},
    {2027, "CR_MALFORMED_PACKET", IW_SERVICE_UNAVAILABLE, "database_away", true, false},
    {2055, "CR_SERVER_LOST_EXTENDED", IW_SERVICE_UNAVAILABLE, "database_away", true, false},
    /* Errors for the caller, and programming errors. */
    {1062, "ER_DUP_ENTRY", IW_TWIN_EXISTS, NULL, false, false},
    {1054, "ER_BAD_FIELD_ERROR", IW_SERVER_INTERNAL_ERROR, "database_error", false, false},
    {1064, "ER_PARSE_ERROR", IW_SERVER_INTERNAL_ERROR, "database_error", false, false},
    {1146, "ER_NO_SUCH_TABLE", IW_SERVER_INTERNAL_ERROR, "database_error", false, false},
    {1406, "ER_DATA_TOO_LONG", IW_SERVER_INTERNAL_ERROR, "database_error", false, false},
    {1452, "ER_NO_REFERENCED_ROW_2", IW_SERVER_INTERNAL_ERROR, "database_error", false, false},
};

static bool is_same(const char *one, const char *other)
{
    return one == other || (one != NULL && other != NULL && strcmp(one, other) == 0);
}

static void row_check(const struct row *row)
{
    struct arena *arena = arena_new(0);
    struct context context;
    struct config config;
    context_init(&context, arena, NULL);
    config_init(&config);
    struct db_connection *connection = db_new(&config, "");
    next_number = row->number;
    closed = 0;
    enum iw_error error = db_run_plain(&(struct db){&context, connection}, "UPDATE x SET y = 1", 18);
    bool is_unavailable = row->error == IW_SERVICE_UNAVAILABLE;
    bool is_right = error == row->error && is_same(context.reason, row->reason) &&
                    (context.retry_after_s > 0) == is_unavailable && (closed == 1) == row->is_closed &&
                    db_is_conflict(connection) == row->is_conflict;
    if (!is_right)
        printf("%u %s: %s, reason %s, retry after %lld s, closed %u times, conflict %d\n", row->number,
               row->name, iw_error_code(error), context.reason != NULL ? context.reason : "none",
               (long long)context.retry_after_s, closed, db_is_conflict(connection));
    CU_ASSERT(is_right);
    /* The server's message is only for the log. */
    CU_ASSERT(context.sentence == NULL || strstr(context.sentence, "server said") == NULL);
    db_free(connection);
    arena_free(arena);
}

static void every_error_of_the_driver_has_its_answer(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        row_check(&rows[i]);
}

/* ---- the choice among several servers ---- */

enum { start_ms = 100000, back_ms = 30000 };

static void a_change_of_server_happens_once(void)
{
    struct hosts *hosts = hosts_new();
    CU_ASSERT_EQUAL(hosts_current(hosts), 0);
    CU_ASSERT_FALSE(hosts_use(hosts, 0));
    CU_ASSERT_TRUE(hosts_use(hosts, 1));
    CU_ASSERT_FALSE(hosts_use(hosts, 1));
    CU_ASSERT_EQUAL(hosts_current(hosts), 1);
    hosts_free(hosts);
}

static void a_server_that_failed_is_suspect_for_a_second(void)
{
    struct hosts *hosts = hosts_new();
    hosts_failed(hosts, 0, start_ms);
    CU_ASSERT_TRUE(hosts_is_suspect(hosts, 0, start_ms + 999));
    CU_ASSERT_FALSE(hosts_is_suspect(hosts, 0, start_ms + 1000));
    CU_ASSERT_FALSE(hosts_is_suspect(hosts, 1, start_ms));
    hosts_failed(hosts, 0, start_ms);
    hosts_use(hosts, 0);
    CU_ASSERT_FALSE(hosts_is_suspect(hosts, 0, start_ms));
    hosts_free(hosts);
}

static void earlier_servers_are_probed_in_turn_once_a_second(void)
{
    struct hosts *hosts = hosts_new();
    CU_ASSERT_EQUAL(hosts_probe(hosts, start_ms), -1); /* the first server is in use */
    hosts_use(hosts, 2);
    CU_ASSERT_EQUAL(hosts_probe(hosts, start_ms), 0);
    CU_ASSERT_EQUAL(hosts_probe(hosts, start_ms + 999), -1);
    CU_ASSERT_EQUAL(hosts_probe(hosts, start_ms + 1000), 1);
    CU_ASSERT_EQUAL(hosts_probe(hosts, start_ms + 2000), 0);
    /* From then on, only the server that was ready is probed. */
    CU_ASSERT_FALSE(hosts_probed(hosts, 1, true, start_ms + 2000, back_ms));
    CU_ASSERT_EQUAL(hosts_probe(hosts, start_ms + 3000), 1);
    CU_ASSERT_EQUAL(hosts_probe(hosts, start_ms + 4000), 1);
    hosts_probe_timed_out(hosts, start_ms + 4000);
    CU_ASSERT_EQUAL(hosts_probe(hosts, start_ms + 13999), -1);
    CU_ASSERT_EQUAL(hosts_probe(hosts, start_ms + 14000), 1);
    hosts_free(hosts);
}

static void a_server_is_used_again_after_it_was_ready_for_the_whole_time(void)
{
    struct hosts *hosts = hosts_new();
    hosts_use(hosts, 1);
    CU_ASSERT_FALSE(hosts_probed(hosts, 0, true, start_ms, back_ms));
    CU_ASSERT_FALSE(hosts_probed(hosts, 0, true, start_ms + back_ms - 1, back_ms));
    CU_ASSERT_TRUE(hosts_probed(hosts, 0, true, start_ms + back_ms, back_ms));
    /* After a failure the time starts again. */
    CU_ASSERT_FALSE(hosts_probed(hosts, 0, false, start_ms + back_ms, back_ms));
    CU_ASSERT_FALSE(hosts_probed(hosts, 0, true, start_ms + back_ms + 1, back_ms));
    CU_ASSERT_FALSE(hosts_probed(hosts, 0, true, start_ms + 2 * back_ms, back_ms));
    CU_ASSERT_TRUE(hosts_probed(hosts, 0, true, start_ms + 2 * back_ms + 1, back_ms));
    hosts_free(hosts);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"every error of the driver has its answer", every_error_of_the_driver_has_its_answer},
        {"a change of server happens once", a_change_of_server_happens_once},
        {"a server that failed is suspect for a second", a_server_that_failed_is_suspect_for_a_second},
        {"earlier servers are probed in turn once a second",
         earlier_servers_are_probed_in_turn_once_a_second},
        {"a server is used again after it was ready for the whole time",
         a_server_is_used_again_after_it_was_ready_for_the_whole_time},
        CU_TEST_INFO_NULL,
    };
    return runner_run("db", tests);
}
