/* The index of lists: words of names, and packed segments, which find the same as a comparison of every name.
 */
#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"
#include "runner.h"
#include "search/search.h"

static struct arena *arena, *scratch;

/* ---- words ---- */

/* Returns the words of an entry with this name, in the order of the name. */
static const char *words_of(const char *name)
{
    struct text text;
    struct search_build build = {.arena = arena};
    text_init(&text, arena);
    search_build_entry(&build, 1, 0, name);
    for (size_t i = 0; i < build.words.count; i++)
        text_printf(&text, "%s%.*s", i > 0 ? " " : "", (int)build.words.items[i].length,
                    build.words.items[i].text);
    return text.data;
}

static const char *wanted_of(const char *keyword)
{
    struct text text;
    struct search_query query;
    text_init(&text, arena);
    search_query_init(&query, arena, keyword);
    for (size_t i = 0; i < query.words.count; i++)
        text_printf(&text, "%s%.*s", i > 0 ? " " : "", (int)query.words.items[i].length,
                    query.words.items[i].text);
    return text.data;
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
    CU_ASSERT_STRING_EQUAL(wanted_of("im img image"), "image img"); /* im is a prefix of both */
    CU_ASSERT_STRING_EQUAL(wanted_of("a a A"), "a");
    CU_ASSERT_STRING_EQUAL(wanted_of("%"), "%");
    CU_ASSERT_STRING_EQUAL(wanted_of("% _"), "% _");
    CU_ASSERT_STRING_EQUAL(wanted_of(" "), "");
}

/* The example of src/search/README.md. */
static void test_rows_have_the_documented_bytes(void)
{
    struct search_row *rows;
    struct search_build build = {.arena = arena};
    for (int64_t i = 0; i < 40; i++)
        search_build_entry(&build, 0x1020304050607080 + i, (uint8_t)i,
                           i == 0 || i == 3 ? "a"
                           : i == 1         ? "ab"
                                            : "");
    CU_ASSERT_EQUAL_FATAL(search_build_pack(&build, &rows), 2);
    CU_ASSERT_EQUAL(rows[0].bucket.length, 1);
    CU_ASSERT_EQUAL_FATAL(rows[0].length, 7);
    CU_ASSERT(memcmp(rows[0].data, "\0\1a\6\0\0\1", 7) == 0);
    CU_ASSERT_EQUAL(rows[1].bucket.length, 2);
    CU_ASSERT_EQUAL_FATAL(rows[1].length, 6);
    CU_ASSERT(memcmp(rows[1].data, "\0\2ab\2\1", 6) == 0);
    CU_ASSERT(memcmp(build.ids.data, "\x10\x20\x30\x40\x50\x60\x70\x80", 8) == 0);
    CU_ASSERT_EQUAL(build.facts.data[39], 39);
}

/* U+1D160 folds to 12 bytes, so this text is one run of 12,000. */
static void test_a_word_longer_than_any_keyword_is_cut(void)
{
    struct text text;
    struct search_row *rows;
    struct search_query query;
    struct search_part part;
    struct search_build build = {.arena = arena};
    text_init(&text, arena);
    for (int i = 0; i < 1000; i++)
        text_add_string(&text, "\xF0\x9D\x85\xA0");
    search_build_entry(&build, 1, 0, text.data);
    CU_ASSERT_EQUAL_FATAL(search_build_pack(&build, &rows), 1);
    text.data[(size_t)255 * 4] = '\0';
    search_query_init(&query, arena, text.data);
    search_part_init(&part, arena, (const uint8_t *)build.facts.data, NULL, build.facts.length);
    CU_ASSERT(search_part_row(&part, &query, &rows[0]));
    CU_ASSERT_EQUAL(search_part_match(&part, &query, NULL), 1);
}

/* ---- segments against a comparison of all names ---- */

enum { entries_max = 300, names_max = 3, name_bytes = 64 };

/* An entry of the naive model. */
struct entry {
    int64_t id;
    uint8_t fact;
    unsigned names;
    char name[names_max][name_bytes];
};

static unsigned chance(unsigned below)
{
    return (unsigned)(crypto_random_u64() % below);
}

/* Makes a short name of few different words: many share prefixes, some are in nearly all names. */
static void name_random(char *name)
{
    static const char *const parts[] = {"a", "ab", "abc", "B1", "12", "123",  "1234",
                                        "_", ".",  "é",   "Éa", "사", "사진", "😀"};
    size_t length = (size_t)snprintf(name, name_bytes, "%s", chance(8) > 0 ? "the " : "");
    for (unsigned i = 0; i <= chance(3); i++)
        length += (size_t)snprintf(name + length, name_bytes - length, "%s",
                                   parts[chance(sizeof parts / sizeof parts[0])]);
    if (chance(4) == 0)
        snprintf(name + length, name_bytes - length, "%u", chance(100000));
}

