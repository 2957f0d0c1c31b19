/* A request without a network: routes, captures, query, body, responses, errors. */
#include <stdlib.h>
#include <string.h>

#include "http/edge.h"
#include "http/response.h"
#include "http/serve.h"
#include "runner.h"

static struct arena *arena;
static struct context context;
static struct config config;
static struct request request;
static struct text sent;
static const char *body;
static size_t body_at;
static bool is_client_gone;

static long memory_read(void *handle, void *buffer, size_t size)
{
    (void)handle;
    size_t left = strlen(body) - body_at;
    size_t count = left < size ? left : size;
    memcpy(buffer, body + body_at, count);
    body_at += count;
    return (long)count;
}

static bool memory_write(void *handle, const void *bytes, size_t size)
{
    (void)handle;
    text_add(&sent, bytes, size);
    return !is_client_gone;
}

static enum iw_error answer_capture(struct request *asked)
{
    struct render *render = response_data(asked);
    render_object_begin(render, "data");
    render_string(render, "id", request_capture(asked, "id"));
    render_string(render, "rest", request_capture(asked, "rest"));
    render_object_end(render);
    return IW_OK;
}

static enum iw_error answer_literal(struct request *asked)
{
    render_string(response_data(asked), "data", "literal");
    response_header(asked, "X-Note", "one\r\nX-Evil: two");
    return IW_OK;
}

static enum iw_error answer_body(struct request *asked)
{
    const struct json *json;
    enum iw_error error = request_json(asked, NULL, &json);
    if (error == IW_OK)
        render_integer(response_data(asked), "data", (int64_t)json_length(json));
    return error;
}

static enum iw_error answer_internal(struct request *asked)
{
    return context_fail(asked->context, IW_IO_FAILED, "disk secret");
}

static enum iw_error answer_stream(struct request *asked)
{
    enum iw_error error = response_stream_begin(asked);
    render_array_begin(response_data(asked), "data");
    for (int i = 0; i < 3; i++) {
        render_integer(&asked->response.render, NULL, i);
        response_stream_flush(asked);
    }
    if (request_query(asked, "fail") != NULL)
        return context_fail(asked->context, IW_SERVICE_UNAVAILABLE, NULL);
    render_array_end(&asked->response.render);
    return error;
}

static enum iw_error answer_stream_asked(struct request *asked)
{
    request_query_read(asked);
    return answer_stream(asked);
}

static const struct route first[] = {
    {METHOD_GET, "/o/{id}", answer_capture, ROUTE_OPEN},
    {METHOD_POST, "/o/{id}", answer_body, ROUTE_OPEN},
    {METHOD_GET, "/o/{id}/parts", answer_capture, ROUTE_OPEN},
    {.pattern = NULL},
};
static const struct route second[] = {
    {METHOD_POST, "/o/new", answer_literal, ROUTE_OPEN},
    {METHOD_GET, "/files/{rest*}", answer_capture, ROUTE_OPEN},
    {METHOD_GET, "/broken", answer_internal, ROUTE_OPEN},
    {METHOD_GET, "/stream", answer_stream_asked, ROUTE_OPEN},
    {METHOD_GET, "/locked", answer_literal, 0},
    {.pattern = NULL},
};
static const struct route *const tables[] = {first, second, NULL};
static const struct edge *edge; /* NULL for the rules of the API */

/* Serves one request. Headers are "NAME=value" parameters, terminated by NULL. */
static const char *ask(const char *method, const char *uri, const char *parameter)
{
    arena_reset(arena);
    context_init(&context, arena, "0123456789abcdef");
    text_init(&sent, arena);
    body_at = 0;
    char *parameters[] = {arena_printf(arena, "REQUEST_METHOD=%s", method),
                          arena_printf(arena, "REQUEST_URI=%s", uri), arena_text(arena, parameter), NULL};
    request = (struct request){.context = &context,
                               .arena = arena,
                               .config = &config,
                               .edge = edge,
                               .wire = {memory_read, memory_write, NULL}};
    char **kept = arena_array(arena, 4, sizeof *kept);
    memcpy(kept, parameters, sizeof parameters);
    request_init(&request, kept);
    serve(&request, tables);
    return sent.data;
}

static bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

static void test_captures_are_decoded(void)
{
    CU_ASSERT(has(ask("GET", "/o/a%20b%2Fc?x=1", NULL), "{\"data\":{\"id\":\"a b/c\",\"rest\":\"\"}}"));
    CU_ASSERT(has(ask("GET", "/o/12/", NULL), "\"id\":\"12\""));
    CU_ASSERT(has(ask("GET", "/files/in/1/2?s=x", NULL), "\"rest\":\"in/1/2\""));
    CU_ASSERT(has(ask("GET", "/o/a%2", NULL), "RESOURCE_NOT_FOUND"));
    CU_ASSERT(has(ask("GET", "/o/%00", NULL), "RESOURCE_NOT_FOUND"));
}

