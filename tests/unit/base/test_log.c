/* Lines of the log. */
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "fixture.h"

/* Standard error goes into a pipe from log_capture() to log_captured(), which returns the bytes. */
static int captured, saved;

static void log_capture(void)
{
    int ends[2];
    saved = dup(STDERR_FILENO);
    CU_ASSERT_FATAL(saved >= 0 && pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) >= 0);
    close(ends[1]);
    captured = ends[0];
}

static const char *log_captured(void)
{
    char *line = arena_alloc(arena, 8192);
    dup2(saved, STDERR_FILENO);
    close(saved);
    CU_ASSERT_FATAL(read(captured, line, 8191) > 0);
    close(captured);
    return line;
}

static const char *logged(const char *value, int64_t number)
{
    log_capture();
    log_event(LOG_WARN, NULL, "tried", LOG_TEXT("value", value), LOG_NUMBER("number", number));
    return log_captured();
}

static void test_a_line_of_the_log_is_one_json_object(void)
{
    const struct json *json;
    fresh();
    char *large = memset(arena_alloc(arena, 5000), '\x01', 4999);
    const char *const values[] = {"", "plain", "a \"quote\" \\ and\nlines\x7F", "\xC3\xA4\xFF\xF0\x9F",
                                  large};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        const char *line = logged(values[i], INT64_MIN);
        CU_ASSERT(strchr(line, '\n') == line + strlen(line) - 1);
        CU_ASSERT_FATAL(json_read(&context, line, strlen(line), &json) == IW_OK);
        CU_ASSERT_STRING_EQUAL(json_string_of(json_member(json, "level")), "warn");
        CU_ASSERT_STRING_EQUAL(json_string_of(json_member(json, "event")), "tried");
        CU_ASSERT_EQUAL(json_integer_of(json_member(json, "number")), INT64_MIN);
        CU_ASSERT_EQUAL(json_integer_of(json_member(json, "pid")), getpid());
        /* A value that may not fit is left out completely; an invalid UTF-8 byte becomes U+FFFD. */
        const struct json *value = json_member(json, "value");
        CU_ASSERT((value == NULL) == (values[i] == large));
        CU_ASSERT(value == NULL || i > 2 || strcmp(json_string_of(value), values[i]) == 0);
        CU_ASSERT(i != 3 ||
                  strcmp(json_string_of(value), "\xC3\xA4\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD") == 0);
    }
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"a line of the log is one JSON object", test_a_line_of_the_log_is_one_json_object},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("log", tests);
}
