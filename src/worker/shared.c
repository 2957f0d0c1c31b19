#include "worker/shared.h"

#include "base/log.h"

void shared_lease_want(struct shared *shared)
{
    for (int class = 0; class < JOB_CLASS_COUNT; class ++)
        shared->is_lease_wanted[class] = true;
}

bool shared_is_draining(const struct shared *shared)
{
    return shared->is_paused || shared->is_keyring_unchecked || shared->stop_at_ms != 0;
}

bool shared_database_report(struct shared *shared, enum iw_error error, const char *event)
{
    if (error == IW_OK) {
        if (shared->is_database_away)
            log_event(LOG_INFO, NULL, "database_back");
        shared->is_database_away = false;
        return true;
    }
    if (!shared->is_database_away || error != IW_SERVICE_UNAVAILABLE)
        log_failure(shared->domain.context, event);
    shared->is_database_away = error == IW_SERVICE_UNAVAILABLE;
    context_clear(shared->domain.context);
    return false;
}
