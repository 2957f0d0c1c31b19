#include "model/file.h"

#include "model/word.h"

static const char *const status_names[FILE_STATUS_COUNT] = {"pending", "uploaded", "processing", "complete",
                                                            "failed"};

const char *file_status_name(enum file_status status)
{
    return status_names[status];
}

bool file_status_read(const char *name, enum file_status *status)
{
    int found = word_find(name, status_names, FILE_STATUS_COUNT);
    if (found >= 0)
        *status = (enum file_status)found;
    return found >= 0;
}
