#include "service/net/fetch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <curl/curl.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/message.h"
#include "base/text.h"
#include "base/url.h"
#include "service/net/netguard.h"

enum {
    dropped_bytes_max = 65536,
    low_speed_bytes = 1024,
    low_speed_s = 15,
    connect_timeout_s = 10,
    fetch_settings = 4
};
enum {
    status_success = 200,
    status_partial = 206,
    status_success_last = 299,
    status_redirect = 300,
    status_client_first = 400
};

/* The outcome for a result of a transfer: FETCH_UNREACHABLE is retried, FETCH_REFUSED is final. */
struct ending {
    enum fetch_outcome outcome;
    const char *reason;
    const char *message;
};

/* The reason why this module ended a transfer. */
enum stop {
    STOP_NONE,
    STOP_UNREAD,
    STOP_UNWANTED,
    STOP_TOO_LARGE,
    STOP_CODING,
    STOP_TRANSFER_CODING,
    STOP_SLOW,
    STOP_COUNT
};

static const struct ending stops[STOP_COUNT] = {
    [STOP_UNREAD] = {FETCH_UNREACHABLE, "cut_off", "the server responded before it received the whole file"},
    [STOP_UNWANTED] = {FETCH_STOPPED, "stopped", "the receiver stopped the transfer"},
    [STOP_TOO_LARGE] = {FETCH_TOO_LARGE, "too_large", "the file is too large"},
    [STOP_CODING] = {FETCH_UNREACHABLE, "encoding",
                     "the response cannot be decoded as its Content-Encoding states"},
    [STOP_TRANSFER_CODING] = {FETCH_UNREACHABLE, "encoding",
                              "the server used a Transfer-Encoding that was not requested"},
    [STOP_SLOW] = {FETCH_UNREACHABLE, "timeout",
                   "the connection is too slow, with less than 1024 bytes a second"},
};

struct fetch_transfer {
    struct fetch *fetch;
    CURL *handle;
    struct curl_slist *headers;
    struct fetch_request request;
    int64_t received;               /* decoded */
    char answer[fetch_answer_size]; /* FETCH_POST: the start of the body */
    size_t answer_bytes;
    int64_t sent;      /* FETCH_PUT */
    int64_t send_size; /* FETCH_PUT */
    enum stop stop;
    bool is_raw; /* the second request of a GET whose body could not be decoded */
    int64_t
        due_since_ms; /* monotonic start of the window in which due_bytes arrived; 0 if no bytes are due */
    int64_t due_bytes;

    /*
     * About the current response; reset for each response, because redirects come before the last response.
     */
    bool is_coded;       /* the response has a Content-Encoding */
    bool is_whole_range; /* Content-Range covers the whole file */
    bool is_address_refused;
    bool is_address_allowed;

    char message[CURL_ERROR_SIZE];
    struct fetch_transfer *next;
};

struct fetch {
    CURLM *multi;
    struct netguard *guard;
    bool allow_http;
    char *settings[fetch_settings]; /* texts of the configuration with which the client was made */
    const char *ca_file;            /* borrows from settings; "" for the system's certificates */
    struct fetch_transfer *transfers;
    unsigned count;
    struct pollfd watched[fetch_descriptors_max];
    unsigned watched_count;
    int64_t timer_at_ms; /* monotonic; -1 if there is none */
};

static const char *url_part(CURLU *url, CURLUPart part)
{
    char *text = NULL;
    return curl_url_get(url, part, &text, 0) == CURLUE_OK ? text : NULL;
}

static bool port_allowed(CURLU *url, const struct config *config)
{
    struct netguard_ports ports;
    char *text = NULL;
    int64_t port = 0;
    bool is_allowed = curl_url_get(url, CURLUPART_PORT, &text, CURLU_DEFAULT_PORT) == CURLUE_OK &&
                      text_integer(text, 0, UINT16_MAX, &port) && netguard_ports_read(config, &ports) &&
                      netguard_ports_have(&ports, (unsigned)port);
    curl_free(text);
    return is_allowed;
}

/* Checks the parts of a parsed URL. Returns the problem, or NULL. */
static const char *url_problem(CURLU *url, const struct config *config)
{
    bool allow_http = config->outgoing_allow_http;
    const char *problem = NULL;
    char *scheme = (char *)(uintptr_t)url_part(url, CURLUPART_SCHEME);
    char *host = (char *)(uintptr_t)url_part(url, CURLUPART_HOST);
    char *user = (char *)(uintptr_t)url_part(url, CURLUPART_USER);
    char *password = (char *)(uintptr_t)url_part(url, CURLUPART_PASSWORD);
    bool is_https = scheme != NULL && text_equal_nocase(scheme, "https");
    bool is_http = scheme != NULL && text_equal_nocase(scheme, "http");
    if (!is_https && !(is_http && allow_http))
        problem = allow_http ? message_url_scheme : message_url_https;
    else if (host == NULL || host[0] == '\0')
        problem = message_url_host;
    else if (user != NULL || password != NULL)
        problem = message_url_user;
    else if (!port_allowed(url, config))
        problem = message_url_port;
    curl_free(scheme);
    curl_free(host);
    curl_free(user);
    curl_free(password);
    return problem;
}

