/*
 * What an operator may look at: an order with all that belongs to it, the
 * queue, and the server itself.  Reads only; nothing here is on a request's way.
 */
#ifndef STORE_INSPECT_H
#define STORE_INSPECT_H

#include <stdbool.h>
#include <stdint.h>

#include <imgward/context.h>

#include "store/db.h"

/* Rows with the names of their columns, for printing as they are. */
struct inspect_table {
    const char *name;           /* "files" */
    const char *const *columns; /* as many as rows.columns; ids come as text */
    struct db_rows rows;
};

enum { inspect_order_tables = 5 };

/* The order itself, its files, results, jobs and history (a time and a sentence each); ORDER_NOT_FOUND. */
enum iw_error inspect_order(const struct store *store, int64_t order_id,
                            struct inspect_table tables[inspect_order_tables]) IW_MUST_USE;

/* Who has leased jobs, how many, and for how many more seconds the first of them. */
enum iw_error inspect_owners(const struct store *store, struct inspect_table *table) IW_MUST_USE;

/* What an operator looks for among the orders; NULL and 0: whatever. */
struct inspect_wanted {
    const char *account; /* name or number */
    const char *status;
    const char *request_id; /* of the request that made it */
    const char *name;       /* a part of it */
    int64_t most;
};

/* Orders of any account, newest first. */
enum iw_error inspect_orders(const struct store *store, const struct inspect_wanted *wanted,
                             struct inspect_table *table) IW_MUST_USE;

/* Jobs that were given up, newest first, at most most. */
enum iw_error inspect_dead(const struct store *store, int64_t most, struct inspect_table *table) IW_MUST_USE;

/* Webhooks that are not deleted, with how their deliveries stand; account NULL: of all. */
enum iw_error inspect_webhooks(const struct store *store, const char *account,
                               struct inspect_table *table) IW_MUST_USE;

/* The events whose delivery to a webhook was given up, oldest first; the array is the arena's. */
enum iw_error inspect_failed_events(const struct store *store, int64_t webhook_id, int64_t **event_ids,
                                    unsigned *count) IW_MUST_USE;

/* Orders and jobs of the last minute and hour: what came and what ended. */
enum iw_error inspect_rates(const struct store *store, struct inspect_table *table) IW_MUST_USE;

/* A file that a row names. */
struct inspect_file {
    const char *store_key;
    int64_t order_id;
    int64_t size_bytes;    /* -1: not known */
    const uint8_t *digest; /* SHA-256; NULL: not known */
};

/*
 * The files of the next few orders after an id, which is moved on to the last of
 * them; orders gets how many there were, 0 behind the last.  The array is the
 * arena's, so that a walk through a large store stays small.
 */
enum iw_error inspect_files(const struct store *store, int64_t *after_order_id, int64_t *orders,
                            struct inspect_file **files, unsigned *count) IW_MUST_USE;

/* How many orders there are. */
enum iw_error inspect_order_count(const struct store *store, int64_t *count) IW_MUST_USE;

struct inspect_server {
    const char *version;
    const char *sql_mode;       /* of our session */
    const char *connection_set; /* character set of our session */
    const char *database_set;   /* and of the database */
    int64_t now_ms;             /* the server's clock */
    int64_t packet_bytes;       /* max_allowed_packet */
    int64_t connections_max;    /* max_connections */
    bool is_read_only;
};

enum iw_error inspect_server(const struct store *store, struct inspect_server *server) IW_MUST_USE;

#endif
