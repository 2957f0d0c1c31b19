#include "http/scope.h"

#include "base/text.h"
#include "domain/orders/order_query.h"
#include "http/route.h"
#include "model/account.h"

/* Adds the scope of the type of the order in the path. */
static enum iw_error order_scope_add(struct request *request, unsigned *scopes)
{
    int64_t id;
    struct order_view view;
    if (!text_integer(request_capture(request, "orderId"), 1, INT64_MAX, &id))
        return context_fail(request->context, IW_ORDER_NOT_FOUND, NULL);
    enum iw_error error = order_find(request->domain, request->account->id, id, &view);
    if (error == IW_OK)
        *scopes |= key_scope_of(view.order.type);
    return error;
}

enum iw_error scope_check(struct request *request)
{
    enum iw_error error = IW_OK;
    unsigned own = request->account->key_scopes, needed = request->route->flags >> route_scope_shift;
    if (own == 0 || (own & needed) != 0)
        return IW_OK;
    if ((request->route->flags & ROUTE_SCOPE_OF_ORDER) != 0)
        error = order_scope_add(request, &needed);
    if (error != IW_OK || (own & needed) != 0)
        return error;
    const char *names = key_scopes_text(request->arena, needed, " or ");
    if (names == NULL)
        return context_fail(request->context, IW_AUTH_SCOPE_MISSING, NULL);
    return context_fail(request->context, IW_AUTH_SCOPE_MISSING,
                        "The API key does not have the scope %s; use a key with this scope.", names);
}
