/* All tables of routes; each file of this room has one. */
#include "api/tables.h"

const struct route *const api_routes[] = {
    api_anti_ai,      api_watermark, api_orders, api_statistics, api_files,
    api_store_events, api_webhooks,  api_watch,  NULL,
};