bool fetch_url_is_valid(const char *url, const struct config *config, const char **why)
{
    struct url parts;
    size_t length = strlen(url);
    *why = NULL;
    if (length > fetch_url_bytes_max)
        *why = message_url_bytes;
    else if (text_has_control(url, length) || strpbrk(url, " \\") != NULL)
        *why = message_url_characters;
    else if (!text_is_ascii(url, length))
        *why = message_url_ascii;
    else if (!url_read(url, &parts))
        *why = message_url_absolute;
    if (*why != NULL)
        return false;
    CURLU *parsed = curl_url();
    if (parsed == NULL)
        abort();
    if (curl_url_set(parsed, CURLUPART_URL, url, 0) != CURLUE_OK)
        *why = message_url_absolute;
    else
        *why = url_problem(parsed, config);
    curl_url_cleanup(parsed);
    return *why == NULL;
}

void fetch_server(const char *url, char server[fetch_server_size])
{
    char *host = NULL, *port = NULL;
    CURLU *parsed = curl_url();
    if (parsed == NULL)
        abort();
    server[0] = '\0';
    if (curl_url_set(parsed, CURLUPART_URL, url, 0) == CURLUE_OK &&
        curl_url_get(parsed, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
        curl_url_get(parsed, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK)
        snprintf(server, fetch_server_size, "%s:%s", host, port);
    for (char *at = server; *at != '\0'; at++)
        if (*at >= 'A' && *at <= 'Z')
            *at = (char)(*at - 'A' + 'a');
    curl_free(host);
    curl_free(port);
    curl_url_cleanup(parsed);
}

/* Rewrites one part in lower case, if the URL has it. */
static void part_lower(CURLU *url, CURLUPart part, struct arena *arena)
{
    char *text = (char *)(uintptr_t)url_part(url, part);
    char *lower = text != NULL ? arena_text(arena, text) : NULL;
    for (char *at = lower; at != NULL && *at != '\0'; at++)
        if (*at >= 'A' && *at <= 'Z')
            *at = (char)(*at - 'A' + 'a');
    if (lower != NULL)
        curl_url_set(url, part, lower, 0);
    curl_free(text);
}

const char *fetch_url_normal(struct arena *arena, const char *url)
{
    char *text = NULL, *query = NULL;
    CURLU *parsed = curl_url();
    if (parsed == NULL)
        abort();
    const char *normal = url;
    if (curl_url_set(parsed, CURLUPART_URL, url, 0) == CURLUE_OK) {
        part_lower(parsed, CURLUPART_HOST, arena);
        curl_url_set(parsed, CURLUPART_FRAGMENT, NULL, 0);
        query = (char *)(uintptr_t)url_part(parsed, CURLUPART_QUERY);
        if (query == NULL || query[0] == '\0')
            curl_url_set(parsed, CURLUPART_QUERY, NULL, 0);
        if (curl_url_get(parsed, CURLUPART_URL, &text, CURLU_NO_DEFAULT_PORT) == CURLUE_OK)
            normal = arena_text(arena, text);
    }
    curl_free(query);
    curl_free(text);
    curl_url_cleanup(parsed);
    return normal;
}

/* ---- libcurl's callbacks ---- */

/* The guard. libcurl asks for a socket for an address, and refused addresses get none. */
static curl_socket_t socket_open(void *user, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct fetch_transfer *transfer = user;
    if (purpose != CURLSOCKTYPE_IPCXN || !netguard_allows(transfer->fetch->guard, &address->addr)) {
        transfer->is_address_refused = true;
        return CURL_SOCKET_BAD;
    }
    transfer->is_address_allowed = true;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static bool target_write(int target, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t written = write(target, bytes, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        bytes += written;
        size -= (size_t)written;
    }
    return true;
}

static long status_of(const struct fetch_transfer *transfer)
{
    long status = 0;
    curl_easy_getinfo(transfer->handle, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

static bool is_success(long status)
{
    return status >= status_success && status <= status_success_last;
}

static bool is_partial(const struct fetch_transfer *transfer, long status)
{
    return transfer->request.method == FETCH_GET && status == status_partial && !transfer->is_whole_range;
}

/* Returns true for a response whose body is the file. */
static bool is_source(const struct fetch_transfer *transfer)
{
    return transfer->request.method == FETCH_GET && is_success(status_of(transfer));
}

/* ---- low speed ---- */

static int64_t window_ms(const struct fetch_transfer *transfer)
{
    int64_t window_s = transfer->request.low_speed_s;
    return (window_s > 0 ? window_s : low_speed_s) * 1000;
}

static void bytes_moved(struct fetch_transfer *transfer, size_t size)
{
    if (transfer->due_since_ms == 0)
        transfer->due_since_ms = clock_monotonic_ms();
    transfer->due_bytes += (int64_t)size;
}

/* Evaluates a finished window and starts the next window. */
static bool is_slow(struct fetch_transfer *transfer, int64_t now_ms)
{
    int64_t passed_ms = now_ms - transfer->due_since_ms;
    if (transfer->due_since_ms == 0 || passed_ms < window_ms(transfer))
        return false;
    bool is_under = transfer->due_bytes < low_speed_bytes * window_ms(transfer) / 1000;
    transfer->due_since_ms = now_ms;
    transfer->due_bytes = 0;
    return is_under;
}

/* ---- response headers ---- */

/* Returns the value of a header line with this name, without surrounding blanks; NULL for another name. */
static const char *value_of(const char *line, size_t size, const char *name, size_t *length)
{
    size_t at = strlen(name);
    if (size <= at || strncasecmp(line, name, at) != 0 || line[at] != ':')
        return NULL;
    for (at++; at < size && (line[at] == ' ' || line[at] == '\t');)
        at++;
    while (size > at && strchr(" \t\r\n", line[size - 1]) != NULL)
        size--;
    *length = size - at;
    return line + at;
}

/*
 * Two content codings are not decoded, because libcurl does not limit the bytes between them. Fields with the
 * same name form one list (RFC 9110, 5.3).
 */
static void coding_read(struct fetch_transfer *transfer, const char *value, size_t length)
{
    bool is_list = transfer->is_coded || memchr(value, ',', length) != NULL;
    transfer->is_coded = true;
    if (is_list && is_source(transfer) && !transfer->is_raw)
        transfer->stop = STOP_CODING;
}

/* "bytes 0-4999/5000" is the whole file (RFC 9110, 14.4). */
static bool is_range_whole(const char *value, size_t length)
{
    char text[64];
    long long last = -1, all = -1;
    int end = 0;
    if (length >= sizeof text)
        return false;
    snprintf(text, sizeof text, "%.*s", (int)length, value);
    return sscanf(text, "bytes 0-%19lld/%19lld%n", &last, &all, &end) == 2 && end == (int)length &&
           last >= 0 && last + 1 == all;
}

/*
 * Reads a header line. Servers may always send chunked, but other transfer codings only if the client
 * requested them (RFC 9112, 7.4).
 */
static size_t head_receive(char *line, size_t one, size_t size, void *user)
{
    struct fetch_transfer *transfer = user;
    const char *value;
    size_t length = 0;
    size *= one;
    if (size > 5 && memcmp(line, "HTTP/", 5) == 0) {
        transfer->is_coded = false;
        transfer->is_whole_range = false;
        transfer->is_address_refused = false;
        transfer->is_address_allowed = false;
    } else if ((value = value_of(line, size, "Content-Encoding", &length)) != NULL)
        coding_read(transfer, value, length);
    else if ((value = value_of(line, size, "Content-Range", &length)) != NULL)
        transfer->is_whole_range = is_range_whole(value, length);
    else if ((value = value_of(line, size, "Transfer-Encoding", &length)) != NULL &&
             (length != 7 || strncasecmp(value, "chunked", length) != 0) &&
             (length != 8 || strncasecmp(value, "identity", length) != 0))
        transfer->stop = STOP_TRANSFER_CODING;
    return transfer->stop == STOP_NONE ? size : 0;
}

/* ---- response body ---- */

static bool body_take(struct fetch_transfer *transfer, const char *bytes, size_t size)
{
    const struct fetch_request *request = &transfer->request;
    if (request->receive != NULL)
        return request->receive(request->user, bytes, size);
    return request->target < 0 || target_write(request->target, bytes, size);
}

/* Reads the body if the caller wants it and it is the file; otherwise drops it. */
static void body_hand_over(struct fetch_transfer *transfer, const char *bytes, size_t size)
{
    const struct fetch_request *request = &transfer->request;
    long status = status_of(transfer);
    int64_t most = request->body_max_bytes > 0 ? request->body_max_bytes : dropped_bytes_max;
    if (!is_success(status) || is_partial(transfer, status))
        transfer->stop = STOP_UNREAD;
    else if (transfer->received > most)
        transfer->stop = STOP_TOO_LARGE;
    else if (!body_take(transfer, bytes, size))
        transfer->stop = STOP_UNWANTED;
}

static void answer_keep(struct fetch_transfer *transfer, const char *bytes, size_t size)
{
    size_t room = fetch_answer_size - transfer->answer_bytes;
    size_t kept = size < room ? size : room;
    memcpy(transfer->answer + transfer->answer_bytes, bytes, kept);
    transfer->answer_bytes += kept;
}

/* libcurl ends the transfer if the callback returns fewer bytes than it received. */
static size_t body_receive(char *bytes, size_t one, size_t size, void *user)
{
    struct fetch_transfer *transfer = user;
    const struct fetch_request *request = &transfer->request;
    size *= one;
    transfer->received += (int64_t)size;
    if (request->method == FETCH_GET)
        bytes_moved(transfer, size);
    if (request->method == FETCH_POST)
        answer_keep(transfer, bytes, size);
    if (request->method == FETCH_GET || request->receive != NULL || request->target >= 0)
        body_hand_over(transfer, bytes, size);
    else if (transfer->received > dropped_bytes_max)
        transfer->stop = STOP_UNREAD;
    return transfer->stop == STOP_NONE ? size : 0;
}

static size_t body_send(char *bytes, size_t one, size_t room, void *user)
{
    struct fetch_transfer *transfer = user;
    ssize_t size;
    do
        size = read(transfer->request.source, bytes, one * room);
    while (size < 0 && errno == EINTR);
    if (size < 0)
        return CURL_READFUNC_ABORT;
    transfer->sent += size;
    bytes_moved(transfer, (size_t)size);
    if (transfer->sent >= transfer->send_size) {
        transfer->due_since_ms = 0;
        transfer->due_bytes = 0;
    }
    return (size_t)size;
}

/*
 * libcurl repeats a request if the server has closed a reused connection, and then the body is sent from the
 * start.
 */
static int body_rewind(void *user, curl_off_t offset, int origin)
{
    struct fetch_transfer *transfer = user;
    off_t at = lseek(transfer->request.source, offset, origin);
    transfer->sent = at;
    return at < 0 ? CURL_SEEKFUNC_FAIL : CURL_SEEKFUNC_OK;
}

/* Maintains the table of descriptors that fetch_poll returns. */
static int socket_watch(CURL *handle, curl_socket_t socket, int what, void *user, void *unused)
{
    struct fetch *fetch = user;
    unsigned at = 0;
    (void)handle;
    (void)unused;
    while (at < fetch->watched_count && fetch->watched[at].fd != socket)
        at++;
    if (what == CURL_POLL_REMOVE) {
        if (at < fetch->watched_count)
            fetch->watched[at] = fetch->watched[--fetch->watched_count];
        return 0;
    }
    if (at == fetch_descriptors_max)
        return -1;
    if (at == fetch->watched_count)
        fetch->watched_count++;
    short events = 0;
    if (what == CURL_POLL_IN || what == CURL_POLL_INOUT)
        events |= POLLIN;
    if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT)
        events |= POLLOUT;
    fetch->watched[at] = (struct pollfd){.fd = socket, .events = events};
    return 0;
}

static int timer_set(CURLM *multi, long wait_ms, void *user)
{
    struct fetch *fetch = user;
    (void)multi;
    fetch->timer_at_ms = wait_ms < 0 ? -1 : clock_monotonic_ms() + wait_ms;
    return 0;
}

/* ---- creation ---- */

/* The settings that fetch_new uses, in addition to allow_http. */
static void settings_list(const struct config *config, const char *settings[fetch_settings])
{
    settings[0] = config->outgoing_ca_file;
    settings[1] = config->outgoing_allow_addresses;
    settings[2] = config->outgoing_refuse_addresses;
    settings[3] = config->outgoing_allow_ports;
}

enum iw_error fetch_new(struct context *context, const struct config *config, struct fetch **fetch)
{
    struct netguard *guard = NULL;
    const char *ca_file = config->outgoing_ca_file, *settings[fetch_settings];
    if (ca_file[0] != '\0' && access(ca_file, R_OK) != 0)
        return context_fail(context, IW_CONFIG_INVALID, "outgoing.ca_file: %s: %s.", ca_file,
                            strerror(errno));
    enum iw_error error = netguard_new(context, config, &guard);
    if (error != IW_OK)
        return error;
    struct fetch *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL || curl_global_init(CURL_GLOBAL_DEFAULT) != 0 ||
        (fresh->multi = curl_multi_init()) == NULL)
        abort();
    fresh->guard = guard;
    fresh->allow_http = config->outgoing_allow_http;
    settings_list(config, settings);
    for (unsigned i = 0; i < fetch_settings; i++)
        if ((fresh->settings[i] = strdup(settings[i])) == NULL)
            abort();
    fresh->ca_file = fresh->settings[0];
    fresh->timer_at_ms = -1;
    curl_multi_setopt(fresh->multi, CURLMOPT_SOCKETFUNCTION, socket_watch);
    curl_multi_setopt(fresh->multi, CURLMOPT_SOCKETDATA, fresh);
    curl_multi_setopt(fresh->multi, CURLMOPT_TIMERFUNCTION, timer_set);
    curl_multi_setopt(fresh->multi, CURLMOPT_TIMERDATA, fresh);
    *fetch = fresh;
    return IW_OK;
}

bool fetch_is_made_with(const struct fetch *fetch, const struct config *config)
{
    const char *settings[fetch_settings];
    bool is_same = fetch->allow_http == config->outgoing_allow_http;
    settings_list(config, settings);
    for (unsigned i = 0; i < fetch_settings; i++)
        is_same = is_same && strcmp(fetch->settings[i], settings[i]) == 0;
    return is_same;
}

/* Removes the transfer from the list and from libcurl before done is called. */
static void transfer_free(struct fetch_transfer *transfer)
{
    struct fetch_transfer **link = &transfer->fetch->transfers;
    while (*link != transfer)
        link = &(*link)->next;
    *link = transfer->next;
    transfer->fetch->count--;
    curl_multi_remove_handle(transfer->fetch->multi, transfer->handle);
    curl_easy_cleanup(transfer->handle);
    curl_slist_free_all(transfer->headers);
    free(transfer);
}

void fetch_free(struct fetch *fetch)
{
    if (fetch == NULL)
        return;
    while (fetch->transfers != NULL)
        transfer_free(fetch->transfers);
    curl_multi_cleanup(fetch->multi);
    netguard_free(fetch->guard);
    for (unsigned i = 0; i < fetch_settings; i++)
        free(fetch->settings[i]);
    free(fetch);
}

static void options_guard(struct fetch_transfer *transfer)
{
    CURL *handle = transfer->handle;
    const char *schemes = transfer->fetch->allow_http ? "http,https" : "https";
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, schemes);
    curl_easy_setopt(handle, CURLOPT_REDIR_PROTOCOLS_STR, schemes);
    curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, socket_open);
    curl_easy_setopt(handle, CURLOPT_OPENSOCKETDATA, transfer);
    /* A reused connection would skip the guard, whose decision can differ between transfers. */
    curl_easy_setopt(handle, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(handle, CURLOPT_FORBID_REUSE, 1L);
    curl_easy_setopt(handle, CURLOPT_PROXY, "");
    curl_easy_setopt(handle, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    /* Even after a redirect, libcurl would send a user name in a URL as credentials. */
    curl_easy_setopt(handle, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    if (transfer->fetch->ca_file[0] != '\0')
        curl_easy_setopt(handle, CURLOPT_CAINFO, transfer->fetch->ca_file);
    /* Without this, ending a transfer waits for the resolver thread and its name server. */
    curl_easy_setopt(handle, CURLOPT_QUICK_EXIT, 1L);
}

static void options_bounds(struct fetch_transfer *transfer)
{
    CURL *handle = transfer->handle;
    const struct fetch_request *request = &transfer->request;
    curl_easy_setopt(handle, CURLOPT_TIMEOUT, (long)request->timeout_s);
    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, (long)connect_timeout_s);
    curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, request->redirects_max > 0 ? 1L : 0L);
    curl_easy_setopt(handle, CURLOPT_MAXREDIRS, (long)request->redirects_max);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, body_receive);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, head_receive);
    curl_easy_setopt(handle, CURLOPT_HEADERDATA, transfer);
    if (request->body_max_bytes > 0)
        curl_easy_setopt(handle, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)request->body_max_bytes);
}

