#include "service/fetch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <curl/curl.h>

#include "base/clock.h"
#include "base/text.h"
#include "service/netguard.h"

enum { dropped_bytes_max = 65536, low_speed_bytes = 1024, low_speed_s = 15, connect_timeout_s = 10 };
enum { status_success = 200, status_success_last = 299 };

struct transfer {
    struct fetch *fetch;
    CURL *handle;
    struct curl_slist *headers;
    struct fetch_request request;
    int64_t received;
    bool is_too_large;
    bool is_refused;
    bool is_stopped;
    bool is_body_unread; /* of an answer that is no success */
    char message[CURL_ERROR_SIZE];
    struct transfer *next;
};

struct fetch {
    CURLM *multi;
    struct netguard *guard;
    bool allow_http;
    struct transfer *transfers;
    unsigned count;
    struct pollfd watched[fetch_descriptors_max];
    unsigned watched_count;
    int64_t timer_at_ms; /* monotonic; -1: none */
};

static const char *url_part(CURLU *url, CURLUPart part)
{
    char *text = NULL;
    return curl_url_get(url, part, &text, 0) == CURLUE_OK ? text : NULL;
}

/* Takes the parts of a parsed URL apart and says what is wrong with them. */
static const char *url_problem(CURLU *url, bool allow_http)
{
    const char *problem = NULL;
    char *scheme = (char *)(uintptr_t)url_part(url, CURLUPART_SCHEME);
    char *host = (char *)(uintptr_t)url_part(url, CURLUPART_HOST);
    char *user = (char *)(uintptr_t)url_part(url, CURLUPART_USER);
    char *password = (char *)(uintptr_t)url_part(url, CURLUPART_PASSWORD);
    bool is_https = scheme != NULL && text_equal_nocase(scheme, "https");
    bool is_http = scheme != NULL && text_equal_nocase(scheme, "http");
    if (!is_https && !(is_http && allow_http))
        problem = allow_http ? "must be an http or https URL" : "must be an https URL";
    else if (host == NULL || host[0] == '\0')
        problem = "must name a host";
    else if (user != NULL || password != NULL)
        problem = "must not hold a user name or password";
    curl_free(scheme);
    curl_free(host);
    curl_free(user);
    curl_free(password);
    return problem;
}

bool fetch_url_is_valid(const char *url, bool allow_http, const char **why)
{
    size_t length = strlen(url);
    *why = NULL;
    if (length > fetch_url_bytes_max)
        *why = "must be at most 2048 bytes long";
    else if (text_has_control(url, length) || strpbrk(url, " \\") != NULL)
        *why = "must not hold blanks, backslashes or control characters";
    else if (!text_is_ascii(url, length))
        *why = "must be ASCII: percent-encode other characters, and write a host name in punycode";
    if (*why != NULL)
        return false;
    CURLU *parsed = curl_url();
    if (parsed == NULL)
        abort();
    if (curl_url_set(parsed, CURLUPART_URL, url, 0) != CURLUE_OK)
        *why = "must be an absolute URL";
    else
        *why = url_problem(parsed, allow_http);
    curl_url_cleanup(parsed);
    return *why == NULL;
}

/* ---- libcurl's callbacks ---- */

