/* JSON of clients: trees, errors, digests. */
#include <string.h>

#include "base/json.h"
#include "fixture.h"

static const struct json *json_of(const char *text)
{
    const struct json *json = NULL;
    fresh();
    return json_read(&context, text, strlen(text), &json) == IW_OK ? json : NULL;
}

static void test_json_is_read_into_a_tree(void)
{
    const struct json *json = json_of("{\"a\":[1,\"x\",null,true,2.5],\"b\":{\"c\":\"\\u00e4\"}}");
    CU_ASSERT_PTR_NOT_NULL_FATAL(json);
    const struct json *list = json_member(json, "a");
    CU_ASSERT_EQUAL(json_length(list), 5);
    CU_ASSERT_EQUAL(json_integer_of(json_item(list, 0)), 1);
    CU_ASSERT_STRING_EQUAL(json_string_of(json_item(list, 1)), "x");
    CU_ASSERT(json_is_absent(json_item(list, 2)));
    CU_ASSERT(json_is_absent(json_member(json, "nothing")));
    CU_ASSERT_STRING_EQUAL(json_string_of(json_member(json_member(json, "b"), "c")), "\xC3\xA4");
}

/* The format of a text that is not JSON is named; a UTF-8 byte order mark is ignored. */
static void test_a_text_that_is_not_json_is_named(void)
{
    static const struct {
        const char *text;
        size_t size;
        const char *words;
    } rows[] = {
        {"", 0, "is empty"},
        {" \r\n", 3, "is empty"},
        {"\xef\xbb\xbf", 3, "is empty"},
        {"\xff\xfe{\0", 4, "UTF-16"},
        {"\xfe\xff\0{", 4, "UTF-16"},
        {"{\0\"\0", 4, "UTF-16"},
        {"\0{\0\"", 4, "UTF-16"},
        {"{\0\0\0", 4, "UTF-32"},
        {"\0\0\0{", 4, "UTF-32"},
        {"a=1&b=2", 7, "form (name=value)"},
        {"<a/>", 4, "XML or HTML"},
        {"--x\r\n", 5, "multipart/form-data"},
        {"\x1f\x8b\x08", 3, "gzip"},
        {"{\"a\":", 5, "line 1"},
        {"=", 1, "line 1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct json *json = NULL;
        context_init(&context, arena, NULL);
        CU_ASSERT_EQUAL(json_read(&context, rows[i].text, rows[i].size, &json), IW_VALIDATION_FAILED);
        CU_ASSERT_PTR_NOT_NULL(strstr(context.sentence, rows[i].words));
        CU_ASSERT_STRING_EQUAL(context.details->field, "body");
    }
    CU_ASSERT_PTR_NOT_NULL(json_of("\xef\xbb\xbf{\"a\":1}"));
}

/* RFC 8259 sets no limit: a large number in an unknown member must not affect the others. */
static void test_an_integer_of_any_size_is_json(void)
{
    const struct json *json = json_of("{\"a\":123456789012345678901234567890,\"b\":\"x\"}");
    CU_ASSERT_PTR_NOT_NULL_FATAL(json);
    CU_ASSERT(json_is(json_member(json, "a"), JSON_KIND_REAL));
    CU_ASSERT_STRING_EQUAL(json_string_of(json_member(json, "b")), "x");
}

static void test_malformed_json_names_line_and_column(void)
{
    CU_ASSERT_PTR_NULL(json_of("{\n  \"a\": }"));
    CU_ASSERT_EQUAL(context.error, IW_VALIDATION_FAILED);
    CU_ASSERT_PTR_NOT_NULL(strstr(context.sentence, "line 2"));
    CU_ASSERT_PTR_NULL(json_of("{\"a\":1,\"a\":2}"));
    CU_ASSERT_PTR_NULL(json_of(""));
    CU_ASSERT_PTR_NULL(json_of("\"\xFF\""));
    char deep[200];
    memset(deep, '[', 100);
    memset(deep + 100, ']', 99);
    deep[199] = '\0';
    deep[100] = '1';
    CU_ASSERT_PTR_NULL(json_of(deep));
}

static void test_bodies_that_mean_the_same_have_one_digest(void)
{
    uint8_t a[32], b[32], c[32];
    json_digest(json_of("{\"x\":1,\"y\":[\"a\",{\"p\":null,\"q\":true}]}"), a);
    json_digest(json_of("{ \"y\":[\"\\u0061\",{\"q\":true}], \"x\":1, \"z\":null }"), b);
    json_digest(json_of("{\"x\":1,\"y\":[\"a\",{\"q\":false}]}"), c);
    CU_ASSERT_EQUAL(memcmp(a, b, 32), 0);
    CU_ASSERT_NOT_EQUAL(memcmp(a, c, 32), 0);
}

/* Neighbouring numbers that a double cannot distinguish: integers above 53 and above 63 bits, and reals. */
static void test_bodies_with_other_numbers_have_other_digests(void)
{
    static const char *const bodies[] = {"{\"x\":9007199254740992}",
                                         "{\"x\":9007199254740993}",
                                         "{\"x\":9007199254740992.0}",
                                         "{\"x\":9007199254740992,\"y\":1}",
                                         "{\"x\":18446744073709551616}",
                                         "{\"x\":18446744073709551617}",
                                         "{\"x\":0.5}"};
    enum { count = sizeof bodies / sizeof bodies[0] };
    uint8_t digests[count][32], same[32];
    for (size_t i = 0; i < count; i++) {
        json_digest(json_of(bodies[i]), digests[i]);
        for (size_t j = 0; j < i; j++)
            CU_ASSERT_NOT_EQUAL(memcmp(digests[i], digests[j], 32), 0);
    }
    json_digest(json_of("{\"x\":18446744073709551617}"), same);
    CU_ASSERT_EQUAL(memcmp(same, digests[5], 32), 0);
}

static void test_long_arrays_are_seen_without_parsing(void)
{
    static const struct {
        const char *text;
        bool exceeds;
    } cases[] = {
        {"{\"files\":[1,2]}", false},
        {"{\"files\":[1,2,3]}", true},
        {"{\"files\" : [1,2,", true},
        {"{\"files\":[[1,2,3],{\"a\":1,\"b\":2,\"c\":3}]}", false},
        {"{\"files\":[\"a,b,c\\\",d,\"]}", false},
        {"{\"a\":{\"files\":[1,2,3]}}", false},
        {"{\"a\":[1,2,3],\"files\":[]}", false},
        {"{\"file\":[1,2,3],\"x\":\"files\"}", false},
        {"[\"files\",[1,2,3]]", false},
        {"{\"files\":{\"a\":1,\"b\":2,\"c\":3}}", false},
        {"{\"files", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CU_ASSERT_EQUAL(json_array_exceeds(cases[i].text, strlen(cases[i].text), "files", 2),
                        cases[i].exceeds);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"JSON is read into a tree", test_json_is_read_into_a_tree},
        {"a text that is not JSON is named", test_a_text_that_is_not_json_is_named},
        {"an integer of any size is JSON", test_an_integer_of_any_size_is_json},
        {"malformed JSON names line and column", test_malformed_json_names_line_and_column},
        {"bodies that mean the same have one digest", test_bodies_that_mean_the_same_have_one_digest},
        {"bodies with other numbers have other digests", test_bodies_with_other_numbers_have_other_digests},
        {"long arrays are seen without parsing", test_long_arrays_are_seen_without_parsing},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("json", tests);
}
