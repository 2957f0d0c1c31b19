/* Fields of JSON bodies: accepted values, refused values, and the field names in errors. */
#include <stdlib.h>
#include <string.h>

#include "api/field.h"
#include "model/format.h"
#include "runner.h"

static struct arena *arena;
static struct context context;
static struct field_scope place;

/* Parses a body in which single quotes stand for double quotes. */
static const struct field_scope *at(const char *text)
{
    const struct json *json = NULL;
    arena_reset(arena);
    context_init(&context, arena, NULL);
    char *body = arena_text(arena, text);
    for (char *quote = body; (quote = strchr(quote, '\'')) != NULL;)
        *quote = '"';
    CU_ASSERT_EQUAL_FATAL(json_read(&context, body, strlen(body), &json), IW_OK);
    place = (struct field_scope){&context, json, "files[3]."};
    return &place;
}

static const char *bad(void)
{
    return context.details != NULL ? context.details->field : "";
}

static void test_strings_count_code_points(void)
{
    CU_ASSERT_PTR_NOT_NULL(field_string(at("{'a':'\xC3\xBC\xC3\xBC'}"), "a", true, 1, 2));
    CU_ASSERT_PTR_NULL(field_string(at("{'a':'xyz'}"), "a", true, 1, 2));
    CU_ASSERT_STRING_EQUAL(bad(), "files[3].a");
    CU_ASSERT_PTR_NULL(field_string(at("{'a':''}"), "a", false, 1, 2));
    CU_ASSERT_EQUAL(context.detail_count, 1);
}

static void test_null_counts_as_absent(void)
{
    CU_ASSERT_PTR_NULL(field_string(at("{'a':null}"), "a", false, 1, 2));
    CU_ASSERT_EQUAL(context.detail_count, 0);
    CU_ASSERT_PTR_NULL(field_string(at("{'a':null}"), "a", true, 1, 2));
    CU_ASSERT_EQUAL(context.detail_count, 1);
    CU_ASSERT(field_boolean(at("{'a':null}"), "a", true));
    CU_ASSERT_EQUAL(context.detail_count, 0);
}

static void test_wrong_types_are_named(void)
{
    static const char *const values[] = {"{'a':1}", "{'a':true}", "{'a':[]}", "{'a':{}}", "{'a':1.5}"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        CU_ASSERT_PTR_NULL(field_string(at(values[i]), "a", false, 0, 9));
        CU_ASSERT_STRING_EQUAL(bad(), "files[3].a");
    }
    CU_ASSERT(!field_boolean(at("{'a':'true'}"), "a", false));
    CU_ASSERT_EQUAL(context.detail_count, 1);
}

static void test_control_characters_are_refused(void)
{
    static const char *const values[] = {"{'a':'x\\u0000'}", "{'a':'\\n'}", "{'a':'\\u007f'}",
                                         "{'a':'\\u0085'}"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        CU_ASSERT_PTR_NULL(field_string(at(values[i]), "a", true, 0, 9));
}

static const unsigned formats = 1U << FORMAT_JPEG | 1U << FORMAT_PNG | 1U << FORMAT_WEBP;

static void test_file_names(void)
{
    static const char *const good[] = {"a.jpg", "A.JPEG", "..png", " .webp", "a.b.PNG", "a b.jpg"};
    static const char *const wrong[] = {"",        ".jpg",     "jpg",      "a.gif",        "a",
                                        "a.jpg ",  "a/b.jpg",  "\\\\.jpg", "a\\u0000.jpg", "a.jpg\\u0000",
                                        "\\t.jpg", "a.jpg.gz", "a."};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        CU_ASSERT_PTR_NOT_NULL(field_file_name(at(arena_printf(arena, "{'n':'%s'}", good[i])), "n", formats));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CU_ASSERT_PTR_NULL(field_file_name(at(arena_printf(arena, "{'n':'%s'}", wrong[i])), "n", formats));
        CU_ASSERT_STRING_EQUAL(bad(), "files[3].n");
    }
}

