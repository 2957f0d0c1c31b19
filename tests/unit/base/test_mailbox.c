/* Mailboxes of configuration. */
#include "base/mailbox.h"
#include "runner.h"

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

int main(void)
{
    static CU_TestInfo tests[] = {
        {"a mailbox has a name and an address", test_a_mailbox_has_a_name_and_an_address},
        CU_TEST_INFO_NULL,
    };
    return runner_run("mailbox", tests);
}
