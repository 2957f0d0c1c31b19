#include "api/targets.h"

#include <string.h>

#include "base/clock.h"
#include "domain/order.h"
#include "service/fetch.h"

enum { target_key_code_points_max = 1024 };

void targets_check_url(const struct field_place *place, const char *name, bool is_required,
                       const struct config *config)
{
    const char *why = NULL;
    const struct json *url = field_string(place, name, is_required, 1, fetch_url_bytes_max);
    if (url != NULL && !fetch_url_is_valid(url->string, config->outgoing_allow_http, &why))
        field_bad(place, name, "%s", why);
}

static void expiry_check(const struct field_place *target)
{
    int64_t expires_ms = 0;
    const struct json *time = field_string(target, "presignedUrlExpiresAt", true, 1, 40);
    if (time == NULL)
        return;
    if (!clock_iso_read(time->string, &expires_ms))
        field_bad(target, "presignedUrlExpiresAt", "must be a time such as 2026-03-12T10:00:00.000Z");
    else if (expires_ms <= clock_now_ms())
        field_bad(target, "presignedUrlExpiresAt", "must lie in the future");
}

static void target_check(const struct field_place *body, const struct config *config, const struct json *item,
                         unsigned index)
{
    struct arena *arena = body->context->arena;
    struct field_place target = {body->context, item, arena_printf(arena, "outputTargets[%u].", index)};
    if (!json_is(item, JSON_KIND_OBJECT)) {
        field_bad(body, arena_printf(arena, "outputTargets[%u]", index), "must be an object");
        return;
    }
    field_string(&target, "fileKey", true, 1, target_key_code_points_max);
    targets_check_url(&target, "url", true, config);
    expiry_check(&target);
}

void targets_check(const struct field_place *body, const struct config *config, unsigned file_count)
{
    unsigned index = 0;
    const struct json *targets = field_array(body, "outputTargets", true, 1, order_files_max);
    if (targets == NULL)
        return;
    if (file_count > 0 && targets->length != file_count)
        field_bad(body, "outputTargets", "has %zu items for %u files; each file needs one", targets->length,
                  file_count);
    for (const struct json *item = targets->first; item != NULL; item = item->next)
        target_check(body, config, item, index++);
}
