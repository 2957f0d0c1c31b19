/*
 * A picture on its way into the store, in pieces: counted against a limit,
 * recognised by its first bytes, hashed, written.  Refuses as soon as it knows.
 * For uploads and for what is fetched from a source URL.  Knows no HTTP, no
 * database.
 */
#ifndef SERVICE_UPLOAD_SINK_H
#define SERVICE_UPLOAD_SINK_H

#include <stdint.h>

#include <imgward/context.h>

#include "service/sniff.h"
#include "service/storage.h"

struct upload_sink;

/* What came in; valid after upload_sink_finish. */
struct upload_sink_facts {
    enum format format;
    int64_t size_bytes;
    uint8_t sha256[32];
    uint8_t md5[16]; /* all zeros unless it was asked for */
};

/*
 * Begins.  with_md5 also computes MD5, for Content-MD5 alone.  On success
 * the caller ends it with upload_sink_commit or upload_sink_abandon.  Errors as storage_put_begin.
 */
enum iw_error upload_sink_begin(struct storage *storage, struct context *context, int64_t max_bytes,
                                bool with_md5, struct upload_sink **sink) IW_MUST_USE;

/*
 * Adds bytes.  PAYLOAD_TOO_LARGE above the limit, UNSUPPORTED_MEDIA_TYPE once
 * the first bytes are no JPEG, PNG or WebP, or as storage_put_add.  After an
 * error only upload_sink_abandon may follow.
 */
enum iw_error upload_sink_add(struct upload_sink *sink, struct context *context, const void *bytes,
                              size_t size) IW_MUST_USE;

/*
 * No more bytes come.  UNSUPPORTED_MEDIA_TYPE when there were too few to be a
 * picture, IMAGE_CORRUPT when the end of the file is surely missing
 * (service/cutoff.h), unless is_cut_allowed.  Comes before upload_sink_commit.
 */
enum iw_error upload_sink_finish(struct upload_sink *sink, struct context *context, bool is_cut_allowed,
                                 struct upload_sink_facts *facts) IW_MUST_USE;

/* Puts the bytes under a key, durably, and frees the sink, also when it fails. */
enum iw_error upload_sink_commit(struct upload_sink *sink, struct context *context,
                                 const struct storage_key *key) IW_MUST_USE;

/* Forgets the bytes and frees the sink. */
void upload_sink_abandon(struct upload_sink *sink);

#endif
