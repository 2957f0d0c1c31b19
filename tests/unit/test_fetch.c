/* What goes out, against a small server of the test's own on loopback. */
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

#include "base/clock.h"
#include "service/fetch.h"
#include "runner.h"

static struct arena *arena;
static struct context context;
static struct config config;
static int port;
static pid_t server;

/* ---- the server: one process a connection, what it does is in the path ---- */

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
    else if (strncmp(head, "GET /file", 9) == 0)
        dprintf(peer, "HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n");
    else if (strncmp(head, "GET /endless", 12) == 0)
        answer_endless(peer);
    else if (strncmp(head, "GET /busy", 9) == 0)
        dprintf(peer, "HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n");
    else if (strncmp(head, "GET /cut", 8) == 0)
        dprintf(peer, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
    else if (strncmp(head, "GET /hang", 9) == 0)
        sleep(20);
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
    CU_ASSERT_EQUAL(result.outcome, FETCH_REFUSED);
    CU_ASSERT_STRING_EQUAL(result.reason, "address_refused");
    fetch_free(open);
    struct fetch *closed = fetch_open("");
    result = get(closed, "/redirect/0");
    CU_ASSERT_EQUAL(result.outcome, FETCH_REFUSED);
    CU_ASSERT_STRING_EQUAL(result.reason, "address_refused");
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
        CU_ASSERT_EQUAL(end.result.outcome, FETCH_REFUSED);
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
    fetch_free(fetch);
}

static void test_a_hanging_server_does_not_delay_another_transfer(void)
{
    struct fetch *fetch = fetch_open("127.0.0.1/32");
    struct end slow, quick;
    struct fetch_request hanging = request_to("/hang", &slow);
    struct fetch_request good = request_to("/redirect/0", &quick);
    hanging.timeout_s = 8; /* longer than a crowded machine stands still */
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

static void test_urls_that_clients_may_not_give_are_named(void)
{
    static const char *const bad[] = {"",
                                      "/path",
                                      "ftp://example.org/",
                                      "https://",
                                      "https://user@example.org/",
                                      "https://user:word@example.org/",
                                      "https://exa mple.org/",
                                      "file:///etc/passwd",
                                      "https://example.org/\n",
                                      "https:\\\\example.org",
                                      "javascript:alert(1)",
                                      "https://example.org/bild-\xC3\xA4.jpg",
                                      "https://m\xC3\xBCnchen.example/",
                                      "http://example.org/"};
    const char *why;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CU_ASSERT_FALSE(fetch_url_is_valid(bad[i], false, &why));
        CU_ASSERT_PTR_NOT_NULL(why);
    }
    CU_ASSERT(fetch_url_is_valid("https://example.org/a?b=c", false, &why));
    CU_ASSERT(fetch_url_is_valid("http://example.org/", true, &why));
    char *longest = arena_alloc(arena, 2100);
    memcpy(longest, "https://example.org/", 20);
    memset(longest + 20, 'a', 2028);
    CU_ASSERT(fetch_url_is_valid(longest, false, &why));
    longest[2048] = 'a';
    CU_ASSERT_FALSE(fetch_url_is_valid(longest, false, &why));
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"a source is fetched into a descriptor", test_a_source_is_fetched_into_a_descriptor},
        {"redirects are counted", test_redirects_are_counted},
        {"a private address is refused, behind a redirect too",
         test_a_private_address_is_refused_at_the_start_and_behind_a_redirect},
        {"odd spellings of loopback are refused", test_odd_spellings_of_loopback_are_refused},
        {"a redirect to another scheme is refused", test_a_redirect_to_another_scheme_is_refused},
        {"an endless body is cut off at its limit", test_an_endless_body_is_cut_off_at_its_limit},
        {"a cut answer and a busy server are transient", test_a_cut_answer_and_a_busy_server_are_transient},
        {"a hanging server does not delay another transfer",
         test_a_hanging_server_does_not_delay_another_transfer},
        {"a result is pushed whole", test_a_result_is_pushed_whole},
        {"URLs that clients may not give are named", test_urls_that_clients_may_not_give_are_named},
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