static unsigned entries_random(struct entry *entries)
{
    int64_t id = (int64_t)chance(1000) << 40;
    unsigned count = 1 + chance(entries_max);
    for (unsigned i = 0; i < count; i++) {
        entries[i] = (struct entry){.id = id += 1 + chance(1000000),
                                    .fact = chance(20) == 0 ? search_gone : (uint8_t)chance(64),
                                    .names = 1 + chance(names_max)};
        for (unsigned k = 0; k < entries[i].names; k++)
            name_random(entries[i].name[k]);
    }
    return count;
}

static struct search_build segment_of(const struct entry *entries, unsigned count)
{
    struct search_build build = {.arena = arena};
    for (unsigned i = 0; i < count; i++)
        search_build_entry(&build, entries[i].id, entries[i].fact, entries[i].name[0]);
    for (unsigned i = 0; i < count; i++) {
        search_build_name(&build, entries[i].id - 1, "unknown");
        for (unsigned k = 1; k < entries[i].names; k++)
            search_build_name(&build, entries[i].id, entries[i].name[k]);
    }
    return build;
}

/* Compares the words of names as text, as the naive model does. */
static bool has_word(const struct entry *entry, const struct search_word *wanted)
{
    for (unsigned k = 0; k < entry->names; k++) {
        struct search_build one = {.arena = arena};
        search_build_entry(&one, 1, 0, entry->name[k]);
        for (size_t i = 0; i < one.words.count; i++)
            if (one.words.items[i].length >= wanted->length &&
                memcmp(one.words.items[i].text, wanted->text, wanted->length) == 0)
                return true;
    }
    return false;
}

static bool is_match(const struct entry *entry, const struct search_query *query)
{
    bool has_all = query->words.count > 0 || !query->has_keyword;
    for (size_t i = 0; i < query->words.count && has_all; i++)
        has_all = has_word(entry, &query->words.items[i]);
    return entry->fact != search_gone && (entry->fact & query->mask) == query->value &&
           (has_all || entry->id == query->id);
}

static void query_random(struct search_query *query, const struct entry *entries, unsigned count)
{
    char keyword[name_bytes];
    name_random(keyword);
    search_query_init(query, arena, chance(5) > 0 ? keyword : NULL);
    query->mask = chance(3) == 0 ? 0 : (uint8_t)chance(64);
    query->value = query->mask & (uint8_t)chance(64);
    query->id = chance(2) == 0 ? 0 : entries[chance(count)].id;
}

/* Returns how many matches differ between the segment and the comparison of all names. */
static unsigned wrong_matches(const struct entry *entries, unsigned count, const struct search_build *build,
                              const struct search_row *rows, unsigned row_count)
{
    unsigned wrong = 0;
    struct search_query query;
    struct search_part part;
    int64_t ids[entries_max];
    query_random(&query, entries, count);
    search_part_init(&part, arena, (const uint8_t *)build->facts.data, (const uint8_t *)build->ids.data,
                     count);
    for (unsigned i = 0; i < row_count; i++)
        CU_ASSERT(search_part_row(&part, &query, &rows[i]));
    size_t found = search_part_match(&part, &query, ids), expected = 0;
    CU_ASSERT_EQUAL(search_part_match(&part, &query, NULL), found);
    for (unsigned i = count; i-- > 0;) {
        bool is_wanted = is_match(&entries[i], &query), is_seen = false;
        for (unsigned k = 0; k < entries[i].names; k++)
            is_seen = search_query_look(&query, scratch, entries[i].name[k], k == 0);
        bool has_fact = entries[i].fact != search_gone && (entries[i].fact & query.mask) == query.value;
        wrong += is_wanted != (has_fact && (is_seen || entries[i].id == query.id));
        if (is_wanted)
            wrong += expected >= found || ids[expected++] != entries[i].id;
    }
    return wrong + (expected != found);
}

