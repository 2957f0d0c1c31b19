/*
 * The servers of database.hosts: which server a connection uses, and how the connection is opened. Only db.c
 * calls this.
 *
 * They are nodes of a Galera cluster, or a primary and its replicas. The first server that is ready is used
 * (base/hosts.h): it answers, is not read-only, and Galera permits statements. The server is checked once a
 * second, between two transactions. If it is not ready, the next server is used. An earlier node of Galera is
 * used again after it was ready for database.back_s. A replicated server is not left while it is writable,
 * because the earlier server may have old rows. Without database.hosts there is one server, and no check.
 */
#ifndef DB_DB_HOSTS_H
#define DB_DB_HOSTS_H

#include "base/config.h"
#include "base/endpoint.h"
#include "base/hosts.h"
#include "base/metrics.h"

struct st_mysql; /* the driver's connection, MYSQL */

struct db_hosts {
    const struct config *config;
    char *password;
    struct endpoint of[endpoints_max];
    unsigned count;
    struct hosts *choice;
    struct hosts *choice_own; /* NULL after db_hosts_share */
    struct metrics *metrics;  /* may be NULL */
    unsigned statement_max_s; /* 0 means no limit */
    unsigned current;         /* this and the next two belong to the server of the last connection */
    bool is_cluster;          /* Galera */
    int64_t look_ms;          /* of the next check */
};

/* One server of database.hosts, as db_host_check found it. */
struct db_host {
    const char *name;  /* host:port or a socket; in the arena */
    const char *cause; /* why it is not reachable or not ready; "" if it is ready */
    bool is_reachable;
    bool is_in_use;
    bool is_cluster; /* Galera */
};

/* Why a server is not used: the driver's number, or 0, and a sentence. */
struct db_refusal {
    unsigned number;
    char cause[512];
};

/* Borrows config; copies the password. */
void db_hosts_init(struct db_hosts *hosts, const struct config *config, const char *password);
void db_hosts_fini(struct db_hosts *hosts);

/* Shares the choice with other processes.  Borrows both. */
void db_hosts_share(struct db_hosts *hosts, struct hosts *choice, struct metrics *metrics);

/*
 * Opens a connection to the server in use, else to the first server that is ready; servers that failed a
 * moment ago come last. NULL with the last refusal if no server is ready.
 */
struct st_mysql *db_hosts_open(struct db_hosts *hosts, const struct context *context,
                               struct db_refusal *refusal);

/*
 * Between two transactions: follows the other processes, checks the server once a second, and probes an
 * earlier server. Returns false if the caller should close the connection and open another.
 */
bool db_hosts_look(struct db_hosts *hosts, const struct context *context, struct st_mysql *connection);

/* Notes that the server in use did not answer. */
void db_hosts_lost(const struct db_hosts *hosts);

/* As db_host_check; is_in_use stays false. */
void db_hosts_check(const struct db_hosts *hosts, struct arena *arena, unsigned number, struct db_host *host);

/* An SQL expression: the names of the session's variables that did not take our value; "" for none. */
const char *db_hosts_session_question(struct arena *arena);

#endif
