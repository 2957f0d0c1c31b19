#include "http/scope.h"

#include "base/text.h"
#include "domain/orders/order_query.h"
#include "http/route.h"
#include "model/account.h"

static enum iw_error own_check(const struct request *request, unsigned needed)
{
    unsigned own = request->account->key_scopes;
    if (own == 0 || (own & needed) != 0)
        return IW_OK;
    const char *names = key_scopes_text(request->arena, needed, " or ");
    if (names == NULL)
        return context_fail(request->context, IW_AUTH_SCOPE_MISSING, NULL);
    return context_fail(request->context, IW_AUTH_SCOPE_MISSING,
                        "The API key does not have the scope %s; use a key with this scope.", names);
}

/* Checks the scope of the order's type, or one of others. */
static enum iw_error type_check(struct request *request, int64_t order_id, unsigned others)
{
    enum order_type type;
    unsigned own = request->account->key_scopes;
    if (own == 0 || (own & others) != 0)
        return IW_OK;
    enum iw_error error = order_type_find(request->domain, request->account->id, order_id, &type);
    return error == IW_OK ? own_check(request, others | key_scope_of(type)) : error;
}

enum iw_error scope_order_check(struct request *request, int64_t order_id)
{
    return type_check(request, order_id, 0);
}

enum iw_error scope_check(struct request *request)
{
    int64_t id;
    unsigned needed = request->route->flags >> route_scope_shift;
    if ((request->route->flags & ROUTE_SCOPE_OF_ORDER) == 0 || request->account->key_scopes == 0)
        return own_check(request, needed);
    if (!text_integer(request_capture(request, "orderId"), 1, INT64_MAX, &id))
        return context_fail(request->context, IW_ORDER_NOT_FOUND, NULL);
    return type_check(request, id, needed);
}
