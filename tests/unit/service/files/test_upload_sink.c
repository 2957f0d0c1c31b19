/* Uploads: first bytes, size, digests. */
#include <string.h>

#include "base/crypto.h"
#include "service/files/upload_sink.h"
#include "store_maker.h"

static const unsigned char png_start[] = "\x89PNG\r\n\x1a\n and so on, for a while";

static void test_intake_takes_pictures_alone(void)
{
    struct upload_sink *sink;
    struct upload_sink_facts facts;
    test_begin();
    struct storage *storage = store_of();
    size_t size = sizeof png_start - 1;
    const struct upload_limits limits = {
        .max_bytes = (int64_t)size, .formats = 1U << FORMAT_PNG, .with_md5 = true};
    CU_ASSERT_EQUAL_FATAL(upload_sink_begin(storage, &context, &key_a, &limits, &sink), IW_OK);
    for (size_t at = 0; at < size; at++) /* byte by byte, because the format needs several */
        CU_ASSERT_EQUAL(upload_sink_add(sink, &context, png_start + at, 1), IW_OK);
    CU_ASSERT_EQUAL(upload_sink_finish(sink, &context, false, &facts), IW_OK);
    CU_ASSERT_EQUAL(upload_sink_commit(sink, &context), IW_OK);
    bytes_expect(storage, &key_a, (const char *)png_start);
    uint8_t digest[32];
    crypto_sha256(png_start, size, digest);
    CU_ASSERT(facts.format == FORMAT_PNG && facts.size_bytes == (int64_t)size);
    CU_ASSERT_EQUAL(memcmp(facts.sha256, digest, sizeof digest), 0);
    storage_close(storage);
    test_end();
}

static enum iw_error upload_sink_all(struct storage *storage, const void *bytes, size_t size,
                                     int64_t max_bytes)
{
    struct upload_sink *sink;
    struct upload_sink_facts facts;
    const struct upload_limits limits = {.max_bytes = max_bytes, .formats = 1U << FORMAT_PNG};
    context_fresh();
    CU_ASSERT_EQUAL_FATAL(upload_sink_begin(storage, &context, &key_a, &limits, &sink), IW_OK);
    enum iw_error error = upload_sink_add(sink, &context, bytes, size);
    if (error == IW_OK)
        error = upload_sink_finish(sink, &context, false, &facts);
    upload_sink_abandon(sink);
    return error;
}

static void test_intake_refuses(void)
{
    test_begin();
    struct storage *storage = store_of();
    CU_ASSERT_EQUAL(upload_sink_all(storage, "GIF89a and so on and on", 23, 100), IW_UNSUPPORTED_MEDIA_TYPE);
    CU_ASSERT_STRING_EQUAL(context.sentence, "This is a GIF file. Export it as PNG and upload it again.");
    CU_ASSERT_EQUAL(upload_sink_all(storage, "", 0, 100), IW_UNSUPPORTED_MEDIA_TYPE);
    CU_ASSERT_EQUAL(upload_sink_all(storage, "\xff\xd8", 2, 100), IW_UNSUPPORTED_MEDIA_TYPE);
    CU_ASSERT_EQUAL(upload_sink_all(storage, png_start, sizeof png_start - 1, 20), IW_PAYLOAD_TOO_LARGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(context.sentence, "at most 20"));
    CU_ASSERT_EQUAL(upload_sink_all(storage, png_start, sizeof png_start - 1, 100), IW_OK);
    CU_ASSERT_EQUAL(files_count(), 0);
    storage_close(storage);
    test_end();
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"sink takes pictures alone", test_intake_takes_pictures_alone},
        {"sink refuses", test_intake_refuses},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("upload sink", tests);
}
