/*
 * A request as a handler sees it: method, path, captures, query, headers, body,
 * account, admission, and the response being built (response.h).
 *
 * Everything is in the request's arena. The wire reads and writes the bytes: FastCGI in the program, memory
 * in the tests. This module must not depend on libfcgi, SQL or rules of the domain.
 */
#ifndef HTTP_REQUEST_H
#define HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/config.h"
#include "base/context.h"
#include "base/json.h"
#include "base/render.h"
#include "service/redis/admission.h"

struct account;
struct domain;
struct edge;
struct in_flight;
struct metrics;
struct request_log;
struct route;
struct session;

enum method {
    METHOD_GET = 1,
    METHOD_POST = 2,
    METHOD_PUT = 4,
    METHOD_DELETE = 8,
    METHOD_OPTIONS = 16,
    METHOD_PATCH = 32,
    METHOD_OTHER = 64
};

enum { request_captures_max = 4 };

/* Reads the body and writes the response. */
struct wire {
    /* Reads up to size bytes of the body. Returns 0 at its end, -1 if the client disconnected. */
    long (*read)(void *handle, void *buffer, size_t size);
    /* Returns false if the client disconnected. */
    bool (*write)(void *handle, const void *bytes, size_t size);
    void *handle;
};

/* One capture of the path, or one parameter of the query. */
struct request_pair {
    const char *name;
    const char *value;
    struct request_pair *next;
};

struct response {
    unsigned status;
    struct text headers; /* "Name: value\r\n" lines */
    struct text always;  /* lines that an error response keeps */
    struct text body;
    struct render render; /* writes into body */
    bool has_type;        /* a handler set Content-Type */
    bool has_caching;     /* a handler set Cache-Control; otherwise it is no-store */
    bool is_stream_begun; /* headers are sent; an error can only truncate the response */
    bool is_broken;       /* the client disconnected, or the stream failed */
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

    const struct edge *edge; /* of the program; NULL for the behaviour of imgward-api */
    enum method method;      /* HEAD arrives as GET with is_head */
    const char *method_name;
    bool is_head;
    const char *path;  /* as received, without query and the edge's prefix; not decoded */
    const char *query; /* as received; "" if there is no query */
    const struct route *route;
    struct request_pair captures[request_captures_max]; /* decoded */
    unsigned capture_count;

    struct request_pair *queries; /* valid after request_query_read */
    bool is_query_read;

    int64_t body_bytes_max; /* limit for the body; set before the handler runs */
    uint64_t body_read_bytes;
    const char *body; /* of request_json, as received; NULL before it, and after an error of the transfer */
    size_t body_length;
    int64_t started_ms; /* monotonic */

    struct request_log *log; /* of this process; NULL if no log is kept */

    struct in_flight *in_flight; /* of the pool; NULL in unit tests */
    unsigned in_flight_slot;     /* of this process */

    const struct account *account; /* NULL on open routes and before authentication */
    const struct session *session; /* session of a console's user; NULL in the API */
    struct admission admission;    /* ADMISSION_NONE while account is NULL */

    struct response response;
};

/*
 * Fills a request from FastCGI's parameters. The path comes from REQUEST_URI, or from IMGWARD_ROUTE if the
 * web server sets it to ask about another request. The caller sets context, arena, config, domain and wire
 * before.
 */
void request_init(struct request *request, char *const *parameters);

/* Returns a parameter of the web server ("REMOTE_ADDR"), or NULL. */
const char *request_parameter(const struct request *request, const char *name);

/* Returns a header of the client by its HTTP name ("Content-Type"); NULL if the header is absent or empty. */
const char *request_header(const struct request *request, const char *name);

/* The same; NULL for a repeated header, too. */
const char *request_header_once(const struct request *request, const char *name);

/* Returns the prefix of the paths of the routes: "", or "/console". */
const char *request_prefix(const struct request *request);

/* Returns a decoded capture of the route's pattern; "" for a name that the pattern does not have. */
const char *request_capture(const struct request *request, const char *name);

/*
 * Splits and decodes the query once. Adds a detail for an invalid percent code, for bytes that are not UTF-8,
 * for a zero byte and for a duplicate name. Call context_validated after all parameters are checked.
 */
void request_query_read(struct request *request);

/* Returns the decoded value of a query parameter, or NULL. Call request_query_read before. */
const char *request_query(const struct request *request, const char *name);

/* Returns the value of Content-Length; -1 if the header is absent or not a number. */
int64_t request_body_length(const struct request *request);

/*
 * Reads the next bytes of the body. Returns their number, 0 at the end, or -1 if the client disconnected.
 * Applies no limit. Counts body_read_bytes.
 */
long request_body_read(struct request *request, void *buffer, size_t size);

/* The member of a body that determines the size of the body. */
struct request_array {
    const char *name;
    size_t items_max;
};

/*
 * Reads the body as a JSON object. UNSUPPORTED_MEDIA_TYPE for another Content-Type or any Content-Encoding;
 * PAYLOAD_TOO_LARGE above body_bytes_max; VALIDATION_FAILED for malformed JSON and for any value that is
 * not an object. A body above 16 KiB is parsed only after the rate limit was checked (RATE_LIMIT_EXCEEDED).
 * It is not parsed if the array that longest names is too long; longest may be NULL.
 */
enum iw_error request_json(struct request *request, const struct request_array *longest,
                           const struct json **json) IW_MUST_USE;

/*
 * Percent-decodes length bytes. Returns NULL for an invalid code or a decoded zero byte. With is_form, '+'
 * becomes a blank, as in queries.
 */
char *request_decode(struct arena *arena, const char *text, size_t length, bool is_form);

/* Returns the name of a method for logs and Allow, such as "GET"; "OTHER" for METHOD_OTHER. */
const char *request_method_text(enum method method);

#endif
