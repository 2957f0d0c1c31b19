#include "http/request.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/text.h"
#include "http/edge.h"

/* Bodies up to this size are parsed before the rate limit is known, which takes at most 2.5 ms of CPU. */
enum { small_bytes_max = 16384 };

static const struct {
    const char *name;
    enum method method;
} methods[] = {{"GET", METHOD_GET},    {"HEAD", METHOD_GET},      {"POST", METHOD_POST},
               {"PUT", METHOD_PUT},    {"DELETE", METHOD_DELETE}, {"OPTIONS", METHOD_OPTIONS},
               {"PATCH", METHOD_PATCH}};

enum { method_count = sizeof methods / sizeof methods[0] };

const char *request_method_text(enum method method)
{
    for (size_t i = 0; i < method_count; i++)
        if (methods[i].method == method)
            return methods[i].name;
    return "OTHER";
}

/* Returns the value of the first parameter with this name, from a pair on; *next is the pair after it. */
static const char *parameter_find(char *const *pair, const char *name, char *const **next)
{
    size_t length = strlen(name);
    for (; pair != NULL && *pair != NULL; pair++)
        if (strncmp(*pair, name, length) == 0 && (*pair)[length] == '=') {
            *next = pair + 1;
            return *pair + length + 1;
        }
    return NULL;
}

const char *request_parameter(const struct request *request, const char *name)
{
    char *const *next;
    return parameter_find(request->parameters, name, &next);
}

enum { parameter_size = 80 };

/* CGI (RFC 3875, 4.1.18) passes headers as HTTP_NAME, except Content-Type and Content-Length. */
static const char *parameter_of(const char *name, char parameter[parameter_size])
{
    strcpy(parameter, "HTTP_");
    bool is_bare = strcasecmp(name, "Content-Type") == 0 || strcasecmp(name, "Content-Length") == 0;
    size_t at = is_bare ? 0 : 5;
    for (; *name != '\0' && at < parameter_size - 1; name++)
        parameter[at++] = *name == '-' ? '_' : (char)toupper((unsigned char)*name);
    parameter[at] = '\0';
    return parameter;
}

