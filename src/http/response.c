#include "http/response.h"

#include <stdarg.h>
#include <string.h>
#include <strings.h>

void response_init(struct request *request)
{
    struct response *response = &request->response;
    memset(response, 0, sizeof *response);
    text_init(&response->headers, request->arena);
    text_init(&response->always, request->arena);
    text_init(&response->body, request->arena);
    response->status = 200;
}

void response_clear(struct request *request)
{
    text_clear(&request->response.headers);
    text_clear(&request->response.body);
    request->response.status = 200;
    request->response.has_type = request->response.has_caching = false;
    request->response.render.text = NULL;
}

void response_status(struct request *request, unsigned status)
{
    request->response.status = status;
}

static void header_line_add(struct text *headers, const char *name, const char *value)
{
    text_printf(headers, "%s: ", name);
    size_t start = headers->length;
    text_add_string(headers, value);
    for (size_t at = start; at < headers->length; at++)
        if ((unsigned char)headers->data[at] < 0x20 || headers->data[at] == 0x7F)
            headers->data[at] = ' ';
    text_add_string(headers, "\r\n");
}

void response_header(struct request *request, const char *name, const char *value)
{
    request->response.has_type |= strcasecmp(name, "Content-Type") == 0;
    request->response.has_caching |= strcasecmp(name, "Cache-Control") == 0;
    header_line_add(&request->response.headers, name, value);
}

void response_header_always(struct request *request, const char *name, const char *value)
{
    header_line_add(&request->response.always, name, value);
}

void response_header_printf(struct request *request, const char *name, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    response_header(request, name, arena_vprintf(request->arena, format, arguments));
    va_end(arguments);
}

struct render *response_data(struct request *request)
{
    render_init(&request->response.render, &request->response.body);
    render_object_begin(&request->response.render, NULL);
    return &request->response.render;
}

void response_redirect_internally(struct request *request, const char *location)
{
    text_clear(&request->response.body);
    response_header(request, "X-Accel-Redirect", location);
}

static void wire_write(struct request *request, const void *bytes, size_t size)
{
    struct response *response = &request->response;
    if (size == 0 || response->is_broken)
        return;
    if (request->wire.write(request->wire.handle, bytes, size))
        response->sent_bytes += size;
    else
        response->is_broken = true;
}

/* Status, headers and body go out in one write, so that a small response is one FastCGI record. */
static void head_build(struct request *request, struct text *head)
{
    struct response *response = &request->response;
    text_init(head, request->arena);
    text_printf(head, "Status: %u\r\nX-Request-Id: %s\r\nImgward-Trace-Id: %s\r\n", response->status,
                request->context->request_id, request->context->trace.id);
    if (!response->has_caching)
        text_add_string(head, "Cache-Control: no-store\r\n");
    const struct admission *admission = &request->admission;
    if (admission->state == ADMISSION_DECIDED)
        text_printf(head, "RateLimit-Limit: %u\r\nRateLimit-Remaining: %u\r\nRateLimit-Reset: %u\r\n",
                    admission->limit_per_minute, admission->remaining, admission->reset_s);
    text_add(head, response->always.data, response->always.length);
    text_add(head, response->headers.data, response->headers.length);
    if (!response->has_type)
        text_add_string(head, "Content-Type: application/json\r\n");
}

void response_send(struct request *request)
{
    struct response *response = &request->response;
    struct text head;
    if (response->render.text != NULL)
        render_object_end(&response->render);
    if (response->is_stream_begun) {
        response_stream_flush(request);
        return;
    }
    head_build(request, &head);
    text_printf(&head, "Content-Length: %zu\r\n\r\n", response->body.length);
    if (!request->is_head)
        text_add(&head, response->body.data, response->body.length);
    wire_write(request, head.data, head.length);
}

enum iw_error response_stream_begin(struct request *request)
{
    struct text head;
    enum iw_error error = admission_receive(&request->admission);
    if (error != IW_OK)
        return error;
    head_build(request, &head);
    text_add_string(&head, "\r\n");
    wire_write(request, head.data, head.length);
    request->response.is_stream_begun = true;
    return IW_OK;
}

bool response_stream_flush(struct request *request)
{
    struct response *response = &request->response;
    if (!request->is_head)
        wire_write(request, response->body.data, response->body.length);
    text_clear(&response->body);
    return !response->is_broken;
}
