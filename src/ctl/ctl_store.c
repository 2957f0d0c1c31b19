#include "ctl/ctl_store.h"

#include "base/clock.h"

struct db *ctl_db(struct ctl *ctl, struct config *config)
{
    const char *password;
    if (!ctl_config(ctl, config))
        return NULL;
    clock_offset_set_s(config->test_clock_offset_s);
    if (config_secret(ctl->context, config->database_password_file, &password) == IW_OK)
        return db_new(config, password);
    ctl_failed(ctl);
    return NULL;
}

const char *ctl_time(const struct ctl *ctl, int64_t time_ms)
{
    char text[clock_iso_size];
    if (time_ms == 0)
        return "-";
    clock_iso(time_ms, text);
    return arena_text(ctl->context->arena, text);
}