static void options_body(struct fetch_transfer *transfer)
{
    CURL *handle = transfer->handle;
    const struct fetch_request *request = &transfer->request;
    struct stat facts;
    if (request->method == FETCH_POST) {
        curl_easy_setopt(handle, CURLOPT_POST, 1L);
        curl_easy_setopt(handle, CURLOPT_POSTFIELDS, request->body);
        curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_bytes);
    } else if (request->method == FETCH_PUT && fstat(request->source, &facts) == 0) {
        transfer->send_size = facts.st_size;
        curl_easy_setopt(handle, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(handle, CURLOPT_READFUNCTION, body_send);
        curl_easy_setopt(handle, CURLOPT_READDATA, transfer);
        curl_easy_setopt(handle, CURLOPT_SEEKFUNCTION, body_rewind);
        curl_easy_setopt(handle, CURLOPT_SEEKDATA, transfer);
        curl_easy_setopt(handle, CURLOPT_INFILESIZE_LARGE, (curl_off_t)facts.st_size);
    }
}

static void options_headers(struct fetch_transfer *transfer)
{
    /* An empty Expect header prevents waiting for "100 Continue", which many receivers never send. */
    transfer->headers = curl_slist_append(NULL, "Expect:");
    if (transfer->request.method == FETCH_GET) {
        transfer->headers = curl_slist_append(transfer->headers, "Accept-Encoding: identity");
        /* Decodes each coding that libcurl knows, even if it was not requested. */
        curl_easy_setopt(transfer->handle, CURLOPT_ACCEPT_ENCODING, "");
    }
    for (unsigned i = 0; i < fetch_headers_max && transfer->request.headers[i] != NULL; i++)
        transfer->headers = curl_slist_append(transfer->headers, transfer->request.headers[i]);
    curl_easy_setopt(transfer->handle, CURLOPT_HTTPHEADER, transfer->headers);
    curl_easy_setopt(transfer->handle, CURLOPT_USERAGENT, "imgward/" PACKAGE_VERSION);
}

