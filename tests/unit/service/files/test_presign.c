/* Presigned URLs and their keys. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/config.h"
#include "service/files/presign.h"
#include "store_maker.h"

static struct config config;

static const char *keys_path(void)
{
    return arena_printf(arena, "%s/signing.keys", folder);
}

static void keys_write(const char *text, mode_t mode)
{
    FILE *file = fopen(keys_path(), "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs(text, file);
    fclose(file);
    chmod(keys_path(), mode);
}

#define HEX_A              "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define HEX_B              "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"
#define UPLOAD_SIGNATURE   "B80V9ya7nWn3GISyEq9FQDlEOSD9WK803y37hPjcbTI"
#define DOWNLOAD_SIGNATURE "lG8dy4Jt1r61ZX62ji6Ps7MdId_8E1shAZalWGu0D0M"

static struct presign *presign_of(const char *keys)
{
    struct presign *presign = NULL;
    context_fresh();
    config_init(&config);
    config.api_public_url = "https://img.example";
    if (keys != NULL)
        keys_write(keys, 0600);
    config.store_signing_keys_file = keys_path();
    CU_ASSERT_EQUAL_FATAL(presign_new(&context, &config, &presign), IW_OK);
    return presign;
}

/* Splits "https://img.example/files/KEY?QUERY" and verifies it. */
static enum iw_error url_verify(const struct presign *presign, enum presign_method method, const char *url,
                                int64_t at_ms, struct presign_grant *grant)
{
    static const char prefix[] = "https://img.example/files/";
    CU_ASSERT_EQUAL_FATAL(strncmp(url, prefix, sizeof prefix - 1), 0);
    const char *key = url + sizeof prefix - 1, *query = strchr(key, '?');
    CU_ASSERT_PTR_NOT_NULL_FATAL(query);
    context_fresh();
    const struct presign_request request = {method, arena_text_n(arena, key, (size_t)(query - key)),
                                            query + 1, at_ms};
    return presign_verify(presign, &context, &request, grant);
}

static const struct filekey upload_key = {FILEKEY_UPLOAD, 7001, 2};
static const struct filekey result_key = {FILEKEY_RESULT, 7001, 55};

/* The signature was computed with the openssl program, from the text in presign.h. */
static void test_a_url_has_the_documented_signature(void)
{
    struct presign_grant grant;
    test_begin();
    struct presign *presign = presign_of("k1:" HEX_A "\n");
    const char *url = presign_upload_url(presign, arena, &upload_key, 1900000000, 1048576);
    CU_ASSERT_STRING_EQUAL(url, "https://img.example/files/in/7001/2?e=1900000000&m=1048576&k=k1"
                                "&s=" UPLOAD_SIGNATURE);
    CU_ASSERT_EQUAL(url_verify(presign, PRESIGN_PUT, url, 1899999999999, &grant), IW_OK);
    CU_ASSERT(grant.expires_s == 1900000000 && grant.max_bytes == 1048576 && grant.key.order_id == 7001);
    url = presign_download_url(presign, arena, &result_key, 1900000000);
    CU_ASSERT_STRING_EQUAL(url,
                           "https://img.example/files/out/7001/55?e=1900000000&k=k1&s=" DOWNLOAD_SIGNATURE);
    CU_ASSERT_EQUAL(url_verify(presign, PRESIGN_GET, url, 1899999999999, &grant), IW_OK);
    CU_ASSERT_EQUAL(grant.max_bytes, 0);
    presign_free(presign);
    test_end();
}

static void test_a_url_expires_on_the_second(void)
{
    struct presign_grant grant;
    test_begin();
    struct presign *presign = presign_of("k1:" HEX_A "\n");
    const char *url = presign_download_url(presign, arena, &result_key, 1900000000);
    CU_ASSERT_EQUAL(url_verify(presign, PRESIGN_GET, url, 1899999999999, &grant), IW_OK);
    CU_ASSERT_EQUAL(url_verify(presign, PRESIGN_GET, url, 1900000000000, &grant), IW_URL_EXPIRED);
    CU_ASSERT_STRING_EQUAL(context.expired_at, "2030-03-17T17:46:40.000Z");
    int64_t before_s = clock_now_ms() / 1000;
    int64_t expiry_s = presign_expiry_s(presign, PRESIGN_PUT);
    CU_ASSERT(expiry_s >= before_s + 3600 && expiry_s <= clock_now_ms() / 1000 + 3600);
    presign_free(presign);
    test_end();
}

