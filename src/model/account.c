#include "model/account.h"

#include "model/word.h"

static const char *const status_names[ACCOUNT_STATUS_COUNT] = {"active", "suspended"};

const char *account_status_name(enum account_status status)
{
    return status_names[status];
}

bool account_status_read(const char *name, enum account_status *status)
{
    int found = word_find(name, status_names, ACCOUNT_STATUS_COUNT);
    if (found >= 0)
        *status = (enum account_status)found;
    return found >= 0;
}
