/* Content codings: decoding, wrong labels, limits. */
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "service/decode.h"
#include "runner.h"

enum { room_bytes = 4 * 1024 * 1024, gzip_bits = 31, zlib_bits = 15, raw_bits = -15 };

static unsigned char photo[40000];
static unsigned char out[room_bytes];
static size_t out_size;
static size_t out_most; /* the sink stops after this many bytes; 0: no limit */

static bool sink(void *user, const void *bytes, size_t size)
{
    CU_ASSERT_PTR_EQUAL(user, photo);
    CU_ASSERT_FATAL(out_size + size <= sizeof out);
    memcpy(out + out_size, bytes, size);
    out_size += size;
    return out_most == 0 || out_size <= out_most;
}

/* The beginning of a JPEG, then random bytes, which compress badly. */
static void photo_make(void)
{
    srand(45);
    for (size_t i = 0; i < sizeof photo; i++)
        photo[i] = (unsigned char)rand();
    memcpy(photo, "\xFF\xD8\xFF\xE0", 4);
}

/* Encodes with zlib; the caller frees the result. */
static unsigned char *encoded(const unsigned char *bytes, size_t size, int bits, size_t *made)
{
    z_stream zlib = {0};
    CU_ASSERT_EQUAL_FATAL(deflateInit2(&zlib, 9, Z_DEFLATED, bits, 9, Z_DEFAULT_STRATEGY), Z_OK);
    size_t room = deflateBound(&zlib, size) + 64;
    unsigned char *to = malloc(room);
    zlib.next_in = (unsigned char *)(uintptr_t)bytes;
    zlib.avail_in = (unsigned)size;
    zlib.next_out = to;
    zlib.avail_out = (unsigned)room;
    CU_ASSERT_EQUAL_FATAL(deflate(&zlib, Z_FINISH), Z_STREAM_END);
    *made = zlib.total_out;
    deflateEnd(&zlib);
    return to;
}

/* Decodes a body in pieces of step bytes; 0: in one piece. */
static enum decode_end decoded(const char *codings, int64_t most, const unsigned char *bytes, size_t size,
                               size_t step)
{
    struct decode *decode = decode_new(codings, most, sink, photo);
    enum decode_end end = DECODE_GOES_ON;
    CU_ASSERT_PTR_NOT_NULL_FATAL(decode);
    out_size = 0;
    for (size_t at = 0; at < size && end == DECODE_GOES_ON; at += step) {
        step = step == 0 || step > size - at ? size - at : step;
        end = decode_add(decode, bytes + at, step);
    }
    if (end == DECODE_GOES_ON)
        end = decode_finish(decode);
    decode_free(decode);
    return end;
}

static bool is_photo(void)
{
    return out_size == sizeof photo && memcmp(out, photo, sizeof photo) == 0;
}

/* ---- tests ---- */

static void test_each_coding_is_decoded(void)
{
    static const struct {
        const char *codings;
        int bits;
    } kinds[] = {{"gzip", gzip_bits},    {"GZip", gzip_bits},     {"x-gzip", gzip_bits},
                 {"deflate", zlib_bits}, {"deflate", raw_bits},   {"identity, gzip", gzip_bits},
                 {" gzip ,", gzip_bits}, {"gzip,none", gzip_bits}};
    static const size_t steps[] = {0, 1, 7, 4096};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        for (size_t k = 0; k < sizeof steps / sizeof steps[0]; k++) {
            size_t size;
            unsigned char *body = encoded(photo, sizeof photo, kinds[i].bits, &size);
            CU_ASSERT_EQUAL(decoded(kinds[i].codings, sizeof photo, body, size, steps[k]), DECODE_GOES_ON);
            CU_ASSERT(is_photo());
            free(body);
        }
}

static void test_brotli_is_decoded(void)
{
    static const unsigned char hello[] = "\x0B\x02\x80hello\x03";
    CU_ASSERT_EQUAL(decoded("br", 100, hello, sizeof hello - 1, 0), DECODE_GOES_ON);
    CU_ASSERT(out_size == 5 && memcmp(out, "hello", 5) == 0);
    CU_ASSERT_EQUAL(decoded("br", 100, hello, sizeof hello - 1, 1), DECODE_GOES_ON);
    CU_ASSERT(out_size == 5 && memcmp(out, "hello", 5) == 0);
    CU_ASSERT_EQUAL(decoded("br", 100, hello, sizeof hello - 2, 0), DECODE_BROKEN);
}

