/*
 * /files: uploads and downloads by presigned URL.
 *
 * nginx calls /internal/upload-check before it reads the body of an upload, and
 * forwards the body once it is complete.  A download is checked here and sent by
 * nginx (nginx/locations.conf).
 */
#include "api/tables.h"

#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/text.h"
#include "domain/files/download.h"
#include "domain/files/upload.h"
#include "http/failure.h"
#include "http/response.h"
#include "http/route.h"

enum {
    check_refused_status = 403,
    redirect_status = 307,
    md5_bytes = 16,
    preflight_age_s = 600,
    retry_default_s = 2
};

/* The folder of the key in a presigned URL distinguishes uploads from downloads. */
static bool is_upload_key(const char *key)
{
    return strncmp(key, "in/", 3) == 0;
}

static const char *methods_of(const char *key)
{
    return is_upload_key(key) ? "PUT, OPTIONS" : "GET, HEAD, OPTIONS";
}

/* ---- CORS (the Fetch standard, 3.2) ---- */

static bool origin_is_listed(const char *origins, const char *origin)
{
    size_t length = strlen(origin);
    for (const char *at = origins; *at != '\0';) {
        at += strspn(at, " \t");
        size_t size = strcspn(at, " \t");
        if (size == length && size > 0 && strncasecmp(at, origin, length) == 0)
            return true;
        at += size;
    }
    return false;
}

/* Adds the CORS headers for a listed origin, to error responses as well.  True if the origin is listed. */
static bool origin_allow(struct request *request)
{
    const char *origins = request->config->store_cors_origins;
    const char *origin = request_header(request, "Origin");
    if (origins[0] == '\0')
        return false;
    response_header_always(request, "Vary", "Origin");
    if (origin == NULL || !origin_is_listed(origins, origin))
        return false;
    response_header_always(request, "Access-Control-Allow-Origin", origin);
    response_header_always(request, "Access-Control-Expose-Headers",
                           "ETag, X-Request-Id, Content-Disposition, Content-Range");
    return true;
}

static enum iw_error files_preflight(struct request *request)
{
    const char *methods = methods_of(request_capture(request, "key"));
    response_status(request, 204);
    response_header(request, "Allow", methods);
    if (!origin_allow(request))
        return IW_OK;
    response_header(request, "Access-Control-Allow-Methods", methods);
    response_header(request, "Access-Control-Allow-Headers",
                    "Content-Type, Content-Digest, Content-MD5, Range, If-Range, If-None-Match");
    response_header_printf(request, "Access-Control-Max-Age", "%d", preflight_age_s);
    return IW_OK;
}

/* ---- Headers about the body ---- */

struct announced {
    uint8_t sha256[sha256_bytes];
    uint8_t md5[md5_bytes];
    bool has_sha256;
    bool has_md5;
    int64_t size_bytes; /* -1 if not announced */
};

/* Reads the member sha-256=:BASE64: of a Content-Digest (RFC 9530, 2); skips other algorithms. */
static bool content_digest_read(struct arena *arena, const char *header, struct announced *announced)
{
    static const char name[] = "sha-256=";
    for (const char *at = header; *at != '\0'; at += strcspn(at, ","), at += *at == ',') {
        at += strspn(at, " \t");
        if (strncasecmp(at, name, sizeof name - 1) != 0)
            continue;
        const char *value = at + sizeof name - 1;
        size_t length = value[0] == ':' ? strcspn(value + 1, ":") : 0;
        announced->has_sha256 = length > 0 && value[1 + length] == ':' &&
                                crypto_base64_read(arena_text_n(arena, value + 1, length), announced->sha256,
                                                   sha256_bytes) == sha256_bytes;
        if (!announced->has_sha256)
            return false;
    }
    return true;
}

/* Refuses Content-Range: partial uploads are not supported (RFC 9110, 14.5). */
static enum iw_error announced_read(struct request *request, struct announced *announced)
{
    struct context *context = request->context;
    const char *digest = request_header(request, "Content-Digest");
    const char *md5 = request_header(request, "Content-MD5");
    const char *length = request_parameter(request, "HTTP_CONTENT_LENGTH");
    *announced = (struct announced){.size_bytes = request_body_length(request)};
    if (announced->size_bytes < 0 &&
        (length == NULL || !text_integer(length, 0, INT64_MAX, &announced->size_bytes)))
        announced->size_bytes = -1;
    if (request_header(request, "Content-Range") != NULL)
        context_detail(context, "Content-Range", "is not accepted; upload the whole file with one PUT");
    if (digest != NULL && !content_digest_read(request->arena, digest, announced))
        context_detail(context, "Content-Digest",
                       "must be sha-256=:BASE64: with the base64 of the 32 bytes of the digest");
    if (md5 != NULL)
        announced->has_md5 = crypto_base64_read(md5, announced->md5, md5_bytes) == md5_bytes;
    if (md5 != NULL && !announced->has_md5)
        context_detail(context, "Content-MD5",
                       "must be the base64 of the 16 bytes of the digest, not hexadecimal");
    return context_validated(context);
}

