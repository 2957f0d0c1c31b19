/* The tables of routes of the console, one per file; routes.c lists them.  The edge's prefix is "/console".
 */
#ifndef CONSOLE_TABLES_H
#define CONSOLE_TABLES_H

#include "http/route.h"

extern const struct route console_session[];
extern const struct route console_user[];
extern const struct route console_account[];
extern const struct route console_key[];
extern const struct route console_activity[];
extern const struct route console_admin[];
extern const struct route console_queue[];

/* These tables and the API's tables for orders, statistics and webhooks; terminated by NULL. */
extern const struct route *const console_routes[];

#endif
