/*
 * Writes an incoming picture to the store piece by piece. Limits the number of bytes, identifies the format
 * by the first bytes, reads the size in pixels from the header, and hashes the bytes. Reports errors as early
 * as possible. Used for uploads and for fetched sources. Does not depend on HTTP or the database.
 */
#ifndef SERVICE_FILES_UPLOAD_SINK_H
#define SERVICE_FILES_UPLOAD_SINK_H

#include <stdint.h>

#include "base/context.h"
#include "model/picture.h"
#include "model/sniff.h"
#include "service/files/storage.h"

struct upload_sink;

/* Facts about the received bytes; valid after upload_sink_finish. */
struct upload_sink_facts {
    enum format format;
    int64_t size_bytes;
    uint8_t sha256[32];
    uint8_t md5[16]; /* zeros unless requested */
};

struct upload_limits {
    int64_t max_bytes;
    unsigned formats;           /* accepted formats: formats_taken */
    bool with_md5;              /* also compute MD5, for Content-MD5 */
    enum order_type type;       /* the type whose work needs memory */
    int64_t image_memory_bytes; /* of an image process; 0 for no limit */
};

/*
 * Begins an upload to a key. On success the caller must call upload_sink_commit or upload_sink_abandon.
 * Errors as for storage_put_begin.
 */
enum iw_error upload_sink_begin(struct storage *storage, struct context *context,
                                const struct storage_key *key, const struct upload_limits *limits,
                                struct upload_sink **sink) IW_MUST_USE;

/*
 * Adds bytes. PAYLOAD_TOO_LARGE over the limit, UNSUPPORTED_MEDIA_TYPE if the first bytes belong to none of
 * the formats, IMAGE_TOO_LARGE if the size in the header is too large, or errors of storage_put_add. After an
 * error call only upload_sink_abandon.
 */
enum iw_error upload_sink_add(struct upload_sink *sink, struct context *context, const void *bytes,
                              size_t size) IW_MUST_USE;

/*
 * Ends the input; call it before upload_sink_commit. UNSUPPORTED_MEDIA_TYPE if there were too few bytes for a
 * picture, IMAGE_CORRUPT if the end is missing (service/files/cutoff.h) and is_cut_allowed is false.
 */
enum iw_error upload_sink_finish(struct upload_sink *sink, struct context *context, bool is_cut_allowed,
                                 struct upload_sink_facts *facts) IW_MUST_USE;

/* Stores the bytes durably under the key. Frees the sink, even on errors. */
enum iw_error upload_sink_commit(struct upload_sink *sink, struct context *context) IW_MUST_USE;

/* Discards the bytes and frees the sink. */
void upload_sink_abandon(struct upload_sink *sink);

#endif
