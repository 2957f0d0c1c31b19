#include "worker/flags.h"

#include "base/log.h"

void flags_lease_want(struct flags *flags)
{
    for (int class = 0; class < JOB_CLASS_COUNT; class ++)
        flags->is_lease_wanted[class] = true;
}

bool flags_is_draining(const struct flags *flags)
{
    return flags->is_paused || flags->is_keyring_unchecked || flags->stop_at_ms != 0;
}

bool flags_database_report(struct flags *flags, struct context *context, enum iw_error error,
                           const char *event)
{
    if (error == IW_OK) {
        if (flags->is_database_away)
            log_event(LOG_INFO, NULL, "database_back");
        flags->is_database_away = false;
        return true;
    }
    if (!flags->is_database_away || error != IW_SERVICE_UNAVAILABLE)
        log_failure(context, event);
    flags->is_database_away = error == IW_SERVICE_UNAVAILABLE;
    context_clear(context);
    return false;
}
