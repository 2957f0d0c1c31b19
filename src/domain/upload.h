/*
 * Uploads and downloads: who may put which bytes where and when, and what a
 * download URL leads to.  The URL has been checked before (service/presign.h).
 */
#ifndef DOMAIN_UPLOAD_H
#define DOMAIN_UPLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "domain/domain.h"
#include "service/upload_sink.h"
#include "service/presign.h"

/*
 * Whether an upload may be: the order is pending and the announced size (-1:
 * not announced) is within the signed one.  ORDER_NOT_FOUND,
 * ORDER_ALREADY_STARTED, ORDER_NOT_PENDING (it failed before it started),
 * PAYLOAD_TOO_LARGE.
 */
enum iw_error upload_check(struct domain *domain, const struct presign_grant *grant,
                           int64_t announced_bytes) IW_MUST_USE;

/* Where the bytes of an upload come from and what is known of them before. */
struct upload_source {
    /* Up to size bytes; 0 at the end, -1 when the sender is gone. */
    long (*read)(void *handle, void *buffer, size_t size);
    void *handle;
    int64_t announced_bytes; /* -1: not announced */
    const uint8_t *sha256;   /* what it must be; NULL: not told */
    const uint8_t *md5;
};

struct upload_outcome {
    struct upload_sink_facts facts;
    bool is_replacement; /* there was an earlier upload */
};

/*
 * Takes an upload whole or not at all.  The bytes are stored durably under a key
 * of their own; then, with the order's row locked and the order still pending,
 * the file's row is pointed at them.  Whatever fails before leaves an
 * earlier upload as it was.  Errors as upload_check, and UNSUPPORTED_MEDIA_TYPE,
 * VALIDATION_FAILED (a digest differs, fewer bytes than announced, a file that is cut off),
 * SERVICE_UNAVAILABLE.
 */
enum iw_error upload_receive(struct domain *domain, const struct presign_grant *grant,
                             const struct upload_source *source, struct upload_outcome *outcome) IW_MUST_USE;

/* What a download URL leads to; texts are the arena's. */
struct download {
    struct storage_key key;
    enum filekey_kind kind;
    const char *name; /* what the client is to call it */
    enum format format;
    int64_t size_bytes;
};

/* PROCESSED_FILE_NOT_FOUND when there is nothing, no longer, or its time is over; the bytes are there. */
enum iw_error download_find(struct domain *domain, const struct filekey *key,
                            struct download *download) IW_MUST_USE;

#endif
