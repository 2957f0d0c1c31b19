/* The reason and the values of a message. */
#include <string.h>

#include "base/message.h"
#include "base/text.h"
#include "fixture.h"

static const struct {
    const char *reason;
    const char *parameters;
    const char *template;
} messages[] = {
#define MESSAGE_ROW(reason, parameters, template) {#reason, parameters, template},
    MESSAGES(MESSAGE_ROW)
#undef MESSAGE_ROW
};

static const char *rendered(const char *message)
{
    struct text text;
    struct render render;
    text_init(&text, context.arena);
    render_init(&render, &text);
    message_render(&render, message);
    return arena_text_n(context.arena, text.data, text.length);
}

/* Fills the template: 12 for each integer, "a.b: c" for each other value. Returns the number of values. */
static unsigned filled(const char *template, struct text *text)
{
    unsigned count = 0;
    for (const char *at = template; *at != '\0'; at++) {
        if (*at != '%' || *++at == '%') {
            text_add(text, at, 1);
            continue;
        }
        at += strcspn(at, "diufs");
        text_add_string(text, *at == 's' || *at == 'f' ? "a.b: c" : "12");
        count++;
    }
    text_add(text, "", 1);
    return count;
}

static unsigned words_of(const char *names)
{
    unsigned count = *names != '\0';
    for (; *names != '\0'; names++)
        count += *names == ' ';
    return count;
}

static void test_each_template_is_found_again(void)
{
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++) {
        struct text text;
        fresh();
        text_init(&text, context.arena);
        CU_ASSERT_EQUAL(filled(messages[i].template, &text), words_of(messages[i].parameters));
        const char *start = arena_printf(context.arena, "\"reason\":\"%s\",", messages[i].reason);
        CU_ASSERT_NSTRING_EQUAL(rendered(text.data), start, strlen(start));
    }
}

static void test_values_have_names(void)
{
    fresh();
    CU_ASSERT_STRING_EQUAL(rendered("has 0 characters; 1 to 255 are allowed"),
                           "\"reason\":\"length\",\"params\":{\"actual\":0,\"least\":1,\"most\":255}");
    CU_ASSERT_STRING_EQUAL(rendered("ends in .gif; it must end in jpg, png or webp"),
                           "\"reason\":\"file_name_ending\",\"params\":{\"actual\":\".gif\","
                           "\"formats\":\"jpg, png or webp\"}");
    CU_ASSERT_STRING_EQUAL(rendered("is \"x\"; it must be one of a, all"),
                           "\"reason\":\"wrong_value\",\"params\":{\"actual\":\"\\\"x\\\"\","
                           "\"expected\":\"one of a, all\"}");
}

static void test_periods_of_values_and_sentences_differ(void)
{
    fresh();
    CU_ASSERT_STRING_EQUAL(
        rendered("Their location was https://cai.example.com/m/1.c2pa."),
        "\"reason\":\"credentials_place\",\"params\":{\"url\":\"https://cai.example.com/m/1.c2pa\"}");
    CU_ASSERT_STRING_EQUAL(
        rendered("has no extension; it must end in .jpg, .jpeg, .png or .webp."),
        "\"reason\":\"file_name_plain\",\"params\":{\"formats\":\".jpg, .jpeg, .png or .webp\"}");
    CU_ASSERT_STRING_EQUAL(rendered("The result has 12 bytes, more than 3 times the file's x; scale the"
                                    " picture down."),
                           "");
}

static void test_a_label_may_precede(void)
{
    fresh();
    CU_ASSERT_STRING_EQUAL(rendered("my: leak.png: The file is empty: it has 0 bytes. Send the whole file."),
                           "\"reason\":\"file_empty\",\"params\":{\"label\":\"my: leak.png\"}");
}

static void test_other_messages_have_none(void)
{
    static const char *const others[] = {"", "has", "has many characters; 1 to 255 are allowed",
                                         "is requiredly so", "has 1 characters; 1 to 2 are allowedX"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        fresh();
        CU_ASSERT_STRING_EQUAL(rendered(others[i]), "");
    }
}

static void test_each_sentence_is_a_part(void)
{
    struct text text;
    struct render render;
    fresh();
    text_init(&text, context.arena);
    render_init(&render, &text);
    message_parts_render(
        &render, "The protection is weaker than strength \"high\": about 9 % of its effect is in the result."
                 " The rest would be visible, or lies beyond black and white. Unknown.");
    CU_ASSERT_STRING_EQUAL(
        arena_text_n(context.arena, text.data, text.length),
        "\"parts\":[{\"reason\":\"protection_weaker\",\"params\":{\"strength\":\"high\",\"percent\":9}},"
        "{\"reason\":\"rest_visible\",\"params\":{}}]");
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"each template is found again", test_each_template_is_found_again},
        {"values have names", test_values_have_names},
        {"periods of values and sentences differ", test_periods_of_values_and_sentences_differ},
        {"a label may precede", test_a_label_may_precede},
        {"other messages have none", test_other_messages_have_none},
        {"each sentence is a part", test_each_sentence_is_a_part},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("message", tests);
}
