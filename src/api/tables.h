/* The tables of routes, one per file; routes.c lists them. */
#ifndef API_TABLES_H
#define API_TABLES_H

#include "http/route.h"

extern const struct route api_anti_ai[];
extern const struct route api_watermark[];
extern const struct route api_orders[];
extern const struct route api_statistics[];
extern const struct route api_files[];
extern const struct route api_store_events[];
extern const struct route api_webhooks[];
extern const struct route api_watch[];

/* All tables, each closed by a route without a pattern; closed by NULL. */
extern const struct route *const api_routes[];

#endif
