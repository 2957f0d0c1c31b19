/*
 * Requests to one bucket of an S3-compatible object store, signed by SigV4 and sent by libcurl.
 *
 * The requests of one call run in parallel. A request without a response, or with a response 5xx or 429, is
 * retried a few times, so callers may only make requests that can be repeated. This module does not depend on
 * file keys or the database.
 *
 * service/net/fetch.h does not fit: it refuses private addresses, does not sign, and drops headers.
 */
#ifndef SERVICE_NET_S3_H
#define SERVICE_NET_S3_H

#include <stddef.h>
#include <stdint.h>

#include "base/config.h"
#include "base/context.h"
#include "service/net/sigv4.h"

struct s3;

enum s3_method { S3_GET, S3_HEAD, S3_PUT, S3_POST, S3_DELETE };

enum { s3_query_max = 6, s3_headers_max = 6, s3_etag_size = 80, s3_code_size = 48 };

/* A request, and after s3_call its response. */
struct s3_call {
    enum s3_method method;
    const char *key; /* after the prefix; NULL for the bucket */
    struct sigv4_pair query[s3_query_max];
    size_t query_count;
    struct sigv4_pair headers[s3_headers_max];
    size_t header_count;
    const void *body; /* borrowed */
    size_t body_bytes;
    int sink; /* descriptor of a file for the body of a 2xx; -1 to get the body in text */

    long status;             /* 2xx, 404, 412 or 416; any other is an error of s3_call */
    char etag[s3_etag_size]; /* with the quotes; "" if there is none */
    int64_t size_bytes;      /* of the body, or of the whole object in a range request; -1 if unknown */
    int64_t modified_ms;     /* 0 if unknown */
    char code[s3_code_size]; /* S3's code of an error: "NoSuchKey" */
    const char *text;        /* the body, if there is no sink; in the arena */
    size_t text_bytes;
};

/*
 * Reads the key files. CONFIG_INVALID if a setting is missing or wrong. Sends nothing. The
 * caller owns the result.
 */
enum iw_error s3_new(struct context *context, const struct config *config, struct s3 **s3) IW_MUST_USE;
void s3_free(struct s3 *s3);

/*
 * Sends requests and waits for all responses. SERVICE_UNAVAILABLE (store_failed, store_full) if a request
 * failed after its retries; the context has the cause of the first failure.
 */
enum iw_error s3_call(struct s3 *s3, struct context *context, struct s3_call *calls,
                      size_t count) IW_MUST_USE;

/* Returns SERVICE_UNAVAILABLE (store_failed) for a response that cannot be used. */
enum iw_error s3_fail(struct context *context, const struct s3_call *call, const char *why);

/* Returns the presigned URL of a request for clients, valid until expires_s (seconds since 1970). */
const char *s3_url(struct s3 *s3, struct arena *arena, const struct s3_call *call, int64_t expires_s);

/* "/bucket/prefix<key>" for x-amz-copy-source. */
const char *s3_copy_source(const struct s3 *s3, struct arena *arena, const char *key);

/* The configured prefix of all keys. */
const char *s3_prefix(const struct s3 *s3);

#endif
