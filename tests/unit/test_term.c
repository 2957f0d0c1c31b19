/* Words of names, and the packed rows that searches read: the same results as comparing every name. */
#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"
#include "base/text.h"
#include "domain/posting.h"
#include "runner.h"
#include "service/term.h"

static struct arena *arena;

/* "word word" */
static const char *joined(const struct terms *terms)
{
    struct text text;
    text_init(&text, arena);
    for (size_t i = 0; i < terms->count; i++)
        text_printf(&text, "%s%.*s", i > 0 ? " " : "", (int)terms->items[i].length, terms->items[i].text);
    return text.data;
}

static const char *words_of(const char *name)
{
    struct terms terms;
    terms_init(&terms, arena);
    terms_read(&terms, name, 0);
    return joined(&terms);
}

static const char *wanted_of(const char *keyword)
{
    struct terms terms;
    terms_of_keyword(&terms, arena, keyword);
    return joined(&terms);
}

static void test_words_end_between_letters_and_digits(void)
{
    static const struct {
        const char *name, *words;
    } rows[] = {{"IMG_2034.jpg", "img _ 2034 . jpg"},
                {"Beach2024Final", "beach 2024 final"},
                {"  two  words\t", "two words"},
                {"", ""},
                {"STRASSE straße", "strasse strasse"},
                {"\xC3\x84rger", "\xC3\xA4rger"},
                {"A\xCC\x88rger", "\xC3\xA4rger"}, /* decomposed */
                {"사진2034.png", "사진 2034 . png"},
                {"東京タワー", "東京タワー"},
                {"हिन्दी", "हिन्दी"}, /* vowel signs are marks */
                {"١٢٣abc", "١٢٣ abc"},
                {"a😀😀b", "a 😀😀 b"},
                {"100%", "100 %"},
                {"\xFF", ""}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CU_ASSERT_STRING_EQUAL(words_of(rows[i].name), rows[i].words);
}

static void test_a_keyword_asks_for_its_words(void)
{
    CU_ASSERT_STRING_EQUAL(wanted_of("IMG_2034.jpg"), "2034 img jpg");
    CU_ASSERT_STRING_EQUAL(wanted_of("im img image"), "image img"); /* im begins both */
    CU_ASSERT_STRING_EQUAL(wanted_of("a a A"), "a");
    CU_ASSERT_STRING_EQUAL(wanted_of("%"), "%");
    CU_ASSERT_STRING_EQUAL(wanted_of("% _"), "% _");
    CU_ASSERT_STRING_EQUAL(wanted_of(" "), "");
}

/* ---- packed rows against a comparison of all terms ---- */

enum { orders = 300 };

/* A short name of few different words: many share prefixes. */
static const char *name_random(void)
{
    static const char *const parts[] = {"a", "ab", "abc", "b1", "12", "123",  "1234",
                                        "_", ".",  "é",   "éa", "사", "사진", "😀"};
    struct text text;
    text_init(&text, arena);
    for (unsigned i = 0; i <= crypto_random_u64() % 4; i++)
        text_add_string(&text, parts[crypto_random_u64() % (sizeof parts / sizeof parts[0])]);
    if (crypto_random_u64() % 4 == 0)
        text_printf(&text, "%u", (unsigned)(crypto_random_u64() % 100000));
    return text.data;
}

static void bits_of_rows(const struct segments_words *rows, unsigned count, const struct term *wanted,
                         uint8_t *bits)
{
    for (unsigned i = 0; i < count; i++)
        if (rows[i].bucket_length == posting_bucket(wanted) &&
            memcmp(rows[i].bucket, wanted->text, rows[i].bucket_length) == 0)
            CU_ASSERT(posting_mark(&rows[i], wanted, bits, orders));
}

static void test_rows_find_what_a_comparison_finds(void)
{
    struct terms terms, wanted;
    struct segments_words *rows;
    unsigned row_count, wrong = 0;
    terms_init(&terms, arena);
    for (unsigned i = 0; i < orders; i++)
        terms_read(&terms, name_random(), (uint16_t)i);
    struct term *all = arena_array(arena, terms.count, sizeof *all);
    size_t count = terms.count;
    memcpy(all, terms.items, count * sizeof *all);
    posting_pack(&terms, orders, &rows, &row_count);
    for (int try = 0; try < 500; try++) {
        uint8_t bits[orders / 8 + 1] = {0}, expected[orders / 8 + 1] = {0};
        terms_init(&wanted, arena);
        terms_read(&wanted, name_random(), 0);
        struct term one = wanted.items[0];
        for (size_t i = 0; i < count; i++)
            if (term_begins(&all[i], &one))
                expected[all[i].position / 8] |= (uint8_t)(1 << all[i].position % 8);
        bits_of_rows(rows, row_count, &one, bits);
        wrong += memcmp(bits, expected, sizeof bits) != 0;
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

/* Rows come from a database: any bytes must be safe, which the sanitizers check. */
static void test_damaged_rows_are_safe(void)
{
    const struct term wanted = {.text = "ab", .length = 2};
    for (int try = 0; try < 20000; try++) {
        char data[48];
        uint8_t bits[orders / 8 + 1];
        struct segments_words row = {.bucket = "ab", .bucket_length = 2, .data = data};
        row.length = crypto_random_u64() % sizeof data;
        for (size_t i = 0; i < row.length; i++)
            data[i] = (char)(crypto_random_u64() % (try % 2 == 0 ? 256 : 6));
        if (posting_mark(&row, &wanted, bits, orders))
            CU_ASSERT_FATAL(row.length < sizeof data);
    }
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"words end between letters and digits", test_words_end_between_letters_and_digits},
        {"a keyword asks for its words", test_a_keyword_asks_for_its_words},
        {"rows find what a comparison finds", test_rows_find_what_a_comparison_finds},
        {"damaged rows are safe", test_damaged_rows_are_safe},
        CU_TEST_INFO_NULL,
    };
    arena = arena_new(0);
    int code = runner_run("terms", tests);
    arena_free(arena);
    return code;
}
