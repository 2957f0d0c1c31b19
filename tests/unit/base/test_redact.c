/* Bodies in logs are cut to a start without secrets. */
#include "base/redact.h"

#include <string.h>

#include "base/text.h"
#include "fixture.h"

struct redact_case {
    const char *text, *expected;
};

static const char *redacted(const char *text)
{
    fresh();
    return redact(context.arena, text, strlen(text), redact_body_max);
}

static void test_secrets_are_masked(void)
{
    static const struct redact_case cases[] = {
        {"{\"fileUrl\":\"https://b.example/a.jpg?X-Amz-Signature=1f\",\"n\":1}",
         "{\"fileUrl\":\"https://b.example/a.jpg?***\",\"n\":1}"},
        {"{\"url\":\"https:\\/\\/b.example\\/a?s=1\\u0026t=2\"}", "{\"url\":\"https://b.example/a?***\"}"},
        {"{\"url\": \"HTTP://me:word@b.example/x@y\"}", "{\"url\":\"HTTP://***@b.example/x@y\"}"},
        {"{\"text\":\"see https://b.example/?a=1 or http://c.example/?b\"}",
         "{\"text\":\"see https://b.example/?***\"}"},
        {"{\"text\":\"see http://a:b@c.example/ or http://d:e@f.example/\"}",
         "{\"text\":\"see http://***@c.example/ or http://***@f.example/\"}"},
        {"{\"url\":\"http://h/Ada's.jpg?X-Amz-Signature=1f\"}", "{\"url\":\"http://h/Ada's.jpg?***\"}"},
        {"{\"url\":\"http://h/a.jpg?name='a'&X-Amz-Signature=1f\"}", "{\"url\":\"http://h/a.jpg?***\"}"},
        {"{\"url\":\"http://h/a<b.jpg?X-Amz-Signature=1f\"}", "{\"url\":\"http://h/a<b.jpg?***\"}"},
        {"{\"url\":\"http://h/a b.jpg?X-Amz-Signature=1f x\"}", "{\"url\":\"http://h/a b.jpg?***\"}"},
        {"{\"url\":\"h/a.jpg?X-Amz-Signature=1f\"}", "{\"url\":\"h/a.jpg?***\"}"},
        {"{\"url\":\"http://h/hook#token=1f\"}", "{\"url\":\"http://h/hook#***\"}"},
        {"{\"url\":\"ftp://u:pw@h/\"}", "{\"url\":\"ftp://***@h/\"}"},
        {"{\"url\":\"\\u0068ttp://u:pw@h/a\\u003fs=1f\"}", "{\"url\":\"http://***@h/a?***\"}"},
        {"{\"url\":\"//u:pw@h/a?s\"}", "{\"url\":\"//***@h/a?***\"}"},
        {"{\"url\":\"https:u:pw@h/a?s\"}", "{\"url\":\"https:***@h/a?***\"}"},
        {"{\"url\":\"http:\\\\u:p#w@h\\\\a?s\"}", "{\"url\":\"http:\\\\***@h\\\\a?***\"}"},
        {"{\"text\":\"at \\\"https://h/?s=1\\\" it ends\"}", "{\"text\":\"at \\\"https://h/?***\"}"},
        {"{\"https://h/?s=1\":{\"a\":\"iw_live_0aZ\"}}", "{\"https://h/?***\":{\"a\":\"***\"}}"},
        {"{\"text\":\"keys iw_live_0aZ, whsec_aZ+/09==\"}", "{\"text\":\"keys ***, ***\"}"},
        {"{\"secret\":\"whsec_1\",\"updatedAt\":\"now\"}", "{\"secret\":\"***\",\"updatedAt\":\"now\"}"},
        {"{\"Password\" : \"a\\\"b\", \"next\":\"c\"}", "{\"Password\":\"***\",\"next\":\"c\"}"},
        {"{\"password\":123456,\"a\":[1,-2,2.5,true,false,null]}",
         "{\"password\":\"***\",\"a\":[1,-2,2.5,true,false,null]}"},
        {"{\"secret\":[\"a\",{\"b\":\"c\"}],\"d\":\"e\"}",
         "{\"secret\":[\"***\",{\"b\":\"***\"}],\"d\":\"e\"}"},
        {"{\"client_secret\":\"a\",\"accessToken\":\"b\",\"X-Api-Key\":true,\"token\":null}",
         "{\"client_secret\":\"***\",\"accessToken\":\"***\",\"X-Api-Key\":\"***\",\"token\":null}"},
        {"{\"headers\":{\"x-amz-server-side-encryption-customer-key\":\"k\"},\"a\":\"b\"}",
         "{\"headers\":{\"x-amz-server-side-encryption-customer-key\":\"***\"},\"a\":\"b\"}"},
        {"{\"headers\":[{\"name\":\"A\",\"value\":\"one\"},{\"name\":\"B\",\"value\":\"Bearer two\"}]}",
         "{\"headers\":[{\"name\":\"***\",\"value\":\"***\"},{\"name\":\"***\",\"value\":\"***\"}]}"},
        {"{\"headers\":\"Authorization: Bearer two\"}", "{\"headers\":\"***\"}"},
        {"{\"headers\":null,\"a\":{\"b\":\"c\"}}", "{\"headers\":null,\"a\":{\"b\":\"c\"}}"},
        {"{\"fileName\":\"http.jpg\",\"texts\":[\"why? so\",\"#1: a\"]}",
         "{\"fileName\":\"http.jpg\",\"texts\":[\"why? so\",\"#1: a\"]}"},
        {"{\"secret\":\"whsec_", "(not kept: 17 bytes that are not valid JSON)"},
        {"{\"secret\":1,\"secret\":2}", "(not kept: 23 bytes that are not valid JSON)"},
        {"password=a", "(not kept: 10 bytes that are not valid JSON)"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CU_ASSERT_STRING_EQUAL(redacted(cases[i].text), cases[i].expected);
}

/* A receiver may answer any text. */
static void test_answers_are_masked(void)
{
    static const struct redact_case cases[] = {
        {"ok", "ok"},
        {"{\"token\":\"a\"}", "{\"token\":\"***\"}"},
        {"moved to https://h/?s=1 now", "moved to https://h/?***"},
        {"echo {\"secret\":\"a", "(not kept: 17 bytes that are not valid JSON)"},
        {"https:", "https:"},
        {"?", "?"},
        {"http://", "http://"},
        {"//", "//"},
        {"whsec_", "***"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fresh();
        CU_ASSERT_STRING_EQUAL(redact_answer(context.arena, cases[i].text, strlen(cases[i].text), 1024),
                               cases[i].expected);
    }
}

/* A cut splits neither a character nor a mask, so that no part of a secret remains. */
static void test_the_start_is_kept(void)
{
    static const char long_text[] =
        "{\"a\":\"\xEA\xB9\x80\xEC\xB9\x98\",\"url\":\"https://b.example/?sig=secret\","
        "\"texts\":[\"a\xEA\xB9\x80\xEC\xB9\x98\",\"long enough for a cut\",\"long enough\"]}";
    for (size_t most = 64; most < sizeof long_text + 8; most++) {
        fresh();
        const char *copy = redact(context.arena, long_text, strlen(long_text), most);
        CU_ASSERT_TRUE(strlen(copy) <= most && strlen(copy) + 6 >= (most < 100 ? most : 100));
        CU_ASSERT_PTR_NULL(strstr(copy, "sig"));
        CU_ASSERT_TRUE(text_is_utf8(copy, strlen(copy)));
        CU_ASSERT_TRUE(strstr(copy, "\xE2\x80\xA6") != NULL || copy[strlen(copy) - 1] == '}');
    }
}

/* A long body is read to the end, so that the start is masked as JSON. */
static void test_a_long_body_is_masked(void)
{
    struct text text;
    fresh();
    text_init(&text, context.arena);
    text_add_string(&text, "{\"secret\":\"a\",\"files\":[\"a\"");
    for (int i = 0; i < 5000; i++)
        text_add_string(&text, ",{\"name\":1}");
    text_add_string(&text, "]}");
    const char *copy = redact(context.arena, text.data, text.length, redact_body_max);
    CU_ASSERT_EQUAL(strlen(copy), redact_body_max);
    CU_ASSERT_EQUAL(strncmp(copy, "{\"secret\":\"***\",\"files\":[\"a\",{\"name\":1},", 40), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(copy, "\xE2\x80\xA6"));
    while (text.length <= redact_read_max)
        text_add_string(&text, "          ");
    CU_ASSERT_STRING_EQUAL(redact(context.arena, text.data, redact_read_max + 1, redact_body_max),
                           "(not kept: 65537 bytes; at most 65536 are read)");
}

static void test_other_bytes_are_replaced(void)
{
    fresh();
    CU_ASSERT_STRING_EQUAL(redact_answer(context.arena, "a\0b\x01\n\xFF", 6, 100), "a?b?\n?");
    CU_ASSERT_STRING_EQUAL(redact_answer(context.arena, "\xC3\xA9\t", 3, 100), "\xC3\xA9\t");
    CU_ASSERT_STRING_EQUAL(redacted("{\"a\":\"\\u0000\\u0001\"}"), "{\"a\":\"\\u0000\\u0001\"}");
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"secrets are masked", test_secrets_are_masked},
        {"answers are masked", test_answers_are_masked},
        {"a long body is masked", test_a_long_body_is_masked},
        {"the start is kept", test_the_start_is_kept},
        {"other bytes are replaced", test_other_bytes_are_replaced},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("redact", tests);
}
