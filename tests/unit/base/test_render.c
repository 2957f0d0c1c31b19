/* Rendered JSON. */
#include <string.h>

#include "base/json.h"
#include "base/render.h"
#include "base/text.h"
#include "fixture.h"

/* Text quoted from a client may be cut inside a character, or be invalid UTF-8. */
static void test_rendered_bytes_are_utf8(void)
{
    struct render render;
    struct text text;
    arena_reset(arena);
    text_init(&text, arena);
    render_init(&render, &text);
    render_object_begin(&render, NULL);
    render_string(&render, "a", "\xC3\xA4|\xC3|\xFF\xC0\xAF|\xED\xA0\x80|\xF0\x9F\x98\x80|\xF0\x9F\x98");
    render_object_end(&render);
    CU_ASSERT_STRING_EQUAL(text.data, "{\"a\":\"\xC3\xA4|\\ufffd|\\ufffd\\ufffd\\ufffd|\\ufffd\\ufffd\\ufffd|"
                                      "\xF0\x9F\x98\x80|\\ufffd\\ufffd\\ufffd\"}");
    CU_ASSERT(text_is_utf8(text.data, text.length));
}

static void test_rendered_json_reads_back(void)
{
    struct text text;
    struct render render;
    fresh();
    text_init(&text, arena);
    render_init(&render, &text);
    render_object_begin(&render, NULL);
    render_string(&render, "quote\"s", "a\\b\"c\n\x01 \xC3\xA4");
    render_id(&render, "id", INT64_MAX);
    render_time(&render, "at", 0);
    render_array_begin(&render, "list");
    render_integer(&render, NULL, -5);
    render_object_begin(&render, NULL);
    render_object_end(&render);
    render_boolean(&render, NULL, true);
    render_array_end(&render);
    render_object_end(&render);
    CU_ASSERT_STRING_EQUAL(
        text.data, "{\"quote\\\"s\":\"a\\\\b\\\"c\\u000a\\u0001 \xC3\xA4\",\"id\":\"9223372036854775807\","
                   "\"at\":null,\"list\":[-5,{},true]}");
    const struct json *json = NULL;
    CU_ASSERT_EQUAL(json_read(&context, text.data, text.length, &json), IW_OK);
    CU_ASSERT_STRING_EQUAL(json_string_of(json_member(json, "quote\"s")), "a\\b\"c\n\x01 \xC3\xA4");
}

static void test_lines_are_an_object_of_strings(void)
{
    struct text text;
    struct render render;
    fresh();
    text_init(&text, arena);
    render_init(&render, &text);
    render_array_begin(&render, NULL);
    render_lines(&render, NULL, "a\tb\tc\nempty\t\nno tab\n\"q\t\\\nlast\tno line feed");
    render_lines(&render, NULL, "");
    render_array_end(&render);
    CU_ASSERT_STRING_EQUAL(
        text.data, "[{\"a\":\"b\\u0009c\",\"empty\":\"\",\"\\\"q\":\"\\\\\",\"last\":\"no line feed\"},{}]");
}

/* A stream empties the text after each part, but the arena only at the end. */
static void test_lines_take_no_memory_beside_the_text(void)
{
    struct text text;
    struct render render;
    fresh();
    text_init(&text, arena);
    render_init(&render, &text);
    render_lines(&render, NULL, "customer\t4711\ncampaign\tspring\n");
    size_t used_bytes = arena_used_bytes(arena);
    for (int i = 0; i < 1000; i++) {
        text.length = 0;
        render_lines(&render, NULL, "customer\t4711\ncampaign\tspring\n");
    }
    CU_ASSERT_EQUAL(arena_used_bytes(arena), used_bytes);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"rendered bytes are UTF-8", test_rendered_bytes_are_utf8},
        {"rendered JSON reads back", test_rendered_json_reads_back},
        {"lines are an object of strings", test_lines_are_an_object_of_strings},
        {"lines take no memory beside the text", test_lines_take_no_memory_beside_the_text},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("render", tests);
}