static void test_twice_encoded_is_twice_decoded(void)
{
    size_t once_size, twice_size;
    unsigned char *once = encoded(photo, sizeof photo, zlib_bits, &once_size);
    unsigned char *twice = encoded(once, once_size, gzip_bits, &twice_size);
    CU_ASSERT_EQUAL(decoded("deflate, gzip", sizeof photo, twice, twice_size, 0), DECODE_GOES_ON);
    CU_ASSERT(is_photo());
    CU_ASSERT_EQUAL(decoded("deflate,gzip", sizeof photo, twice, twice_size, 3), DECODE_GOES_ON);
    CU_ASSERT(is_photo());
    free(once);
    free(twice);
}

static void test_a_wrong_label_does_no_harm(void)
{
    static const char *const labels[] = {
        "gzip",        "deflate", "br",     "gzip, gzip", "br, deflate, gzip",
        "aws-chunked", "utf-8",   "binary", "",           "aws-chunked, gzip"};
    size_t size;
    unsigned char *once = encoded(photo, sizeof photo, gzip_bits, &size);
    for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++) {
        CU_ASSERT_EQUAL(decoded(labels[i], sizeof photo, photo, sizeof photo, 1000), DECODE_GOES_ON);
        CU_ASSERT(is_photo());
    }
    CU_ASSERT_EQUAL(decoded("gzip, gzip", sizeof photo, once, size, 0), DECODE_GOES_ON);
    CU_ASSERT(is_photo());
    CU_ASSERT_EQUAL(decoded("gzip", 100, (const unsigned char *)"hello", 5, 2), DECODE_GOES_ON);
    CU_ASSERT(out_size == 5 && memcmp(out, "hello", 5) == 0);
    free(once);
}

static void test_unknown_codings_are_reported(void)
{
    static const struct {
        const char *codings;
        bool is_unknown;
    } kinds[] = {{"gzip", false}, {"identity", false}, {"", false}, {"zstd", true}, {"gzip, compress", true}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct decode *decode = decode_new(kinds[i].codings, 100, sink, photo);
        CU_ASSERT_EQUAL(decode_is_unknown(decode), kinds[i].is_unknown);
        decode_free(decode);
    }
}

static void test_cut_off_and_damaged_bodies_are_broken(void)
{
    static const struct {
        const char *codings;
        int bits;
    } kinds[] = {{"gzip", gzip_bits}, {"deflate", zlib_bits}, {"deflate", raw_bits}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t size;
        unsigned char *body = encoded(photo, sizeof photo, kinds[i].bits, &size);
        CU_ASSERT_EQUAL(decoded(kinds[i].codings, sizeof photo, body, size / 2, 0), DECODE_BROKEN);
        CU_ASSERT_EQUAL(decoded(kinds[i].codings, sizeof photo, body, size - 1, 0), DECODE_BROKEN);
        body[2] ^= 0xFF; /* gzip: the method; otherwise the type of the first block */
        CU_ASSERT_EQUAL(decoded(kinds[i].codings, sizeof photo, body, size, 0), DECODE_BROKEN);
        free(body);
    }
    CU_ASSERT_EQUAL(decoded("br", 100, (const unsigned char *)"<html>no picture</html>", 23, 0),
                    DECODE_BROKEN);
    CU_ASSERT_EQUAL(decoded("gzip", 100, photo, 0, 0), DECODE_GOES_ON);
    CU_ASSERT_EQUAL(out_size, 0);
}

static void test_gzip_of_several_members_is_one_file(void)
{
    size_t first_size, last_size, half = sizeof photo / 2;
    unsigned char *first = encoded(photo, half, gzip_bits, &first_size);
    unsigned char *last = encoded(photo + half, sizeof photo - half, gzip_bits, &last_size);
    unsigned char *both = calloc(1, first_size + last_size + 512);
    memcpy(both, first, first_size);
    memcpy(both + first_size, last, last_size);
    for (size_t step = 0; step < 3; step++) {
        CU_ASSERT_EQUAL(
            decoded("gzip", sizeof photo, both, first_size + last_size + (step == 2 ? 512 : 0), step),
            DECODE_GOES_ON);
        CU_ASSERT(is_photo());
    }
    free(first);
    free(last);
    free(both);
}

