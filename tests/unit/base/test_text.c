/* UTF-8, integers and digits. */
#include <string.h>

#include "base/text.h"
#include "fixture.h"

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

static void test_a_beginning_cuts_no_character(void)
{
    CU_ASSERT_EQUAL(text_head("abc", 3), 3);
    CU_ASSERT_EQUAL(text_head("abcd", 3), 3);
    CU_ASSERT_EQUAL(text_head("", 3), 0);
    CU_ASSERT_EQUAL(text_head("ab\xE2\x82\xAC", 5), 5);
    CU_ASSERT_EQUAL(text_head("ab\xE2\x82\xAC", 4), 2);
    CU_ASSERT_EQUAL(text_head("\xF0\x9F\x98\x80", 3), 0);
    CU_ASSERT_EQUAL(text_head("\x80\x80\x80\x80", 3), 0);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"UTF-8 is checked strictly", test_utf8_is_checked_strictly},
        {"integers are read whole or not at all", test_integers_are_read_whole_or_not_at_all},
        {"numbers are printed as printf does", test_numbers_are_printed_as_printf_does},
        {"a beginning cuts no character", test_a_beginning_cuts_no_character},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("text", tests);
}
