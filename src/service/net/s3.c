#include "service/net/s3.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <curl/curl.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/text.h"
#include "base/url.h"

enum {
    parallel_max = 16,
    attempts_max = 4,
    backoff_first_ms = 50,
    /*
     * After requests without any response, the next requests fail immediately, so that callers do not wait
     * for each of them.
     */
    pause_ms = 1000,
    connect_timeout_ms = 2000,
    low_speed_bytes = 16384, /* per second, over store.s3_timeout_s */
    text_bytes_max = 16 * 1024 * 1024,
    error_text_bytes_max = 65536
};
enum {
    status_ok = 200,
    status_ok_last = 299,
    status_missing = 404,
    status_changed = 412,
    status_range = 416
};

struct s3 {
    struct sigv4 *sigv4;
    CURLM *multi;
    pid_t pid; /* the process that made multi, because a connection must not be shared with a child */
    char *host;
    char *origin; /* "https://host" */
    char *public_host;
    char *public_origin;
    char *path; /* "/bucket/prefix" or "/prefix", the part before a key */
    char *bucket_path;
    char *copy_path;    /* "/bucket/prefix" */
    const char *prefix; /* the end of copy_path */
    char *ca_file;
    int64_t timeout_s;
    int64_t offset_ms;    /* the store's clock minus ours; set after the store has rejected our time */
    int64_t failed_at_ms; /* monotonic; 0 while the store responds */
};

static const char *const methods[] = {
    [S3_GET] = "GET", [S3_HEAD] = "HEAD", [S3_PUT] = "PUT", [S3_POST] = "POST", [S3_DELETE] = "DELETE"};

/* One attempt of a call. */
struct attempt {
    struct s3 *s3;
    struct s3_call *call;
    CURL *handle;
    struct curl_slist *headers;
    struct text text;
    int64_t date_ms;    /* of the response's Date header; 0 if there is none */
    bool has_failed;    /* writing to the sink failed, or the response is too long */
    bool is_open;       /* to be sent, or sent again */
    const char *reason; /* why there is no response; NULL if there is one */
};

/* ---- Settings ---- */

static char *text_copy(const char *text)
{
    char *copy = strdup(text);
    if (copy == NULL)
        abort();
    return copy;
}

static bool is_made_of(const char *text, const char *others)
{
    for (; *text != '\0'; text++)
        if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", *text) == NULL &&
            strchr(others, *text) == NULL)
            return false;
    return true;
}

/* Returns host and port of "https://host:port"; NULL for any other text. */
static const char *endpoint_host(const char *endpoint)
{
    struct url url;
    bool is_sound = url_read(endpoint, &url) && url.user.length == 0 && url.rest[0] == '\0' &&
                    (url_part_is(url.scheme, "https") || url_part_is(url.scheme, "http"));
    return is_sound ? url.host.text : NULL;
}

static enum iw_error settings_check(struct context *context, const struct config *config)
{
    const char *prefix = config->store_s3_prefix;
    size_t length = strlen(prefix);
    const struct {
        bool is_wrong;
        const char *sentence;
    } checks[] = {
        {endpoint_host(config->store_s3_endpoint) == NULL,
         "store.s3_endpoint must be the URL of the object store without a path, as https://s3.example.com."},
        {config->store_s3_public_endpoint[0] != '\0' &&
             endpoint_host(config->store_s3_public_endpoint) == NULL,
         "store.s3_public_endpoint must be a URL without a path, or empty."},
        {config->store_s3_bucket[0] == '\0' || !is_made_of(config->store_s3_bucket, "-._"),
         "store.s3_bucket must be the name of a bucket."},
        {!is_made_of(prefix, "-_./") || prefix[0] == '/' || (length > 0 && prefix[length - 1] != '/'),
         "store.s3_prefix must have only letters, digits and - _ . /, and end with /."},
        {config->store_s3_access_key_file[0] == '\0', "store.s3_access_key_file must be set."},
        {config->store_s3_secret_key_file[0] == '\0', "store.s3_secret_key_file must be set."},
        {config->store_s3_ca_file[0] != '\0' && access(config->store_s3_ca_file, R_OK) != 0,
         "store.s3_ca_file cannot be read."},
    };
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
        if (checks[i].is_wrong)
            return context_fail(context, IW_CONFIG_INVALID, "%s", checks[i].sentence);
    return IW_OK;
}

/* Returns scheme and host of an endpoint, with or without the bucket in the host. */
static void origin_make(struct arena *arena, const struct config *config, const char *endpoint, char **host,
                        char **origin)
{
    const char *plain = endpoint_host(endpoint);
    const char *full =
        config->store_s3_path_style ? plain : arena_printf(arena, "%s.%s", config->store_s3_bucket, plain);
    *host = text_copy(full);
    *origin = text_copy(arena_printf(arena, "%.*s%s", (int)(plain - endpoint), endpoint, full));
}