static void test_the_limit_counts_decoded_bytes(void)
{
    size_t size;
    unsigned char *body = encoded(photo, sizeof photo, gzip_bits, &size);
    CU_ASSERT_EQUAL(decoded("gzip", sizeof photo - 1, body, size, 0), DECODE_TOO_LARGE);
    CU_ASSERT(out_size < sizeof photo);
    CU_ASSERT_EQUAL(decoded("", sizeof photo - 1, photo, sizeof photo, 1000), DECODE_TOO_LARGE);
    CU_ASSERT(out_size < sizeof photo);
    out_most = 100;
    CU_ASSERT_EQUAL(decoded("gzip", sizeof photo, body, size, 0), DECODE_STOPPED);
    out_most = 0;
    free(body);
}

static void test_a_bomb_comes_to_no_more_than_the_limit(void)
{
    size_t plain_size = 64 * 1024 * 1024, once_size, twice_size;
    unsigned char *plain = calloc(1, plain_size);
    unsigned char *once = encoded(plain, plain_size, gzip_bits, &once_size);
    unsigned char *twice = encoded(once, once_size, gzip_bits, &twice_size);
    CU_ASSERT(twice_size < 1000);
    CU_ASSERT_EQUAL(decoded("gzip", 1000000, once, once_size, 0), DECODE_TOO_LARGE);
    CU_ASSERT(out_size <= 1000000);
    CU_ASSERT_EQUAL(decoded("gzip, gzip", 1000000, twice, twice_size, 0), DECODE_TOO_LARGE);
    CU_ASSERT(out_size <= 1000000);
    free(plain);
    free(once);
    free(twice);
}

/*
 * Empty stored blocks: the layer between is huge but decodes to nothing, so the sink's limit
 * does not apply.
 */
static void test_a_bomb_that_comes_to_nothing_is_bounded_too(void)
{
    size_t size = 64 * 1024 * 1024 / 5 * 5, bomb_size;
    unsigned char *empty = malloc(size);
    memcpy(empty, "\x1F\x8B\x08\0\0\0\0\0\0\x03", 10);
    for (size_t at = 10; at + 5 <= size; at += 5)
        memcpy(empty + at, "\0\0\0\xFF\xFF", 5);
    unsigned char *bomb = encoded(empty, size, gzip_bits, &bomb_size);
    CU_ASSERT(bomb_size < 200000);
    CU_ASSERT_EQUAL(decoded("gzip, gzip", 1000000, bomb, bomb_size, 0), DECODE_TOO_LARGE);
    CU_ASSERT_EQUAL(decoded("gzip", 1000000, empty, size, 0), DECODE_TOO_LARGE);
    CU_ASSERT_EQUAL(out_size, 0);
    free(empty);
    free(bomb);
}

static void test_layers_are_counted(void)
{
    CU_ASSERT_PTR_NULL(decode_new("gzip,gzip,gzip,gzip,gzip,gzip", 100, sink, photo));
    CU_ASSERT_PTR_NULL(decode_new("br, gzip, br", 100, sink, photo));
    struct decode *decode = decode_new("gzip,gzip,gzip,deflate,br,identity,utf-8", 100, sink, photo);
    CU_ASSERT_PTR_NOT_NULL(decode);
    decode_free(decode);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"each coding is decoded", test_each_coding_is_decoded},
        {"brotli is decoded", test_brotli_is_decoded},
        {"twice encoded is twice decoded", test_twice_encoded_is_twice_decoded},
        {"a wrong label does no harm", test_a_wrong_label_does_no_harm},
        {"unknown codings are reported", test_unknown_codings_are_reported},
        {"cut off and damaged bodies are broken", test_cut_off_and_damaged_bodies_are_broken},
        {"gzip of several members is one file", test_gzip_of_several_members_is_one_file},
        {"the limit counts decoded bytes", test_the_limit_counts_decoded_bytes},
        {"a bomb comes to no more than the limit", test_a_bomb_comes_to_no_more_than_the_limit},
        {"a bomb that comes to nothing is bounded too", test_a_bomb_that_comes_to_nothing_is_bounded_too},
        {"layers are counted", test_layers_are_counted},
        CU_TEST_INFO_NULL,
    };
    photo_make();
    return runner_run("decode", tests);
}