static void test_the_literal_pattern_wins_over_the_capture(void)
{
    CU_ASSERT(has(ask("POST", "/o/new", NULL), "literal"));
    const char *answer = ask("GET", "/o/new", NULL);
    CU_ASSERT(has(answer, "Status: 405"));
    CU_ASSERT(has(answer, "Allow: POST\r\n"));
}

static void test_another_method_is_405_and_names_all_that_are_allowed(void)
{
    const char *answer = ask("DELETE", "/o/5", NULL);
    CU_ASSERT(has(answer, "Status: 405"));
    CU_ASSERT(has(answer, "Allow: GET, HEAD, POST\r\n"));
    CU_ASSERT(has(answer, "METHOD_NOT_ALLOWED"));
    CU_ASSERT(has(ask("BREW", "/o/5", NULL), "Status: 405"));
}

static void test_unknown_paths_are_404(void)
{
    static const char *const paths[] = {
        "/",      "",        "/o",    "/o/",  "/o//", "/o/1/2",      "/o/1/parts/2",
        "/files", "/files/", "//o/1", "/O/1", "o/1",  "/o/1/parts//"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        const char *answer = ask("GET", paths[i], NULL);
        CU_ASSERT(has(answer, "Status: 404"));
        CU_ASSERT(has(answer, "RESOURCE_NOT_FOUND"));
    }
}

static void test_head_answers_like_get_without_a_body(void)
{
    const char *answer = ask("HEAD", "/o/7", NULL);
    CU_ASSERT(has(answer, "Status: 200"));
    CU_ASSERT(has(answer, "Content-Length: 29\r\n\r\n"));
    CU_ASSERT(!has(answer, "data"));
}

static void test_a_value_never_starts_a_header(void)
{
    CU_ASSERT(has(ask("POST", "/o/new", NULL), "X-Note: one  X-Evil: two\r\n"));
}

static void test_every_answer_says_who_and_no_store(void)
{
    static const char *const paths[] = {"/o/1", "/nothing", "/broken"};
    for (size_t i = 0; i < 3; i++) {
        const char *answer = ask("GET", paths[i], NULL);
        CU_ASSERT(has(answer, "X-Request-Id: 0123456789abcdef\r\n"));
        CU_ASSERT(has(answer, "Cache-Control: no-store\r\n"));
        CU_ASSERT(has(answer, "Content-Type: application/json\r\n"));
    }
}

static void test_an_error_of_ours_tells_nothing(void)
{
    const char *answer = ask("GET", "/broken", NULL);
    CU_ASSERT(has(answer, "Status: 500"));
    CU_ASSERT(has(answer, "SERVER_INTERNAL_ERROR"));
    CU_ASSERT(!has(answer, "secret"));
}

static void test_errors_come_as_problem_json_when_asked(void)
{
    const char *answer = ask("GET", "/nothing", "HTTP_ACCEPT=application/problem+json");
    CU_ASSERT(has(answer, "Content-Type: application/problem+json\r\n"));
    CU_ASSERT(has(answer, "\"status\":404"));
    CU_ASSERT(has(answer, "\"code\":\"RESOURCE_NOT_FOUND\""));
    CU_ASSERT(has(answer, "\"requestId\":\"0123456789abcdef\""));
}

static void test_locked_routes_need_a_key(void)
{
    const char *answer = ask("GET", "/locked", NULL);
    CU_ASSERT(has(answer, "Status: 401"));
    CU_ASSERT(has(answer, "WWW-Authenticate: Bearer\r\n"));
    CU_ASSERT(has(answer, "AUTH_NOT_AUTHENTICATED"));
    CU_ASSERT(has(ask("GET", "/locked", "HTTP_AUTHORIZATION=Basic x"), "AUTH_TOKEN_INVALID_FORMAT"));
}

