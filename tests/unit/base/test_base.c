/* Tests of src/base. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/context.h"
#include "base/crypto.h"
#include "base/endpoint.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mailbox.h"
#include "base/render.h"
#include "base/text.h"
#include "base/url.h"
#include "runner.h"

static struct arena *arena;
static char ended[8];
static struct context context;

static void fresh(void)
{
    arena_reset(arena);
    context_init(&context, arena, "request-1");
}

static void letter_add(void *argument)
{
    strcat(ended, argument);
}

static void test_an_arena_ends_what_it_owns_once(void)
{
    static char first[] = "a", second[] = "b";
    struct arena *owner = arena_new(0);
    arena_at_end(owner, letter_add, first);
    arena_at_end(owner, letter_add, second);
    CU_ASSERT_STRING_EQUAL(ended, "");
    arena_reset(owner);
    CU_ASSERT_STRING_EQUAL(ended, "ba");
    arena_at_end(owner, letter_add, first);
    arena_free(owner);
    CU_ASSERT_STRING_EQUAL(ended, "baa");
}

static void test_arena_gives_zeroed_aligned_memory(void)
{
    fresh();
    for (size_t size = 0; size < 200000; size = size * 2 + 1) {
        unsigned char *memory = arena_alloc(arena, size);
        CU_ASSERT_EQUAL((uintptr_t)memory % 16, 0);
        size_t sum = 0;
        for (size_t i = 0; i < size; i++)
            sum += memory[i];
        CU_ASSERT_EQUAL(sum, 0);
        memset(memory, 0xFF, size);
    }
    arena_reset(arena);
    unsigned char *again = arena_alloc(arena, 1000);
    CU_ASSERT_EQUAL(again[0] + again[999], 0);
    CU_ASSERT_EQUAL(arena_used_bytes(arena), 1000);
}

static void test_every_error_has_a_code_a_sentence_and_a_way_back(void)
{
    for (unsigned error = 1; error < IW_ERROR_COUNT; error++) {
        CU_ASSERT_EQUAL(iw_error_by_code(iw_error_code((enum iw_error)error)), error);
        CU_ASSERT(strlen(iw_error_sentence((enum iw_error)error)) > 10);
    }
    CU_ASSERT_EQUAL(iw_error_by_code("NO_SUCH_CODE"), IW_OK);
}

static void test_the_first_error_stays(void)
{
    fresh();
    CU_ASSERT_EQUAL(context_fail(&context, IW_ORDER_NOT_FOUND, "order %d", 7), IW_ORDER_NOT_FOUND);
    CU_ASSERT_EQUAL(context_fail(&context, IW_NO_MEMORY, NULL), IW_ORDER_NOT_FOUND);
    CU_ASSERT_STRING_EQUAL(context.sentence, "order 7");
    context_clear(&context);
    CU_ASSERT_EQUAL(context_validated(&context), IW_OK);
    CU_ASSERT_STRING_EQUAL(context.request_id, "request-1");
}

static void test_validation_gathers_every_field(void)
{
    fresh();
    context_detail(&context, "files[0].fileName", "is missing");
    context_detail(&context, "files[3].fileName", "is missing");
    CU_ASSERT_EQUAL(context_validated(&context), IW_VALIDATION_FAILED);
    CU_ASSERT_EQUAL(context.detail_count, 2);
    CU_ASSERT_STRING_EQUAL(context.details->next->field, "files[3].fileName");
}

static void test_notes_are_joined_and_each_code_counts_once(void)
{
    CU_ASSERT_PTR_NULL(context_notes_text(&context));
    context_note(&context, "FIRST", "The first %d.", 1);
    context_note(&context, "SECOND", "The second.");
    context_note(&context, "FIRST", "Again.");
    context_clear(&context);
    CU_ASSERT_STRING_EQUAL(context.notes->code, "FIRST");
    CU_ASSERT_STRING_EQUAL(context_notes_text(&context), "The first 1. The second.");
}

static void test_utf8_is_checked_strictly(void)
{
    static const struct {
        const char *bytes;
        bool is_valid;
    } cases[] = {{"plain", true},
                 {"\xC3\xA4", true},
                 {"\xE2\x82\xAC", true},
                 {"\xF0\x9F\x98\x80", true},
                 {"\xC0\xAF", false},
                 {"\xE0\x80\xAF", false},
                 {"\xED\xA0\x80", false},
                 {"\xF4\x90\x80\x80", false},
                 {"\xC3", false},
                 {"\x80", false},
                 {"\xF8\x88\x80\x80\x80", false},
                 {"a\xFF", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CU_ASSERT_EQUAL(text_is_utf8(cases[i].bytes, strlen(cases[i].bytes)), cases[i].is_valid);
    CU_ASSERT_EQUAL(text_code_points("\xC3\xA4"
                                     "b\xF0\x9F\x98\x80",
                                     7),
                    3);
    CU_ASSERT(text_has_control("a\nb", 3));
    CU_ASSERT(text_has_control("\xC2\x85", 2));
    CU_ASSERT_FALSE(text_has_control("\xC2\xA0", 2));
}

static void test_integers_are_read_whole_or_not_at_all(void)
{
    int64_t value = 0;
    CU_ASSERT(text_integer("0", 0, 9, &value) && value == 0);
    CU_ASSERT(text_integer("-1", -1, 100, &value) && value == -1);
    CU_ASSERT(text_integer("9223372036854775807", 0, INT64_MAX, &value) && value == INT64_MAX);
    CU_ASSERT(text_integer("-9223372036854775808", INT64_MIN, 0, &value) && value == INT64_MIN);
    static const char *const bad[] = {"",    "-",  "01", "-0", "1 ", " 1", "+1", "1e3", "9223372036854775808",
                                      "0x1", "1.0"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CU_ASSERT_FALSE(text_integer(bad[i], INT64_MIN, INT64_MAX, &value));
    CU_ASSERT_FALSE(text_integer("101", 1, 100, &value));
}

static void test_numbers_are_printed_as_printf_does(void)
{
    fresh();
    static const int64_t numbers[] = {0, 7, -7, 10, 99, 100, -12345678901, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char digits[text_decimal_size];
        size_t length = text_decimal(numbers[i], digits);
        CU_ASSERT_STRING_EQUAL(digits, arena_printf(arena, "%lld", (long long)numbers[i]));
        CU_ASSERT_EQUAL(length, strlen(digits));
    }
}

/* Prints directly into free space, and elsewhere when the text does not fit. */
static void test_texts_are_whole_at_the_end_of_a_room(void)
{
    struct arena *small = arena_new(0);
    char *marks = memset(malloc(3000), 'm', 3000);
    marks[2999] = '\0';
    for (size_t i = 0; i < 200; i++) {
        const char *start = marks + (i * 37) % 2999;
        const char *printed = arena_printf(small, "%zu:%s", i, start);
        const char *copied = arena_text(small, start);
        char number[32];
        int length = snprintf(number, sizeof number, "%zu:", i);
        CU_ASSERT(strncmp(printed, number, (size_t)length) == 0 && strcmp(printed + length, start) == 0);
        CU_ASSERT_STRING_EQUAL(copied, start);
        const char *zeroed = arena_alloc(small, 100);
        for (size_t at = 0; at < 100; at++)
            CU_ASSERT(zeroed[at] == 0);
    }
    struct text text;
    text_init(&text, small);
    for (size_t length = 0; length < 700; length++) {
        text_clear(&text);
        text_add(&text, marks, length);
        text_printf(&text, "<%s>", "piece");
        CU_ASSERT_EQUAL(text.length, length + 7);
        CU_ASSERT_STRING_EQUAL(text.data + length, "<piece>");
        text_init(&text, small);
        text_printf(&text, "%s", marks + 2999 - length);
        CU_ASSERT_EQUAL(text.length, length);
        CU_ASSERT_EQUAL(strlen(text.data), length);
    }
    free(marks);
    arena_free(small);
}