/* Returns the key of the fault points. */
static inline const char *method_name(enum fetch_method method)
{
    return method == FETCH_GET ? "GET" : method == FETCH_PUT ? "PUT" : "POST";
}

enum iw_error fetch_start(struct fetch *fetch, struct context *context, const struct fetch_request *request)
{
    if (fault_fails(FAULT_PEER_ASKED, method_name(request->method)))
        return context_fail(context, IW_IO_FAILED, NULL);
    struct fetch_transfer *transfer = calloc(1, sizeof *transfer);
    if (transfer == NULL || (transfer->handle = curl_easy_init()) == NULL) {
        free(transfer);
        return context_fail(context, IW_NO_MEMORY, NULL);
    }
    transfer->fetch = fetch;
    transfer->request = *request;
    transfer->next = fetch->transfers;
    fetch->transfers = transfer;
    fetch->count++;
    curl_easy_setopt(transfer->handle, CURLOPT_PRIVATE, transfer);
    curl_easy_setopt(transfer->handle, CURLOPT_ERRORBUFFER, transfer->message);
    curl_easy_setopt(transfer->handle, CURLOPT_URL, request->url);
    options_guard(transfer);
    options_bounds(transfer);
    options_body(transfer);
    options_headers(transfer);
    if (curl_multi_add_handle(fetch->multi, transfer->handle) == CURLM_OK)
        return IW_OK;
    transfer_free(transfer);
    return context_fail(context, IW_SERVER_INTERNAL_ERROR, NULL);
}