static void test_bodies_are_json_objects_of_limited_size(void)
{
    body = "{\"a\":1,\"b\":2}";
    CU_ASSERT(has(ask("POST", "/o/1", "CONTENT_TYPE=application/json; charset=utf-8"), "{\"data\":2}"));
    CU_ASSERT(has(ask("POST", "/o/1", "CONTENT_TYPE=Application/Merge+JSON"), "{\"data\":2}"));
    CU_ASSERT(has(ask("POST", "/o/1", NULL), "{\"data\":2}"));
    CU_ASSERT(has(ask("POST", "/o/1", "CONTENT_TYPE=text/plain"), "Status: 415"));
    CU_ASSERT(has(ask("POST", "/o/1", "CONTENT_TYPE=application/jsonx"), "Status: 415"));
    CU_ASSERT(has(ask("POST", "/o/1", "CONTENT_LENGTH=5000"), "has 5000 bytes; at most 1024 are allowed"));
    body = "[1]";
    CU_ASSERT(has(ask("POST", "/o/1", NULL), "\"field\":\"body\""));
    body = "";
    CU_ASSERT(has(ask("POST", "/o/1", NULL), "VALIDATION_FAILED"));
    body = "{\n \"a\": oops}";
    CU_ASSERT(has(ask("POST", "/o/1", NULL), "line 2"));
    char large[3000];
    memset(large, ' ', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    body = large;
    CU_ASSERT(has(ask("POST", "/o/1", NULL), "Status: 413"));
}

static void test_a_program_limits_bodies_that_anybody_may_send(void)
{
    static const struct edge small = {.prefix = "", .open_body_bytes_max = 100};
    edge = &small;
    body = "{\"a\":1}";
    CU_ASSERT(has(ask("POST", "/o/1", NULL), "{\"data\":1}"));
    CU_ASSERT(has(ask("POST", "/o/1", "CONTENT_LENGTH=101"), "has 101 bytes; at most 100 are allowed"));
    CU_ASSERT_EQUAL(body_at, 0); /* refused by its length, unread */
    char large[200];
    memset(large, ' ', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    body = large;
    CU_ASSERT(has(ask("POST", "/o/1", NULL), "Status: 413"));
    body = "";
    edge = NULL;
}

static void test_a_stream_is_whole_or_cut(void)
{
    const char *answer = ask("GET", "/stream", NULL);
    CU_ASSERT(has(answer, "\r\n\r\n{\"data\":[0,1,2]}"));
    CU_ASSERT(!has(answer, "Content-Length"));
    CU_ASSERT(!request.response.is_broken);
    answer = ask("GET", "/stream?fail=1", NULL);
    CU_ASSERT(!has(answer, "SERVICE_UNAVAILABLE"));
    CU_ASSERT(request.response.is_broken);
    is_client_gone = true;
    ask("GET", "/stream", NULL);
    CU_ASSERT(request.response.is_broken);
    is_client_gone = false;
}

static void query_of(const char *query)
{
    ask("GET", "/nothing", NULL);
    context_clear(&context);
    request.query = query;
    request.queries = NULL;
    request.is_query_read = false;
    request_query_read(&request);
}

static void test_queries_are_read_strictly(void)
{
    query_of("a=1&b=%C3%BC+x&&c&d=");
    CU_ASSERT_EQUAL(context.detail_count, 0);
    CU_ASSERT_STRING_EQUAL(request_query(&request, "a"), "1");
    CU_ASSERT_STRING_EQUAL(request_query(&request, "b"), "\xC3\xBC x");
    CU_ASSERT_STRING_EQUAL(request_query(&request, "c"), "");
    CU_ASSERT_STRING_EQUAL(request_query(&request, "d"), "");
    CU_ASSERT_PTR_NULL(request_query(&request, "e"));
    static const char *const broken[] = {"a=%", "a=%1", "a=%zz", "a=%00", "a=%ff", "%=1", "a=1&a=2", "a=%e4"};
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        query_of(broken[i]);
        CU_ASSERT_EQUAL(context.detail_count, 1);
    }
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"captures are decoded", test_captures_are_decoded},
        {"the literal pattern wins over the capture", test_the_literal_pattern_wins_over_the_capture},
        {"another method is 405 and names all that are allowed",
         test_another_method_is_405_and_names_all_that_are_allowed},
        {"unknown paths are 404", test_unknown_paths_are_404},
        {"head answers like get without a body", test_head_answers_like_get_without_a_body},
        {"a value never starts a header", test_a_value_never_starts_a_header},
        {"every answer says who and no store", test_every_answer_says_who_and_no_store},
        {"an error of ours tells nothing", test_an_error_of_ours_tells_nothing},
        {"errors come as problem json when asked", test_errors_come_as_problem_json_when_asked},
        {"locked routes need a key", test_locked_routes_need_a_key},
        {"bodies are json objects of limited size", test_bodies_are_json_objects_of_limited_size},
        {"a program limits bodies that anybody may send", test_a_program_limits_bodies_that_anybody_may_send},
        {"a stream is whole or cut", test_a_stream_is_whole_or_cut},
        {"queries are read strictly", test_queries_are_read_strictly},
        CU_TEST_INFO_NULL,
    };
    arena = arena_new(0);
    config_init(&config);
    config.api_body_max_bytes = 1024;
    body = "";
    int code = runner_run("serve", tests);
    arena_free(arena);
    return code;
}
