/* Names of results and of entries of archives. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "fixture.h"
#include "service/files/name.h"

static const char *name_of(const char *name, const char *suffix, const char *format)
{
    const struct name_request wanted = {.name = name, .suffix = suffix, .format = format_by_name(format)};
    return name_one(arena, &wanted);
}

static void test_names_are_safe(void)
{
    static const struct {
        const char *given;
        const char *format;
        const char *wanted;
    } rows[] = {
        {"a.jpg", "jpeg", "a.jpg"},
        /* The format determines the extension; if the client's is correct, its spelling stays. */
        {"a.JPEG", "jpeg", "a.JPEG"},
        {"a.jpg", "png", "a.png"},
        {"A.PNG", "jpeg", "A.jpg"},
        {"a.webp", "png", "a.png"},
        {"a.jpg", NULL, "a.jpg"},
        {"holiday.2024", "webp", "holiday.2024.webp"},
        {"none", "png", "none.png"},
        {".jpg", "jpeg", ".jpg.jpg"},
        {"order.jpg.zip", "zip", "order.jpg.zip"},
        /* Characters and names that Windows refuses. */
        {"what: ever?.jpg", "jpeg", "what_ ever_.jpg"},
        {"x<y>|\"z\"*.jpg", "jpeg", "x_y___z__.jpg"},
        {"../../etc/passwd.png", "png", ".._.._etc_passwd.png"},
        {"x\\y\n\x7f.png", "png", "x_y__.png"},
        {"CON.jpg", "jpeg", "_CON.jpg"},
        {"con.tar.jpg", "jpeg", "_con.tar.jpg"},
        {"Nul .png", "png", "_Nul .png"},
        {"COM1.jpg", "png", "_COM1.png"},
        {"lpt\u00B3.webp", "webp", "_lpt\u00B3.webp"},
        {"CONIN$.jpg", "jpeg", "_CONIN$.jpg"},
        {"console.jpg", "jpeg", "console.jpg"},
        {"COM10.jpg", "jpeg", "COM10.jpg"},
        {"end. .", NULL, "end"},
        {"end.jpg.", "jpeg", "end.jpg..jpg"},
        /* Empty or invalid names. */
        {"..", NULL, "file"},
        {"", "png", "file.png"},
        {NULL, "png", "file.png"},
        {"\u202E\u2066", "jpeg", "file.jpg"},
        /* Bidirectional controls are removed, control characters and line ends replaced, joiners kept. */
        {"photo\u202Egpj.exe\u2069\u200F.jpg", "jpeg", "photogpj.exe.jpg"},
        {"\u202ECON.jpg", "jpeg", "_CON.jpg"},
        {"a\xC2\x85"
         "b\u2028c\u2029.png",
         "png", "a_b_c_.png"},
        {"\U0001F469\u200D\U0001F680.png", "png", "\U0001F469\u200D\U0001F680.png"},
        {"\xFF\xC3.png", "png", "__.png"},
        {"gr\u00F6\u00DFe.webp", "webp", "gr\u00F6\u00DFe.webp"},
        {"-rf.jpg", "jpeg", "-rf.jpg"},
        {".hidden.jpg", "jpeg", ".hidden.jpg"},
    };
    fresh();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *name = name_of(rows[i].given, NULL, rows[i].format);
        CU_ASSERT_STRING_EQUAL(name, rows[i].wanted);
        CU_ASSERT_STRING_EQUAL(name_of(name, NULL, rows[i].format), name);
    }
}

/* Returns a text of count pieces, then end. */
static const char *repeated(const char *piece, size_t count, const char *end)
{
    struct text text;
    text_init(&text, arena);
    while (text.length + strlen(piece) <= count)
        text_add_string(&text, piece);
    text_add_string(&text, end);
    return text.data;
}

static void test_names_are_cut_between_characters(void)
{
    fresh();
    CU_ASSERT_STRING_EQUAL(name_of(repeated("n", 251, ".jpg"), NULL, "jpeg"), repeated("n", 251, ".jpg"));
    CU_ASSERT_STRING_EQUAL(name_of(repeated("n", 251, ".jpg"), "-10", "jpeg"), repeated("n", 248, "-10.jpg"));
    CU_ASSERT_STRING_EQUAL(name_of(repeated("n", 251, ".jpg"), NULL, "webp"), repeated("n", 250, ".webp"));
    /* Code points of two and four bytes, a letter with a combining accent, an emoji sequence. */
    CU_ASSERT_STRING_EQUAL(name_of(repeated("\u00E9", 250, ".jpg"), "-1", "jpeg"),
                           repeated("\u00E9", 248, "-1.jpg"));
    CU_ASSERT_STRING_EQUAL(name_of(repeated("\U0001F680", 248, ".jpg"), "-1000", "jpeg"),
                           repeated("\U0001F680", 244, "-1000.jpg"));
    CU_ASSERT_STRING_EQUAL(name_of(repeated("e\u0301", 251, ".jpg"), "-1", "jpeg"),
                           repeated("e\u0301", 249, "-1.jpg"));
    CU_ASSERT_STRING_EQUAL(name_of(repeated("\U0001F469\u200D\U0001F680", 251, ".jpg"), "-1", "jpeg"),
                           repeated("\U0001F469\u200D\U0001F680", 242, "-1.jpg"));
    /* If a single grapheme cluster is longer than a name, it is cut between code points. */
    const char *tower = arena_printf(arena, "a%s", repeated("\u0301", 250, ".jpg"));
    CU_ASSERT_STRING_EQUAL(name_of(tower, "-1", "jpeg"),
                           arena_printf(arena, "a%s", repeated("\u0301", 248, "-1.jpg")));
    /* After the cut, the rest of the name is empty or the name of a device. */
    CU_ASSERT_STRING_EQUAL(name_of(repeated(" ", 300, "x"), NULL, NULL), "file");
    CU_ASSERT_STRING_EQUAL(name_of(repeated(".", 300, "x"), NULL, NULL), "file");
    const char *device = arena_printf(arena, "CON%s", repeated(" ", 300, "x"));
    CU_ASSERT_STRING_EQUAL(name_of(device, NULL, NULL), "_CON");
    CU_ASSERT_STRING_EQUAL(name_of(device, NULL, "jpeg"),
                           arena_printf(arena, "_CON%s", repeated(" ", 247, ".jpg")));
    CU_ASSERT_STRING_EQUAL(name_of(arena_printf(arena, "COM1a%s", repeated("\u0301", 300, "")), "-1", "jpeg"),
                           "_COM1-1.jpg");
}