/* Standard error goes into a pipe from log_capture() to log_captured(), which returns the bytes. */
static int captured, saved;

static void log_capture(void)
{
    int ends[2];
    saved = dup(STDERR_FILENO);
    CU_ASSERT_FATAL(saved >= 0 && pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) >= 0);
    close(ends[1]);
    captured = ends[0];
}

static const char *log_captured(void)
{
    char *line = arena_alloc(arena, 8192);
    dup2(saved, STDERR_FILENO);
    close(saved);
    CU_ASSERT_FATAL(read(captured, line, 8191) > 0);
    close(captured);
    return line;
}

static const char *logged(const char *value, int64_t number)
{
    log_capture();
    log_event(LOG_WARN, NULL, "tried", LOG_TEXT("value", value), LOG_NUMBER("number", number));
    return log_captured();
}

static void test_a_line_of_the_log_is_one_json_object(void)
{
    const struct json *json;
    fresh();
    char *large = memset(arena_alloc(arena, 5000), '\x01', 4999);
    const char *const values[] = {"", "plain", "a \"quote\" \\ and\nlines\x7F", "\xC3\xA4\xFF\xF0\x9F",
                                  large};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        const char *line = logged(values[i], INT64_MIN);
        CU_ASSERT(strchr(line, '\n') == line + strlen(line) - 1);
        CU_ASSERT_FATAL(json_read(&context, line, strlen(line), &json) == IW_OK);
        CU_ASSERT_STRING_EQUAL(json_string_of(json_member(json, "level")), "warn");
        CU_ASSERT_STRING_EQUAL(json_string_of(json_member(json, "event")), "tried");
        CU_ASSERT_EQUAL(json_integer_of(json_member(json, "number")), INT64_MIN);
        CU_ASSERT_EQUAL(json_integer_of(json_member(json, "pid")), getpid());
        /* A value that may not fit is left out completely; an invalid UTF-8 byte becomes U+FFFD. */
        const struct json *value = json_member(json, "value");
        CU_ASSERT((value == NULL) == (values[i] == large));
        CU_ASSERT(value == NULL || i > 2 || strcmp(json_string_of(value), values[i]) == 0);
        CU_ASSERT(i != 3 ||
                  strcmp(json_string_of(value), "\xC3\xA4\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD") == 0);
    }
}

