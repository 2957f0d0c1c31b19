/*
 * All tables of routes of the console: the tables of this folder, and the API's tables with the same
 * handlers.
 */
#include "console/tables.h"

#include "api/tables.h"

const struct route *const console_routes[] = {
    console_session,
    console_user,
    console_account,
    console_key,
    console_activity,
    console_admin,
    console_queue,
    api_anti_ai,
    api_watermark,
    api_orders,
    api_statistics,
    api_webhooks,
    NULL,
};