static enum iw_error method_check(struct request *request, const char *key)
{
    bool is_upload = is_upload_key(key);
    bool is_download =
        strncmp(key, "out/", 4) == 0 || strncmp(key, "zip/", 4) == 0 || strncmp(key, "thumb/", 6) == 0;
    /* Any other path names no file, has no method, and any signature of it is refused. */
    if (request->method == (is_upload ? METHOD_PUT : METHOD_GET) || !(is_upload || is_download))
        return IW_OK;
    response_header(request, "Allow", methods_of(key));
    return context_fail(request->context, IW_METHOD_NOT_ALLOWED,
                        is_upload
                            ? "This is an upload URL: send the bytes of the file with PUT, without a "
                              "form; the request used %.20s."
                            : "This is a download URL: fetch the file with GET; the request used %.20s.",
                        request->method_name);
}

/*
 * Checks the request's method and the signature for method.  A body arrives after its check, so the expiry is
 * compared with the time of the check.
 */
static enum iw_error url_check(struct request *request, enum presign_method method, const char *key,
                               struct presign_grant *grant)
{
    int64_t now_ms = clock_now_ms(), checked_ms;
    const char *text = request_parameter(request, "IMGWARD_CHECKED_MS");
    if (text == NULL || !text_integer(text, 1, now_ms, &checked_ms))
        checked_ms = now_ms;
    enum iw_error error = method_check(request, key);
    if (error != IW_OK)
        return error;
    const struct presign_request url = {method, key, request->query, checked_ms};
    return presign_verify(request->domain->presign, request->context, &url, grant);
}

/* ---- Uploads ---- */

/* The path of the checked upload; the path of the check is in IMGWARD_ROUTE. */
static const char *checked_key(const struct request *request)
{
    static const char prefix[] = "/files/";
    const char *uri = request_parameter(request, "REQUEST_URI");
    if (uri == NULL || strncmp(uri, prefix, sizeof prefix - 1) != 0)
        return "";
    uri += sizeof prefix - 1;
    char *key = request_decode(request->arena, uri, strcspn(uri, "?#"), false);
    return key != NULL ? key : "";
}

/* The bytes are stored as they are, so an encoding of them is no picture (RFC 9110, 8.4). */
static enum iw_error coding_check(struct request *request)
{
    const char *coding = request_header(request, "Content-Encoding");
    if (coding == NULL || text_equal_nocase(coding, "identity"))
        return IW_OK;
    return context_fail(request->context, IW_UNSUPPORTED_MEDIA_TYPE,
                        "The Content-Encoding is %.40s; send the bytes of the picture without an encoding.",
                        coding);
}

static enum iw_error check_run(struct request *request)
{
    struct presign_grant grant;
    struct announced announced;
    const char *key = checked_key(request);
    enum iw_error error = url_check(request, PRESIGN_PUT, key, &grant);
    if (error == IW_OK)
        error = coding_check(request);
    if (error == IW_OK)
        error = announced_read(request, &announced);
    return error != IW_OK ? error : upload_check(request->domain, &grant, announced.size_bytes);
}

/* nginx forwards only the status 403 of a check, so the error response is put into headers. */
static void refusal_pack(struct request *request)
{
    struct response *response = &request->response;
    const struct context *context = request->context;
    failure_render(request);
    render_object_end(&response->render);
    unsigned status = response->status;
    const char *body = arena_text_n(request->arena, response->body.data, response->body.length);
    unsigned wait_s = context->retry_after_s == 0 && status == 503 ? retry_default_s : context->retry_after_s;
    response_clear(request);
    response_status(request, check_refused_status);
    response_header_printf(request, "Imgward-Status", "%u", status == 500 ? 503 : status);
    response_header(request, "Imgward-Body", body);
    if (wait_s > 0)
        response_header_printf(request, "Imgward-Wait", "%u", wait_s);
    if (status == 405)
        response_header(request, "Imgward-Allow", methods_of(checked_key(request)));
}

