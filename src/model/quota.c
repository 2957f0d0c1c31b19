#include "model/quota.h"

#include "model/word.h"

static const char *const names[QUOTA_COUNT] = {"ordersPending", "filesPending", "promisedBytes",
                                               "storedBytes",   "filesPerDay",  "textsPerDay",
                                               "webhooks"};

const char *quota_name(enum quota quota)
{
    return names[quota];
}

int quota_find(const char *name)
{
    return word_find(name, names, QUOTA_COUNT);
}