unsigned fetch_count(const struct fetch *fetch)
{
    return fetch->count;
}

unsigned fetch_poll(const struct fetch *fetch, struct pollfd *polls, unsigned room)
{
    unsigned count = fetch->watched_count < room ? fetch->watched_count : room;
    memcpy(polls, fetch->watched, count * sizeof *polls);
    return count;
}

int fetch_wait_ms(const struct fetch *fetch)
{
    int64_t at_ms = fetch->timer_at_ms < 0 ? INT64_MAX : fetch->timer_at_ms;
    for (const struct fetch_transfer *transfer = fetch->transfers; transfer != NULL;
         transfer = transfer->next)
        if (transfer->due_since_ms != 0 && transfer->due_since_ms + window_ms(transfer) < at_ms)
            at_ms = transfer->due_since_ms + window_ms(transfer);
    if (at_ms == INT64_MAX)
        return -1;
    int64_t left_ms = at_ms - clock_monotonic_ms();
    return left_ms <= 0 ? 0 : left_ms > 60000 ? 60000 : (int)left_ms;
}

/* ---- outcome of a transfer ---- */

static const struct {
    CURLcode code;
    struct ending ending;
} endings[] = {
    {CURLE_COULDNT_CONNECT,
     {FETCH_UNREACHABLE, "connect", "a connection to the server could not be established"}},
    {CURLE_OPERATION_TIMEDOUT, {FETCH_UNREACHABLE, "timeout", "the server took too long"}},
    {CURLE_SSL_CONNECT_ERROR, {FETCH_UNREACHABLE, "tls", "the TLS connection could not be established"}},
    {CURLE_SSL_CLIENTCERT, {FETCH_UNREACHABLE, "tls", "the server requires a client certificate"}},
    {CURLE_PEER_FAILED_VERIFICATION, {FETCH_REFUSED, "certificate", "the server's certificate is not valid"}},
    {CURLE_SSL_CACERT_BADFILE,
     {FETCH_UNREACHABLE, "ca_file", "the server's certificate cannot be verified at the moment"}},
    {CURLE_TOO_MANY_REDIRECTS, {FETCH_REFUSED, "redirects", "the server redirects too many times"}},
    {CURLE_UNSUPPORTED_PROTOCOL,
     {FETCH_REFUSED, "scheme", "the URL redirects to a scheme that is not allowed"}},
    {CURLE_LOGIN_DENIED, {FETCH_REFUSED, "userinfo", "the URL redirects to a URL with a user name"}},
    {CURLE_URL_MALFORMAT, {FETCH_REFUSED, "url", "the URL is not valid"}},
    {CURLE_FILESIZE_EXCEEDED, {FETCH_TOO_LARGE, "too_large", "the file is too large"}},
    {CURLE_PARTIAL_FILE, {FETCH_UNREACHABLE, "cut_off", "the response was cut off"}},
    {CURLE_GOT_NOTHING,
     {FETCH_UNREACHABLE, "cut_off", "the server closed the connection without a response"}},
    {CURLE_RECV_ERROR, {FETCH_UNREACHABLE, "cut_off", "the connection broke off"}},
    {CURLE_SEND_ERROR, {FETCH_UNREACHABLE, "cut_off", "the connection broke off while the file was sent"}},
    {CURLE_HTTP2, {FETCH_UNREACHABLE, "cut_off", "the HTTP/2 connection broke off"}},
    {CURLE_HTTP2_STREAM, {FETCH_UNREACHABLE, "cut_off", "the HTTP/2 stream was closed by the server"}},
    {CURLE_WEIRD_SERVER_REPLY, {FETCH_UNREACHABLE, "no_http", "the server's response is not valid HTTP"}},
};

