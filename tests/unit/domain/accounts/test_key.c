/* API keys: format, base 62, digest, prefix. */
#include "domain/accounts/key.h"
#include "runner.h"

#include <stdlib.h>
#include <string.h>

static void zero_and_one(void)
{
    uint8_t bytes[32] = {0};
    char key[key_size];
    key_from_bytes(bytes, key);
    CU_ASSERT_STRING_EQUAL(key, "iw_live_0000000000000000000000000000000000000000000");
    bytes[31] = 1;
    key_from_bytes(bytes, key);
    CU_ASSERT_STRING_EQUAL(key, "iw_live_0000000000000000000000000000000000000000001");
    bytes[31] = 62;
    key_from_bytes(bytes, key);
    CU_ASSERT_STRING_EQUAL(key, "iw_live_0000000000000000000000000000000000000000010");
}

/* 2^256 - 1 fits in 43 digits; the text was computed with Python. */
static void the_largest(void)
{
    uint8_t bytes[32];
    char key[key_size];
    memset(bytes, 0xFF, sizeof bytes);
    key_from_bytes(bytes, key);
    CU_ASSERT_STRING_EQUAL(key, "iw_live_yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp1");
}

static void made_keys_differ_and_are_well_formed(void)
{
    char first[key_size], second[key_size];
    for (int i = 0; i < 1000; i++) {
        key_make(first);
        key_make(second);
        CU_ASSERT_TRUE(key_is_well_formed(first, strlen(first)));
        CU_ASSERT_STRING_NOT_EQUAL(first, second);
    }
}

static void malformed_keys(void)
{
    static const char *const bad[] = {
        "",
        "iw_live_",
        "iw_test_0000000000000000000000000000000000000000000",
        "iw_live_000000000000000000000000000000000000000000",
        "iw_live_00000000000000000000000000000000000000000000",
        "iw_live_000000000000000000000000000000000000000000-",
        "IW_LIVE_0000000000000000000000000000000000000000000",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CU_ASSERT_FALSE(key_is_well_formed(bad[i], strlen(bad[i])));
    char holed[key_size];
    key_make(holed);
    holed[20] = '\0';
    CU_ASSERT_FALSE(key_is_well_formed(holed, key_length));
}

static void prefix_is_the_beginning(void)
{
    char key[key_size], prefix[key_prefix_size];
    key_make(key);
    key_prefix(key, prefix);
    CU_ASSERT_EQUAL(strlen(prefix), key_prefix_length);
    CU_ASSERT_EQUAL(strncmp(key, prefix, key_prefix_length), 0);
}

/* The expected bytes are the first of the SHA-256 of the key with value zero, from sha256sum. */
static void digest_is_of_the_whole_key(void)
{
    static const uint8_t expected[4] = {0x91, 0x12, 0xD3, 0x18};
    uint8_t bytes[32] = {0}, digest[32];
    char key[key_size];
    key_from_bytes(bytes, key);
    key_digest(key, digest);
    CU_ASSERT_EQUAL(memcmp(digest, expected, sizeof expected), 0);
}

/* The message says why a text is not a key, and does not quote the text. */
static void reasons_why_a_text_is_no_key(void)
{
    static const struct {
        const char *text;
        const char *fault;
    } rows[] = {
        {"iw_live_0000000000000000000000000000000000000000000", NULL},
        {"iw_live_00000000000000000000000000000000000000000", "the key has 49 characters"},
        {"", "the key has 0 characters"},
        {"\"iw_live_0000000000000000000000000000000000000000000\"",
         "the key is in quotation marks or brackets"},
        {"\xe2\x80\x9ciw_live_0000000000000000000000000000000000000000000\xe2\x80\x9d",
         "the key is in quotation marks or brackets"},
        {"iw_live_0,iw_live_0", "there are two keys; one is needed"},
        {"iw_live_0 x", "the key has spaces or control characters"},
        {"iw_test_0000000000000000000000000000000000000000000", "the key does not begin with iw_live_"},
        {"iw_live_000000000000000000000000000000000000000000-",
         "the key has a character that is neither a letter nor a digit"},
    };
    struct arena *arena = arena_new(0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *fault = key_form_fault(arena, rows[i].text);
        CU_ASSERT(rows[i].fault == NULL ? fault == NULL : fault != NULL && strcmp(fault, rows[i].fault) == 0);
    }
    arena_free(arena);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"zero and one", zero_and_one},
        {"the largest", the_largest},
        {"made keys differ and are well formed", made_keys_differ_and_are_well_formed},
        {"malformed keys", malformed_keys},
        {"the prefix is the beginning", prefix_is_the_beginning},
        {"the digest is of the whole key", digest_is_of_the_whole_key},
        {"reasons why a text is no key", reasons_why_a_text_is_no_key},
        CU_TEST_INFO_NULL,
    };
    return runner_run("key", tests);
}