/* Entry i has the tag i % 7, the youngest also the tag 99, and the name is "even" or "odd". */
static void test_tags_are_found_whole_and_by_no_keyword(void)
{
    static const struct {
        const char *keyword;
        int64_t id;
        int first, second; /* tags; -1 if there is none */
        size_t matches;
    } rows[] = {{NULL, 0, 3, -1, 10},   {NULL, 0, 3, 99, 0},   {NULL, 0, 6, 99, 1}, {NULL, 0, 8, -1, 0},
                {"ev", 0, 3, -1, 5},    {"even", 7, 3, -1, 5}, {"no", 4, 3, -1, 1}, {"no", 5, 3, -1, 0},
                {"\x01", 0, -1, -1, 0}, {" ", 0, 3, -1, 0}};
    struct search_build build = {.arena = arena};
    struct search_row *packed;
    for (int64_t i = 0; i < 70; i++) {
        search_build_entry(&build, i + 1, 0, i % 2 == 0 ? "even" : "odd");
        search_build_tag(&build, (uint8_t[search_tag_bytes]){(uint8_t)(i % 7)});
    }
    search_build_tag(&build, (uint8_t[search_tag_bytes]){99});
    unsigned count = search_build_pack(&build, &packed);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct search_query query;
        struct search_part part;
        search_query_init(&query, arena, rows[i].keyword);
        query.id = rows[i].id;
        if (rows[i].first >= 0)
            search_query_tag(&query, (uint8_t[search_tag_bytes]){(uint8_t)rows[i].first});
        if (rows[i].second >= 0)
            search_query_tag(&query, (uint8_t[search_tag_bytes]){(uint8_t)rows[i].second});
        search_part_init(&part, arena, (const uint8_t *)build.facts.data, (const uint8_t *)build.ids.data,
                         70);
        for (unsigned k = 0; k < count; k++)
            CU_ASSERT(search_part_row(&part, &query, &packed[k]));
        CU_ASSERT_EQUAL(search_part_match(&part, &query, NULL), rows[i].matches);
    }
}

static void test_segments_find_what_a_comparison_finds(void)
{
    static struct entry entries[entries_max];
    unsigned wrong = 0;
    for (int try = 0; try < 40; try++) {
        struct search_row *rows;
        arena_reset(arena);
        unsigned count = entries_random(entries);
        struct search_build build = segment_of(entries, count);
        unsigned row_count = search_build_pack(&build, &rows);
        for (int i = 0; i < 15; i++)
            wrong += wrong_matches(entries, count, &build, rows, row_count);
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

/* Only the rows of the query's buckets are read from the database. */
static void test_a_query_needs_only_the_rows_of_its_buckets(void)
{
    static struct entry entries[entries_max];
    struct search_row *rows;
    unsigned count = entries_random(entries);
    struct search_build build = segment_of(entries, count);
    unsigned row_count = search_build_pack(&build, &rows);
    for (int try = 0; try < 50; try++) {
        struct search_query query;
        struct search_part all, few;
        query_random(&query, entries, count);
        search_part_init(&all, arena, (const uint8_t *)build.facts.data, NULL, count);
        search_part_init(&few, arena, (const uint8_t *)build.facts.data, NULL, count);
        for (unsigned i = 0; i < row_count; i++) {
            CU_ASSERT(search_part_row(&all, &query, &rows[i]));
            for (size_t k = 0; k < query.words.count; k++)
                if (memcmp(&query.buckets[k], &rows[i].bucket, sizeof rows[i].bucket) == 0)
                    CU_ASSERT(search_part_row(&few, &query, &rows[i]));
        }
        CU_ASSERT_EQUAL(search_part_match(&all, &query, NULL), search_part_match(&few, &query, NULL));
    }
}

/* Rows come from a database, so any bytes must be safe; the sanitizers check it. */
static void test_damaged_rows_are_safe(void)
{
    struct search_query query;
    uint8_t facts[entries_max] = {0};
    search_query_init(&query, arena, "ab");
    for (int try = 0; try < 20000; try++) {
        char data[48];
        struct search_part part;
        struct search_row row = {.bucket = {"ab", 2}, .data = data, .length = chance(sizeof data)};
        for (size_t i = 0; i < row.length; i++)
            data[i] = (char)chance(try % 2 == 0 ? 256 : 6);
        arena_reset(scratch);
        search_part_init(&part, scratch, facts, NULL, entries_max);
        if (search_part_row(&part, &query, &row))
            CU_ASSERT_FATAL(search_part_match(&part, &query, NULL) <= entries_max);
    }
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"words end between letters and digits", test_words_end_between_letters_and_digits},
        {"a keyword asks for its words", test_a_keyword_asks_for_its_words},
        {"rows have the documented bytes", test_rows_have_the_documented_bytes},
        {"tags are found whole and by no keyword", test_tags_are_found_whole_and_by_no_keyword},
        {"a word longer than any keyword is cut", test_a_word_longer_than_any_keyword_is_cut},
        {"segments find what a comparison finds", test_segments_find_what_a_comparison_finds},
        {"a query needs only the rows of its buckets", test_a_query_needs_only_the_rows_of_its_buckets},
        {"damaged rows are safe", test_damaged_rows_are_safe},
        CU_TEST_INFO_NULL,
    };
    arena = arena_new(0);
    scratch = arena_new(0);
    int code = runner_run("search", tests);
    arena_free(scratch);
    arena_free(arena);
    return code;
}
