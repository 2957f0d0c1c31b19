/*
 * Uploads: checks before the body, and storing it.  The caller has verified the
 * URL (service/files/presign.h).
 */
#ifndef DOMAIN_FILES_UPLOAD_H
#define DOMAIN_FILES_UPLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "domain/domain.h"
#include "service/files/presign.h"
#include "service/files/upload_sink.h"

/*
 * Checks that the order is pending and the announced size (-1 if unknown) is within
 * the signed one.  ORDER_NOT_FOUND, ORDER_ALREADY_STARTED, ORDER_NOT_PENDING (it
 * failed before it started), PAYLOAD_TOO_LARGE, SERVICE_UNAVAILABLE (store_full).
 */
enum iw_error upload_check(struct domain *domain, const struct presign_grant *grant,
                           int64_t announced_bytes) IW_MUST_USE;

/* The body of an upload, and what the client announced about it. */
struct upload_source {
    /* Up to size bytes; 0 at the end, -1 if the client disconnected. */
    long (*read)(void *handle, void *buffer, size_t size);
    void *handle;
    int64_t announced_bytes; /* -1 if not announced */
    const uint8_t *sha256;   /* expected digest; NULL if not announced */
    const uint8_t *md5;      /* likewise */
};

struct upload_outcome {
    struct upload_sink_facts facts;
    bool is_replacement; /* of an earlier upload */
};

/*
 * Stores an upload completely or not at all.  First stores the bytes durably
 * under a new key.  Then, with the order's row locked and the order pending,
 * points the file's row to them.  Any earlier failure keeps an earlier upload.
 * Errors as upload_check; also UNSUPPORTED_MEDIA_TYPE, SERVICE_UNAVAILABLE and
 * VALIDATION_FAILED (digest differs, body too short, file truncated).
 */
enum iw_error upload_receive(struct domain *domain, const struct presign_grant *grant,
                             const struct upload_source *source, struct upload_outcome *outcome) IW_MUST_USE;

#endif
