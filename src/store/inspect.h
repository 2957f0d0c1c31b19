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
enum iw_error inspect_order(struct context *context, struct db *db, int64_t order_id,
                            struct inspect_table tables[inspect_order_tables]) IW_MUST_USE;

/* Who has leased jobs, how many, and for how many more seconds the first of them. */
enum iw_error inspect_owners(struct context *context, struct db *db, struct inspect_table *table) IW_MUST_USE;

struct inspect_server {
    const char *version;
    const char *sql_mode;       /* of our session */
    const char *connection_set; /* character set of our session */
    const char *database_set;   /* and of the database */
    int64_t now_ms;             /* the server's clock */
    int64_t packet_bytes;       /* max_allowed_packet */
    bool is_read_only;
};

enum iw_error inspect_server(struct context *context, struct db *db,
                             struct inspect_server *server) IW_MUST_USE;

#endif