/* If any bit of a character after the host is flipped, the URL is refused. */
static void test_no_altered_url_is_let_through(void)
{
    struct presign_grant grant;
    test_begin();
    struct presign *presign = presign_of("k1:" HEX_A "\nk2:" HEX_B "\n");
    const char *urls[] = {presign_upload_url(presign, arena, &upload_key, 1900000000, 1048576),
                          presign_download_url(presign, arena, &result_key, 1900000000)};
    size_t start = strlen("https://img.example/files/");
    for (int i = 0; i < 2; i++)
        for (size_t at = start; urls[i][at] != '\0'; at++)
            for (int bit = 0; bit < 8; bit++) {
                char *other = arena_text(arena, urls[i]);
                other[at] = (char)(other[at] ^ 1 << bit);
                if (other[at] == '\0' || strchr(other, '?') == NULL)
                    continue;
                enum iw_error error =
                    url_verify(presign, i == 0 ? PRESIGN_PUT : PRESIGN_GET, other, 1, &grant);
                CU_ASSERT_EQUAL(error, IW_URL_SIGNATURE_INVALID);
            }
    CU_ASSERT_EQUAL(url_verify(presign, PRESIGN_GET, urls[0], 1, &grant), IW_URL_SIGNATURE_INVALID);
    CU_ASSERT_EQUAL(url_verify(presign, PRESIGN_PUT, urls[1], 1, &grant), IW_URL_SIGNATURE_INVALID);
    presign_free(presign);
    test_end();
}

static void test_parameters_stand_once_in_any_order(void)
{
    struct presign_grant grant;
    test_begin();
    struct presign *presign = presign_of("k1:" HEX_A "\n");
    const char *good = "m=1048576&s=" UPLOAD_SIGNATURE "&k=k1&e=1900000000";
    static const char *const bad[] = {"%s&",
                                      "&%s",
                                      "%s&e=1900000000",
                                      "%s&x=1",
                                      "%s&m=",
                                      "%s;x",
                                      "%s&s=",
                                      "%s=",
                                      "x%s",
                                      "%s&K=k1",
                                      "%s%%20",
                                      "",
                                      "e=1900000000",
                                      "e=1900000000&m=1048576&k=k1",
                                      "e=1900000000&m=1048576&k=k1&s="};
    struct presign_request request = {PRESIGN_PUT, "in/7001/2", good, 1};
    CU_ASSERT_EQUAL(presign_verify(presign, &context, &request, &grant), IW_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const char *place = strstr(bad[i], "%s");
        request.query = place == NULL
                            ? bad[i]
                            : arena_printf(arena, "%.*s%s%s", (int)(place - bad[i]), bad[i], good, place + 2);
        context_fresh();
        CU_ASSERT_EQUAL(presign_verify(presign, &context, &request, &grant), IW_URL_SIGNATURE_INVALID);
    }
    presign_free(presign);
    test_end();
}

static void test_keys_rotate(void)
{
    struct presign_grant grant;
    const char *id, *again;
    test_begin();
    CU_ASSERT_EQUAL(presign_keys_rotate(&context, keys_path(), 0, &id), IW_CONFIG_INVALID);
    context_fresh();
    CU_ASSERT_EQUAL(presign_keys_generate(&context, keys_path(), &id), IW_OK);
    struct stat facts;
    CU_ASSERT(stat(keys_path(), &facts) == 0 && (facts.st_mode & 0777) == 0600);
    context_fresh();
    CU_ASSERT_EQUAL(presign_keys_generate(&context, keys_path(), &again), IW_TWIN_EXISTS);
    const char *urls[3];
    for (int i = 0; i < 3; i++) {
        struct presign *presign = presign_of(NULL);
        urls[i] = presign_upload_url(presign, arena, &upload_key, 1900000000, 10);
        for (int before = 0; before <= i; before++)
            CU_ASSERT_EQUAL(url_verify(presign, PRESIGN_PUT, urls[before], 1, &grant),
                            before + 1 >= i ? IW_OK : IW_URL_SIGNATURE_INVALID);
        presign_free(presign);
        context_fresh();
        CU_ASSERT_EQUAL(presign_keys_rotate(&context, keys_path(), 0, &id), IW_OK);
    }
    CU_ASSERT_EQUAL(files_count(), 1);
    test_end();
}

