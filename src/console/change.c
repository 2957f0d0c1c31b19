#include "console/change.h"

#include <string.h>

#include "base/log.h"
#include "console/gate.h"
#include "http/route.h"

/*
 * The routes of the API that change more than the work on an order. Creating an order, confirming it and
 * refreshing its URLs adds no event, because the list of orders shows them.
 */
static const struct {
    enum method method;
    const char *pattern;
    const char *event;
    const char *id; /* the capture that names the object; "" if there is none */
} events[] = {
    {METHOD_DELETE, "/api/v2/orders/{orderId}", "orderDeleted", "orderId"},
    {METHOD_POST, "/api/v2/orders/webhooks", "webhookCreated", ""},
    {METHOD_PUT, "/api/v2/orders/webhooks/{webhookId}", "webhookChanged", "webhookId"},
    {METHOD_DELETE, "/api/v2/orders/webhooks/{webhookId}", "webhookDeleted", "webhookId"},
    {METHOD_POST, "/api/v2/orders/webhooks/{webhookId}/rotate-secret", "webhookSecretRotated", "webhookId"},
    {METHOD_POST, "/api/v2/orders/webhooks/{webhookId}/test", "webhookTested", "webhookId"},
    {METHOD_POST, "/api/v2/orders/webhooks/{webhookId}/events/{eventId}/retry", "webhookEventRetried",
     "webhookId"},
};

/* Returns the index of the route's event, or -1 if the table has none. */
static int event_of(const struct request *request)
{
    const struct route *route = request->route;
    for (size_t i = 0; route != NULL && i < sizeof events / sizeof events[0]; i++)
        if (events[i].method == route->method && strcmp(events[i].pattern, route->pattern) == 0)
            return (int)i;
    return -1;
}

enum iw_error change_count(struct request *request)
{
    const struct route *route = request->route;
    bool is_reading = request->method == METHOD_GET || request->method == METHOD_OPTIONS;
    if (is_reading || route == NULL || (route->flags & ROUTE_ESCAPE) != 0)
        return IW_OK;
    bool is_order_work =
        strncmp(route->pattern, "/api/v2/", strlen("/api/v2/")) == 0 && event_of(request) < 0;
    return is_order_work ? IW_OK : audit_change_admit(request->domain, request->session->user.id);
}

void change_note(struct request *request)
{
    int event = event_of(request);
    const struct audit_client client = gate_client(request);
    if (event < 0 || request->session == NULL)
        return;
    const char *id = events[event].id[0] != '\0' ? request_capture(request, events[event].id) : NULL;
    if (audit_change_note(request->domain, &request->session->user, &client, events[event].event, id) ==
        IW_OK)
        return;
    log_failure(request->context, "audit_failed");
    context_clear(request->context);
}
