/* Downloads by presigned URL.  The caller has verified the URL (service/files/presign.h). */
#ifndef DOMAIN_FILES_DOWNLOAD_H
#define DOMAIN_FILES_DOWNLOAD_H

#include <stdint.h>

#include "domain/domain.h"
#include "model/filekey.h"
#include "model/format.h"

/* The file behind a download URL.  Texts are in the arena. */
struct download {
    const char *disposition; /* Content-Disposition; NULL if the client shows it */
    enum format format;
    const char *url;  /* at the object store; NULL: nginx sends the file */
    const char *path; /* in a local store, from where nginx sends the file */
};

/* Finds a stored file.  PROCESSED_FILE_NOT_FOUND if it does not exist, was deleted or has expired. */
enum iw_error download_find(struct domain *domain, const struct filekey *key,
                            struct download *download) IW_MUST_USE;

#endif
