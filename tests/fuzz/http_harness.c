#include "http_harness.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/tables.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "domain/domain.h"
#include "http/auth.h"
#include "http/request_metrics.h"
#include "http/request.h"
#include "http/serve.h"
#include "service/files/presign.h"
#include "service/redis/redis.h"
#include "service/secret/secret_box.h"
#include "db/db.h"

const char harness_authorization[] =
    "HTTP_AUTHORIZATION=Bearer iw_live_0000000000000000000000000000000000000000001";

/* One process of the pool, set up as in http/child.c. */
static struct config config;
static struct domain domain;
static struct secret_box secret_box;
static struct metrics *metrics;
static struct arena *arena_request;
static char upload_uri[256], download_uri[256];

/* The request and the response of a client. */
struct exchange {
    const char *body;
    size_t body_size;
    size_t body_at;
    struct text sent;
};

static long body_read(void *handle, void *buffer, size_t size)
{
    struct exchange *exchange = handle;
    size_t left = exchange->body_size - exchange->body_at;
    size_t count = left < size ? left : size;
    if (count > 0)
        memcpy(buffer, exchange->body + exchange->body_at, count);
    exchange->body_at += count;
    return (long)count;
}

static bool answer_write(void *handle, const void *bytes, size_t size)
{
    struct exchange *exchange = handle;
    text_add(&exchange->sent, bytes, size);
    return true;
}

static void complain(const char *what, const char *text, size_t size)
{
    fprintf(stderr, "\n%s:\n%.*s\n", what, (int)size, text);
    abort();
}

/* ---- log ---- */

ssize_t __real_write(int descriptor, const void *bytes, size_t size);
ssize_t __wrap_write(int descriptor, const void *bytes, size_t size);

/* Checks that a log line is one line and one JSON object, and discards it. */
ssize_t __wrap_write(int descriptor, const void *bytes, size_t size)
{
    struct context context;
    const struct json *json;
    const char *line = bytes;
    if (descriptor != STDERR_FILENO || size < 6 || memcmp(line, "{\"ts\":", 6) != 0)
        return __real_write(descriptor, bytes, size);
    struct arena *arena = arena_new(0);
    context_init(&context, arena, NULL);
    if (memchr(line, '\n', size) != line + size - 1 || json_read(&context, line, size, &json) != IW_OK)
        complain("a line of the log is no JSON object", line, size);
    arena_free(arena);
    return (ssize_t)size;
}

/* ---- one process ---- */

static void uri_keep(char *to, size_t room, const char *url)
{
    const char *path = strstr(url, "/files/");
    snprintf(to, room, "%s", path);
}

static void keys_prepare(struct context *context)
{
    static char path[] = "/tmp/imgward-fuzz-XXXXXX";
    int file = mkstemp(path);
    if (file < 0 || dprintf(file, "one:%064d\n", 7) < 0)
        abort();
    config.store_signing_keys_file = path;
    enum iw_error error = presign_new(context, &config, &domain.presign);
    close(file);
    unlink(path);
    if (error != IW_OK)
        abort();
}

static void harness_prepare(void)
{
    struct context context;
    struct arena *arena = arena_new(0);
    const struct filekey upload = {.kind = FILEKEY_UPLOAD, .order_id = 382515091307376618, .number = 1};
    const struct filekey result = {.kind = FILEKEY_RESULT, .order_id = 382515091307376618, .number = 12};
    context_init(&context, arena, NULL);
    config_init(&config);
    config.redis_socket = "/nonexistent/redis.sock";
    config.redis_retry_ms = 3600000;
    config.store_path = "/nonexistent/store";
    config.store_cors_origins = "https://client.example";
    keys_prepare(&context);
    domain.config = &config;
    domain.secret_box = &secret_box;
    domain.db.connection = db_new(&config, "");
    domain.redis = redis_new(&config, "");
    uri_keep(upload_uri, sizeof upload_uri,
             presign_upload_url(domain.presign, arena, &upload, 4102444800, 52428800));
    uri_keep(download_uri, sizeof download_uri,
             presign_download_url(domain.presign, arena, &result, 4102444800));
    arena_free(arena);
    metrics = request_metrics_new(api_routes);
    arena_request = arena_new(0);
}

static void harness_once(void)
{
    if (arena_request == NULL)
        harness_prepare();
}

const char *harness_upload_uri(void)
{
    harness_once();
    return upload_uri;
}

const char *harness_download_uri(void)
{
    harness_once();
    return download_uri;
}

/* ---- responses ---- */

/* Requires "Name: value" with a name of letters, digits and '-', without control characters. */
static void header_check(const char *line, size_t length)
{
    size_t name = 0;
    while (name < length && (line[name] == '-' || isalnum((unsigned char)line[name])))
        name++;
    if (name == 0 || name + 2 > length || memcmp(line + name, ": ", 2) != 0)
        complain("a header has no name", line, length);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7F)
            complain("a header holds a control character", line, length);
}

/* Checks the headers; returns the position after the empty line. */
static const char *head_check(const struct text *sent)
{
    const char *at = sent->data;
    for (const char *end; (end = strstr(at, "\r\n")) != NULL; at = end + 2) {
        if (end == at)
            return at + 2;
        header_check(at, (size_t)(end - at));
    }
    complain("the head does not end", sent->data, sent->length);
    return NULL;
}

static const char *header_find(const char *head, const char *name)
{
    const char *line = strstr(head, name);
    return line == NULL ? NULL : line + strlen(name);
}

static void json_check(struct arena *arena, const char *body, size_t size, unsigned status)
{
    struct context context;
    const struct json *json;
    context_init(&context, arena, NULL);
    if (json_read(&context, body, size, &json) != IW_OK)
        complain("the answer is no JSON", body, size);
    const char *wanted = status < 400 ? "data" : "code";
    if (json_is_absent(json_member(json, wanted)))
        complain("the answer has neither data nor code", body, size);
    if (status >= 400 && json_is_absent(json_member(json, "requestId")))
        complain("the error has no requestId", body, size);
}

static void answer_check(const struct request *request, const struct text *sent)
{
    const char *body = head_check(sent);
    size_t size = sent->length - (size_t)(body - sent->data);
    unsigned status = request->response.status;
    const char *type = header_find(sent->data, "\r\nContent-Type: ");
    const char *length = header_find(sent->data, "\r\nContent-Length: ");
    if (status == 500)
        complain("500", sent->data, sent->length);
    if (length != NULL && !request->is_head && strtoul(length, NULL, 10) != size)
        complain("the length is another", sent->data, sent->length);
    if (size > 0 && type != NULL && strncmp(type, "application/", 12) == 0)
        json_check(request->arena, body, size, status);
}

unsigned harness_serve(const char *const *parameters, const void *body, size_t size)
{
    struct context context;
    harness_once();
    arena_reset(arena_request);
    auth_forget();
    struct exchange exchange = {.body = body, .body_size = size};
    text_init(&exchange.sent, arena_request);
    struct request request = {.context = &context,
                              .arena = arena_request,
                              .config = &config,
                              .domain = &domain,
                              .metrics = metrics,
                              .wire = {body_read, answer_write, &exchange}};
    domain_context_set(&domain, &context);
    context_init(&context, arena_request, "0123456789abcdef0123456789abcdef");
    request_init(&request, (char *const *)(uintptr_t)parameters);
    serve(&request, api_routes);
    if (!request.response.is_broken)
        answer_check(&request, &exchange.sent);
    return request.response.status;
}