/* The guard: libcurl asks for a socket to an address, and gets none where we do not go. */
static curl_socket_t socket_open(void *user, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct transfer *transfer = user;
    if (purpose != CURLSOCKTYPE_IPCXN || !netguard_allows(transfer->fetch->guard, &address->addr)) {
        transfer->is_refused = true;
        return CURL_SOCKET_BAD;
    }
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

/* A body is worth its bytes only to who asked for it, and only when it is what was asked for. */
static bool body_hand_over(struct transfer *transfer, const char *bytes, size_t size)
{
    long status = 0;
    curl_easy_getinfo(transfer->handle, CURLINFO_RESPONSE_CODE, &status);
    transfer->is_body_unread = status < status_success || status > status_success_last;
    if (!transfer->is_body_unread)
        transfer->is_stopped = !transfer->request.receive(transfer->request.user, bytes, size);
    return !transfer->is_body_unread && !transfer->is_stopped;
}

/* Answering less than it was given makes libcurl end the transfer. */
static size_t body_receive(char *bytes, size_t one, size_t size, void *user)
{
    struct transfer *transfer = user;
    int64_t most =
        transfer->request.body_max_bytes > 0 ? transfer->request.body_max_bytes : dropped_bytes_max;
    size *= one;
    transfer->received += (int64_t)size;
    if (transfer->received > most) {
        transfer->is_too_large = true;
        return 0;
    }
    if (transfer->request.receive != NULL)
        return body_hand_over(transfer, bytes, size) ? size : 0;
    if (transfer->request.target >= 0 && !target_write(transfer->request.target, bytes, size))
        return 0;
    return size;
}

static size_t body_send(char *bytes, size_t one, size_t room, void *user)
{
    struct transfer *transfer = user;
    ssize_t size;
    do
        size = read(transfer->request.source, bytes, one * room);
    while (size < 0 && errno == EINTR);
    return size < 0 ? CURL_READFUNC_ABORT : (size_t)size;
}

/* A server that closed a kept connection makes libcurl send again, from the start. */
static int body_rewind(void *user, curl_off_t offset, int origin)
{
    struct transfer *transfer = user;
    return lseek(transfer->request.source, offset, origin) < 0 ? CURL_SEEKFUNC_FAIL : CURL_SEEKFUNC_OK;
}

/* Keeps the table of descriptors that the caller polls. */
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

/* ---- life ---- */

enum iw_error fetch_new(struct context *context, const struct config *config, struct fetch **fetch)
{
    struct netguard *guard = NULL;
    enum iw_error error = netguard_new(context, config->outgoing_allow_addresses, &guard);
    if (error != IW_OK)
        return error;
    struct fetch *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL || curl_global_init(CURL_GLOBAL_DEFAULT) != 0 ||
        (fresh->multi = curl_multi_init()) == NULL)
        abort();
    fresh->guard = guard;
    fresh->allow_http = config->outgoing_allow_http;
    fresh->timer_at_ms = -1;
    curl_multi_setopt(fresh->multi, CURLMOPT_SOCKETFUNCTION, socket_watch);
    curl_multi_setopt(fresh->multi, CURLMOPT_SOCKETDATA, fresh);
    curl_multi_setopt(fresh->multi, CURLMOPT_TIMERFUNCTION, timer_set);
    curl_multi_setopt(fresh->multi, CURLMOPT_TIMERDATA, fresh);
    *fetch = fresh;
    return IW_OK;
}

static void transfer_free(struct transfer *transfer)
{
    struct transfer **link = &transfer->fetch->transfers;
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
    free(fetch);
}

static void options_guard(struct transfer *transfer)
{
    CURL *handle = transfer->handle;
    const char *schemes = transfer->fetch->allow_http ? "http,https" : "https";
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, schemes);
    curl_easy_setopt(handle, CURLOPT_REDIR_PROTOCOLS_STR, schemes);
    curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, socket_open);
    curl_easy_setopt(handle, CURLOPT_OPENSOCKETDATA, transfer);
    /* A kept connection would pass by the guard of another transfer's address. */
    curl_easy_setopt(handle, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(handle, CURLOPT_FORBID_REUSE, 1L);
    curl_easy_setopt(handle, CURLOPT_PROXY, "");
    curl_easy_setopt(handle, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    /* Behind a redirect too: a user name in a URL would go out as credentials. */
    curl_easy_setopt(handle, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    /* Otherwise giving a transfer up waits for the thread that asks a silent name server. */
    curl_easy_setopt(handle, CURLOPT_QUICK_EXIT, 1L);
}

static void options_bounds(struct transfer *transfer)
{
    CURL *handle = transfer->handle;
    const struct fetch_request *request = &transfer->request;
    curl_easy_setopt(handle, CURLOPT_TIMEOUT, (long)request->timeout_s);
    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, (long)connect_timeout_s);
    /* A receiver of a POST answers a few bytes after some thought: that is not slow, only its timeout counts.
     */
    curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT,
                     request->method == FETCH_POST ? 0L : (long)low_speed_bytes);
    curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, (long)low_speed_s);
    curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, request->redirects_max > 0 ? 1L : 0L);
    curl_easy_setopt(handle, CURLOPT_MAXREDIRS, (long)request->redirects_max);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, body_receive);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, transfer);
    if (request->body_max_bytes > 0)
        curl_easy_setopt(handle, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)request->body_max_bytes);
}

static void options_body(struct transfer *transfer)
{
    CURL *handle = transfer->handle;
    const struct fetch_request *request = &transfer->request;
    struct stat facts;
    if (request->method == FETCH_POST) {
        curl_easy_setopt(handle, CURLOPT_POST, 1L);
        curl_easy_setopt(handle, CURLOPT_POSTFIELDS, request->body);
        curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_bytes);
    } else if (request->method == FETCH_PUT && fstat(request->source, &facts) == 0) {
        curl_easy_setopt(handle, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(handle, CURLOPT_READFUNCTION, body_send);
        curl_easy_setopt(handle, CURLOPT_READDATA, transfer);
        curl_easy_setopt(handle, CURLOPT_SEEKFUNCTION, body_rewind);
        curl_easy_setopt(handle, CURLOPT_SEEKDATA, transfer);
        curl_easy_setopt(handle, CURLOPT_INFILESIZE_LARGE, (curl_off_t)facts.st_size);
    }
}