enum iw_error s3_new(struct context *context, const struct config *config, struct s3 **s3)
{
    struct arena *arena = context->arena;
    const char *access_key = "", *secret_key = "";
    enum iw_error error = settings_check(context, config);
    if (error == IW_OK)
        error = config_secret(context, config->store_s3_access_key_file, &access_key);
    if (error == IW_OK)
        error = config_secret(context, config->store_s3_secret_key_file, &secret_key);
    if (error != IW_OK)
        return error;
    struct s3 *made = calloc(1, sizeof *made);
    if (made == NULL || curl_global_init(CURL_GLOBAL_DEFAULT) != 0)
        abort();
    const char *public_endpoint = config->store_s3_public_endpoint[0] != '\0'
                                      ? config->store_s3_public_endpoint
                                      : config->store_s3_endpoint;
    const char *bucket = config->store_s3_bucket, *prefix = config->store_s3_prefix;
    bool is_in_path = config->store_s3_path_style;
    made->sigv4 = sigv4_new(access_key, secret_key, config->store_s3_region);
    origin_make(arena, config, config->store_s3_endpoint, &made->host, &made->origin);
    origin_make(arena, config, public_endpoint, &made->public_host, &made->public_origin);
    made->copy_path = text_copy(arena_printf(arena, "/%s/%s", bucket, prefix));
    made->prefix = made->copy_path + strlen(bucket) + 2;
    made->path = text_copy(is_in_path ? made->copy_path : arena_printf(arena, "/%s", prefix));
    made->bucket_path = text_copy(is_in_path ? arena_printf(arena, "/%s", bucket) : "/");
    made->ca_file = text_copy(config->store_s3_ca_file);
    made->timeout_s = config->store_s3_timeout_s;
    *s3 = made;
    return IW_OK;
}

void s3_free(struct s3 *s3)
{
    if (s3 == NULL)
        return;
    if (s3->multi != NULL && s3->pid == getpid())
        curl_multi_cleanup(s3->multi);
    sigv4_free(s3->sigv4);
    char *const texts[] = {s3->host, s3->origin,      s3->public_host, s3->public_origin,
                           s3->path, s3->bucket_path, s3->copy_path,   s3->ca_file};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        free(texts[i]);
    free(s3);
}

const char *s3_prefix(const struct s3 *s3)
{
    return s3->prefix;
}

const char *s3_copy_source(const struct s3 *s3, struct arena *arena, const char *key)
{
    return arena_printf(arena, "%s%s", s3->copy_path, key);
}

static const char *path_of(const struct s3 *s3, struct arena *arena, const struct s3_call *call)
{
    return call->key == NULL ? s3->bucket_path : arena_printf(arena, "%s%s", s3->path, call->key);
}

/* Returns the time of the store, as far as it is known. */
static int64_t now_ms(const struct s3 *s3)
{
    return clock_now_ms() + s3->offset_ms;
}

const char *s3_url(struct s3 *s3, struct arena *arena, const struct s3_call *call, int64_t expires_s)
{
    int64_t at_ms = now_ms(s3), lifetime_s = expires_s - clock_now_ms() / 1000;
    const struct sigv4_request request = {.method = methods[call->method],
                                          .host = s3->public_host,
                                          .path = path_of(s3, arena, call),
                                          .query = call->query,
                                          .query_count = call->query_count,
                                          .time_ms = at_ms};
    return arena_printf(arena, "%s%s?%s", s3->public_origin, request.path,
                        sigv4_presigned_query(s3->sigv4, arena, &request, lifetime_s > 0 ? lifetime_s : 1));
}

/* ---- libcurl's callbacks ---- */