static enum iw_error files_upload_check(struct request *request)
{
    origin_allow(request);
    response_header_printf(request, "Imgward-Checked-Ms", "%lld", (long long)clock_now_ms());
    response_status(request, 204);
    if (check_run(request) != IW_OK)
        refusal_pack(request);
    return IW_OK;
}

static long body_read(void *handle, void *buffer, size_t size)
{
    return request_body_read(handle, buffer, size);
}

static void upload_answer(struct request *request, const struct presign_grant *grant,
                          const struct upload_outcome *outcome)
{
    const char *digest = crypto_hex(request->arena, outcome->facts.sha256, sizeof outcome->facts.sha256);
    response_status(request, outcome->is_replacement ? 200 : 201);
    response_header_printf(request, "ETag", "\"%s\"", digest);
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    render_string(render, "fileKey", filekey_text(request->arena, &grant->key));
    render_string(render, "fileFormat", format_word(outcome->facts.format));
    render_integer(render, "sizeBytes", outcome->facts.size_bytes);
    render_string(render, "sha256", digest);
    render_object_end(render);
}

static enum iw_error files_upload(struct request *request)
{
    struct presign_grant grant;
    struct announced announced;
    struct upload_outcome outcome;
    origin_allow(request);
    const char *key = request_capture(request, "key");
    enum iw_error error = url_check(request, PRESIGN_PUT, key, &grant);
    if (error == IW_OK)
        error = announced_read(request, &announced);
    if (error != IW_OK)
        return error;
    const struct upload_source source = {.read = body_read,
                                         .handle = request,
                                         .announced_bytes = announced.size_bytes,
                                         .sha256 = announced.has_sha256 ? announced.sha256 : NULL,
                                         .md5 = announced.has_md5 ? announced.md5 : NULL};
    error = upload_receive(request->domain, &grant, &source, &outcome);
    if (error == IW_OK)
        upload_answer(request, &grant, &outcome);
    return error;
}

/* ---- Downloads ---- */

static enum iw_error files_download(struct request *request)
{
    struct presign_grant grant;
    struct download download;
    origin_allow(request);
    const char *key = request_capture(request, "key");
    enum iw_error error = url_check(request, PRESIGN_GET, key, &grant);
    if (error == IW_OK)
        error = download_find(request->domain, &grant.key, &download);
    if (error != IW_OK)
        return error;
    if (download.url != NULL) {
        response_status(request, redirect_status);
        response_header(request, "Location", download.url);
        response_header(request, "Cache-Control", "no-store");
        return IW_OK;
    }
    response_header(request, "Content-Type", format_media_type(download.format));
    if (download.disposition != NULL)
        response_header(request, "Content-Disposition", download.disposition);
    response_header_printf(request, "Cache-Control", "private, max-age=%lld",
                           (long long)(grant.expires_s - clock_now_ms() / 1000));
    response_redirect_internally(request, arena_printf(request->arena, "/imgward-store/%s", download.path));
    return IW_OK;
}

const struct route api_files[] = {
    {METHOD_PUT, "/internal/upload-check", files_upload_check, ROUTE_OPEN},
    {METHOD_GET, "/internal/upload-check", files_upload_check, ROUTE_OPEN},
    {METHOD_POST, "/internal/upload-check", files_upload_check, ROUTE_OPEN},
    {METHOD_DELETE, "/internal/upload-check", files_upload_check, ROUTE_OPEN},
    {METHOD_PATCH, "/internal/upload-check", files_upload_check, ROUTE_OPEN},
    {METHOD_OTHER, "/internal/upload-check", files_upload_check, ROUTE_OPEN},
    {METHOD_PUT, "/files/{key*}", files_upload, ROUTE_OPEN},
    {METHOD_GET, "/files/{key*}", files_download, ROUTE_OPEN},
    {METHOD_OPTIONS, "/files/{key*}", files_preflight, ROUTE_OPEN},
    /* A path that nginx reads as /files/ and the client spelt otherwise: it has no key. */
    {METHOD_GET, "/internal/respelt-file", files_download, ROUTE_OPEN},
    {METHOD_OPTIONS, "/internal/respelt-file", files_preflight, ROUTE_OPEN},
    {.pattern = NULL},
};
