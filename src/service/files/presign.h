/*
 * Presigned URLs: a URL permits one PUT or GET of one file until it expires.
 *
 *   <public_url>/files/<fileKey>?e=<expiry>&m=<max bytes>&k=<key id>&s=<signature>
 *
 * `e` is in seconds since 1970 UTC. Only upload URLs have `m`. `s` is base64url of the
 * HMAC-SHA256 (RFC 2104) over method class, file key, expiry, size limit and key id, one per
 * line. Each parameter must occur exactly once, in any order, and no others may occur.
 *
 * The keys are in the file store.signing_keys_file, one per line: `id:64 hex digits` or `id:64 hex
 * digits:FROM`, in seconds since 1970. The first key whose FROM has passed signs, and all keys verify. So a
 * key can be rotated without invalidating issued URLs, and the new key signs only after every process has
 * loaded it.
 *
 * This module depends neither on the database nor on files. Never log a full URL.
 */
#ifndef SERVICE_FILES_PRESIGN_H
#define SERVICE_FILES_PRESIGN_H

#include <stdint.h>

#include "base/config.h"
#include "base/context.h"
#include "model/filekey.h"

/* HEAD is signed as GET. */
enum presign_method { PRESIGN_GET, PRESIGN_PUT };

enum { presign_keys_max = 8 };

/* The loaded keys with their prepared HMAC states. */
struct presign;

/* The rights that a verified URL grants. */
struct presign_grant {
    struct filekey key;
    int64_t expires_s;
    int64_t max_bytes; /* only for uploads, otherwise 0 */
};

/*
 * Reads the keys and copies the settings that are needed; after a reload, create a new struct and free the
 * old. CONFIG_INVALID if the file is missing, is readable by other users, or has an invalid or duplicate
 * line. The message contains the line number, never the key. The caller owns the result.
 */
enum iw_error presign_new(struct context *context, const struct config *config,
                          struct presign **presign) IW_MUST_USE;

void presign_free(struct presign *presign);

/*
 * Returns the URL of an upload (of at most max_bytes) or download, in the arena. It is valid until expires_s,
 * in seconds since 1970. presign_expiry_s returns the usual expiry of a new URL: now plus store.upload_url_s
 * or store.download_url_s.
 */
const char *presign_upload_url(const struct presign *presign, struct arena *arena, const struct filekey *key,
                               int64_t expires_s, int64_t max_bytes);
const char *presign_download_url(const struct presign *presign, struct arena *arena,
                                 const struct filekey *key, int64_t expires_s);
int64_t presign_expiry_s(const struct presign *presign, enum presign_method method);

/* Size limit of new upload URLs: store.upload_max_bytes. */
int64_t presign_upload_max_bytes(const struct presign *presign);

/* A request with a presigned URL, as received. */
struct presign_request {
    enum presign_method method;
    const char *key_text; /* the path after /files/ */
    const char *query;    /* the text after the '?'; "" for none */
    int64_t at_ms;        /* when the request began */
};

/*
 * URL_SIGNATURE_INVALID if the URL was not signed for this method. Otherwise URL_EXPIRED, with
 * context->expired_at, if it had expired at at_ms.
 */
enum iw_error presign_verify(const struct presign *presign, struct context *context,
                             const struct presign_request *request, struct presign_grant *grant) IW_MUST_USE;

/* Writes the crypto_key_id of each key of a file, in the order of the file and separated by spaces. */
enum iw_error presign_keys_ids(struct context *context, const char *path, char *ids, size_t size) IW_MUST_USE;

/*
 * Creates a file with one new key, mode 0600, atomically. TWIN_EXISTS if the file exists.
 * new_id is allocated in the arena.
 */
enum iw_error presign_keys_generate(struct context *context, const char *path,
                                    const char **new_id) IW_MUST_USE;

/*
 * Replaces the key file atomically: a new key that signs from from_s on, then the current
 * signing key. Other keys are dropped.
 */
enum iw_error presign_keys_rotate(struct context *context, const char *path, int64_t from_s,
                                  const char **new_id) IW_MUST_USE;

#endif
