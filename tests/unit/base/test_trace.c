/* The header traceparent: W3C Trace Context, Level 1, section 3.2. */
#include <string.h>

#include "base/trace.h"
#include "fixture.h"

#define TRACE  "0af7651916cd43dd8448eb211c80319c"
#define PARENT "b7ad6b7169203331"
#define ZERO   "0000000000000000"

static void test_a_valid_value_is_read(void)
{
    static const struct {
        const char *text;
        bool is_sampled;
    } rows[] = {{"00-" TRACE "-" PARENT "-01", true},
                {"00-" TRACE "-" PARENT "-00", false},
                {"00-" TRACE "-" PARENT "-02", false},
                {"00-" TRACE "-" PARENT "-0b", true},
                {"00-" TRACE "-" PARENT "-ff", true},
                {"01-" TRACE "-" PARENT "-01", true},
                {"cc-" TRACE "-" PARENT "-01-what-the-future-will-be-like", true},
                {"fe-" TRACE "-" PARENT "-00-", false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct trace trace = {.id = ""};
        CU_ASSERT_TRUE_FATAL(trace_read(rows[i].text, &trace));
        CU_ASSERT_STRING_EQUAL(trace.id, TRACE);
        CU_ASSERT(trace.is_given && trace.is_sampled == rows[i].is_sampled);
    }
}

static void test_a_malformed_value_is_refused(void)
{
    static const char *const rows[] = {NULL,
                                       "",
                                       "-",
                                       "00",
                                       "00-",
                                       "00-" TRACE,
                                       "00-" TRACE "-" PARENT,
                                       "00-" TRACE "-" PARENT "-",
                                       "00-" TRACE "-" PARENT "-0", /* one digit too few */
                                       "00-" TRACE "-" PARENT "-012",
                                       "00-" TRACE "-" PARENT "-01-",
                                       "00-" TRACE "-" PARENT "-01-x",
                                       "00-" TRACE "-" PARENT "-01.",
                                       "00-" TRACE "-" PARENT "-01 ",
                                       " 00-" TRACE "-" PARENT "-01",
                                       "cc-" TRACE "-" PARENT "-01.x",
                                       "cc-" TRACE "-" PARENT "-012",
                                       "ff-" TRACE "-" PARENT "-01",
                                       "ff-" TRACE "-" PARENT "-01-x",
                                       "FE-" TRACE "-" PARENT "-01",
                                       "0-" TRACE "-" PARENT "-01x",
                                       "000-" TRACE "-" PARENT "-01",
                                       "0x-" TRACE "-" PARENT "-01",
                                       "..-" TRACE "-" PARENT "-01",
                                       "00-" ZERO ZERO "-" PARENT "-01",
                                       "00-" TRACE "-" ZERO "-01",
                                       "00-" ZERO ZERO "-" ZERO "-00",
                                       "00-0AF7651916CD43DD8448EB211C80319C-" PARENT "-01",
                                       "00-" TRACE "-B7AD6B7169203331-01",
                                       "00-" TRACE "-" PARENT "-0A",
                                       "00-" TRACE "-" PARENT "-0x",
                                       "00-" TRACE "-" PARENT "-+1",
                                       "00_" TRACE "-" PARENT "-01",
                                       "00-" TRACE "_" PARENT "-01",
                                       "00-" TRACE "-" PARENT "_01",
                                       "00-0af7651916cd43dd8448eb211c80319-" PARENT "-012",
                                       "00-" TRACE "0-" PARENT "-01",
                                       "00-" TRACE "-b7ad6b716920333-012",
                                       "00-" TRACE "-" PARENT "0-01",
                                       "00-.af7651916cd43dd8448eb211c80319c-" PARENT "-01",
                                       "00-0af7651916cd43dd8448eb211c80319g-" PARENT "-01",
                                       "00-" TRACE "-.7ad6b7169203331-01",
                                       "00-" TRACE "-" PARENT "-01,00-" TRACE "-" PARENT "-01",
                                       "00-" TRACE "-" PARENT "-01, 00-" TRACE "-" PARENT "-01",
                                       "00\t" TRACE "-" PARENT "-01",
                                       "00-" TRACE "-" PARENT "-\xff\xff",
                                       "00-" TRACE "-" PARENT "-\xef\xbc\x91",
                                       "{\"traceparent\":\"00-" TRACE "-" PARENT "-01\"}",
                                       "00-" TRACE PARENT "0101010101-01"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct trace trace = {.id = "kept"};
        CU_ASSERT_FALSE(trace_read(rows[i], &trace));
        CU_ASSERT_STRING_EQUAL(trace.id, "kept");
    }
}

/* If a byte of a valid value is replaced by any other, the value stays valid only where the standard allows
 * that digit. */
static void test_each_byte_counts(void)
{
    static const char valid[] = "00-" TRACE "-" PARENT "-01";
    unsigned accepted = 0;
    for (size_t at = 0; at < sizeof valid - 1; at++)
        for (int byte = 1; byte < 256; byte++) {
            struct trace trace;
            char text[sizeof valid];
            memcpy(text, valid, sizeof valid);
            text[at] = (char)byte;
            bool is_dash = valid[at] == '-';
            bool is_digit = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f');
            bool is_read = trace_read(text, &trace);
            CU_ASSERT_EQUAL(is_read, is_dash ? byte == '-' : is_digit);
            accepted += is_read;
        }
    CU_ASSERT_EQUAL(accepted, 3 + 16 * (sizeof valid - 1 - 3));
    for (size_t length = 0; length < sizeof valid - 1; length++) {
        struct trace trace;
        char text[sizeof valid] = "";
        memcpy(text, valid, length);
        CU_ASSERT_FALSE(trace_read(text, &trace));
    }
}

static void test_a_trace_starts_and_continues(void)
{
    struct trace trace, other, read;
    trace_begin(&trace, arena, TRACE);
    CU_ASSERT_STRING_EQUAL(trace.id, TRACE);
    CU_ASSERT(trace.is_sampled && !trace.is_given);
    static const char *const unusable[] = {NULL,      "",        "request-1",
                                           ZERO ZERO, TRACE "0", "0AF7651916CD43DD8448EB211C80319C"};
    for (size_t i = 0; i < sizeof unusable / sizeof unusable[0]; i++) {
        trace_begin(&other, arena, unusable[i]);
        CU_ASSERT_EQUAL(strlen(other.id), 32);
        CU_ASSERT_STRING_NOT_EQUAL(other.id, trace.id);
        CU_ASSERT_TRUE(trace_read(trace_parent(arena, &other), &read));
        CU_ASSERT_STRING_EQUAL(read.id, other.id);
    }
    const char *one = trace_parent(arena, &trace), *two = trace_parent(arena, &trace);
    CU_ASSERT_STRING_NOT_EQUAL(one, two);
    CU_ASSERT_NSTRING_EQUAL(one, "00-" TRACE "-", 36);
    CU_ASSERT_STRING_EQUAL(one + 53, "01");
    trace.is_sampled = false;
    CU_ASSERT_STRING_EQUAL(trace_parent(arena, &trace) + 53, "00");
}

static void test_work_without_a_trace_of_its_client_joins_the_order(void)
{
    struct context part;
    fresh();
    trace_begin(&context.trace, arena, NULL);
    context.order_id = 7;
    context_trace_join(&context, NULL);
    CU_ASSERT_EQUAL(strlen(context.trace.id), 32);
    context_trace_join(&context, TRACE);
    context_init_part(&part, &context);
    CU_ASSERT_STRING_EQUAL(part.trace.id, TRACE);
    CU_ASSERT(part.order_id == 7 && part.error == IW_OK && part.arena == arena);
    CU_ASSERT_TRUE(trace_read("00-11111111111111111111111111111111-" PARENT "-01", &context.trace));
    context_trace_join(&context, TRACE);
    CU_ASSERT_STRING_EQUAL(context.trace.id, "11111111111111111111111111111111");
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"a valid value is read", test_a_valid_value_is_read},
        {"a malformed value is refused", test_a_malformed_value_is_refused},
        {"each byte counts", test_each_byte_counts},
        {"a trace starts and continues", test_a_trace_starts_and_continues},
        {"work without a trace joins the order", test_work_without_a_trace_of_its_client_joins_the_order},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("trace", tests);
}