static void names_expect(const char *const *given, const char *const *wanted, size_t count)
{
    struct name_request *requests = arena_array(arena, count, sizeof *requests);
    for (size_t i = 0; i < count; i++)
        requests[i] = (struct name_request){.name = given[i], .format = FORMAT_JPEG};
    const char **names = name_list(arena, requests, count);
    for (size_t i = 0; i < count; i++) {
        CU_ASSERT_STRING_EQUAL(names[i], wanted[i]);
        requests[i].name = names[i];
    }
    const char **again = name_list(arena, requests, count);
    for (size_t i = 0; i < count; i++)
        CU_ASSERT_STRING_EQUAL(again[i], names[i]);
}

static void test_duplicates_differ_on_every_file_system(void)
{
    static const char *const given[] = {
        "a.jpg",
        "A.JPG",
        "a.jpg",
        "a (2).jpg",
        "\u00E9.jpg",
        "e\u0301.jpg",
        "\u00C9.jpg",
        "stra\u00DFe.jpg",
        "STRASSE.jpg",
        "\u03C3.jpg",
        "\u03C2.jpg",
        "\u212Ab.jpg",
        "kB.jpg",
        "so\u00ADft.jpg",
        "soft.jpg",
        "\u1E9B\u0323.jpg",
        "\u017F\u0323\u0307.jpg",
        "a?.jpg",
        "a*.jpg",
        "con.jpg",
        "_CON.jpg",
        "x.png",
        "x.jpg",
        "\u202Ex.webp",
    };
    static const char *const wanted[] = {
        "a.jpg",
        "A (2).JPG",
        "a (3).jpg",
        "a (2) (2).jpg",
        "\u00E9.jpg",
        "e\u0301 (2).jpg",
        "\u00C9 (3).jpg",
        "stra\u00DFe.jpg",
        "STRASSE (2).jpg",
        "\u03C3.jpg",
        "\u03C2 (2).jpg",
        "\u212Ab.jpg",
        "kB (2).jpg",
        "so\u00ADft.jpg",
        "soft (2).jpg",
        "\u1E9B\u0323.jpg",
        "\u017F\u0323\u0307 (2).jpg",
        "a_.jpg",
        "a_ (2).jpg",
        "_con.jpg",
        "_CON (2).jpg",
        "x.jpg",
        "x (2).jpg",
        "x (3).jpg",
    };
    fresh();
    names_expect(given, wanted, sizeof given / sizeof given[0]);
    const char *long_name = repeated("n", 251, ".jpg");
    const char *const twins[] = {long_name, long_name, repeated("n", 247, " (2).jpg")};
    const char *const told[] = {long_name, repeated("n", 247, " (2).jpg"), repeated("n", 247, " (3).jpg")};
    names_expect(twins, told, 3);
}

/* An order may have this many results with names of full length: a hundred duplicates, ten copies each. */
static void test_names_of_many_duplicates(void)
{
    enum { copies = 10, count = 1000 };
    static struct name_request requests[count];
    fresh();
    for (int i = 0; i < count; i++)
        requests[i] = (struct name_request){.name = repeated("x", 250, i % 3 == 0 ? ".png" : ".PNG"),
                                            .suffix = arena_printf(arena, "-%d", i % copies + 1),
                                            .format = FORMAT_PNG};
    const char **names = name_list(arena, requests, count);
    for (int i = 0; i < count; i++) {
        char end[32];
        const char *extension = i % 3 == 0 ? ".png" : ".PNG";
        if (i < copies)
            snprintf(end, sizeof end, "-%d%s", i + 1, extension);
        else
            snprintf(end, sizeof end, "-%d (%d)%s", i % copies + 1, i / copies + 1, extension);
        CU_ASSERT_STRING_EQUAL(names[i], repeated("x", name_bytes_max - strlen(end), end));
    }
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"names are safe", test_names_are_safe},
        {"names are cut between characters", test_names_are_cut_between_characters},
        {"duplicates differ on every file system", test_duplicates_differ_on_every_file_system},
        {"names of many duplicates", test_names_of_many_duplicates},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("names", tests);
}