const char *request_header(const struct request *request, const char *name)
{
    char parameter[parameter_size];
    const char *value = request_parameter(request, parameter_of(name, parameter));
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* nginx before 1.23 passes each line of a repeated header as a parameter. */
const char *request_header_once(const struct request *request, const char *name)
{
    char parameter[parameter_size];
    char *const *next;
    const char *value = parameter_find(request->parameters, parameter_of(name, parameter), &next);
    bool is_once = value != NULL && parameter_find(next, parameter, &next) == NULL;
    return is_once && value[0] != '\0' ? value : NULL;
}

const char *request_prefix(const struct request *request)
{
    return request->edge != NULL ? request->edge->prefix : "";
}

void request_init(struct request *request, char *const *parameters)
{
    request->parameters = parameters;
    request->started_ms = clock_monotonic_ms();
    const char *method = request_parameter(request, "REQUEST_METHOD");
    request->method = METHOD_OTHER;
    request->method_name = method != NULL ? method : "";
    request->is_head = strcmp(request->method_name, "HEAD") == 0;
    for (size_t i = 0; i < method_count; i++)
        if (strcmp(methods[i].name, request->method_name) == 0)
            request->method = methods[i].method;
    const char *uri = request_parameter(request, "REQUEST_URI");
    const char *route = request_parameter(request, "IMGWARD_ROUTE");
    uri = uri != NULL ? uri : "";
    size_t prefix = strlen(request_prefix(request));
    if (strncmp(uri, request_prefix(request), prefix) == 0)
        uri += prefix;
    size_t length = strcspn(uri, "?#");
    request->query = uri[length] == '?' ? uri + length + 1 : "";
    request->path = route != NULL && route[0] != '\0' ? route : arena_text_n(request->arena, uri, length);
}

const char *request_capture(const struct request *request, const char *name)
{
    for (unsigned i = 0; i < request->capture_count; i++)
        if (strcmp(request->captures[i].name, name) == 0)
            return request->captures[i].value;
    return "";
}

static int digit_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    digit = (char)(digit | 0x20);
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

char *request_decode(struct arena *arena, const char *text, size_t length, bool is_form)
{
    char *decoded = arena_alloc(arena, length + 1);
    size_t size = 0;
    for (size_t at = 0; at < length; at++) {
        char byte = text[at];
        if (byte == '%') {
            bool is_whole = length - at > 2;
            int high = is_whole ? digit_value(text[at + 1]) : -1;
            int low = is_whole ? digit_value(text[at + 2]) : -1;
            if (high < 0 || low < 0 || high + low == 0)
                return NULL;
            byte = (char)(high << 4 | low);
            at += 2;
        } else if (byte == '+' && is_form) {
            byte = ' ';
        }
        decoded[size++] = byte;
    }
    return decoded;
}

static const struct request_pair *pair_find(const struct request *request, const char *name)
{
    for (const struct request_pair *pair = request->queries; pair != NULL; pair = pair->next)
        if (strcmp(pair->name, name) == 0)
            return pair;
    return NULL;
}

/* Adds one "name=value" of the query, or a detail if it is invalid. */
static void pair_add(struct request *request, const char *text, size_t length)
{
    const char *equals = memchr(text, '=', length);
    size_t name_length = equals != NULL ? (size_t)(equals - text) : length;
    const char *value = equals != NULL ? equals + 1 : text + length;
    struct request_pair *pair = arena_alloc(request->arena, sizeof *pair);
    const char *name = request_decode(request->arena, text, name_length, true);
    if (name == NULL || !text_is_utf8(name, strlen(name))) {
        context_detail(request->context, "query", "has a name that is not percent-encoded UTF-8");
        return;
    }
    pair->name = name;
    pair->value = request_decode(request->arena, value, (size_t)(text + length - value), true);
    if (pair->value == NULL || !text_is_utf8(pair->value, strlen(pair->value)))
        context_detail(request->context, name,
                       "has a value that is not percent-encoded UTF-8; write %% as %%25");
    else if (pair_find(request, name) != NULL)
        context_detail(request->context, name, "occurs twice in the query; send it once");
    else {
        pair->next = request->queries;
        request->queries = pair;
    }
}

void request_query_read(struct request *request)
{
    if (request->is_query_read)
        return;
    request->is_query_read = true;
    for (const char *at = request->query; *at != '\0';) {
        size_t length = strcspn(at, "&");
        if (length > 0)
            pair_add(request, at, length);
        at += length + (at[length] == '&');
    }
}

const char *request_query(const struct request *request, const char *name)
{
    const struct request_pair *pair = pair_find(request, name);
    return pair != NULL ? pair->value : NULL;
}

int64_t request_body_length(const struct request *request)
{
    int64_t length;
    const char *text = request_header(request, "Content-Length");
    return text != NULL && text_integer(text, 0, INT64_MAX, &length) ? length : -1;
}

long request_body_read(struct request *request, void *buffer, size_t size)
{
    long count = request->wire.read(request->wire.handle, buffer, size);
    if (count > 0)
        request->body_read_bytes += (uint64_t)count;
    return count;
}

/*
 * Accepts "application/json" and "application/NAME+json", with any parameters; an absent header counts as
 * JSON.
 */
static bool type_is_json(const char *type)
{
    if (type == NULL)
        return true;
    size_t length = strcspn(type, "; \t");
    if (length == 16 && strncasecmp(type, "application/json", length) == 0)
        return true;
    return length > 17 && strncasecmp(type, "application/", 12) == 0 &&
           strncasecmp(type + length - 5, "+json", 5) == 0;
}

static enum iw_error body_too_large(struct request *request, int64_t actual)
{
    return context_fail(
        request->context, IW_PAYLOAD_TOO_LARGE,
        "The body has %s%lld bytes; at most %lld are allowed. Split it into several requests.",
        request_body_length(request) < 0 ? "at least " : "", (long long)actual,
        (long long)request->body_bytes_max);
}

/* Reads the complete body; stops at the first piece that exceeds the limit. */
static enum iw_error body_read_all(struct request *request, struct text *body)
{
    size_t limit = (size_t)request->body_bytes_max;
    char piece[16384];
    int64_t announced = request_body_length(request);
    if (announced > (int64_t)limit)
        return body_too_large(request, announced);
    for (long count; (count = request_body_read(request, piece, sizeof piece)) != 0;) {
        if (count < 0)
            return context_fail(request->context, IW_VALIDATION_FAILED,
                                "The body ended early, after %zu bytes; send the request again.",
                                body->length);
        if (body->length + (size_t)count > limit)
            return body_too_large(request, (int64_t)body->length + count);
        text_add(body, piece, (size_t)count);
    }
    return IW_OK;
}

/*
 * The checks of a large body before it is parsed. Parsing costs more than the round trip to the rate limiter,
 * which a creation usually shares with its lock.
 */
static enum iw_error large_body_check(struct request *request, const struct text *body,
                                      const struct request_array *longest)
{
    admission_send(&request->admission);
    enum iw_error error = admission_receive(&request->admission);
    if (error != IW_OK || longest == NULL ||
        !json_array_exceeds(body->data, body->length, longest->name, longest->items_max))
        return error;
    context_detail(request->context, longest->name, "has more than %zu items; 1 to %zu are allowed",
                   longest->items_max, longest->items_max);
    return context_validated(request->context);
}

enum iw_error request_json(struct request *request, const struct request_array *longest,
                           const struct json **json)
{
    struct text body;
    const char *type = request_header(request, "Content-Type");
    const char *coding = request_header(request, "Content-Encoding");
    if (!type_is_json(type))
        return context_fail(
            request->context, IW_UNSUPPORTED_MEDIA_TYPE,
            "The Content-Type is %.80s; send a JSON object with Content-Type: application/json.", type);
    /* No content coding is supported (RFC 9110, 8.4). */
    if (coding != NULL && strcasecmp(coding, "identity") != 0)
        return context_fail(request->context, IW_UNSUPPORTED_MEDIA_TYPE,
                            "The Content-Encoding is %.40s; send the body without an encoding.", coding);
    text_init(&body, request->arena);
    enum iw_error error = body_read_all(request, &body);
    if (error == IW_OK) {
        request->body = body.data;
        request->body_length = body.length;
    }
    if (error == IW_OK && body.length > small_bytes_max)
        error = large_body_check(request, &body, longest);
    if (error == IW_OK)
        error = json_read(request->context, body.data, body.length, json);
    if (error == IW_OK && !json_is_object(*json)) {
        context_detail(request->context, "body", "is %s; it must be a JSON object", json_kind_name(*json));
        error = context_validated(request->context);
    }
    return error;
}