static const struct ending ending_answered = {FETCH_ANSWERED, "answered", "the server answered"};
static const struct ending ending_other = {FETCH_UNREACHABLE, "transfer", "the transfer failed"};
static const struct ending ending_refused = {FETCH_UNREACHABLE, "connect",
                                             "the connection was refused: nothing listens at that port"};
static const struct ending ending_connect_late = {
    FETCH_UNREACHABLE, "timeout", "a connection to the server could not be established in time"};
/* One message for both, because a client could otherwise find out which names the internal DNS has. */
static const struct ending ending_address = {
    FETCH_UNREACHABLE, "address",
    "the host name could not be resolved, or its address or port is not allowed"};
static const struct ending ending_no_http = {FETCH_UNREACHABLE, "no_http",
                                             "the server's response is not valid HTTP"};

/*
 * Certificate errors, by the codes in OpenSSL's x509_vfy.h. libcurl itself compares the host name; in that
 * case the code is 0, or 1, the initial value.
 */
static const struct {
    long code;
    struct ending ending;
} certificates[] = {
    {0, {FETCH_REFUSED, "certificate", "the server's certificate is for another host name"}},
    {1, {FETCH_REFUSED, "certificate", "the server's certificate is for another host name"}},
    {9, {FETCH_REFUSED, "certificate", "the server's certificate is not valid yet"}},
    {10, {FETCH_REFUSED, "certificate", "the server's certificate has expired"}},
    {18, {FETCH_REFUSED, "certificate", "the server's certificate is self-signed"}},
    {19, {FETCH_REFUSED, "certificate", "the server's certificate comes from an unknown authority"}},
    {20,
     {FETCH_REFUSED, "certificate",
      "the server's certificate comes from an unknown authority, or the server does not send the "
      "intermediate certificates"}},
    {21,
     {FETCH_REFUSED, "certificate",
      "the server's certificate comes from an unknown authority, or the server does not send the "
      "intermediate certificates"}},
    {62, {FETCH_REFUSED, "certificate", "the server's certificate is for another host name"}},
    {64, {FETCH_REFUSED, "certificate", "the server's certificate is for another host name"}},
};

