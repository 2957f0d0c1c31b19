/* API keys. The value of a key is only in the response to its creation. */
#include <string.h>

#include "api/page.h"
#include "base/clock.h"
#include "base/crypto.h"
#include "base/message.h"
#include "console/gate.h"
#include "console/tables.h"
#include "console/view.h"
#include "domain/accounts/account.h"
#include "http/response.h"

enum { time_code_points_max = 40 };

/* An array of names; null without limits. */
static void scopes_render(struct render *render, unsigned scopes)
{
    if (scopes == 0) {
        render_null(render, "scopes");
        return;
    }
    render_array_begin(render, "scopes");
    for (unsigned i = 0; i < key_scope_count; i++)
        if ((scopes & 1u << i) != 0)
            render_string(render, NULL, key_scope_name(i));
    render_array_end(render);
}

static void key_render(struct render *render, const struct account_key *key)
{
    render_id(render, "id", key->id);
    render_string(render, "name", key->name);
    render_string(render, "prefix", key->prefix);
    scopes_render(render, key->scopes);
    render_time(render, "createdAt", key->created_at_ms);
    render_time(render, "expiresAt", key->expires_at_ms);
    render_time(render, "revokedAt", key->revoked_at_ms);
    render_time(render, "lastUsedAt", key->last_used_at_ms);
    if (key->user_id == 0) {
        render_null(render, "madeBy");
        return;
    }
    render_object_begin(render, "madeBy");
    render_id(render, "userId", key->user_id);
    render_string(render, "email", key->user_email);
    render_object_end(render);
}

static enum iw_error list(struct request *request)
{
    struct page page;
    struct account_key_rows rows;
    page_read(request, &page);
    enum iw_error error = context_validated(request->context);
    if (error == IW_OK)
        error = account_key_list(request->domain, request->account->id,
                                 page.limit < 0 ? INT64_MAX : page.limit, page_offset(&page), &rows);
    if (error != IW_OK)
        return error;
    struct render *render = page_begin(request, "keys");
    for (size_t i = 0; i < rows.count; i++) {
        render_object_begin(render, NULL);
        key_render(render, &rows.items[i]);
        render_object_end(render);
    }
    page_end(render, &page, rows.total);
    return IW_OK;
}

/* Reads the optional time of expiry, which must lie in the future. */
static int64_t expiry_read(const struct field_scope *body)
{
    int64_t time_ms = 0;
    if (json_is_absent(json_member(body->object, "expiresAt")))
        return 0;
    const char *text = view_text(body, "expiresAt", time_code_points_max);
    if (text[0] == '\0')
        return 0;
    if (!clock_iso_read(text, &time_ms))
        field_bad(body, "expiresAt", message_no_time);
    else if (time_ms <= clock_now_ms())
        field_bad(body, "expiresAt", message_time_past);
    return time_ms;
}

/* Reads the optional array of scopes, one in each item. */
static unsigned scopes_read(const struct field_scope *body)
{
    unsigned scopes = 0;
    struct arena *arena = body->context->arena;
    const struct json *names = field_array(body, "scopes", false, 1, key_scope_count), *name;
    for (unsigned i = 0; (name = json_item(names, i)) != NULL; i++)
        if (!json_is_text(name) || strchr(json_string_of(name), ',') != NULL ||
            !key_scopes_read(json_string_of(name), &scopes))
            field_bad(body, arena_printf(arena, "scopes[%u]", i), "must be one of %s",
                      key_scopes_text(arena, ~0u, ", "));
    return scopes;
}

static enum iw_error create(struct request *request)
{
    struct field_scope body;
    struct account_key key;
    char value[key_size];
    const struct audit_client client = gate_client(request);
    enum iw_error error = view_body(request, &body);
    if (error != IW_OK)
        return error;
    const struct account_key_wish wish = {.name = view_text(&body, "name", account_key_name_code_points_max),
                                          .scopes = scopes_read(&body),
                                          .expires_ms = expiry_read(&body)};
    error = context_validated(request->context);
    if (error == IW_OK)
        error = account_key_create(request->domain, request->session, &wish, &client, value, &key);
    if (error != IW_OK)
        return error;
    response_status(request, 201);
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    key_render(render, &key);
    render_string(render, "value", value);
    render_object_end(render);
    crypto_wipe(value, sizeof value);
    return IW_OK;
}

static enum iw_error revoke(struct request *request)
{
    int64_t id;
    struct account_key key;
    const struct audit_client client = gate_client(request);
    enum iw_error error = view_id(request, "keyId", &id);
    if (error == IW_OK)
        error = account_key_revoke(request->domain, request->session, id, &client, &key);
    if (error != IW_OK)
        return error;
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    key_render(render, &key);
    render_object_end(render);
    return IW_OK;
}

const struct route console_key[] = {
    {METHOD_GET, "/api/keys", list, 0},
    {METHOD_POST, "/api/keys", create, 0},
    {METHOD_DELETE, "/api/keys/{keyId}", revoke, 0},
    {.pattern = NULL},
};
