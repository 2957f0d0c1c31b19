#include "api/targets.h"

#include <string.h>

#include "base/clock.h"
#include "domain/outgoing.h"

enum { target_key_code_points_max = 1024 };

const char *targets_url(const struct field_place *place, const char *name, bool is_required,
                        const struct config *config)
{
    const struct json *url = field_string(place, name, is_required, 1, outgoing_url_bytes_max);
    if (url == NULL)
        return NULL;
    const char *fault = outgoing_url_fault(config, url->string);
    if (fault == NULL)
        return url->string;
    field_bad(place, name, "%s", fault);
    return NULL;
}

/* That it lies in the future is looked at when it is known that the order is not there already; 0: no time.
 */
static int64_t expiry_read(const struct field_place *target)
{
    int64_t expires_ms = 0;
    const struct json *time = field_string(target, "presignedUrlExpiresAt", true, 1, 40);
    if (time == NULL)
        return 0;
    if (clock_iso_read(time->string, &expires_ms))
        return expires_ms > 0 ? expires_ms : 1;
    field_bad(target, "presignedUrlExpiresAt", "must be a time such as 2026-03-12T10:00:00.000Z");
    return 0;
}

static void target_read(const struct field_place *body, const struct config *config, const struct json *item,
                        unsigned index, struct order_wish_file *file)
{
    struct arena *arena = body->context->arena;
    struct field_place target = {body->context, item, arena_printf(arena, "outputTargets[%u].", index)};
    if (!json_is(item, JSON_KIND_OBJECT)) {
        field_bad(body, arena_printf(arena, "outputTargets[%u]", index), "must be an object");
        return;
    }
    const struct json *key = field_string(&target, "fileKey", true, 1, target_key_code_points_max);
    file->target_key = key != NULL ? key->string : NULL;
    file->target_url = targets_url(&target, "url", true, config);
    file->target_expires_ms = expiry_read(&target);
}

void targets_read(const struct field_place *body, const struct config *config, struct order_wish *wish)
{
    unsigned index = 0;
    struct order_wish_file unpaired;
    const struct json *targets = field_array(body, "outputTargets", true, 1, order_files_max);
    if (targets == NULL)
        return;
    if (wish->file_count > 0 && targets->length != wish->file_count)
        field_bad(body, "outputTargets", "has %zu items for %u files; each file needs one", targets->length,
                  wish->file_count);
    for (const struct json *item = targets->first; item != NULL; item = item->next, index++)
        target_read(body, config, item, index, index < wish->file_count ? &wish->files[index] : &unpaired);
}