static void test_a_file_name_has_at_most_255_bytes(void)
{
    char name[300];
    memset(name, 'x', sizeof name);
    memcpy(name + 251, ".jpg", 5);
    CU_ASSERT_PTR_NOT_NULL(field_file_name(at(arena_printf(arena, "{'n':'%s'}", name)), "n", formats));
    memcpy(name + 251, "x.jpg", 6);
    CU_ASSERT_PTR_NULL(field_file_name(at(arena_printf(arena, "{'n':'%s'}", name)), "n", formats));
}

static void test_order_ids_are_decimal_strings(void)
{
    CU_ASSERT_EQUAL(field_order_id(at("{'o':'9223372036854775807'}"), "o"), INT64_MAX);
    static const char *const wrong[] = {"{'o':1}", "{'o':''}", "{}", "{'o':[]}"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CU_ASSERT_EQUAL(field_order_id(at(wrong[i]), "o"), 0);
        CU_ASSERT_EQUAL(context.detail_count, 1);
    }
    /* Such a text is an unknown order id, not an invalid field. */
    static const char *const unknown[] = {"{'o':'0'}",  "{'o':'-1'}",       "{'o':'01'}",
                                          "{'o':' 1'}", "{'o':'1\\u0000'}", "{'o':'9223372036854775808'}"};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        CU_ASSERT_EQUAL(field_order_id(at(unknown[i]), "o"), 0);
        CU_ASSERT_EQUAL(context.detail_count, 0);
    }
}

/* PHP writes an object without members as an empty array. */
static void test_an_empty_array_counts_as_an_object(void)
{
    struct field_scope inner;
    CU_ASSERT_TRUE(field_object(at("{'o':[]}"), "o", false, &inner));
    CU_ASSERT_PTR_NULL(json_member(inner.object, "x"));
    CU_ASSERT_STRING_EQUAL(inner.prefix, "files[3].o.");
    CU_ASSERT_EQUAL(context.detail_count, 0);
    CU_ASSERT_FALSE(field_object(at("{'o':[1]}"), "o", false, &inner));
    CU_ASSERT_EQUAL(context.detail_count, 1);
    CU_ASSERT_FALSE(field_object(at("{}"), "o", false, &inner));
    CU_ASSERT_EQUAL(context.detail_count, 0);
    CU_ASSERT_FALSE(field_object(at("{'o':[]}"), "o", true, &inner));
    CU_ASSERT_EQUAL(context.detail_count, 1);
    CU_ASSERT_FALSE(field_object(at("{}"), "o", true, &inner));
    CU_ASSERT_EQUAL(context.detail_count, 1);
}

static void test_arrays_have_bounds(void)
{
    CU_ASSERT_PTR_NOT_NULL(field_array(at("{'a':[1,2]}"), "a", true, 1, 2));
    CU_ASSERT_PTR_NULL(field_array(at("{'a':[]}"), "a", true, 1, 2));
    CU_ASSERT_PTR_NULL(field_array(at("{'a':[1,2,3]}"), "a", true, 1, 2));
    CU_ASSERT_PTR_NULL(field_array(at("{'a':{}}"), "a", false, 0, 2));
    CU_ASSERT_EQUAL(context.detail_count, 1);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"strings count code points", test_strings_count_code_points},
        {"null counts as absent", test_null_counts_as_absent},
        {"wrong types are named", test_wrong_types_are_named},
        {"control characters are refused", test_control_characters_are_refused},
        {"file names", test_file_names},
        {"a file name has at most 255 bytes", test_a_file_name_has_at_most_255_bytes},
        {"order ids are decimal strings", test_order_ids_are_decimal_strings},
        {"an empty array counts as an object", test_an_empty_array_counts_as_an_object},
        {"arrays have bounds", test_arrays_have_bounds},
        CU_TEST_INFO_NULL,
    };
    arena = arena_new(0);
    int code = runner_run("field", tests);
    arena_free(arena);
    return code;
}