static const struct ending *certificate_ending(const struct fetch_transfer *transfer,
                                               const struct ending *other)
{
    long code = 0;
    curl_easy_getinfo(transfer->handle, CURLINFO_SSL_VERIFYRESULT, &code);
    for (size_t i = 0; i < sizeof certificates / sizeof certificates[0]; i++)
        if (certificates[i].code == code)
            return &certificates[i].ending;
    return other;
}

static const struct ending *connect_ending(const struct fetch_transfer *transfer, const struct ending *other)
{
    long number = 0;
    curl_easy_getinfo(transfer->handle, CURLINFO_OS_ERRNO, &number);
    if (transfer->is_address_refused && !transfer->is_address_allowed)
        return &ending_address;
    return number == ECONNREFUSED ? &ending_refused : other;
}

static const struct ending *timeout_ending(const struct fetch_transfer *transfer, const struct ending *other)
{
    curl_off_t connected_us = 0;
    curl_easy_getinfo(transfer->handle, CURLINFO_CONNECT_TIME_T, &connected_us);
    return connected_us == 0 ? &ending_connect_late : other;
}

/* libcurl has the same code for a forbidden scheme and for an invalid HTTP response. */
static const struct ending *protocol_ending(const struct fetch_transfer *transfer, const struct ending *other)
{
    const char *url = NULL;
    curl_easy_getinfo(transfer->handle, CURLINFO_EFFECTIVE_URL, &url);
    bool is_http = url != NULL && strncasecmp(url, "http:", 5) == 0 && transfer->fetch->allow_http;
    bool is_https = url != NULL && strncasecmp(url, "https:", 6) == 0;
    return is_http || is_https ? &ending_no_http : other;
}

static const struct ending *ending_of(const struct fetch_transfer *transfer, CURLcode code)
{
    static const struct {
        CURLcode code;
        const struct ending *(*look)(const struct fetch_transfer *, const struct ending *);
    } closer[] = {{CURLE_PEER_FAILED_VERIFICATION, certificate_ending},
                  {CURLE_COULDNT_CONNECT, connect_ending},
                  {CURLE_OPERATION_TIMEDOUT, timeout_ending},
                  {CURLE_UNSUPPORTED_PROTOCOL, protocol_ending}};
    const struct ending *ending = code == CURLE_OK ? &ending_answered : &ending_other;
    if (transfer->stop != STOP_NONE)
        return &stops[transfer->stop];
    if (code == CURLE_COULDNT_RESOLVE_HOST)
        return &ending_address;
    /* Newer versions of libcurl check a transfer coding before our callback does. */
    if (code == CURLE_BAD_CONTENT_ENCODING)
        return &stops[transfer->is_raw ? STOP_TRANSFER_CODING : STOP_CODING];
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (endings[i].code == code)
            ending = &endings[i].ending;
    for (size_t i = 0; i < sizeof closer / sizeof closer[0]; i++)
        if (closer[i].code == code)
            return closer[i].look(transfer, ending);
    return ending;
}

/*
 * The status decides even if the body fails. For GET there are two exceptions: a redirect that is followed,
 * and a 2xx, which needs its body.
 */
static bool is_status_decisive(const struct fetch_transfer *transfer, enum fetch_outcome outcome, long status)
{
    if (outcome != FETCH_UNREACHABLE && outcome != FETCH_TOO_LARGE)
        return false;
    if (transfer->request.method == FETCH_GET)
        return status >= status_client_first || transfer->stop == STOP_UNREAD || is_partial(transfer, status);
    if (transfer->request.method == FETCH_PUT && is_success(status))
        return transfer->sent >= transfer->send_size;
    return status >= status_success;
}

/* Returns the host of a redirect for a message; "" if it is not plain text. */
static void redirect_host_read(const struct fetch_transfer *transfer, char host[fetch_host_size])
{
    char *location = NULL, *name = NULL;
    CURLU *url = NULL;
    curl_easy_getinfo(transfer->handle, CURLINFO_REDIRECT_URL, &location);
    if (location == NULL || (url = curl_url()) == NULL)
        return;
    if (curl_url_set(url, CURLUPART_URL, location, 0) == CURLUE_OK &&
        curl_url_get(url, CURLUPART_HOST, &name, 0) == CURLUE_OK) {
        size_t length = strlen(name);
        if (length < fetch_host_size && text_is_ascii(name, length) && !text_has_control(name, length))
            memcpy(host, name, length + 1);
    }
    curl_free(name);
    curl_url_cleanup(url);
}

