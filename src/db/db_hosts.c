#include "db/db_hosts.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mysql.h>
#include <mysqld_error.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"

enum {
    look_every_ms = 1000,
    /* The time that a request waits for the probe of a server that does not answer, once in ten seconds. */
    probe_max_ms = 200
};

void db_hosts_init(struct db_hosts *hosts, const struct config *config, const char *password)
{
    *hosts = (struct db_hosts){.config = config, .password = strdup(password)};
    if (hosts->password == NULL)
        abort();
    hosts->choice = hosts->choice_own = hosts_new();
    int count = endpoints_read(config->database_hosts, (int)config->database_port, hosts->of);
    if (count > 0) {
        hosts->count = (unsigned)count;
        return;
    }
    bool is_socket = config->database_socket[0] != '\0';
    snprintf(hosts->of[0].host, sizeof hosts->of[0].host, "%s",
             is_socket ? config->database_socket : config->database_host);
    hosts->of[0].port = (int)config->database_port;
    hosts->count = 1;
}

void db_hosts_fini(struct db_hosts *hosts)
{
    hosts_free(hosts->choice_own);
    free(hosts->password);
}

void db_hosts_share(struct db_hosts *hosts, struct hosts *choice, struct metrics *metrics)
{
    hosts_free(hosts->choice_own);
    hosts->choice_own = NULL;
    hosts->choice = choice;
    hosts->metrics = metrics;
}

void db_hosts_lost(const struct db_hosts *hosts)
{
    hosts_failed(hosts->choice, hosts->current, clock_monotonic_ms());
}

/*
 * The variables on which statements rely, because a server may have other global values, as shared hosts do.
 * Variables without a stated reason have MariaDB's default.
 */
static const struct {
    const char *name;
    const char *value; /* SQL */
} session[] = {
    {"time_zone", "'+00:00'"},
    {"sql_mode", "'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'"},
    {"innodb_lock_wait_timeout", "5"},
    {"tx_isolation", "'READ-COMMITTED'"},
    {"session_track_system_variables", "'last_insert_id'"},
    {"autocommit", "1"},
    {"completion_type", "'NO_CHAIN'"},
    {"tx_read_only", "0"},
    {"sql_safe_updates", "0"},
    {"sql_big_selects", "1"}, /* ignores max_join_size */
    {"sql_select_limit", "18446744073709551615"},
    {"sql_auto_is_null", "0"},
    {"max_sort_length", "1024"},
    {"group_concat_max_len", "1073741824"}, /* the largest answer of a server, for texts of an order */
    {"foreign_key_checks", "1"},
    {"unique_checks", "1"},
    {"check_constraint_checks", "1"},
    {"wait_timeout", "28800"},
    {"net_read_timeout", "30"},
    {"net_write_timeout", "60"},
};
enum { session_count = sizeof session / sizeof session[0] };

/* Sets the session.  With skip_character_set_client_handshake the server ignores MYSQL_SET_CHARSET_NAME. */
static const char *session_statement(struct arena *arena)
{
    struct text statement;
    text_init(&statement, arena);
    text_add_string(&statement, "SET NAMES utf8mb4");
    for (unsigned i = 0; i < session_count; i++)
        text_printf(&statement, ", %s = %s", session[i].name, session[i].value);
    return statement.data;
}

/* Selects the names of variables that have another value; "" for none. */
const char *db_hosts_session_question(struct arena *arena)
{
    struct text question;
    text_init(&question, arena);
    text_add_string(&question, "CONCAT_WS(', '");
    for (unsigned i = 0; i < session_count; i++)
        text_printf(&question, ", IF(@@SESSION.%s = %s, NULL, '%s')", session[i].name, session[i].value,
                    session[i].name);
    text_add_string(&question, ")");
    return question.data;
}

