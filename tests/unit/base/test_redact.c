/* Bodies in logs: their start, without secrets. */
#include "base/redact.h"

#include <string.h>

#include "fixture.h"

static const char *redacted(const char *text)
{
    fresh();
    return redact(context.arena, text, strlen(text), redact_body_max);
}

static void test_secrets_are_masked(void)
{
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"{\"fileUrl\":\"https://b.example/a.jpg?X-Amz-Signature=1f\",\"n\":1}",
         "{\"fileUrl\":\"https://b.example/a.jpg?***\",\"n\":1}"},
        {"{\"url\":\"https:\\/\\/b.example\\/a?s=1\\u0026t=2\"}",
         "{\"url\":\"https:\\/\\/b.example\\/a?***\"}"},
        {"{\"url\": \"HTTP://me:word@b.example/x@y\"}", "{\"url\": \"HTTP://***@b.example/x@y\"}"},
        {"{\"text\":\"see https://b.example/?a=1 or http://c.example/?b\"}",
         "{\"text\":\"see https://b.example/?*** or http://c.example/?***\"}"},
        {"{'url':'https://b.example/?sig=1', x", "{'url':'https://b.example/?***', x"},
        {"{\"secret\":\"whsec_1\",\"updatedAt\":\"now\"}", "{\"secret\":\"***\",\"updatedAt\":\"now\"}"},
        {"{\"Password\" : \"a\\\"b\", \"next\":\"c\"}", "{\"Password\" : \"***\", \"next\":\"c\"}"},
        {"{\"token\":[\"a\"],\"b\":\"c\"}", "{\"token\":[\"***\"],\"b\":\"c\"}"},
        {"{\"headers\":{\"x-amz-server-side-encryption-customer-key\":\"k\",\"Content-Type\":\"i\"},\"a\":"
         "\"b\"}",
         "{\"headers\":{\"x-amz-server-side-encryption-customer-key\":\"***\",\"Content-Type\":\"***\"},"
         "\"a\":\"b\"}"},
        {"{\"headers\":{\"a\":{\"b\":\"c\"},\"d\":\"e\"}}",
         "{\"headers\":{\"a\":{\"b\":\"***\"},\"d\":\"***\"}}"},
        {"{\"headers\":null,\"a\":{\"b\":\"c\"}}", "{\"headers\":null,\"a\":{\"b\":\"c\"}}"},
        {"{\"secret\":\"whsec_", "{\"secret\":\"***"},
        {"{\"fileName\":\"http.jpg\",\"texts\":[\"why? so\"]}",
         "{\"fileName\":\"http.jpg\",\"texts\":[\"why? so\"]}"},
        {"", ""},
        {"https:", "https:"},
        {"\\", "\\"},
        {"\"\\", "\"\\"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CU_ASSERT_STRING_EQUAL(redacted(cases[i].text), cases[i].expected);
}

/* A cut splits neither a character nor a mask, so that no part of a secret remains. */
static void test_the_start_is_kept(void)
{
    char text[64];
    static const char long_text[] =
        "{\"a\":\"\xEA\xB9\x80\xEC\xB9\x98\",\"url\":\"https://b.example/?sig=secret\"}";
    for (size_t most = 8; most < sizeof long_text + 8; most++) {
        fresh();
        const char *copy = redact(context.arena, long_text, strlen(long_text), most);
        CU_ASSERT_TRUE(strlen(copy) <= most);
        CU_ASSERT_PTR_NULL(strstr(copy, "sig"));
        CU_ASSERT_TRUE(strstr(copy, "\xE2\x80\xA6") != NULL || copy[strlen(copy) - 1] == '}');
        CU_ASSERT_PTR_NULL(strchr(copy, '?') != NULL && strstr(copy, "/?") == NULL ? "?" : NULL);
    }
    memset(text, 'x', sizeof text);
    CU_ASSERT_STRING_EQUAL(redact(context.arena, text, 10, 10), "xxxxxxx\xE2\x80\xA6");
}

static void test_other_bytes_are_replaced(void)
{
    fresh();
    CU_ASSERT_STRING_EQUAL(redact(context.arena, "a\0b\x01\n\xFF", 6, 100), "a?b?\n?");
    CU_ASSERT_STRING_EQUAL(redacted("\xC3\xA9\t"), "\xC3\xA9\t");
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"secrets are masked", test_secrets_are_masked},
        {"the start is kept", test_the_start_is_kept},
        {"other bytes are replaced", test_other_bytes_are_replaced},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("redact", tests);
}
