#include "base/error.h"

#include <string.h>

static const struct {
    const char *code;
    const char *sentence;
} errors[IW_ERROR_COUNT] = {[IW_OK] = {"OK", "No error."},
#define IW_ERROR_ROW(name, text) [IW_##name] = {#name, text},
                            IW_ERRORS(IW_ERROR_ROW)
#undef IW_ERROR_ROW
};

const char *iw_error_code(enum iw_error error)
{
    return (unsigned)error < IW_ERROR_COUNT ? errors[error].code : "SERVER_INTERNAL_ERROR";
}

const char *iw_error_sentence(enum iw_error error)
{
    return (unsigned)error < IW_ERROR_COUNT ? errors[error].sentence
                                            : errors[IW_SERVER_INTERNAL_ERROR].sentence;
}

enum iw_error iw_error_by_code(const char *code)
{
    for (unsigned error = 1; error < IW_ERROR_COUNT; error++)
        if (strcmp(errors[error].code, code) == 0)
            return (enum iw_error)error;
    return IW_OK;
}
