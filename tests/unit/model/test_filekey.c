/* File keys. */
#include "fixture.h"
#include "model/filekey.h"

static void test_file_keys(void)
{
    static const char *const good[] = {
        "in/7/1",    "in/7/100o", "out/9223372036854775807/9223372036854775807",
        "zip/12345", "thumb/1",   "thumb/1/100"};
    static const char *const bad[] = {
        "",
        "in",
        "in/",
        "in/7",
        "in/7/",
        "in/7/0",
        "in/07/1",
        "in/7/01",
        "in/7/1/",
        "in/-7/1",
        "in/7/1oo",
        "in/7/o",
        "out/7/1o",
        "zip/7/1",
        "zip/7o",
        "zip/",
        "thumb/7/",
        "thumb/7/0",
        "thumb/7/1o",
        "thumb/7/1/1",
        "tmp/7/1",
        "In/7/1",
        " in/7/1",
        "in/7/1 ",
        "in/7/1\n",
        "in//7/1",
        "/in/7/1",
        "in/../1",
        "in/7/1/../2",
        "in/9223372036854775808/1",
        "out/7/99999999999999999999999999999999999999999999999999999999999999999999"};
    struct filekey key;
    fresh();
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        CU_ASSERT_TRUE_FATAL(filekey_read(good[i], &key));
        CU_ASSERT_STRING_EQUAL(filekey_text(arena, &key), good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CU_ASSERT_FALSE(filekey_read(bad[i], &key));
    CU_ASSERT_TRUE(filekey_read("in/7/3o", &key));
    CU_ASSERT(key.kind == FILEKEY_ORIGINAL && key.order_id == 7 && key.number == 3);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"file keys", test_file_keys},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("file keys", tests);
}
