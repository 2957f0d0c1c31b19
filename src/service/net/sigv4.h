/*
 * AWS Signature Version 4 for S3: Authorization headers and presigned URLs.
 *
 * Source: "Authenticating Requests (AWS Signature Version 4)" of the Amazon S3 API reference. This module
 * depends neither on requests nor on files. Never log a presigned URL.
 */
#ifndef SERVICE_NET_SIGV4_H
#define SERVICE_NET_SIGV4_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

/* Credentials, and the signing key of the current day. Must not be used by several threads. */
struct sigv4;

/* A query parameter (not encoded) or a header (lower-case name). */
struct sigv4_pair {
    const char *name;
    const char *value;
};

enum { sigv4_pairs_max = 12 };

struct sigv4_request {
    const char *method;
    const char *host; /* as in the Host header */
    const char *path; /* encoded: "/bucket/in/7001/1" */
    const struct sigv4_pair *query;
    size_t query_count;
    const struct sigv4_pair *headers; /* signed in addition to host and the x-amz headers below */
    size_t header_count;
    const char *payload_sha256; /* hexadecimal; presigned URLs do not use it */
    int64_t time_ms;            /* since 1970 UTC */
};

/* Copies the texts. Free the result with sigv4_free. */
struct sigv4 *sigv4_new(const char *access_key, const char *secret_key, const char *region);
void sigv4_free(struct sigv4 *sigv4);

enum { sigv4_date_size = 17 };

/* Writes the value of x-amz-date, such as "20130524T000000Z". */
void sigv4_date(int64_t time_ms, char text[sigv4_date_size]);

/*
 * Returns the value of the Authorization header. The request must send x-amz-date (sigv4_date) and
 * x-amz-content-sha256 (payload_sha256), and all headers of the request.
 */
const char *sigv4_authorization(struct sigv4 *sigv4, struct arena *arena,
                                const struct sigv4_request *request);

/* Returns the query of a presigned URL that is valid for lifetime_s seconds, without '?'. */
const char *sigv4_presigned_query(struct sigv4 *sigv4, struct arena *arena,
                                  const struct sigv4_request *request, int64_t lifetime_s);

/* Returns the query of a request in the order of the signature, encoded, without '?'; "" if there is none. */
const char *sigv4_query(struct arena *arena, const struct sigv4_pair *pairs, size_t count);

#endif
