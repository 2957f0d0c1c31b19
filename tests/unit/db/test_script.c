/* Splitting SQL files into statements. */
#include "db/script.h"
#include "runner.h"

#include <stdlib.h>
#include <string.h>

/* Checks the statements of the text, joined by '|', each after its line number. */
static void expect(const char *text, const char *wanted)
{
    struct script script;
    struct script_statement statement;
    char got[1024];
    size_t length = 0;
    script_init(&script, text, strlen(text));
    while (script_next(&script, &statement) && length + statement.length + 8 < sizeof got) {
        if (length > 0)
            got[length++] = '|';
        got[length++] = (char)('0' + statement.line % 10);
        got[length++] = ':';
        memcpy(got + length, statement.text, statement.length);
        length += statement.length;
    }
    got[length] = '\0';
    CU_ASSERT_STRING_EQUAL(got, wanted);
}

static void plain_statements(void)
{
    expect("SELECT 1;\nSELECT 2;\n", "1:SELECT 1|2:SELECT 2");
    expect("SELECT 1", "1:SELECT 1");
    expect("SELECT 1 ;;; ; SELECT 2", "1:SELECT 1|1:SELECT 2");
    expect("", "");
    expect(" \n\t;\n", "");
}

static void comments_between(void)
{
    expect("-- first; really\nSELECT 1; # then; that\nSELECT 2; /* a; b\n */ SELECT 3",
           "2:SELECT 1|3:SELECT 2|4:SELECT 3");
    expect("SELECT 1; -- the end", "1:SELECT 1");
    expect("--\nSELECT 1", "2:SELECT 1");
}

static void two_dashes_may_be_minus_minus(void)
{
    expect("SELECT 5--2; SELECT 1", "1:SELECT 5--2|1:SELECT 1");
}

static void comments_within(void)
{
    expect("SELECT -- a; b\n1; SELECT /* ; */ 2", "1:SELECT -- a; b\n1|2:SELECT /* ; */ 2");
    expect("SELECT 1 /*! ; */", "1:SELECT 1 /*!|1:*/");
}

static void quotes(void)
{
    expect("SELECT 'a;b'; SELECT \"a;b\"; SELECT `a;b`", "1:SELECT 'a;b'|1:SELECT \"a;b\"|1:SELECT `a;b`");
    expect("SELECT 'it''s; so'; SELECT 1", "1:SELECT 'it''s; so'|1:SELECT 1");
    expect("SELECT 'a\\'; b'; SELECT 1", "1:SELECT 'a\\'; b'|1:SELECT 1");
    expect("SELECT `a\\`; SELECT 1", "1:SELECT `a\\`|1:SELECT 1");
    expect("SELECT '-- no comment'; SELECT '/*'; SELECT '*/'",
           "1:SELECT '-- no comment'|1:SELECT '/*'|1:SELECT '*/'");
    expect("SELECT 'unclosed; SELECT 1", "1:SELECT 'unclosed; SELECT 1");
    expect("SELECT /* unclosed; SELECT 1", "1:SELECT /* unclosed; SELECT 1");
}

/* Random bytes never cause a read past the end or an endless loop. */
static void any_bytes_end(void)
{
    static const char alphabet[] = "';\"`\\/*!#- \nA";
    unsigned state = 12345;
    for (int round = 0; round < 20000; round++) {
        char *text = malloc(24);
        struct script script;
        struct script_statement statement;
        int count = 0;
        CU_ASSERT_PTR_NOT_NULL_FATAL(text);
        for (int i = 0; i < 24; i++) {
            state = state * 1103515245u + 12345u;
            text[i] = alphabet[(state >> 16) % (sizeof alphabet - 1)];
        }
        script_init(&script, text, 24);
        while (script_next(&script, &statement)) {
            CU_ASSERT_FATAL(statement.text >= text && statement.text + statement.length <= text + 24);
            CU_ASSERT_FATAL(++count <= 24);
        }
        CU_ASSERT_EQUAL(script.at, 24);
        free(text);
    }
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"plain statements", plain_statements},
        {"comments between", comments_between},
        {"two dashes may be minus minus", two_dashes_may_be_minus_minus},
        {"comments within", comments_within},
        {"quotes", quotes},
        {"any bytes end", any_bytes_end},
        CU_TEST_INFO_NULL,
    };
    return runner_run("script", tests);
}
