/* SigV4 against the examples of the Amazon S3 API reference. */
#include <string.h>

#include <CUnit/CUnit.h>

#include "base/text.h"
#include "runner.h"
#include "service/net/sigv4.h"

static const char empty_sha256[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
static const int64_t time_ms = INT64_C(1369353600000); /* 2013-05-24T00:00:00Z */

static struct sigv4 *key_of_examples(void)
{
    return sigv4_new("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "us-east-1");
}

/* The examples have all fields of the header in one line and end with the signature. */
static void signature_expect(const struct sigv4_request *request, const char *signature)
{
    struct arena *arena = arena_new(0);
    struct sigv4 *sigv4 = key_of_examples();
    /* The second request reuses the key of the day. */
    for (int i = 0; i < 2; i++) {
        const char *text = sigv4_authorization(sigv4, arena, request);
        const char *found = strstr(text, "Signature=");
        CU_ASSERT_PTR_NOT_NULL_FATAL(found);
        CU_ASSERT_STRING_EQUAL(found + strlen("Signature="), signature);
    }
    sigv4_free(sigv4);
    arena_free(arena);
}

static void test_get_object(void)
{
    static const struct sigv4_pair headers[] = {{"range", "bytes=0-9"}};
    const struct sigv4_request request = {.method = "GET",
                                          .host = "examplebucket.s3.amazonaws.com",
                                          .path = "/test.txt",
                                          .headers = headers,
                                          .header_count = 1,
                                          .payload_sha256 = empty_sha256,
                                          .time_ms = time_ms};
    signature_expect(&request, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

static void test_put_object(void)
{
    static const struct sigv4_pair headers[] = {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
                                                {"x-amz-storage-class", "REDUCED_REDUNDANCY"}};
    const struct sigv4_request request = {
        .method = "PUT",
        .host = "examplebucket.s3.amazonaws.com",
        .path = "/test%24file.text",
        .headers = headers,
        .header_count = 2,
        .payload_sha256 = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
        .time_ms = time_ms};
    signature_expect(&request, "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

static void test_bucket_lifecycle(void)
{
    static const struct sigv4_pair query[] = {{"lifecycle", ""}};
    const struct sigv4_request request = {.method = "GET",
                                          .host = "examplebucket.s3.amazonaws.com",
                                          .path = "/",
                                          .query = query,
                                          .query_count = 1,
                                          .payload_sha256 = empty_sha256,
                                          .time_ms = time_ms};
    signature_expect(&request, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
}

static void test_list_objects(void)
{
    static const struct sigv4_pair query[] = {{"prefix", "J"}, {"max-keys", "2"}};
    const struct sigv4_request request = {.method = "GET",
                                          .host = "examplebucket.s3.amazonaws.com",
                                          .path = "/",
                                          .query = query,
                                          .query_count = 2,
                                          .payload_sha256 = empty_sha256,
                                          .time_ms = time_ms};
    signature_expect(&request, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

static void test_presigned_url(void)
{
    const struct sigv4_request request = {
        .method = "GET", .host = "examplebucket.s3.amazonaws.com", .path = "/test.txt", .time_ms = time_ms};
    struct arena *arena = arena_new(0);
    struct sigv4 *sigv4 = key_of_examples();
    CU_ASSERT_STRING_EQUAL(
        sigv4_presigned_query(sigv4, arena, &request, 86400),
        "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%"
        "2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-"
        "Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404");
    sigv4_free(sigv4);
    arena_free(arena);
}

/* The signing key changes with the day, and names are encoded by RFC 3986. */
static void test_query_and_day(void)
{
    static const struct sigv4_pair query[] = {{"b", "\xC3\xA4 *'"}, {"a", "x/y=~"}};
    struct arena *arena = arena_new(0);
    struct sigv4 *sigv4 = key_of_examples(), *fresh = key_of_examples();
    struct sigv4_request request = {.method = "GET",
                                    .host = "examplebucket.s3.amazonaws.com",
                                    .path = "/",
                                    .payload_sha256 = empty_sha256,
                                    .time_ms = time_ms};
    CU_ASSERT_STRING_EQUAL(sigv4_query(arena, query, 2), "a=x%2Fy%3D~&b=%C3%A4%20%2A%27");
    CU_ASSERT_STRING_EQUAL(sigv4_query(arena, NULL, 0), "");
    const char *first = sigv4_authorization(sigv4, arena, &request);
    request.time_ms += 86400000;
    const char *second = sigv4_authorization(sigv4, arena, &request);
    CU_ASSERT_STRING_NOT_EQUAL(first, second);
    CU_ASSERT_STRING_EQUAL(second, sigv4_authorization(fresh, arena, &request));
    sigv4_free(sigv4);
    sigv4_free(fresh);
    arena_free(arena);
}

int main(void)
{
    static CU_TestInfo tests[] = {{"get object", test_get_object},
                                  {"put object", test_put_object},
                                  {"bucket lifecycle", test_bucket_lifecycle},
                                  {"list objects", test_list_objects},
                                  {"presigned URL", test_presigned_url},
                                  {"query and day", test_query_and_day},
                                  CU_TEST_INFO_NULL};
    return runner_run("sigv4", tests);
}