/* True if URLs are signed by this key of the current key file. */
static bool signs_now(const char *id)
{
    struct presign *presign = presign_of(NULL);
    const char *url = presign_upload_url(presign, arena, &upload_key, 1900000000, 10);
    bool is_of_key = strstr(url, arena_printf(arena, "&k=%s&", id)) != NULL;
    presign_free(presign);
    return is_of_key;
}

static void test_a_key_is_accepted_before_it_signs(void)
{
    struct presign_grant grant;
    int64_t now_s = clock_now_ms() / 1000;
    test_begin();
    keys_write(arena_printf(arena, "new:" HEX_A ":%lld\nold:" HEX_B "\n", (long long)now_s + 600), 0600);
    CU_ASSERT(signs_now("old"));
    clock_offset_set_s(601); /* the clock of this process is ahead */
    struct presign *ahead = presign_of(NULL);
    const char *url = presign_download_url(ahead, arena, &result_key, 1900000000);
    CU_ASSERT(strstr(url, "&k=new&") != NULL);
    clock_offset_set_s(0);
    struct presign *behind = presign_of(NULL);
    CU_ASSERT_EQUAL(url_verify(behind, PRESIGN_GET, url, 1, &grant), IW_OK);
    keys_write(arena_printf(arena, "new:" HEX_A ":%lld\n", (long long)now_s + 600), 0600);
    CU_ASSERT(signs_now("new")); /* the only key */
    presign_free(behind);
    presign_free(ahead);
    test_end();
}

static void test_a_rotation_keeps_the_key_that_signs(void)
{
    const char *first, *waiting, *last;
    int64_t now_s = clock_now_ms() / 1000;
    test_begin();
    CU_ASSERT_EQUAL(presign_keys_generate(&context, keys_path(), &first), IW_OK);
    CU_ASSERT_EQUAL(presign_keys_rotate(&context, keys_path(), now_s + 600, &waiting), IW_OK);
    CU_ASSERT(signs_now(first));
    CU_ASSERT_EQUAL(presign_keys_rotate(&context, keys_path(), now_s + 900, &last), IW_OK);
    CU_ASSERT(signs_now(first));
    clock_offset_set_s(901);
    CU_ASSERT(signs_now(last));
    clock_offset_set_s(0);
    test_end();
}

static void test_bad_key_files_are_refused_without_telling_the_key(void)
{
    static const char *const bad[] = {"",
                                      "# nothing\n",
                                      "k1" HEX_A "\n",
                                      ":" HEX_A "\n",
                                      "k1:" HEX_A "0\n",
                                      "k1:0" HEX_A "\n",
                                      "k1:" HEX_A ":\n",
                                      "k1:" HEX_A ":soon\n",
                                      "k1:" HEX_A ":-1\n",
                                      "k1:" HEX_A ":1:1\n",
                                      "k1:" HEX_A "\nk1:" HEX_B "\n",
                                      "k 1:" HEX_A "\n",
                                      "k&1:" HEX_A "\n",
                                      "abcdefghijklmnopq:" HEX_A "\n"};
    struct presign *presign;
    test_begin();
    config_init(&config);
    config.store_signing_keys_file = keys_path();
    CU_ASSERT_EQUAL(presign_new(&context, &config, &presign), IW_CONFIG_INVALID);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        context_fresh();
        keys_write(bad[i], 0600);
        CU_ASSERT_EQUAL(presign_new(&context, &config, &presign), IW_CONFIG_INVALID);
        CU_ASSERT_PTR_NULL(strstr(context.sentence, "00112233"));
    }
    context_fresh();
    keys_write("k1:" HEX_A "\n", 0604);
    CU_ASSERT_EQUAL(presign_new(&context, &config, &presign), IW_CONFIG_INVALID);
    test_end();
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"a url has the documented signature", test_a_url_has_the_documented_signature},
        {"a url expires on the second", test_a_url_expires_on_the_second},
        {"no altered url is let through", test_no_altered_url_is_let_through},
        {"parameters stand once in any order", test_parameters_stand_once_in_any_order},
        {"keys rotate", test_keys_rotate},
        {"a key is accepted before it signs", test_a_key_is_accepted_before_it_signs},
        {"a rotation keeps the key that signs", test_a_rotation_keeps_the_key_that_signs},
        {"bad key files are refused without telling the key",
         test_bad_key_files_are_refused_without_telling_the_key},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("presigned urls", tests);
}
