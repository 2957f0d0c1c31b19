/*
 * Presigned URLs: who holds one may PUT or GET one file until a time, and
 * nothing else.
 *
 *   <public_url>/files/<fileKey>?e=<expiry>&m=<max bytes>&k=<key id>&s=<signature>
 *
 * `e` is in seconds since 1970 UTC, `m` stands in upload URLs alone, and `s` is
 * base64url of the HMAC-SHA256 (RFC 2104) over method class, file key, expiry,
 * size limit and key id, one a line.  Parameters come in any order, each
 * exactly once, and nothing else beside them.
 *
 * The keys come from the configuration's store.signing_keys_file, one
 * `id:64 hex digits` a line, or `id:64 hex digits:FROM` with seconds since 1970.
 * The first whose time has come signs, all are accepted.  So a key is rotated
 * without breaking the URLs that are out, and whoever signs with a new one does
 * so when every process has it.  Knows neither the database nor the files; a
 * full URL must never be logged.
 */
#ifndef SERVICE_PRESIGN_H
#define SERVICE_PRESIGN_H

#include <stdint.h>

#include <imgward/context.h>

#include "base/config.h"
#include "model/filekey.h"

/* HEAD is signed as GET. */
enum presign_method { PRESIGN_GET, PRESIGN_PUT };

enum { presign_keys_max = 8 };

/* The keys of one process, their HMAC states prepared. */
struct presign;

/* What a verified URL allows. */
struct presign_grant {
    struct filekey key;
    int64_t expires_s;
    int64_t max_bytes; /* uploads only, otherwise 0 */
};

/*
 * Reads the keys and keeps a copy of what it needs of the configuration, so
 * that a reload makes a new one and frees the old.  CONFIG_INVALID when the
 * file is missing, readable by everybody, or has a bad or twin line (the
 * sentence names the line, never the key).  The caller owns it.
 */
enum iw_error presign_new(struct context *context, const struct config *config,
                          struct presign **presign) IW_MUST_USE;

void presign_free(struct presign *presign);

/*
 * The URL of an upload (at most max_bytes) or download, valid until expires_s
 * (seconds since 1970).  presign_expiry_s gives the usual expiry of new URLs:
 * now plus store.upload_url_s or store.download_url_s.  The text is the arena's.
 */
const char *presign_upload_url(const struct presign *presign, struct arena *arena, const struct filekey *key,
                               int64_t expires_s, int64_t max_bytes);
const char *presign_download_url(const struct presign *presign, struct arena *arena,
                                 const struct filekey *key, int64_t expires_s);
int64_t presign_expiry_s(const struct presign *presign, enum presign_method method);

/* The size limit that new upload URLs carry: store.upload_max_bytes. */
int64_t presign_upload_max_bytes(const struct presign *presign);

/* A request with a presigned URL, as received. */
struct presign_request {
    enum presign_method method;
    const char *key_text; /* the path after /files/ */
    const char *query;    /* the text after the '?'; "" for none */
    int64_t at_ms;        /* when the request began */
};

/*
 * URL_SIGNATURE_INVALID for a URL that was not signed for this method.  Then URL_EXPIRED, with
 * context->expired_at, for one that had expired at at_ms.
 */
enum iw_error presign_verify(const struct presign *presign, struct context *context,
                             const struct presign_request *request, struct presign_grant *grant) IW_MUST_USE;

/*
 * Writes a file of one new key, mode 0600, whole or not at all.  TWIN_EXISTS
 * when there is such a file.  new_id is the arena's.
 */
enum iw_error presign_keys_generate(struct context *context, const char *path,
                                    const char **new_id) IW_MUST_USE;

/*
 * Replaces a file of keys, whole or not at all: a new one that signs from from_s
 * on comes first, the one that signs now stays, others are dropped.
 */
enum iw_error presign_keys_rotate(struct context *context, const char *path, int64_t from_s,
                                  const char **new_id) IW_MUST_USE;

#endif