/*
 * Reads seconds from a number or a date; returns 0 if there are none. CURLINFO_RETRY_AFTER is not used,
 * because newer versions of libcurl limit it to six hours.
 */
static int64_t retry_after_of(const struct fetch_transfer *transfer)
{
    struct curl_header *header;
    char *end;
    if (curl_easy_header(transfer->handle, "Retry-After", 0, CURLH_HEADER, -1, &header) != CURLHE_OK)
        return 0;
    int64_t seconds = strtoll(header->value, &end, 10);
    if (*end != '\0')
        seconds = (int64_t)curl_getdate(header->value, NULL) - clock_now_ms() / 1000;
    return seconds > 0 ? seconds : 0;
}

static struct fetch_result result_of(struct fetch_transfer *transfer, CURLcode code)
{
    long status = status_of(transfer);
    const struct ending *ending = ending_of(transfer, code);
    if (is_status_decisive(transfer, ending->outcome, status))
        ending = &ending_answered;
    bool is_answered = ending->outcome == FETCH_ANSWERED;
    struct fetch_result result = {.outcome = ending->outcome,
                                  .status = is_answered ? status : 0,
                                  .reason = ending->reason,
                                  .message = ending->message,
                                  .is_partial = is_answered && is_partial(transfer, status),
                                  .is_coded = transfer->is_raw,
                                  .body_bytes = transfer->received};
    result.retry_after_s = is_answered ? retry_after_of(transfer) : 0;
    if (is_answered && status >= status_redirect && status < status_client_first)
        redirect_host_read(transfer, result.redirect_host);
    return result;
}

/*
 * Content-Encoding is often wrong: stores keep "aws-chunked", uploaders write "utf-8", and plain bytes are
 * labelled "gzip". If no byte of a body could be decoded, the body is requested again and passed on
 * unchanged.
 */
static bool transfer_repeat(struct fetch_transfer *transfer, CURLcode code)
{
    curl_off_t passed_us = 0;
    bool is_undecoded = code == CURLE_BAD_CONTENT_ENCODING || transfer->stop == STOP_CODING;
    if (!is_undecoded || transfer->received > 0 || transfer->is_raw || !is_source(transfer))
        return false;
    transfer->is_raw = true;
    transfer->stop = STOP_NONE;
    curl_easy_getinfo(transfer->handle, CURLINFO_TOTAL_TIME_T, &passed_us);
    curl_multi_remove_handle(transfer->fetch->multi, transfer->handle);
    curl_easy_setopt(transfer->handle, CURLOPT_ACCEPT_ENCODING, NULL);
    curl_easy_setopt(transfer->handle, CURLOPT_TIMEOUT_MS,
                     (long)(transfer->request.timeout_s * 1000 - passed_us / 1000 + 1));
    return curl_multi_add_handle(transfer->fetch->multi, transfer->handle) == CURLM_OK;
}

static void transfer_end(struct fetch_transfer *transfer, CURLcode code)
{
    if (transfer_repeat(transfer, code))
        return;
    struct fetch_result result = result_of(transfer, code);
    void (*done)(void *, const struct fetch_result *) = transfer->request.done;
    void *user = transfer->request.user;
    char answer[fetch_answer_size];
    memcpy(answer, transfer->answer, transfer->answer_bytes);
    result.answer = answer;
    result.answer_bytes = transfer->answer_bytes;
    fault_point(FAULT_PEER_ANSWERED, method_name(transfer->request.method));
    transfer_free(transfer);
    done(user, &result);
}

/* Reports ended transfers; done may start new transfers. */
static void ends_report(struct fetch *fetch)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(fetch->multi, &left)) != NULL) {
        struct fetch_transfer *transfer = NULL;
        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&transfer);
        transfer_end(transfer, message->data.result);
    }
}

/* Ends transfers below the minimum speed. The loop restarts each time, because done may change the list. */
static void slow_end(struct fetch *fetch)
{
    int64_t now_ms = clock_monotonic_ms();
    for (struct fetch_transfer *transfer = fetch->transfers; transfer != NULL;) {
        if (is_slow(transfer, now_ms)) {
            transfer->stop = STOP_SLOW;
            transfer_end(transfer, CURLE_OPERATION_TIMEDOUT);
            transfer = fetch->transfers;
        } else {
            transfer = transfer->next;
        }
    }
}

void fetch_step(struct fetch *fetch, const struct pollfd *polls, unsigned count)
{
    int running;
    for (unsigned i = 0; i < count; i++) {
        int events = 0;
        if (polls[i].revents & (POLLIN | POLLHUP))
            events |= CURL_CSELECT_IN;
        if (polls[i].revents & POLLOUT)
            events |= CURL_CSELECT_OUT;
        if (polls[i].revents & (POLLERR | POLLNVAL))
            events |= CURL_CSELECT_ERR;
        if (events != 0)
            curl_multi_socket_action(fetch->multi, polls[i].fd, events, &running);
    }
    if (fetch->timer_at_ms >= 0 && fetch->timer_at_ms <= clock_monotonic_ms()) {
        fetch->timer_at_ms = -1;
        curl_multi_socket_action(fetch->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    ends_report(fetch);
    slow_end(fetch);
}