static void connection_options(MYSQL *connection, const struct db_hosts *hosts)
{
    char limit[64];
    const struct config *config = hosts->config;
    struct arena *arena = arena_new(0);
    unsigned timeout_s = (unsigned)config->database_timeout_s;
    /* There are other servers, so a server that does not end a statement in time counts as frozen. */
    bool is_limited = hosts->count > 1 && hosts->statement_max_s > 0;
    unsigned answer_s = is_limited ? hosts->statement_max_s + timeout_s : timeout_s * 4;
    my_bool no = 0;
    mysql_options(connection, MYSQL_OPT_CONNECT_TIMEOUT, &timeout_s);
    mysql_options(connection, MYSQL_OPT_READ_TIMEOUT, &answer_s);
    mysql_options(connection, MYSQL_OPT_WRITE_TIMEOUT, &timeout_s);
    mysql_options(connection, MYSQL_OPT_RECONNECT, &no);
    mysql_options(connection, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    mysql_options(connection, MYSQL_INIT_COMMAND, session_statement(arena));
    snprintf(limit, sizeof limit, "SET max_statement_time = %u", hosts->statement_max_s);
    mysql_options(connection, MYSQL_INIT_COMMAND, limit);
    arena_free(arena);
}

static bool host_refuse(struct db_refusal *refusal, unsigned number, const char *cause)
{
    refusal->number = number;
    snprintf(refusal->cause, sizeof refusal->cause, "%s", cause);
    return false;
}

static bool host_refuses(struct db_refusal *refusal, MYSQL *connection)
{
    return host_refuse(refusal, mysql_errno(connection), mysql_error(connection));
}

static MYSQL *connection_new(const struct db_hosts *hosts)
{
    MYSQL *connection = mysql_init(NULL);
    if (connection == NULL)
        abort();
    connection_options(connection, hosts);
    return connection;
}

static bool host_connect(const struct db_hosts *hosts, unsigned host, MYSQL *connection,
                         struct db_refusal *refusal)
{
    const struct endpoint *endpoint = &hosts->of[host];
    const struct config *config = hosts->config;
    bool is_socket = endpoint_is_socket(endpoint);
    return mysql_real_connect(connection, is_socket ? "localhost" : endpoint->host, config->database_user,
                              hosts->password, config->database_name, (unsigned)endpoint->port,
                              is_socket ? endpoint->host : NULL, CLIENT_MULTI_RESULTS) != NULL ||
           host_refuses(refusal, connection);
}

/*
 * True if a server may be used. With Galera, statements without a table are answered by a node that is not
 * ready, but not a transaction. The connection waits here for the commits of other nodes.
 */
static bool host_is_ready(MYSQL *connection, bool *is_cluster, struct db_refusal *refusal)
{
    if (mysql_query(connection, "SELECT @@global.read_only, @@global.wsrep_on") != 0 &&
        (mysql_errno(connection) != ER_UNKNOWN_SYSTEM_VARIABLE ||
         mysql_query(connection, "SELECT @@global.read_only, 0") != 0))
        return host_refuses(refusal, connection);
    MYSQL_RES *rows = mysql_store_result(connection);
    MYSQL_ROW row = rows != NULL ? mysql_fetch_row(rows) : NULL;
    bool is_read = row != NULL && row[0] != NULL && row[1] != NULL;
    bool is_read_only = is_read && row[0][0] != '0';
    *is_cluster = is_read && row[1][0] == '1';
    mysql_free_result(rows);
    if (!is_read)
        return host_refuses(refusal, connection);
    if (is_read_only)
        return host_refuse(refusal, 0, "The server is read-only.");
    if (*is_cluster &&
        (mysql_query(connection, "START TRANSACTION") != 0 || mysql_query(connection, "ROLLBACK") != 0))
        return host_refuses(refusal, connection);
    return true;
}

/*
 * Makes reads wait until the node has the commits of all nodes. A pool that cannot reach the first node
 * writes to another one, and the other pools do not notice it. 3: a statement outside of a transaction
 * waits once, START TRANSACTION too, statements inside do not
 * (https://mariadb.com/kb/en/galera-cluster-system-variables/#wsrep_sync_wait).
 * False if the connection is lost. A server without Galera does not wait.
 */
static bool reads_wait(MYSQL *connection)
{
    return mysql_query(connection, "SET wsrep_sync_wait = 3") == 0 ||
           mysql_errno(connection) == ER_UNKNOWN_SYSTEM_VARIABLE;
}

/* Opens a connection to a server that is ready; NULL if it is not. */
static MYSQL *host_open(struct db_hosts *hosts, unsigned host, struct db_refusal *refusal)
{
    MYSQL *connection = connection_new(hosts);
    bool is_cluster = false;
    bool is_open = host_connect(hosts, host, connection, refusal);
    if (is_open && hosts->count > 1)
        is_open = (reads_wait(connection) || host_refuses(refusal, connection)) &&
                  host_is_ready(connection, &is_cluster, refusal);
    if (!is_open) {
        mysql_close(connection);
        hosts_failed(hosts->choice, host, clock_monotonic_ms());
        return NULL;
    }
    hosts->current = host;
    hosts->is_cluster = is_cluster;
    hosts->look_ms = clock_monotonic_ms() + look_every_ms;
    metrics_set(hosts->metrics, METRIC_DATABASE_SERVER, 0, host + 1);
    return connection;
}

static void host_name(const struct db_hosts *hosts, unsigned host, char name[endpoint_host_size + 8])
{
    const struct endpoint *endpoint = &hosts->of[host];
    if (endpoint_is_socket(endpoint))
        snprintf(name, endpoint_host_size + 8, "%s", endpoint->host);
    else
        snprintf(name, endpoint_host_size + 8, "%s:%d", endpoint->host, endpoint->port);
}

/* Makes all processes of this pool use a server. */
static void host_use(struct db_hosts *hosts, const struct context *context, unsigned host, const char *reason,
                     const char *cause)
{
    char name[endpoint_host_size + 8];
    if (!hosts_use(hosts->choice, host))
        return;
    host_name(hosts, host, name);
    metrics_add(hosts->metrics, METRIC_DATABASE_CHANGES, 0, 0, 1);
    log_event(LOG_WARN, context, "database_changed", LOG_TEXT("host", name), LOG_TEXT("reason", reason),
              LOG_TEXT("cause", cause));
}

MYSQL *db_hosts_open(struct db_hosts *hosts, const struct context *context, struct db_refusal *refusal)
{
    unsigned current = hosts_current(hosts->choice);
    int64_t now_ms = clock_monotonic_ms();
    bool is_tried[endpoints_max] = {false};
    *refusal = (struct db_refusal){0};
    for (unsigned pass = 0; pass < 2; pass++)
        for (unsigned i = 0; i <= hosts->count; i++) {
            unsigned host = i == 0 ? current : i - 1;
            if (is_tried[host] || (pass == 0 && hosts_is_suspect(hosts->choice, host, now_ms)))
                continue;
            is_tried[host] = true;
            MYSQL *connection = host_open(hosts, host, refusal);
            if (connection == NULL)
                continue;
            host_use(hosts, context, host, "away", refusal->cause);
            return connection;
        }
    return NULL;
}

/* Waits for the driver's next step until a time; false if it is over. */
static bool probe_wait(MYSQL *connection, int *status, int64_t end_ms)
{
    struct pollfd place = {.fd = mysql_get_socket(connection)};
    int64_t left_ms = end_ms - clock_monotonic_ms();
    place.events =
        (short)((*status & MYSQL_WAIT_READ ? POLLIN : 0) | (*status & MYSQL_WAIT_WRITE ? POLLOUT : 0));
    if (left_ms <= 0 || poll(&place, 1, (int)left_ms) <= 0)
        return false;
    *status = (place.revents & (POLLIN | POLLHUP | POLLERR) ? MYSQL_WAIT_READ : 0) |
              (place.revents & POLLOUT ? MYSQL_WAIT_WRITE : 0);
    return true;
}

/* Connects without blocking longer than probe_max_ms; false if it timed out or failed. */
static bool probe_connect(const struct db_hosts *hosts, unsigned host, MYSQL *connection, bool *is_late)
{
    const struct endpoint *endpoint = &hosts->of[host];
    const struct config *config = hosts->config;
    bool is_socket = endpoint_is_socket(endpoint);
    int64_t end_ms = clock_monotonic_ms() + probe_max_ms;
    MYSQL *result = NULL;
    mysql_options(connection, MYSQL_OPT_NONBLOCK, NULL);
    mysql_options(connection, MYSQL_OPT_READ_TIMEOUT, &(unsigned){1}); /* for the check that follows */
    int status = mysql_real_connect_start(&result, connection, is_socket ? "localhost" : endpoint->host,
                                          config->database_user, hosts->password, config->database_name,
                                          (unsigned)endpoint->port, is_socket ? endpoint->host : NULL, 0);
    while (status != 0 && !*is_late) {
        *is_late = !probe_wait(connection, &status, end_ms);
        if (!*is_late)
            status = mysql_real_connect_cont(&result, connection, status);
    }
    return !*is_late && result != NULL;
}

/* Probes an earlier server.  True if it was ready for long enough, and all processes now use it. */
static bool host_probe(struct db_hosts *hosts, const struct context *context)
{
    struct db_refusal refusal;
    bool is_cluster = false, is_late = false;
    int64_t now_ms = clock_monotonic_ms();
    int host = hosts->is_cluster ? hosts_probe(hosts->choice, now_ms) : -1;
    if (host < 0)
        return false;
    MYSQL *connection = connection_new(hosts);
    bool is_ready = probe_connect(hosts, (unsigned)host, connection, &is_late) &&
                    host_is_ready(connection, &is_cluster, &refusal) && is_cluster;
    mysql_close(connection);
    if (is_late)
        hosts_probe_timed_out(hosts->choice, now_ms);
    if (!hosts_probed(hosts->choice, (unsigned)host, is_ready, now_ms, hosts->config->database_back_s * 1000))
        return false;
    host_use(hosts, context, (unsigned)host, "back", "");
    return true;
}

bool db_hosts_look(struct db_hosts *hosts, const struct context *context, MYSQL *connection)
{
    struct db_refusal refusal;
    int64_t now_ms = clock_monotonic_ms();
    if (hosts->current != hosts_current(hosts->choice))
        return false;
    if (now_ms < hosts->look_ms)
        return true;
    hosts->look_ms = now_ms + look_every_ms;
    if (!host_is_ready(connection, &hosts->is_cluster, &refusal)) {
        hosts_failed(hosts->choice, hosts->current, now_ms);
        return false;
    }
    return !host_probe(hosts, context);
}

void db_hosts_check(const struct db_hosts *hosts, struct arena *arena, unsigned number, struct db_host *host)
{
    char name[endpoint_host_size + 8];
    struct db_refusal refusal = {0};
    MYSQL *connection = connection_new(hosts);
    host_name(hosts, number, name);
    *host = (struct db_host){.name = arena_text(arena, name)};
    host->is_reachable = host_connect(hosts, number, connection, &refusal);
    if (host->is_reachable)
        host_is_ready(connection, &host->is_cluster, &refusal);
    host->cause = arena_text(arena, refusal.cause);
    mysql_close(connection);
}
