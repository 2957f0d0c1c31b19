/*
 * POST /store-events: notifications of an object store about new objects, in the format of S3 and Ceph's
 * HTTP push.  They only make the start of an order faster: if a notification is lost, the order waits for
 * the worker's next look (domain/orders/order_confirm.h).
 */
#include "api/tables.h"

#include <string.h>

#include "base/crypto.h"
#include "base/json.h"
#include "domain/orders/order_confirm.h"
#include "http/response.h"

enum { records_max = 100 };

/* Compares digests, so that the time does not depend on the position of the first difference. */
static bool is_same(const char *a, const char *b)
{
    uint8_t digests[2][sha256_bytes];
    crypto_sha256(a, strlen(a), digests[0]);
    crypto_sha256(b, strlen(b), digests[1]);
    return crypto_equal(digests[0], digests[1], sha256_bytes);
}

/*
 * "Bearer KEY", or HTTP Basic with the user imgward and the key as the password, because Ceph sends only
 * that.
 */
static enum iw_error key_check(struct request *request)
{
    struct arena *arena = request->arena;
    const char *header = request_header(request, "Authorization"), *key;
    enum iw_error error = config_secret(request->context, request->config->store_s3_events_key_file, &key);
    if (error != IW_OK)
        return error;
    if (key[0] == '\0')
        return context_fail(request->context, IW_RESOURCE_NOT_FOUND, NULL);
    const char *pair = arena_printf(arena, "imgward:%s", key);
    const char *basic = arena_printf(arena, "Basic %s", crypto_base64(arena, pair, strlen(pair)));
    const char *bearer = arena_printf(arena, "Bearer %s", key);
    bool is_known = header != NULL && (is_same(header, basic) | is_same(header, bearer));
    return is_known ? IW_OK : context_fail(request->context, IW_AUTH_TOKEN_INVALID, NULL);
}

static enum iw_error store_events(struct request *request)
{
    static const struct request_array records_array = {"Records", records_max};
    const struct json *body;
    enum iw_error error = key_check(request);
    if (error == IW_OK)
        error = request_json(request, &records_array, &body);
    if (error != IW_OK)
        return error;
    const struct json *records = json_member(body, "Records");
    for (unsigned i = 0; error == IW_OK && i < records_max && i < json_length(records); i++) {
        const struct json *object = json_member(json_member(json_item(records, i), "s3"), "object");
        const struct json *key = json_member(object, "key");
        if (!json_is(key, JSON_KIND_STRING))
            continue;
        /* S3 encodes it like a form. */
        const char *name = request_decode(request->arena, json_string_of(key), json_length(key), true);
        error = name != NULL ? order_upload_check_hasten(request->domain, name) : IW_OK;
    }
    if (error == IW_OK)
        response_status(request, 204);
    return error;
}

const struct route api_store_events[] = {
    {METHOD_POST, "/store-events", store_events, ROUTE_OPEN},
    {.pattern = NULL},
};
