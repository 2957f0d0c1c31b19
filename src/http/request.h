/*
 * A request as a handler sees it: method, path, captures, query, headers, body,
 * who asks, and the answer being built (response.h).
 *
 * Everything lives in the request's arena.  Where the bytes come from and go to
 * is the wire: FastCGI in the program, memory in the tests.  This module knows
 * no libfcgi, no SQL and no business.
 */
#ifndef HTTP_REQUEST_H
#define HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <imgward/context.h>

#include "base/config.h"
#include "base/json.h"
#include "base/render.h"
#include "service/admission.h"

struct account;
struct domain;
struct metrics;
struct route;

enum method {
    METHOD_GET = 1,
    METHOD_POST = 2,
    METHOD_PUT = 4,
    METHOD_DELETE = 8,
    METHOD_OPTIONS = 16,
    METHOD_OTHER = 32
};

enum { request_captures_max = 4 };

/* Where the body comes from and the answer goes to. */
struct wire {
    /* Up to size bytes of the body; 0 at its end, -1 when the client is gone. */
    long (*read)(void *handle, void *buffer, size_t size);
    /* False when the client is gone. */
    bool (*write)(void *handle, const void *bytes, size_t size);
    void *handle;
};

/* One part of the path or of the query. */
struct request_pair {
    const char *name;
    const char *value;
    struct request_pair *next;
};

struct response {
    unsigned status;
    struct text headers; /* "Name: value\r\n" lines */
    struct text always;  /* such lines that a failure keeps */
    struct text body;
    struct render render; /* writes into body */
    bool has_type;        /* a handler named the content type */
    bool has_caching;     /* a handler named Cache-Control; no-store otherwise */
    bool is_stream_begun; /* headers are out; a failure can only cut the answer short */
    bool is_broken;       /* the client is gone, or the stream failed */
    uint64_t sent_bytes;
};

struct request {
    struct context *context;
    struct arena *arena;
    const struct config *config;
    struct domain *domain;   /* the handles of this process; NULL in unit tests */
    struct metrics *metrics; /* of the pool; NULL in unit tests */
    struct wire wire;
    char *const *parameters; /* FastCGI's "NAME=value" list, closed by NULL; borrowed */

    enum method method; /* HEAD arrives as GET with is_head */
    const char *method_name;
    bool is_head;
    const char *path;  /* as sent, without query; not decoded */
    const char *query; /* as sent, "" when there is none */
    const struct route *route;
    struct request_pair captures[request_captures_max]; /* decoded */
    unsigned capture_count;

    struct request_pair *queries; /* valid after request_query_read */
    bool is_query_read;

    uint64_t body_read_bytes;
    int64_t started_ms; /* monotonic */

    const struct account *account; /* who asks; NULL on open routes and before authentication */
    struct admission admission;    /* ADMISSION_NONE while account is NULL */

    struct response response;
};

/*
 * Fills a request from FastCGI's parameters.  The path is that of REQUEST_URI,
 * or of IMGWARD_ROUTE where the web server sets it (checks that ask about
 * another request).  context, arena, config, domain and wire are set by the account.
 */
void request_init(struct request *request, char *const *parameters);

/* A parameter of the web server ("REMOTE_ADDR"), or NULL. */
const char *request_parameter(const struct request *request, const char *name);

/* A header of the client, by its usual name ("Content-Type"), or NULL. */
const char *request_header(const struct request *request, const char *name);

/* The part of the path that the route's pattern names; decoded; never NULL for a name of the pattern. */
const char *request_capture(const struct request *request, const char *name);

/*
 * Splits and decodes the query once.  A broken percent code, bytes that are not
 * UTF-8 or a zero, and a name given twice become details; call
 * context_validated when all parameters are checked.
 */
void request_query_read(struct request *request);

/* The decoded value of a query parameter, or NULL; request_query_read comes first. */
const char *request_query(const struct request *request, const char *name);

/* The length the client announced; -1 when it announced none or nonsense. */
int64_t request_body_length(const struct request *request);

/*
 * The next bytes of the body: how many, 0 at the end, -1 when the client is
 * gone.  No limit applies but the caller's; body_read_bytes counts.
 */
long request_body_read(struct request *request, void *buffer, size_t size);

/*
 * The body as a JSON object.  UNSUPPORTED_MEDIA_TYPE when Content-Type names
 * something else or Content-Encoding anything, PAYLOAD_TOO_LARGE above api.body_max_bytes, VALIDATION_FAILED
 * for malformed JSON or anything but an object.
 */
enum iw_error request_json(struct request *request, const struct json **json) IW_MUST_USE;

/*
 * Percent decoding of length bytes: NULL for a broken code or a decoded zero.
 * is_form also turns '+' into a blank, as queries do.
 */
char *request_decode(struct arena *arena, const char *text, size_t length, bool is_form);

/* "GET": for logs and Allow.  METHOD_OTHER has none. */
const char *method_name(enum method method);

#endif
