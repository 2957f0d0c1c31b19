/* The HTTP client, against a small server on loopback that this test starts. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <zlib.h>

#include "base/clock.h"
#include "service/net/fetch.h"
#include "runner.h"

static struct arena *arena;
static struct context context;
static struct config config;
static int port;
static pid_t server;

/* ---- the server: one process per connection; the path selects the response ---- */

static void answer_redirect(int peer, int left)
{
    char head[256];
    if (left == 0)
        snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
    else
        snprintf(head, sizeof head,
                 "HTTP/1.1 302 Found\r\nLocation: /redirect/%d\r\nContent-Length: 0\r\n\r\n", left - 1);
    dprintf(peer, "%s", head);
}

static void answer_endless(int peer)
{
    static char block[4096];
    dprintf(peer, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    memset(block, 'x', sizeof block);
    for (int i = 0; i < 4096 && write(peer, block, sizeof block) > 0; i++)
        continue;
}

static void answer_put(int peer, const char *head)
{
    const char *length = strcasestr(head, "Content-Length:");
    const char *body = strstr(head, "\r\n\r\n") + 4;
    char buffer[4096];
    long left = length != NULL ? strtol(length + 15, NULL, 10) - (long)strlen(body) : 0;
    unsigned sum = 0;
    for (const char *at = body; *at != '\0'; at++)
        sum += (unsigned char)*at;
    while (left > 0) {
        ssize_t size = read(peer, buffer, sizeof buffer);
        if (size <= 0)
            return;
        for (ssize_t i = 0; i < size; i++)
            sum += (unsigned char)buffer[i];
        left -= size;
    }
    char text[32];
    int size = snprintf(text, sizeof text, "%u", sum);
    dprintf(peer, "HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n%s", size, text);
}

/* Constant responses. */
static const struct {
    const char *request;
    const char *answer;
} fixed[] = {
    {"GET /busy", "HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"},
    {"GET /days", "HTTP/1.1 503 Busy\r\nRetry-After: 999999\r\nContent-Length: 0\r\n\r\n"},
    {"GET /date",
     "HTTP/1.1 503 Busy\r\nRetry-After: Fri, 01 Jan 2100 00:00:00 GMT\r\nContent-Length: 0\r\n\r\n"},
    {"GET /past",
     "HTTP/1.1 503 Busy\r\nRetry-After: Sat, 01 Jan 2000 00:00:00 GMT\r\nContent-Length: 0\r\n\r\n"},
    {"GET /word", "HTTP/1.1 503 Busy\r\nRetry-After: soon\r\nContent-Length: 0\r\n\r\n"},
    {"GET /cut ", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"},
    {"GET /file", "HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n"},
    {"GET /fragment", "HTTP/1.1 301 Moved\r\nLocation: redirect/0#top\r\nContent-Length: 0\r\n\r\n"},
    {"GET /blank", "HTTP/1.1 301 Moved\r\nLocation: /redirect/0?a b\r\nContent-Length: 0\r\n\r\n"},
    {"GET /chunked ",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"},
    {"GET /chunked-cut", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\n"},
    {"GET /hints",
     "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"},
    {"GET /no-length", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello"},
    {"GET /older", "HTTP/1.0 200 OK\r\n\r\nhello"},
    {"GET /no-http", "SSH-2.0-OpenSSH_9.2\r\n"},
    {"GET /nothing", ""},
    {"GET /204", "HTTP/1.1 204 No Content\r\n\r\n"},
    {"GET /300", "HTTP/1.1 300 Multiple Choices\r\nContent-Length: 5\r\n\r\nhello"},
    {"GET /304", "HTTP/1.1 304 Not Modified\r\n\r\n"},
    {"GET /404-cut", "HTTP/1.1 404 Not Found\r\nContent-Length: 100\r\n\r\nno"},
    {"GET /404-long", "HTTP/1.1 404 Not Found\r\nContent-Length: 99999999999\r\n\r\nno"},
    {"GET /206-part",
     "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-4/10\r\nContent-Length: 5\r\n\r\nhello"},
    {"GET /206-open",
     "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-4/*\r\nContent-Length: 5\r\n\r\nhello"},
    {"GET /206-end",
     "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 5-9/10\r\nContent-Length: 5\r\n\r\nhello"},
    {"GET /206-bare", "HTTP/1.1 206 Partial Content\r\nContent-Length: 5\r\n\r\nhello"},
    {"GET /206-whole",
     "HTTP/1.1 206 Partial Content\r\ncontent-range:  bytes 0-4/5 \r\nContent-Length: 5\r\n\r\nhello"},
    {"GET /label", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello"},
    {"GET /unknown-label",
     "HTTP/1.1 200 OK\r\nContent-Encoding: aws-chunked\r\nContent-Length: 5\r\n\r\nhello"},
    {"GET /three-labels", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip, gzip\r\n"
                          "Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello"},
    {"GET /transfer-gzip",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"},
    {"GET /redirected-label",
     "HTTP/1.1 302 Found\r\nContent-Encoding: gzip, gzip, gzip\r\n"
     "Content-Range: bytes 0-4/5\r\nLocation: /206-bare\r\nContent-Length: 0\r\n\r\n"},
    {"PUT /moved",
     "HTTP/1.1 307 Moved\r\nLocation: https://other.example:8443/x?y=z\r\nContent-Length: 0\r\n\r\n"},
    {"PUT /continue",
     "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"},
    {"PUT /forbidden", "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"},
    {"PUT /cut", "HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\nhalf"},
    {"POST /cut", "HTTP/1.1 410 Gone\r\nContent-Length: 100\r\nContent-Encoding: gzip\r\n\r\nhalf"},
    {"POST /transfer-gzip",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"},
};

static bool answer_fixed(int peer, const char *head)
{
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        if (strncmp(head, fixed[i].request, strlen(fixed[i].request)) == 0) {
            dprintf(peer, "%s", fixed[i].answer);
            return true;
        }
    return false;
}

/* Ends the response and reads until the client closes, because closing first could discard the response. */
static void linger(int peer)
{
    char buffer[65536];
    shutdown(peer, SHUT_WR);
    while (read(peer, buffer, sizeof buffer) > 0)
        continue;
}

/* Sends "hello" in gzip, in one or several layers. */
static void answer_gzip(int peer, int layers)
{
    unsigned char body[2][256] = {"hello"};
    size_t size = 5;
    for (int i = 0; i < layers; i++) {
        z_stream zlib = {0};
        deflateInit2(&zlib, 9, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY);
        zlib.next_in = body[i % 2];
        zlib.avail_in = (unsigned)size;
        zlib.next_out = body[(i + 1) % 2];
        zlib.avail_out = sizeof body[0];
        deflate(&zlib, Z_FINISH);
        size = zlib.total_out;
        deflateEnd(&zlib);
    }
    dprintf(peer, "HTTP/1.1 200 OK\r\n");
    for (int i = 0; i < layers; i++)
        dprintf(peer, "Content-Encoding: gzip\r\n");
    dprintf(peer, "Content-Length: %zu\r\n\r\n", size);
    if (write(peer, body[layers % 2], size) < 0)
        return;
}

/* Waits for two windows of the test's low-speed limit. */
static void think(void)
{
    sleep(3);
}

static void answer_slow(int peer, const char *head)
{
    if (strncmp(head, "GET /thinks-first", 17) == 0) {
        think();
        dprintf(peer, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
        think();
        dprintf(peer, "hello");
    } else if (strncmp(head, "GET /stalls", 11) == 0) {
        dprintf(peer, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell");
        sleep(60);
    } else {
        sleep(60);
    }
}

static void answer_put_slow(int peer, const char *head)
{
    if (strncmp(head, "PUT /takes-nothing", 18) == 0) {
        sleep(60);
    } else if (strncmp(head, "PUT /hasty", 10) == 0) {
        dprintf(peer, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    } else {
        think();
        answer_put(peer, head);
    }
}

static void serve(int peer)
{
    char head[8192];
    size_t size = 0;
    int number;
    head[0] = '\0';
    while (strstr(head, "\r\n\r\n") == NULL && size < sizeof head - 1) {
        ssize_t more = read(peer, head + size, sizeof head - 1 - size);
        if (more <= 0)
            return;
        size += (size_t)more;
        head[size] = '\0';
    }
    if (sscanf(head, "GET /redirect/%d", &number) == 1)
        answer_redirect(peer, number);
    else if (strncmp(head, "GET /elsewhere", 14) == 0)
        dprintf(peer, "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.2:%d/ok\r\nContent-Length: 0\r\n\r\n",
                port);
    else if (strncmp(head, "GET /endless", 12) == 0)
        answer_endless(peer);
    else if (sscanf(head, "GET /gzip/%d", &number) == 1)
        answer_gzip(peer, number);
    else if (answer_fixed(peer, head))
        linger(peer);
    else if (strncmp(head, "GET /hang", 9) == 0)
        sleep(20);
    else if (strncmp(head, "GET /thinks", 11) == 0 || strncmp(head, "GET /stalls", 11) == 0)
        answer_slow(peer, head);
    else if (strncmp(head, "PUT /takes", 10) == 0 || strncmp(head, "PUT /hasty", 10) == 0 ||
             strncmp(head, "PUT /thinks", 11) == 0)
        answer_put_slow(peer, head);
    else if (strncmp(head, "PUT /endless", 12) == 0)
        answer_endless(peer);
    else if (strncmp(head, "PUT ", 4) == 0 || strncmp(head, "POST ", 5) == 0)
        answer_put(peer, head);
    else
        dprintf(peer, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
}

static void server_run(int listener)
{
    signal(SIGCHLD, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    for (;;) {
        int peer = accept(listener, NULL, NULL);
        if (peer < 0)
            continue;
        if (fork() == 0) {
            alarm(90);
            serve(peer);
            _exit(0);
        }
        close(peer);
    }
}

static void server_start(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(0x7F000001);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 64) != 0)
        abort();
    getsockname(listener, (struct sockaddr *)&address, &size);
    port = ntohs(address.sin_port);
    server = fork();
    if (server == 0) {
        alarm(600);
        server_run(listener);
    }
    close(listener);
}

/* ---- helpers ---- */

struct end {
    bool is_done;
    struct fetch_result result;
};

static void on_done(void *user, const struct fetch_result *result)
{
    struct end *end = user;
    end->is_done = true;
    end->result = *result;
}

static struct fetch *fetch_open(const char *allowed)
{
    struct fetch *fetch = NULL;
    arena_reset(arena);
    context_init(&context, arena, NULL);
    config_init(&config);
    config.outgoing_allow_http = true;
    config.outgoing_allow_addresses = allowed;
    config.outgoing_allow_ports = "1-65535";
    CU_ASSERT_EQUAL_FATAL(fetch_new(&context, &config, &fetch), IW_OK);
    return fetch;
}

static void drive(struct fetch *fetch, const struct end *end, int64_t limit_ms)
{
    int64_t until_ms = clock_monotonic_ms() + limit_ms;
    while (!end->is_done && clock_monotonic_ms() < until_ms) {
        struct pollfd polls[fetch_descriptors_max];
        unsigned count = fetch_poll(fetch, polls, fetch_descriptors_max);
        int wait_ms = fetch_wait_ms(fetch);
        poll(polls, count, wait_ms < 0 || wait_ms > 100 ? 100 : wait_ms);
        fetch_step(fetch, polls, count);
    }
}

static struct fetch_request request_to(const char *path, struct end *end)
{
    struct fetch_request request = {.method = FETCH_GET,
                                    .source = -1,
                                    .target = -1,
                                    .timeout_s = 60,
                                    .redirects_max = 3,
                                    .body_max_bytes = 100000,
                                    .done = on_done,
                                    .user = end};
    request.url = arena_printf(arena, "http://127.0.0.1:%d%s", port, path);
    *end = (struct end){0};
    return request;
}

static struct fetch_result get(struct fetch *fetch, const char *path)
{
    struct end end;
    struct fetch_request request = request_to(path, &end);
    CU_ASSERT_EQUAL(fetch_start(fetch, &context, &request), IW_OK);
    drive(fetch, &end, 90000);
    CU_ASSERT(end.is_done);
    CU_ASSERT_EQUAL(fetch_count(fetch), 0);
    return end.result;
}

/* ---- tests ---- */

static void test_a_source_is_fetched_into_a_descriptor(void)
{
    struct fetch *fetch = fetch_open("127.0.0.1/32");
    struct end end;
    struct fetch_request request = request_to("/redirect/3", &end);
    char body[16] = "";
    request.target = memfd_create("target", 0);
    CU_ASSERT_EQUAL(fetch_start(fetch, &context, &request), IW_OK);
    drive(fetch, &end, 90000);
    CU_ASSERT_EQUAL(end.result.outcome, FETCH_ANSWERED);
    CU_ASSERT_EQUAL(end.result.status, 200);
    CU_ASSERT_EQUAL(pread(request.target, body, sizeof body - 1, 0), 5);
    CU_ASSERT_STRING_EQUAL(body, "hello");
    close(request.target);
    fetch_free(fetch);
}

static void test_redirects_are_counted(void)
{
    struct fetch *fetch = fetch_open("127.0.0.1/32");
    struct fetch_result result = get(fetch, "/redirect/4");
    CU_ASSERT_EQUAL(result.outcome, FETCH_REFUSED);
    CU_ASSERT_STRING_EQUAL(result.reason, "redirects");
    fetch_free(fetch);
}

static void test_a_private_address_is_refused_at_the_start_and_behind_a_redirect(void)
{
    struct fetch *open = fetch_open("127.0.0.1/32");
    struct fetch_result result = get(open, "/elsewhere");
    CU_ASSERT_EQUAL(result.outcome, FETCH_UNREACHABLE);
    CU_ASSERT_STRING_EQUAL(result.reason, "address");
    fetch_free(open);
    struct fetch *closed = fetch_open("");
    result = get(closed, "/redirect/0");
    CU_ASSERT_EQUAL(result.outcome, FETCH_UNREACHABLE);
    CU_ASSERT_STRING_EQUAL(result.reason, "address");
    fetch_free(closed);
}

static void test_odd_spellings_of_loopback_are_refused(void)
{
    static const char *const hosts[] = {"2130706433",         "0x7f000001", "017700000001", "127.1",
                                        "[::ffff:127.0.0.1]", "[::1]",      "0.0.0.0",      "localhost"};
    struct fetch *fetch = fetch_open("");
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        struct end end;
        struct fetch_request request = request_to("/redirect/0", &end);
        request.url = arena_printf(arena, "http://%s:%d/redirect/0", hosts[i], port);
        CU_ASSERT_EQUAL(fetch_start(fetch, &context, &request), IW_OK);
        drive(fetch, &end, 90000);
        CU_ASSERT(end.is_done);
        CU_ASSERT_EQUAL(end.result.outcome, FETCH_UNREACHABLE);
        CU_ASSERT_STRING_EQUAL(end.result.reason, "address");
    }
    fetch_free(fetch);
}

/* Otherwise clients could find out which names the internal DNS resolves and which ports are open. */
static void test_an_unknown_name_and_a_refused_address_or_port_look_alike(void)
{
    static const char *const urls[] = {"http://no-such-name.invalid/", "http://10.0.0.1/",
                                       "http://127.0.0.1:1/"};
    struct fetch *fetch = NULL;
    struct fetch_result results[3];
    arena_reset(arena);
    context_init(&context, arena, NULL);
    config_init(&config);
    config.outgoing_allow_http = true;
    config.outgoing_allow_addresses = "127.0.0.0/8";
    CU_ASSERT_EQUAL_FATAL(fetch_new(&context, &config, &fetch), IW_OK);
    for (size_t i = 0; i < 3; i++) {
        struct end end;
        struct fetch_request request = request_to("/", &end);
        request.url = urls[i];
        CU_ASSERT_EQUAL(fetch_start(fetch, &context, &request), IW_OK);
        drive(fetch, &end, 90000);
        CU_ASSERT(end.is_done);
        results[i] = end.result;
        CU_ASSERT_EQUAL(results[i].outcome, FETCH_UNREACHABLE);
        CU_ASSERT_STRING_EQUAL(results[i].reason, "address");
        CU_ASSERT_STRING_EQUAL(results[i].message, results[0].message);
    }
    fetch_free(fetch);
}

static void test_a_redirect_to_another_scheme_is_refused(void)
{
    struct fetch *fetch = fetch_open("127.0.0.1/32");
    CU_ASSERT_EQUAL(get(fetch, "/file").outcome, FETCH_REFUSED);
    fetch_free(fetch);
}

static void test_an_endless_body_is_cut_off_at_its_limit(void)
{
    struct fetch *fetch = fetch_open("127.0.0.1/32");
    struct fetch_result result = get(fetch, "/endless");
    CU_ASSERT_EQUAL(result.outcome, FETCH_TOO_LARGE);
    CU_ASSERT(result.body_bytes < 200000);
    fetch_free(fetch);
}

static void test_a_cut_answer_and_a_busy_server_are_transient(void)
{
    struct fetch *fetch = fetch_open("127.0.0.1/32");
    CU_ASSERT_EQUAL(get(fetch, "/cut").outcome, FETCH_UNREACHABLE);
    struct fetch_result result = get(fetch, "/busy");
    CU_ASSERT_EQUAL(result.outcome, FETCH_ANSWERED);
    CU_ASSERT_EQUAL(result.status, 503);
    CU_ASSERT_EQUAL(result.retry_after_s, 7);
    CU_ASSERT_EQUAL(get(fetch, "/days").retry_after_s, 999999);
    CU_ASSERT(get(fetch, "/date").retry_after_s > 999999);
    CU_ASSERT_EQUAL(get(fetch, "/past").retry_after_s, 0);
    CU_ASSERT_EQUAL(get(fetch, "/word").retry_after_s, 0);
    fetch_free(fetch);
}

static void test_a_hanging_server_does_not_delay_another_transfer(void)
{
    struct fetch *fetch = fetch_open("127.0.0.1/32");
    struct end slow, quick;
    struct fetch_request hanging = request_to("/hang", &slow);
    struct fetch_request good = request_to("/redirect/0", &quick);
    hanging.timeout_s = 8; /* longer than a pause of a busy machine */
    CU_ASSERT_EQUAL(fetch_start(fetch, &context, &hanging), IW_OK);
    CU_ASSERT_EQUAL(fetch_start(fetch, &context, &good), IW_OK);
    drive(fetch, &quick, 90000);
    CU_ASSERT(quick.is_done && !slow.is_done);
    drive(fetch, &slow, 90000);
    CU_ASSERT_EQUAL(slow.result.outcome, FETCH_UNREACHABLE);
    CU_ASSERT_STRING_EQUAL(slow.result.reason, "timeout");
    fetch_free(fetch);
}

static void test_a_result_is_pushed_whole(void)
{
    struct fetch *fetch = fetch_open("127.0.0.1/32");
    struct end end;
    struct fetch_request request = request_to("/put", &end);
    char answer[32] = "";
    request.method = FETCH_PUT;
    request.headers[0] = "Content-Type: image/png";
    request.source = memfd_create("source", 0);
    request.target = memfd_create("target", 0);
    for (int i = 0; i < 100000; i++)
        CU_ASSERT_EQUAL_FATAL(write(request.source, "\x03\x05\x07", 3), 3);
    lseek(request.source, 0, SEEK_SET);
    CU_ASSERT_EQUAL(fetch_start(fetch, &context, &request), IW_OK);
    drive(fetch, &end, 90000);
    CU_ASSERT_EQUAL(end.result.status, 201);
    CU_ASSERT(pread(request.target, answer, sizeof answer - 1, 0) > 0);
    CU_ASSERT_STRING_EQUAL(answer, "1500000");
    close(request.source);
    close(request.target);
    fetch_free(fetch);
}

/* A body in one coding is decoded; others are passed on. */
static void test_content_codings(void)
{
    static const struct {
        const char *path;
        const char *body;
        bool is_coded;
    } rows[] = {
        {"/gzip/0", "hello", false}, {"/gzip/1", "hello", false},       {"/gzip/2", "\x1f\x8b\x08", true},
        {"/label", "hello", true},   {"/unknown-label", "hello", true}, {"/three-labels", "hello", true},
    };
    struct fetch *fetch = fetch_open("127.0.0.1/32");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct end end;
        struct fetch_request request = request_to(rows[i].path, &end);
        char body[16] = "";
        request.target = memfd_create("target", 0);
        CU_ASSERT_EQUAL(fetch_start(fetch, &context, &request), IW_OK);
        drive(fetch, &end, 90000);
        CU_ASSERT_EQUAL(end.result.status, 200);
        CU_ASSERT_EQUAL(end.result.is_coded, rows[i].is_coded);
        CU_ASSERT(pread(request.target, body, sizeof body - 1, 0) > 0);
        CU_ASSERT_STRING_EQUAL(body, rows[i].body);
        close(request.target);
    }
    fetch_free(fetch);
}

/* Paths, outcomes, and the received body, which may be empty. */
static void test_odd_answers_of_sources(void)
{
    static const struct {
        const char *path;
        enum fetch_outcome outcome;
        long status;
        const char *reason;
        const char *body;
    } rows[] = {
        {"/transfer-gzip", FETCH_UNREACHABLE, 0, "encoding", ""},
        {"/fragment", FETCH_ANSWERED, 200, "answered", "hello"},
        {"/blank", FETCH_ANSWERED, 200, "answered", "hello"},
        {"/chunked", FETCH_ANSWERED, 200, "answered", "hello"},
        {"/chunked-cut", FETCH_UNREACHABLE, 0, "cut_off", "hel"},
        {"/cut", FETCH_UNREACHABLE, 0, "cut_off", "half"},
        {"/hints", FETCH_ANSWERED, 200, "answered", "hello"},
        {"/no-length", FETCH_ANSWERED, 200, "answered", "hello"},
        {"/older", FETCH_ANSWERED, 200, "answered", "hello"},
        {"/no-http", FETCH_UNREACHABLE, 0, "no_http", ""},
        {"/nothing", FETCH_UNREACHABLE, 0, "cut_off", ""},
        {"/204", FETCH_ANSWERED, 204, "answered", ""},
        {"/300", FETCH_ANSWERED, 300, "answered", ""},
        {"/304", FETCH_ANSWERED, 304, "answered", ""},
        {"/404-cut", FETCH_ANSWERED, 404, "answered", ""},
        {"/404-long", FETCH_ANSWERED, 404, "answered", ""},
        {"/206-part", FETCH_ANSWERED, 206, "answered", ""},
        {"/206-open", FETCH_ANSWERED, 206, "answered", ""},
        {"/206-end", FETCH_ANSWERED, 206, "answered", ""},
        {"/206-bare", FETCH_ANSWERED, 206, "answered", ""},
        {"/redirected-label", FETCH_ANSWERED, 206, "answered", ""},
        {"/206-whole", FETCH_ANSWERED, 206, "answered", "hello"},
    };
    struct fetch *fetch = fetch_open("127.0.0.1/32");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct end end;
        struct fetch_request request = request_to(rows[i].path, &end);
        char body[16] = "";
        request.target = memfd_create("target", 0);
        CU_ASSERT_EQUAL(fetch_start(fetch, &context, &request), IW_OK);
        drive(fetch, &end, 90000);
        bool is_part = strncmp(rows[i].path, "/206", 4) == 0 || strncmp(rows[i].path, "/redirected", 11) == 0;
        bool is_right =
            end.is_done && end.result.outcome == rows[i].outcome && end.result.status == rows[i].status &&
            strcmp(end.result.reason, rows[i].reason) == 0 &&
            end.result.is_partial == (is_part && rows[i].body[0] == '\0') &&
            pread(request.target, body, sizeof body - 1, 0) >= 0 && strcmp(body, rows[i].body) == 0;
        CU_ASSERT(is_right);
        if (!is_right)
            fprintf(stderr, "%s: outcome %d, status %ld, reason %s, body \"%s\"\n", rows[i].path,
                    (int)end.result.outcome, end.result.status, end.result.reason, body);
        close(request.target);
    }
    fetch_free(fetch);
}

/* Makes a file of some letters and zeros; a large file exceeds the socket buffers. */
static int source_make(size_t size)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    int source = memfd_create("source", 0);
    for (size_t at = 0; size <= 1000 && at < size; at += 20)
        CU_ASSERT_EQUAL_FATAL(pwrite(source, letters, 20, (off_t)at), 20);
    CU_ASSERT_EQUAL_FATAL(ftruncate(source, (off_t)size), 0);
    return source;
}

static struct fetch_result sent(struct fetch *fetch, enum fetch_method method, const char *path, size_t size)
{
    struct end end;
    struct fetch_request request = request_to(path, &end);
    request.method = method;
    request.body_max_bytes = 0;
    request.redirects_max = 0;
    request.body = "{}";
    request.body_bytes = 2;
    request.low_speed_s = 1;
    request.source = source_make(size);
    CU_ASSERT_EQUAL(fetch_start(fetch, &context, &request), IW_OK);
    drive(fetch, &end, 90000);
    CU_ASSERT(end.is_done);
    close(request.source);
    return end.result;
}

static void test_odd_answers_of_targets_and_receivers(void)
{
    enum { small = 1000, large = 64 * 1024 * 1024 };
    static const struct {
        enum fetch_method method;
        const char *path;
        size_t size;
        enum fetch_outcome outcome;
        long status;
    } rows[] = {
        {FETCH_PUT, "/moved", small, FETCH_ANSWERED, 307},
        {FETCH_PUT, "/continue", small, FETCH_ANSWERED, 204},
        {FETCH_PUT, "/forbidden", small, FETCH_ANSWERED, 403},
        {FETCH_PUT, "/forbidden", large, FETCH_ANSWERED, 403},
        {FETCH_PUT, "/cut", small, FETCH_ANSWERED, 201},
        {FETCH_PUT, "/endless", small, FETCH_ANSWERED, 200},
        {FETCH_PUT, "/hasty", large, FETCH_UNREACHABLE, 0}, /* responds and closes before it has received the
                                                               file */
        {FETCH_POST, "/cut", 0, FETCH_ANSWERED, 410},
        {FETCH_POST, "/transfer-gzip", 0, FETCH_ANSWERED, 200},
    };
    struct fetch *fetch = fetch_open("127.0.0.1/32");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fetch_result result = sent(fetch, rows[i].method, rows[i].path, rows[i].size);
        bool is_right = result.outcome == rows[i].outcome && result.status == rows[i].status;
        CU_ASSERT(is_right);
        if (!is_right)
            fprintf(stderr, "%s: outcome %d, status %ld, reason %s\n", rows[i].path, (int)result.outcome,
                    result.status, result.reason);
        CU_ASSERT_STRING_EQUAL(result.redirect_host, result.status == 307 ? "other.example" : "");
    }
    fetch_free(fetch);
}

/* The transfers run in parallel, because each waits for longer than the window of one second. */
static void test_only_bytes_that_are_due_can_be_slow(void)
{
    static const struct {
        const char *path;
        bool is_put;
        enum fetch_outcome outcome;
    } rows[] = {
        {"/thinks-first", false, FETCH_ANSWERED},
        {"/thinks-first", true, FETCH_ANSWERED},
        {"/stalls", false, FETCH_UNREACHABLE},
        {"/takes-nothing", true, FETCH_UNREACHABLE},
    };
    enum { count = sizeof rows / sizeof rows[0] };
    struct fetch *fetch = fetch_open("127.0.0.1/32");
    struct end ends[count];
    int sources[count];
    for (int i = 0; i < count; i++) {
        struct fetch_request request = request_to(rows[i].path, &ends[i]);
        request.low_speed_s = 1;
        request.source = sources[i] =
            source_make(rows[i].outcome == FETCH_ANSWERED ? 1000 : 64 * 1024 * 1024);
        request.method = rows[i].is_put ? FETCH_PUT : FETCH_GET;
        CU_ASSERT_EQUAL(fetch_start(fetch, &context, &request), IW_OK);
    }
    for (int i = 0; i < count; i++) {
        drive(fetch, &ends[i], 90000);
        CU_ASSERT(ends[i].is_done);
        CU_ASSERT_EQUAL(ends[i].result.outcome, rows[i].outcome);
        CU_ASSERT_STRING_EQUAL(ends[i].result.reason,
                               rows[i].outcome == FETCH_ANSWERED ? "answered" : "timeout");
        CU_ASSERT(rows[i].outcome == FETCH_ANSWERED || strstr(ends[i].result.message, "too slow") != NULL);
        close(sources[i]);
    }
    CU_ASSERT_EQUAL(fetch_count(fetch), 0);
    fetch_free(fetch);
}

static void test_a_refused_connection_is_named(void)
{
    struct fetch *fetch = fetch_open("127.0.0.1/32");
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    struct end end;
    struct fetch_request request = request_to("/", &end);
    int unheard = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(0x7F000001);
    CU_ASSERT_EQUAL(bind(unheard, (struct sockaddr *)&address, sizeof address), 0);
    getsockname(unheard, (struct sockaddr *)&address, &size);
    request.url = arena_printf(arena, "http://127.0.0.1:%d/", ntohs(address.sin_port));
    CU_ASSERT_EQUAL(fetch_start(fetch, &context, &request), IW_OK);
    drive(fetch, &end, 90000);
    CU_ASSERT_EQUAL(end.result.outcome, FETCH_UNREACHABLE);
    CU_ASSERT_STRING_EQUAL(end.result.reason, "connect");
    CU_ASSERT_PTR_NOT_NULL(strstr(end.result.message, "refused"));
    close(unheard);
    fetch_free(fetch);
}

static void test_a_file_of_certificates_that_is_not_there_is_named(void)
{
    struct fetch *fetch = fetch_open("127.0.0.1/32");
    struct fetch *other = NULL;
    CU_ASSERT(fetch_is_made_with(fetch, &config));
    config.outgoing_ca_file = "/nowhere/ca.pem";
    CU_ASSERT_FALSE(fetch_is_made_with(fetch, &config));
    CU_ASSERT_EQUAL(fetch_new(&context, &config, &other), IW_CONFIG_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(context.sentence, "outgoing.ca_file"));
    fetch_free(fetch);
}

static void test_urls_that_clients_may_not_give_are_named(void)
{
    static const char *const bad[] = {
        "",
        "/path",
        "ftp://example.org/",
        "https://",
        "https://userstatic void test_odd_answers_of_targets_and_receiversexample.org/",
        "https://user:wordstatic void test_odd_answers_of_targets_and_receiversexample.org/",
        "https://exa mple.org/",
        "file:///etc/passwd",
        "https://example.org/\n",
        "https:\\\\example.org",
        "https:///example.org/hook",
        "https:/example.org/hook",
        "https://a..example.org/",
        "https://%65xample.org/",
        "javascript:alert(1)",
        "https://example.org/bild-\xC3\xA4.jpg",
        "https://m\xC3\xBCnchen.example/",
        "https://example.org:8443/",
        "https://example.org:22/",
        "http://example.org/"};
    const char *why;
    config_init(&config);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CU_ASSERT_FALSE(fetch_url_is_valid(bad[i], &config, &why));
        CU_ASSERT_PTR_NOT_NULL(why);
    }
    CU_ASSERT(fetch_url_is_valid("https://example.org/a?b=c", &config, &why));
    CU_ASSERT(fetch_url_is_valid("https://example.org:443/", &config, &why));
    config.outgoing_allow_http = true;
    CU_ASSERT(fetch_url_is_valid("http://example.org/", &config, &why));
    CU_ASSERT(fetch_url_is_valid("http://example.org:80/", &config, &why));
    CU_ASSERT_FALSE(fetch_url_is_valid("http://example.org:8080/", &config, &why));
    config.outgoing_allow_ports = "8080";
    CU_ASSERT(fetch_url_is_valid("http://example.org:8080/", &config, &why));
    CU_ASSERT_FALSE(fetch_url_is_valid("http://example.org/", &config, &why));
    config_init(&config);
    char *longest = arena_alloc(arena, 2100);
    memcpy(longest, "https://example.org/", 20);
    memset(longest + 20, 'a', 2028);
    CU_ASSERT(fetch_url_is_valid(longest, &config, &why));
    longest[2048] = 'a';
    CU_ASSERT_FALSE(fetch_url_is_valid(longest, &config, &why));
}

static void test_a_url_has_one_normal_form(void)
{
    static const char *const same[] = {"HTTP://Example.org:80/a?b=C", "http://example.org/a?b=C#x",
                                       "http://example.org/./a?b=C", "http://example.org/x/../a?b=C",
                                       "http://EXAMPLE.ORG:080/a?b=C"};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        CU_ASSERT_STRING_EQUAL(fetch_url_normal(arena, same[i]), "http://example.org/a?b=C");
    CU_ASSERT_STRING_EQUAL(fetch_url_normal(arena, "http://h/a?"), "http://h/a");
    CU_ASSERT_STRING_EQUAL(fetch_url_normal(arena, "http://0x7f.1/"), "http://127.0.0.1/");
    CU_ASSERT_STRING_EQUAL(fetch_url_normal(arena, "https://h:8443/A"), "https://h:8443/A");
    CU_ASSERT_STRING_EQUAL(fetch_url_normal(arena, "no url"), "no url");
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"a source is fetched into a descriptor", test_a_source_is_fetched_into_a_descriptor},
        {"redirects are counted", test_redirects_are_counted},
        {"a private address is refused, behind a redirect too",
         test_a_private_address_is_refused_at_the_start_and_behind_a_redirect},
        {"an unknown name and a refused address or port look alike",
         test_an_unknown_name_and_a_refused_address_or_port_look_alike},
        {"odd spellings of loopback are refused", test_odd_spellings_of_loopback_are_refused},
        {"a redirect to another scheme is refused", test_a_redirect_to_another_scheme_is_refused},
        {"an endless body is cut off at its limit", test_an_endless_body_is_cut_off_at_its_limit},
        {"a cut answer and a busy server are transient", test_a_cut_answer_and_a_busy_server_are_transient},
        {"a hanging server does not delay another transfer",
         test_a_hanging_server_does_not_delay_another_transfer},
        {"a result is pushed whole", test_a_result_is_pushed_whole},
        {"content codings", test_content_codings},
        {"odd answers of sources", test_odd_answers_of_sources},
        {"odd answers of targets and receivers", test_odd_answers_of_targets_and_receivers},
        {"only bytes that are due can be slow", test_only_bytes_that_are_due_can_be_slow},
        {"a refused connection is named", test_a_refused_connection_is_named},
        {"a file of certificates that is not there is named",
         test_a_file_of_certificates_that_is_not_there_is_named},
        {"URLs that clients may not give are named", test_urls_that_clients_may_not_give_are_named},
        {"a url has one normal form", test_a_url_has_one_normal_form},
        CU_TEST_INFO_NULL,
    };
    arena = arena_new(0);
    server_start();
    int code = runner_run("fetch", tests);
    arena_free(arena);
    kill(server, SIGTERM);
    waitpid(server, NULL, 0);
    return code;
}