static long status_of(const struct attempt *attempt)
{
    long status = 0;
    curl_easy_getinfo(attempt->handle, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

static bool is_success(long status)
{
    return status >= status_ok && status <= status_ok_last;
}

static bool sink_write(int sink, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t count = write(sink, bytes, size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return false;
        bytes += count;
        size -= (size_t)count;
    }
    return true;
}

static size_t body_receive(char *bytes, size_t one, size_t size, void *user)
{
    struct attempt *attempt = user;
    bool is_kept = is_success(status_of(attempt));
    size *= one;
    if (is_kept && attempt->call->sink >= 0)
        attempt->has_failed = !sink_write(attempt->call->sink, bytes, size);
    else if (attempt->text.length + size <= (is_kept ? (size_t)text_bytes_max : (size_t)error_text_bytes_max))
        text_add(&attempt->text, bytes, size);
    else
        attempt->has_failed = true;
    return attempt->has_failed ? 0 : size;
}

/* Copies the value of a header line with this name, cut to room bytes. Returns false for another name. */
static bool header_is(const char *line, size_t size, const char *name, char *value, size_t room)
{
    size_t at = strlen(name);
    if (size <= at || strncasecmp(line, name, at) != 0 || line[at] != ':')
        return false;
    for (at++; at < size && line[at] == ' ';)
        at++;
    while (size > at && (line[size - 1] == '\r' || line[size - 1] == '\n' || line[size - 1] == ' '))
        size--;
    snprintf(value, room, "%.*s", (int)(size - at), line + at);
    return true;
}

static int64_t time_read(const char *text)
{
    time_t seconds = curl_getdate(text, NULL);
    return seconds < 0 ? 0 : (int64_t)seconds * 1000;
}

/* The response to a range request has the size of the object in Content-Range. */
static size_t head_receive(char *line, size_t one, size_t size, void *user)
{
    struct attempt *attempt = user;
    struct s3_call *call = attempt->call;
    char value[128];
    size *= one;
    if (header_is(line, size, "ETag", call->etag, sizeof call->etag))
        return size;
    if (header_is(line, size, "Content-Length", value, sizeof value)) {
        if (status_of(attempt) != 206 && !text_integer(value, 0, INT64_MAX, &call->size_bytes))
            call->size_bytes = -1;
    } else if (header_is(line, size, "Content-Range", value, sizeof value)) {
        const char *slash = strchr(value, '/');
        if (slash == NULL || !text_integer(slash + 1, 0, INT64_MAX, &call->size_bytes))
            call->size_bytes = -1;
    } else if (header_is(line, size, "Last-Modified", value, sizeof value))
        call->modified_ms = time_read(value);
    else if (header_is(line, size, "Date", value, sizeof value))
        attempt->date_ms = time_read(value);
    return size;
}

/* Image processes must not inherit a connection. */
static curl_socket_t socket_open(void *user, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)user;
    (void)purpose;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* ---- One attempt ---- */

static void header_put(struct attempt *attempt, struct arena *arena, const char *name, const char *value)
{
    attempt->headers = curl_slist_append(attempt->headers, arena_printf(arena, "%s: %s", name, value));
}

/* The signature covers the SHA-256 of the body, which the store compares with the bytes. */
static void headers_make(struct attempt *attempt, struct arena *arena)
{
    struct s3 *s3 = attempt->s3;
    const struct s3_call *call = attempt->call;
    uint8_t digest[sha256_bytes];
    char date[sigv4_date_size];
    crypto_sha256(call->body_bytes > 0 ? call->body : "", call->body_bytes, digest);
    const struct sigv4_request request = {.method = methods[call->method],
                                          .host = s3->host,
                                          .path = path_of(s3, arena, call),
                                          .query = call->query,
                                          .query_count = call->query_count,
                                          .headers = call->headers,
                                          .header_count = call->header_count,
                                          .payload_sha256 = crypto_hex(arena, digest, sizeof digest),
                                          .time_ms = now_ms(s3)};
    sigv4_date(request.time_ms, date);
    attempt->headers = curl_slist_append(NULL, "Expect:");
    if (call->body != NULL)
        attempt->headers = curl_slist_append(attempt->headers, "Content-Type:");
    header_put(attempt, arena, "x-amz-date", date);
    header_put(attempt, arena, "x-amz-content-sha256", request.payload_sha256);
    header_put(attempt, arena, "Authorization", sigv4_authorization(s3->sigv4, arena, &request));
    for (size_t i = 0; i < call->header_count; i++)
        header_put(attempt, arena, call->headers[i].name, call->headers[i].value);
}

static void options_set(struct attempt *attempt, struct arena *arena)
{
    const struct s3 *s3 = attempt->s3;
    const struct s3_call *call = attempt->call;
    CURL *handle = attempt->handle;
    const char *query = sigv4_query(arena, call->query, call->query_count);
    curl_easy_setopt(handle, CURLOPT_URL,
                     arena_printf(arena, "%s%s%s%s", s3->origin, path_of(s3, arena, call),
                                  query[0] != '\0' ? "?" : "", query));
    curl_easy_setopt(handle, CURLOPT_PRIVATE, attempt);
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_PROXY, "");
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(handle, CURLOPT_USERAGENT, "imgward/" PACKAGE_VERSION);
    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, (long)connect_timeout_ms);
    curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, (long)low_speed_bytes);
    curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, (long)s3->timeout_s);
    curl_easy_setopt(handle, CURLOPT_PATH_AS_IS, 1L);
    if (s3->ca_file[0] != '\0')
        curl_easy_setopt(handle, CURLOPT_CAINFO, s3->ca_file);
    curl_easy_setopt(handle, CURLOPT_HTTPHEADER, attempt->headers);
    curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, socket_open);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, body_receive);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, attempt);
    curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, head_receive);
    curl_easy_setopt(handle, CURLOPT_HEADERDATA, attempt);
    if (call->method == S3_HEAD) {
        curl_easy_setopt(handle, CURLOPT_NOBODY, 1L);
        return;
    }
    if (call->body != NULL) {
        curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body_bytes);
        curl_easy_setopt(handle, CURLOPT_POSTFIELDS, call->body);
    }
    curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, methods[call->method]);
}