static void test_times_are_written_and_read_as_iso_8601(void)
{
    char iso[clock_iso_size];
    int64_t time_ms = 0;
    clock_iso(1773309600000, iso);
    CU_ASSERT_STRING_EQUAL(iso, "2026-03-12T10:00:00.000Z");
    CU_ASSERT(clock_iso_read("2026-03-12T10:00:00.000Z", &time_ms) && time_ms == 1773309600000);
    CU_ASSERT(clock_iso_read("2026-03-12T12:00:00+02:00", &time_ms) && time_ms == 1773309600000);
    CU_ASSERT(clock_iso_read("2026-03-12T10:00:00.1239Z", &time_ms) && time_ms == 1773309600123);
    CU_ASSERT(clock_iso_read("9999-12-31T23:59:59.999Z", &time_ms) && time_ms == 253402300799999);
    static const char *const bad[] = {"2026-02-30T10:00:00Z",      "2026-03-12",
                                      "2026-03-12T10:00:00",       "2026-3-12T10:00:00Z",
                                      "2026-13-12T10:00:00Z",      "2026-03-12T25:00:00Z",
                                      "2026-03-12T10:00:00Zx",     "",
                                      "9999-12-31T23:59:59-00:01", "1970-01-01T00:00:00+00:01"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CU_ASSERT_FALSE(clock_iso_read(bad[i], &time_ms));
    for (int64_t probe = 1; probe < 4102444800000; probe += 86400000LL * 37 + 1234567) {
        clock_iso(probe, iso);
        CU_ASSERT(clock_iso_read(iso, &time_ms) && time_ms == probe);
    }
    CU_ASSERT(clock_day_read("2024-02-29", &time_ms) && time_ms == 1709164800000);
    CU_ASSERT_FALSE(clock_day_read("2023-02-29", &time_ms));
    int64_t before = clock_now_ms();
    clock_offset_set_s(3600);
    CU_ASSERT(clock_now_ms() - before >= 3600000);
    clock_offset_set_s(0);
}

static void test_hashes_match_published_vectors(void)
{
    uint8_t digest[sha256_bytes];
    fresh();
    /* FIPS 180-2 "abc"; the MAC is RFC 4231, case 2. */
    crypto_sha256("abc", 3, digest);
    CU_ASSERT_STRING_EQUAL(crypto_hex(arena, digest, sizeof digest),
                           "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    struct crypto_hash *hash = crypto_hash_begin();
    crypto_hash_add(hash, "a", 1);
    crypto_hash_add(hash, "bc", 2);
    uint8_t pieces[sha256_bytes];
    crypto_hash_end(hash, pieces);
    CU_ASSERT(crypto_equal(digest, pieces, sizeof digest));
    struct crypto_mac *mac = crypto_mac_new("Jefe", 4);
    for (int i = 0; i < 3; i++) {
        crypto_mac_sign(mac, "what do ya want for nothing?", 28, digest);
        CU_ASSERT_STRING_EQUAL(crypto_hex(arena, digest, sizeof digest),
                               "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }
    crypto_mac_free(mac);
    /* Databases have such ids: they must never change. */
    char id[crypto_key_id_size];
    crypto_key_id("Jefe", 4, id);
    CU_ASSERT_STRING_EQUAL(id, "40be92ff306c5920");
}

/* Maps unpadded base64url to base64 (RFC 4648, section 5) and reads that; -1 for other characters. */
static long base64url_read(const char *text, void *bytes, size_t room)
{
    size_t length = strlen(text);
    char *padded = arena_printf(arena, "%s%s", text, &"==="[length % 4 == 0 ? 3 : length % 4 - 1]);
    if (strpbrk(text, "+/=") != NULL)
        return -1;
    for (char *at = padded; *at != '\0'; at++)
        *at = *at == '-' ? '+' : *at == '_' ? '/' : *at;
    return crypto_base64_read(padded, bytes, room);
}

static void test_encodings_go_there_and_back(void)
{
    uint8_t bytes[64], back[64];
    for (size_t size = 0; size <= sizeof bytes; size++) {
        fresh();
        crypto_random(bytes, sizeof bytes);
        CU_ASSERT(crypto_hex_read(crypto_hex(arena, bytes, size), back, size) &&
                  memcmp(bytes, back, size) == 0);
        CU_ASSERT_EQUAL(crypto_base64_read(crypto_base64(arena, bytes, size), back, sizeof back), (long)size);
        CU_ASSERT_EQUAL(memcmp(bytes, back, size), 0);
        CU_ASSERT(base64url_read(crypto_base64url(arena, bytes, size), back, sizeof back) == (long)size);
        CU_ASSERT_EQUAL(memcmp(bytes, back, size), 0);
    }
    CU_ASSERT_FALSE(crypto_hex_read("0g", back, 1));
    CU_ASSERT_FALSE(crypto_hex_read("000", back, 1));
    CU_ASSERT_EQUAL(crypto_base64_read("a*==", back, sizeof back), -1);
}

static const struct json *json_of(const char *text)
{
    const struct json *json = NULL;
    fresh();
    return json_read(&context, text, strlen(text), &json) == IW_OK ? json : NULL;
}

static void test_json_is_read_into_a_tree(void)
{
    const struct json *json = json_of("{\"a\":[1,\"x\",null,true,2.5],\"b\":{\"c\":\"\\u00e4\"}}");
    CU_ASSERT_PTR_NOT_NULL_FATAL(json);
    const struct json *list = json_member(json, "a");
    CU_ASSERT_EQUAL(json_length(list), 5);
    CU_ASSERT_EQUAL(json_integer_of(json_item(list, 0)), 1);
    CU_ASSERT_STRING_EQUAL(json_string_of(json_item(list, 1)), "x");
    CU_ASSERT(json_is_absent(json_item(list, 2)));
    CU_ASSERT(json_is_absent(json_member(json, "nothing")));
    CU_ASSERT_STRING_EQUAL(json_string_of(json_member(json_member(json, "b"), "c")), "\xC3\xA4");
}

/* RFC 8259 sets no limit: a large number in an unknown member must not affect the others. */
/* The format of a text that is not JSON is named; a UTF-8 byte order mark is ignored. */
static void test_a_text_that_is_not_json_is_named(void)
{
    static const struct {
        const char *text;
        size_t size;
        const char *words;
    } rows[] = {
        {"", 0, "is empty"},
        {" \r\n", 3, "is empty"},
        {"\xef\xbb\xbf", 3, "is empty"},
        {"\xff\xfe{\0", 4, "UTF-16"},
        {"\xfe\xff\0{", 4, "UTF-16"},
        {"{\0\"\0", 4, "UTF-16"},
        {"\0{\0\"", 4, "UTF-16"},
        {"{\0\0\0", 4, "UTF-32"},
        {"\0\0\0{", 4, "UTF-32"},
        {"a=1&b=2", 7, "form (name=value)"},
        {"<a/>", 4, "XML or HTML"},
        {"--x\r\n", 5, "multipart/form-data"},
        {"\x1f\x8b\x08", 3, "gzip"},
        {"{\"a\":", 5, "line 1"},
        {"=", 1, "line 1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct json *json = NULL;
        context_init(&context, arena, NULL);
        CU_ASSERT_EQUAL(json_read(&context, rows[i].text, rows[i].size, &json), IW_VALIDATION_FAILED);
        CU_ASSERT_PTR_NOT_NULL(strstr(context.sentence, rows[i].words));
        CU_ASSERT_STRING_EQUAL(context.details->field, "body");
    }
    CU_ASSERT_PTR_NOT_NULL(json_of("\xef\xbb\xbf{\"a\":1}"));
}

static void test_an_integer_of_any_size_is_json(void)
{
    const struct json *json = json_of("{\"a\":123456789012345678901234567890,\"b\":\"x\"}");
    CU_ASSERT_PTR_NOT_NULL_FATAL(json);
    CU_ASSERT(json_is(json_member(json, "a"), JSON_KIND_REAL));
    CU_ASSERT_STRING_EQUAL(json_string_of(json_member(json, "b")), "x");
}

static void test_malformed_json_names_line_and_column(void)
{
    CU_ASSERT_PTR_NULL(json_of("{\n  \"a\": }"));
    CU_ASSERT_EQUAL(context.error, IW_VALIDATION_FAILED);
    CU_ASSERT_PTR_NOT_NULL(strstr(context.sentence, "line 2"));
    CU_ASSERT_PTR_NULL(json_of("{\"a\":1,\"a\":2}"));
    CU_ASSERT_PTR_NULL(json_of(""));
    CU_ASSERT_PTR_NULL(json_of("\"\xFF\""));
    char deep[200];
    memset(deep, '[', 100);
    memset(deep + 100, ']', 99);
    deep[199] = '\0';
    deep[100] = '1';
    CU_ASSERT_PTR_NULL(json_of(deep));
}

static void test_bodies_that_mean_the_same_have_one_digest(void)
{
    uint8_t a[32], b[32], c[32];
    json_digest(json_of("{\"x\":1,\"y\":[\"a\",{\"p\":null,\"q\":true}]}"), a);
    json_digest(json_of("{ \"y\":[\"\\u0061\",{\"q\":true}], \"x\":1, \"z\":null }"), b);
    json_digest(json_of("{\"x\":1,\"y\":[\"a\",{\"q\":false}]}"), c);
    CU_ASSERT_EQUAL(memcmp(a, b, 32), 0);
    CU_ASSERT_NOT_EQUAL(memcmp(a, c, 32), 0);
}

/* Neighbours that a double cannot tell apart: integers above 53 and above 63 bits, and reals. */
static void test_bodies_with_other_numbers_have_other_digests(void)
{
    static const char *const bodies[] = {"{\"x\":9007199254740992}",
                                         "{\"x\":9007199254740993}",
                                         "{\"x\":9007199254740992.0}",
                                         "{\"x\":9007199254740992,\"y\":1}",
                                         "{\"x\":18446744073709551616}",
                                         "{\"x\":18446744073709551617}",
                                         "{\"x\":0.5}"};
    enum { count = sizeof bodies / sizeof bodies[0] };
    uint8_t digests[count][32], same[32];
    for (size_t i = 0; i < count; i++) {
        json_digest(json_of(bodies[i]), digests[i]);
        for (size_t j = 0; j < i; j++)
            CU_ASSERT_NOT_EQUAL(memcmp(digests[i], digests[j], 32), 0);
    }
    json_digest(json_of("{\"x\":18446744073709551617}"), same);
    CU_ASSERT_EQUAL(memcmp(same, digests[5], 32), 0);
}

static void test_long_arrays_are_seen_without_parsing(void)
{
    static const struct {
        const char *text;
        bool exceeds;
    } cases[] = {
        {"{\"files\":[1,2]}", false},
        {"{\"files\":[1,2,3]}", true},
        {"{\"files\" : [1,2,", true},
        {"{\"files\":[[1,2,3],{\"a\":1,\"b\":2,\"c\":3}]}", false},
        {"{\"files\":[\"a,b,c\\\",d,\"]}", false},
        {"{\"a\":{\"files\":[1,2,3]}}", false},
        {"{\"a\":[1,2,3],\"files\":[]}", false},
        {"{\"file\":[1,2,3],\"x\":\"files\"}", false},
        {"[\"files\",[1,2,3]]", false},
        {"{\"files\":{\"a\":1,\"b\":2,\"c\":3}}", false},
        {"{\"files", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CU_ASSERT_EQUAL(json_array_exceeds(cases[i].text, strlen(cases[i].text), "files", 2),
                        cases[i].exceeds);
}

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

static const char *file_with(const char *content)
{
    static char path[] = "test_base_config.tmp";
    FILE *file = fopen(path, "we");
    fputs(content, file);
    fclose(file);
    return path;
}

static void test_configuration_errors_name_every_line_and_change_nothing(void)
{
    struct config config;
    fresh();
    config_init(&config);
    CU_ASSERT_EQUAL(config.api_body_max_bytes, 1048576);
    CU_ASSERT_EQUAL(config_read(&context,
                                file_with("[api]\nbody_max_bytes = 2048\nbacklog = 0\n\nnonsense = 1\n"
                                          "[redis]\ntimeout_ms = 5\ntimeout_ms = 50\n"),
                                &config),
                    IW_CONFIG_INVALID);
    CU_ASSERT_EQUAL(context.detail_count, 4);
    CU_ASSERT_PTR_NOT_NULL(strstr(context.details->field, ":3"));
    CU_ASSERT_PTR_NOT_NULL(strstr(context.details->next->field, ":5"));
    CU_ASSERT_EQUAL(config.api_body_max_bytes, 1048576);
    fresh();
    CU_ASSERT_EQUAL(config_read(&context,
                                file_with("[api]\nbody_max_bytes = 2048\n[worker]\nallow_unsealed = yes\n"),
                                &config),
                    IW_OK);
    CU_ASSERT_EQUAL(config.api_body_max_bytes, 2048);
    CU_ASSERT(config.worker_allow_unsealed);
    fresh();
    CU_ASSERT_EQUAL(config_read(&context, file_with("[api]\npublic_url = https://a.example//\n"), &config),
                    IW_OK);
    CU_ASSERT_STRING_EQUAL(config.api_public_url, "https://a.example");
    char line[400] = "[store]\ncors_origins = ";
    memset(line + strlen(line), 'x', 300);
    fresh();
    CU_ASSERT_EQUAL(config_read(&context, file_with(line), &config), IW_CONFIG_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(context.details->field, ":2"));
    CU_ASSERT_PTR_NOT_NULL(strstr(context.details->message, "longer than"));
    unlink("test_base_config.tmp");
}

static void test_the_sample_configuration_is_valid_and_equals_the_defaults(void)
{
    struct config config, expected;
    char *sample = NULL;
    size_t size = 0;
    fresh();
    config_init(&expected);
    FILE *file = open_memstream(&sample, &size);
    config_print_sample(file);
    fclose(file);
    /* Removing the comment sign from every key must change nothing. */
    for (char *at = sample; (at = strstr(at, "\n#")) != NULL; at++)
        if (at[2] != ' ')
            at[1] = '\n';
    CU_ASSERT_EQUAL(config_read(&context, file_with(sample), &config), IW_OK);
    size_t count;
    const struct config_key *keys = config_keys(&count);
    for (size_t i = 0; i < count; i++) {
        const char *a = (const char *)&config + keys[i].offset, *b = (const char *)&expected + keys[i].offset;
        if (config_is_text(keys[i].type))
            CU_ASSERT_STRING_EQUAL(*(const char *const *)(const void *)a,
                                   *(const char *const *)(const void *)b);
        if (keys[i].type == CONFIG_INTEGER || keys[i].type == CONFIG_FOLLOWING)
            CU_ASSERT_EQUAL(memcmp(a, b, sizeof(int64_t)), 0);
    }
    free(sample);
    unlink("test_base_config.tmp");
}

/* ---- machine.h ---- */

/* Writes a file below the folder test_machine.tmp. */
static void machine_file(const char *path, const char *content)
{
    char whole[200] = "test_machine.tmp/";
    strcat(whole, path);
    for (char *at = whole; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        mkdir(whole, 0700);
        *at = '/';
    }
    FILE *file = fopen(whole, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs(content, file);
    fclose(file);
}

static void machine_forget(void)
{
    CU_ASSERT_EQUAL(system("rm -rf test_machine.tmp"), 0);
}

/* Limits of control groups, version 2 and 1, beside a hardware that is larger. */
static void test_control_groups_limit_the_machine(void)
{
    struct machine machine, whole;
    machine_forget();
    machine_read("test_machine.tmp", &whole);
    CU_ASSERT(whole.cores >= 1 && whole.memory_bytes > 256 << 20 && whole.worker_bytes == INT64_MAX);
    /* A container, with the worker's unit inside and another unit's limit that says nothing about pictures.
     */
    machine_file("proc/self/cgroup", "0::/system.slice/imgward-api.service\n");
    machine_file("sys/fs/cgroup/memory.max", "268435456\n");
    machine_file("sys/fs/cgroup/cpu.max", "max 100000\n");
    machine_file("sys/fs/cgroup/system.slice/memory.max", "max\n");
    machine_file("sys/fs/cgroup/system.slice/cpu.max", "50000 100000\n");
    machine_file("sys/fs/cgroup/system.slice/imgward-api.service/memory.max", "1048576\n");
    machine_file("sys/fs/cgroup/system.slice/imgward-worker.service/memory.max", "200000000\n");
    machine_read("test_machine.tmp", &machine);
    CU_ASSERT_EQUAL(machine.memory_bytes, 268435456);
    CU_ASSERT_EQUAL(machine.worker_bytes, 200000000);
    CU_ASSERT_EQUAL(machine.cores, 1);
    machine_forget();
    /* Version 1; the path is the host's, which this container does not see. */
    machine_file("proc/self/cgroup", "4:memory:/docker/a\n3:cpuset:/\n1:cpu,cpuacct:/docker/a\n0::/\n");
    machine_file("sys/fs/cgroup/memory/memory.limit_in_bytes", "134217728\n");
    machine_file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    machine_file("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    machine_read("test_machine.tmp", &machine);
    CU_ASSERT_EQUAL(machine.memory_bytes, 134217728);
    CU_ASSERT_EQUAL(machine.cores, whole.cores);
    machine_file("sys/fs/cgroup/cpu/docker/a/cpu.cfs_quota_us", "20000\n");
    machine_file("sys/fs/cgroup/cpu/docker/a/cpu.cfs_period_us", "100000\n");
    machine_file("sys/fs/cgroup/memory/docker/a/memory.limit_in_bytes", "9223372036854771712\n");
    machine_read("test_machine.tmp", &machine);
    CU_ASSERT_EQUAL(machine.memory_bytes, 134217728);
    CU_ASSERT_EQUAL(machine.cores, 1);
    machine_forget();
}

static void test_the_defaults_follow_the_machine(void)
{
    static const struct {
        int cores;
        int64_t memory_mib, unit_mib; /* unit_mib 0: none */
        int64_t api, console, worker, image_mib;
    } rows[] = {
        {1, 512, 0, 8, 2, 1, 256},     {1, 964, 0, 8, 2, 1, 336},   {1, 1024, 0, 8, 2, 1, 368},
        {1, 1024, 819, 8, 2, 1, 368},  {1, 2048, 0, 8, 4, 1, 912},  {2, 2048, 0, 16, 4, 2, 448},
        {2, 4096, 0, 16, 8, 2, 992},   {4, 4096, 0, 32, 8, 4, 496}, {4, 4096, 1500, 32, 8, 2, 400},
        {8, 1024, 0, 32, 2, 1, 368},   {8, 8192, 0, 64, 8, 8, 512}, {8, 65536, 0, 64, 8, 8, 1024},
        {1, 65536, 400, 8, 8, 1, 256},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct config config = {.console_hash_memory_bytes = 64 << 20};
        const struct machine machine = {rows[i].cores, rows[i].memory_mib << 20,
                                        rows[i].unit_mib > 0 ? rows[i].unit_mib << 20 : INT64_MAX};
        config_follow(&config, &machine);
        CU_ASSERT_EQUAL(config.api_processes, rows[i].api);
        CU_ASSERT_EQUAL(config.console_processes, rows[i].console);
        CU_ASSERT_EQUAL(config.worker_processes, rows[i].worker);
        CU_ASSERT_EQUAL(config.image_memory_max_bytes, rows[i].image_mib << 20);
    }
    /* A value that is set stays, and the others follow it. */
    const struct machine machine = {4, INT64_C(4) << 30, INT64_MAX};
    struct config many = {.api_processes = 3, .worker_processes = 8, .console_hash_memory_bytes = 1 << 20};
    struct config large = {.image_memory_max_bytes = INT64_C(1) << 30, .console_hash_memory_bytes = 1 << 20};
    config_follow(&many, &machine);
    CU_ASSERT(many.api_processes == 3 && many.worker_processes == 8);
    CU_ASSERT_EQUAL(many.image_memory_max_bytes, 256 << 20);
    config_follow(&large, &machine);
    CU_ASSERT(large.worker_processes == 1 && large.image_memory_max_bytes == INT64_C(1) << 30);
}

static void test_a_value_that_follows_is_in_its_range_or_zero(void)
{
    struct config config;
    fresh();
    CU_ASSERT_EQUAL(config_read(&context, file_with("[image]\nmemory_max_bytes = 1000\n"), &config),
                    IW_CONFIG_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(context.sentence, "must be 0 or an integer from 268435456"));
    fresh();
    CU_ASSERT_EQUAL(config_read(&context, file_with("[worker]\nprocesses = 0\n"), &config), IW_OK);
    CU_ASSERT(config.worker_processes >= 1 && config.image_memory_max_bytes >= 256 << 20);
    unlink("test_base_config.tmp");
}

static void test_lists_of_servers(void)
{
    struct endpoint list[endpoints_max];
    static const struct {
        const char *text;
        const char *host;
        int port;
    } rows[] = {
        {"a", "a", 7},       {"a:9", "a", 9},       {"10.0.0.1:65535", "10.0.0.1", 65535}, {"::1", "::1", 7},
        {"[::1]", "::1", 7}, {"[::1]:8", "::1", 8}, {"/run/a.sock", "/run/a.sock", 7}};
    static const char *const invalid[] = {
        "a:", "a:0", "a:65536", "a:x", ":1", "[::1", "[::1]x", "[]:1", "a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CU_ASSERT_EQUAL_FATAL(endpoints_read(rows[i].text, 7, list), 1);
        CU_ASSERT_STRING_EQUAL(list[0].host, rows[i].host);
        CU_ASSERT_EQUAL(list[0].port, rows[i].port);
        CU_ASSERT_EQUAL(endpoint_is_socket(&list[0]), rows[i].host[0] == '/');
    }
    for (size_t i = 0; i < sizeof invalid / sizeof invalid[0]; i++)
        CU_ASSERT_EQUAL(endpoints_read(invalid[i], 7, list), -1);
    CU_ASSERT_EQUAL(endpoints_read("", 7, list), 0);
    CU_ASSERT_EQUAL(endpoints_read(" a, b:3307 ,/run/c.sock,", 3306, list), 3);
    CU_ASSERT_STRING_EQUAL(list[2].host, "/run/c.sock");
    CU_ASSERT_EQUAL(list[1].port, 3307);
}

static void test_a_url_is_what_it_looks_like(void)
{
    static const struct {
        const char *text, *scheme, *host, *port, *rest;
    } rows[] = {{"https://a.example", "https", "a.example", "", ""},
                {"HTTPS://A.example./x:y@z?q", "HTTPS", "A.example.", "", "/x:y@z?q"},
                {"http://a_b-c:8080?x", "http", "a_b-c", "8080", "?x"},
                {"https://a.example:", "https", "a.example", "", ""},
                {"https://127.0.0.1:1#f", "https", "127.0.0.1", "1", "#f"},
                {"https://[2001:db8::1]:9/", "https", "[2001:db8::1]", "9", "/"},
                {"smtp://me:word@a/", "smtp", "a", "", "/"}};
    static const char *const invalid[] = {
        "",          "a.example",      "https:a.example", "https:/a.example",        "https:///a.example",
        "https://",  "https://?x",     "https://:443/",   "https://a..example",      "https://.a.example",
        "//a/",      "https://-a",     "https://a-.b",    "https://%68ooks",         "https://a%2Eb",
        "https://.", "https://[::1",   "https://[]",      "https://[::1%25lo]",      "https://[::1]x",
        "1:2",       "https://a:1:2/", "https://a:x/",    "https://a:443333/",       "https://a,b",
        "://a",      "https://a*b",    "https://me@",     "https://\xC3\xA4.example"};
    struct url url;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CU_ASSERT_TRUE_FATAL(url_read(rows[i].text, &url));
        CU_ASSERT(url_part_is(url.scheme, rows[i].scheme) && url_part_is(url.host, rows[i].host));
        CU_ASSERT(url_part_is(url.port, rows[i].port) && strcmp(url.rest, rows[i].rest) == 0);
    }
    CU_ASSERT(url_part_is(url.user, "me:word"));
    for (size_t i = 0; i < sizeof invalid / sizeof invalid[0]; i++)
        CU_ASSERT_FALSE(url_read(invalid[i], &url));
    char label[80] = "https://";
    memset(label + 8, 'a', 63);
    CU_ASSERT_TRUE(url_read(label, &url));
    label[71] = 'a';
    CU_ASSERT_FALSE(url_read(label, &url));
}

static void test_a_mailbox_has_a_name_and_an_address(void)
{
    static const struct {
        const char *text, *name, *address;
    } rows[] = {{"a@b.example", "", "a@b.example"},
                {" <a@b.example> ", "", "a@b.example"},
                {"A B <a@b.example>", "A B", "a@b.example"},
                {"A. B<a@b.example>", "A. B", "a@b.example"},
                {"\"A, \\\"B\\\\\" <a@b.example>", "A, \"B\\", "a@b.example"},
                {"\"<x@y>\" <a@b.example>", "<x@y>", "a@b.example"},
                {"\xEC\x95\x88 <a@b.example>", "\xEC\x95\x88", "a@b.example"}};
    static const char *const invalid[] = {"",           "a",          "a b@c",         "a@b, c@d",
                                          "<a@b",       "a@b>",       "<a@b> C",       "A <a@b> <c@d>",
                                          "A, B <a@b>", "A: <a@b>;",  "A (b) <a@b>",   "\"A <a@b>",
                                          "A\tB <a@b>", "\xFF <a@b>", "\"A\" B <a@b>", "\"\\\" <a@b>"};
    struct mailbox mailbox;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CU_ASSERT_TRUE_FATAL(mailbox_read(rows[i].text, &mailbox));
        CU_ASSERT_STRING_EQUAL(mailbox.name, rows[i].name);
        CU_ASSERT_STRING_EQUAL(mailbox.address, rows[i].address);
    }
    for (size_t i = 0; i < sizeof invalid / sizeof invalid[0]; i++)
        CU_ASSERT_FALSE(mailbox_read(invalid[i], &mailbox));
}

static void test_a_secret_that_everybody_can_read_is_refused(void)
{
    const char *secret = NULL;
    fresh();
    const char *path = file_with("swordfish\n");
    chmod(path, 0604);
    CU_ASSERT_EQUAL(config_secret(&context, path, &secret), IW_CONFIG_INVALID);
    chmod(path, 0600);
    fresh();
    CU_ASSERT_EQUAL(config_secret(&context, path, &secret), IW_OK);
    CU_ASSERT_STRING_EQUAL(secret, "swordfish");
    CU_ASSERT_EQUAL(config_secret(&context, "", &secret), IW_OK);
    CU_ASSERT_STRING_EQUAL(secret, "");
    unlink(path);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"a URL is what it looks like", test_a_url_is_what_it_looks_like},
        {"a mailbox has a name and an address", test_a_mailbox_has_a_name_and_an_address},
        {"arena gives zeroed aligned memory", test_arena_gives_zeroed_aligned_memory},
        {"an arena ends what it owns once", test_an_arena_ends_what_it_owns_once},
        {"every error has a code, a sentence and a way back",
         test_every_error_has_a_code_a_sentence_and_a_way_back},
        {"the first error stays", test_the_first_error_stays},
        {"validation gathers every field", test_validation_gathers_every_field},
        {"notes are joined, each code once", test_notes_are_joined_and_each_code_counts_once},
        {"UTF-8 is checked strictly", test_utf8_is_checked_strictly},
        {"integers are read whole or not at all", test_integers_are_read_whole_or_not_at_all},
        {"numbers are printed as printf does", test_numbers_are_printed_as_printf_does},
        {"texts are whole at the end of a room", test_texts_are_whole_at_the_end_of_a_room},
        {"a line of the log is one JSON object", test_a_line_of_the_log_is_one_json_object},
        {"times are written and read as ISO 8601", test_times_are_written_and_read_as_iso_8601},
        {"hashes match published vectors", test_hashes_match_published_vectors},
        {"encodings go there and back", test_encodings_go_there_and_back},
        {"JSON is read into a tree", test_json_is_read_into_a_tree},
        {"malformed JSON names line and column", test_malformed_json_names_line_and_column},
        {"bodies that mean the same have one digest", test_bodies_that_mean_the_same_have_one_digest},
        {"bodies with other numbers have other digests", test_bodies_with_other_numbers_have_other_digests},
        {"long arrays are seen without parsing", test_long_arrays_are_seen_without_parsing},
        {"rendered JSON reads back", test_rendered_json_reads_back},
        {"a text that is not JSON is named", test_a_text_that_is_not_json_is_named},
        {"an integer of any size is JSON", test_an_integer_of_any_size_is_json},
        {"rendered bytes are UTF-8", test_rendered_bytes_are_utf8},
        {"configuration errors name every line",
         test_configuration_errors_name_every_line_and_change_nothing},
        {"the sample configuration equals the defaults",
         test_the_sample_configuration_is_valid_and_equals_the_defaults},
        {"control groups limit the machine", test_control_groups_limit_the_machine},
        {"the defaults follow the machine", test_the_defaults_follow_the_machine},
        {"a value that follows is in its range or zero", test_a_value_that_follows_is_in_its_range_or_zero},
        {"lists of servers", test_lists_of_servers},
        {"a secret everybody can read is refused", test_a_secret_that_everybody_can_read_is_refused},
        CU_TEST_INFO_NULL,
    };
    arena = arena_new(0);
    int code = runner_run("base", tests);
    arena_free(arena);
    return code;
}