static void options_headers(struct transfer *transfer)
{
    /* An empty Expect keeps libcurl from waiting for a 100 that many receivers never send. */
    transfer->headers = curl_slist_append(NULL, "Expect:");
    for (unsigned i = 0; i < fetch_headers_max && transfer->request.headers[i] != NULL; i++)
        transfer->headers = curl_slist_append(transfer->headers, transfer->request.headers[i]);
    curl_easy_setopt(transfer->handle, CURLOPT_HTTPHEADER, transfer->headers);
    curl_easy_setopt(transfer->handle, CURLOPT_USERAGENT, "imgward/" PACKAGE_VERSION);
}

enum iw_error fetch_start(struct fetch *fetch, struct context *context, const struct fetch_request *request)
{
    struct transfer *transfer = calloc(1, sizeof *transfer);
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
    if (fetch->timer_at_ms < 0)
        return -1;
    int64_t left_ms = fetch->timer_at_ms - clock_monotonic_ms();
    return left_ms <= 0 ? 0 : left_ms > 60000 ? 60000 : (int)left_ms;
}

/* What libcurl's codes mean to us; all others are "unreachable" for a reason of their own. */
static const struct {
    CURLcode code;
    enum fetch_outcome outcome;
    const char *reason;
    const char *message;
} endings[] = {
    {CURLE_COULDNT_RESOLVE_HOST, FETCH_UNREACHABLE, "dns", "the host name could not be resolved"},
    {CURLE_COULDNT_CONNECT, FETCH_UNREACHABLE, "connect", "the server could not be connected to"},
    {CURLE_OPERATION_TIMEDOUT, FETCH_UNREACHABLE, "timeout", "the server took too long"},
    {CURLE_SSL_CONNECT_ERROR, FETCH_UNREACHABLE, "tls", "the TLS connection could not be made"},
    {CURLE_PEER_FAILED_VERIFICATION, FETCH_REFUSED, "certificate", "the server's certificate is not valid"},
    {CURLE_TOO_MANY_REDIRECTS, FETCH_REFUSED, "redirects", "the server redirects too often"},
    {CURLE_UNSUPPORTED_PROTOCOL, FETCH_REFUSED, "scheme", "the URL leads to a scheme that is not allowed"},
    {CURLE_LOGIN_DENIED, FETCH_REFUSED, "userinfo", "the URL leads to one with a user name"},
    {CURLE_URL_MALFORMAT, FETCH_REFUSED, "url", "the URL is not valid"},
    {CURLE_FILESIZE_EXCEEDED, FETCH_TOO_LARGE, "too_large", "the file is too large"},
    {CURLE_PARTIAL_FILE, FETCH_UNREACHABLE, "cut_off", "the answer was cut off"},
    {CURLE_GOT_NOTHING, FETCH_UNREACHABLE, "cut_off", "the server closed the connection without an answer"},
};

static struct fetch_result result_of(struct transfer *transfer, CURLcode code)
{
    struct fetch_result result = {.outcome = FETCH_UNREACHABLE,
                                  .reason = "transfer",
                                  .message = "the transfer failed",
                                  .body_bytes = transfer->received};
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (endings[i].code == code) {
            result.outcome = endings[i].outcome;
            result.reason = endings[i].reason;
            result.message = endings[i].message;
        }
    curl_off_t retry_after_s = 0;
    curl_easy_getinfo(transfer->handle, CURLINFO_RESPONSE_CODE, &result.status);
    curl_easy_getinfo(transfer->handle, CURLINFO_RETRY_AFTER, &retry_after_s);
    result.retry_after_s = (int64_t)retry_after_s;
    if (code == CURLE_OK || transfer->is_body_unread) {
        result.outcome = FETCH_ANSWERED;
        result.reason = "answered";
        result.message = "the server answered";
    } else if (transfer->is_stopped) {
        result.outcome = FETCH_STOPPED;
        result.reason = "stopped";
        result.message = "the file was not wanted";
    } else if (transfer->is_too_large) {
        result.outcome = FETCH_TOO_LARGE;
        result.reason = "too_large";
        result.message = "the file is too large";
    } else if (transfer->is_refused && code == CURLE_COULDNT_CONNECT) {
        result.outcome = FETCH_REFUSED;
        result.reason = "address_refused";
        result.message = "the address is not one that may be connected to";
    }
    return result;
}

/* Tells the ends of transfers; done may start new ones. */
static void ends_tell(struct fetch *fetch)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(fetch->multi, &left)) != NULL) {
        struct transfer *transfer = NULL;
        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&transfer);
        struct fetch_result result = result_of(transfer, message->data.result);
        void (*done)(void *, const struct fetch_result *) = transfer->request.done;
        void *user = transfer->request.user;
        transfer_free(transfer);
        done(user, &result);
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
    if (fetch_wait_ms(fetch) == 0) {
        fetch->timer_at_ms = -1;
        curl_multi_socket_action(fetch->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    ends_tell(fetch);
}