/* Returns the key of the fault points: "PUT in/7001/1.0", and the name of the sub-resource. */
static inline const char *fault_text(struct arena *arena, const struct s3_call *call)
{
    return arena_printf(arena, "%s %s %s", methods[call->method], call->key != NULL ? call->key : "bucket",
                        call->query_count > 0 ? call->query[0].name : "");
}

static void attempt_begin(struct attempt *attempt, struct arena *arena)
{
    struct s3_call *call = attempt->call;
    text_clear(&attempt->text);
    call->status = 0;
    call->etag[0] = call->code[0] = '\0';
    call->size_bytes = -1;
    call->modified_ms = attempt->date_ms = 0;
    attempt->has_failed = false;
    attempt->reason = "not sent";
    if (fault_fails(FAULT_OBJECT_ASKED, fault_text(arena, call)))
        return;
    if (call->sink >= 0 && (ftruncate(call->sink, 0) != 0 || lseek(call->sink, 0, SEEK_SET) != 0))
        return;
    attempt->handle = curl_easy_init();
    if (attempt->handle == NULL)
        abort();
    headers_make(attempt, arena);
    options_set(attempt, arena);
    curl_multi_add_handle(attempt->s3->multi, attempt->handle);
}

/* Returns S3's code of an error, the text of the element Code. A 200 with the root Error is also an error. */
static void code_read(struct attempt *attempt)
{
    struct s3_call *call = attempt->call;
    const char *root = strstr(attempt->text.data, "?>");
    const char *code = strstr(attempt->text.data, "<Code>");
    root = root != NULL ? root + 2 + strspn(root + 2, "\r\n ") : attempt->text.data;
    bool is_error = strncmp(root, "<Error>", 7) == 0;
    if (is_error && code != NULL)
        snprintf(call->code, sizeof call->code, "%.*s", (int)strcspn(code + 6, "<"), code + 6);
    if (is_error && is_success(call->status))
        call->status = 500;
}

static void attempt_end(struct attempt *attempt, CURLcode result)
{
    struct s3 *s3 = attempt->s3;
    struct s3_call *call = attempt->call;
    call->status = status_of(attempt);
    attempt->reason = attempt->has_failed  ? "the response cannot be stored"
                      : result != CURLE_OK ? curl_easy_strerror(result)
                                           : NULL;
    curl_multi_remove_handle(s3->multi, attempt->handle);
    curl_easy_cleanup(attempt->handle);
    curl_slist_free_all(attempt->headers);
    attempt->handle = NULL;
    attempt->headers = NULL;
    if (attempt->reason == NULL && fault_fails(FAULT_OBJECT_ANSWERED, fault_text(attempt->text.arena, call)))
        attempt->reason = "the response was lost";
    if (attempt->reason != NULL)
        call->status = 0;
    code_read(attempt);
    call->text = attempt->text.data;
    call->text_bytes = attempt->text.length;
}

/* ---- All attempts ---- */

/* The store considers our clock wrong, so its Date corrects the time of signatures. */
static bool skew_correct(struct attempt *attempt)
{
    struct s3 *s3 = attempt->s3;
    int64_t offset_ms = attempt->date_ms - clock_now_ms();
    int64_t change_ms = offset_ms - s3->offset_ms;
    bool is_skewed = strcmp(attempt->call->code, "RequestTimeTooSkewed") == 0 ||
                     (attempt->call->status == 403 && (change_ms > 300000 || change_ms < -300000));
    if (!is_skewed || attempt->date_ms == 0)
        return false;
    s3->offset_ms = offset_ms;
    if (change_ms > 5000 || change_ms < -5000)
        log_event(LOG_WARN, NULL, "store_clock_differs", LOG_NUMBER("ms", offset_ms));
    return true;
}

static bool is_worth_a_retry(struct attempt *attempt)
{
    long status = attempt->call->status;
    return status == 0 || status == 429 || status >= 500 || skew_correct(attempt);
}

static bool is_answer(const struct s3_call *call)
{
    return is_success(call->status) || call->status == status_changed || call->status == status_range ||
           (call->status == status_missing && strcmp(call->code, "NoSuchBucket") != 0);
}

/* Sends the open attempts, parallel_max at a time. */
static void round_run(struct s3 *s3, struct context *context, struct attempt *attempts, size_t count)
{
    size_t next = 0, running = 0;
    int unused, left;
    CURLMsg *message;
    while (next < count || running > 0) {
        for (; next < count && running < parallel_max; next++) {
            if (!attempts[next].is_open)
                continue;
            attempt_begin(&attempts[next], context->arena);
            running += attempts[next].handle != NULL;
        }
        curl_multi_perform(s3->multi, &unused);
        bool has_ended = false;
        while ((message = curl_multi_info_read(s3->multi, &left)) != NULL) {
            struct attempt *attempt = NULL;
            if (message->msg != CURLMSG_DONE)
                continue;
            CURLcode result = message->data.result;
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&attempt);
            attempt_end(attempt, result);
            running--;
            has_ended = true;
        }
        if (!has_ended && running > 0)
            curl_multi_poll(s3->multi, NULL, 0, 1000, NULL);
    }
}

/* Closes the attempts that have a response. Returns how many should be repeated. */
static size_t round_judge(struct attempt *attempts, size_t count)
{
    size_t open = 0;
    for (size_t i = 0; i < count; i++) {
        attempts[i].is_open = attempts[i].is_open && is_worth_a_retry(&attempts[i]);
        open += attempts[i].is_open;
    }
    return open;
}

enum iw_error s3_fail(struct context *context, const struct s3_call *call, const char *why)
{
    bool is_full = strcmp(call->code, "QuotaExceeded") == 0 || call->status == 507;
    enum iw_error error =
        context_fail(context, IW_SERVICE_UNAVAILABLE,
                     is_full ? "The service has no space left to store files; try again later."
                             : "The file store cannot be used now; try again later.");
    context->reason = is_full ? "store_full" : "store_failed";
    context->retry_after_s = is_full ? 60 : 10;
    context_cause(context, "%s %s: status %ld %s%s%s", methods[call->method],
                  call->key != NULL ? call->key : "bucket", call->status, call->code, why != NULL ? ": " : "",
                  why != NULL ? why : "");
    return error;
}

/* Returns the connections of the process; a child creates new connections. */
static void connections_open(struct s3 *s3)
{
    if (s3->multi != NULL && s3->pid == getpid())
        return;
    s3->multi = curl_multi_init();
    if (s3->multi == NULL)
        abort();
    curl_multi_setopt(s3->multi, CURLMOPT_MAXCONNECTS, (long)parallel_max);
    s3->pid = getpid();
}

static void backoff_wait(unsigned round)
{
    int64_t wait_ms = (int64_t)backoff_first_ms << round;
    wait_ms += (int64_t)(crypto_random_u64() % (uint64_t)wait_ms);
    nanosleep(&(struct timespec){.tv_sec = wait_ms / 1000, .tv_nsec = wait_ms % 1000 * 1000000}, NULL);
}

enum iw_error s3_call(struct s3 *s3, struct context *context, struct s3_call *calls, size_t count)
{
    int64_t begun_ms = clock_monotonic_ms();
    struct attempt *attempts = arena_array(context->arena, count + 1, sizeof *attempts);
    if (s3->failed_at_ms != 0 && begun_ms < s3->failed_at_ms + pause_ms)
        return s3_fail(context, &calls[0], "the object store did not respond a moment ago");
    connections_open(s3);
    for (size_t i = 0; i < count; i++) {
        attempts[i] = (struct attempt){.s3 = s3, .call = &calls[i], .is_open = true};
        text_init(&attempts[i].text, context->arena);
    }
    for (unsigned round = 0;; round++) {
        round_run(s3, context, attempts, count);
        if (round_judge(attempts, count) == 0 || round + 1 == attempts_max ||
            clock_monotonic_ms() - begun_ms > 2000 * s3->timeout_s)
            break;
        backoff_wait(round);
    }
    s3->failed_at_ms = 0;
    for (size_t i = 0; i < count; i++)
        if (!is_answer(&calls[i])) {
            s3->failed_at_ms = calls[i].status == 0 ? clock_monotonic_ms() : 0;
            return s3_fail(context, &calls[i], attempts[i].reason);
        }
    return IW_OK;
}
