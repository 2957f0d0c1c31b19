/* Addresses and passwords of users. */
#include "domain/people/user.h"
#include "fixture.h"

static void test_addresses(void)
{
    static const char *const good[] = {"a@b.example", "First.Last+tag@Sub.Example.org", "o'neil@example.org",
                                       "a@localhost"};
    static const char *const bad[] = {"",           "a",     "@b",      "a@",    "a@.b",
                                      "a@b.",       "a b@c", "a@b@c",   "a@b c", "a@b\r\nX: y",
                                      "\xC3\xA9@b", "<a@b>", "a@b,c@d", "a@b_c"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        fresh();
        CU_ASSERT_PTR_NOT_NULL(user_email_read(&context, "email", good[i]));
    }
    CU_ASSERT_STRING_EQUAL(user_email_read(&context, "email", "First@Example.ORG"), "first@example.org");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fresh();
        CU_ASSERT_PTR_NULL(user_email_read(&context, "email", bad[i]));
        CU_ASSERT_EQUAL(context.detail_count, 1);
    }
}

static void test_passwords_have_a_length(void)
{
    fresh();
    CU_ASSERT_TRUE(user_password_check(&context, "p", "twelve bytes", NULL));
    CU_ASSERT_FALSE(user_password_check(&context, "p", "eleven byte", NULL));
    CU_ASSERT_FALSE(user_password_check(&context, "p", "Name@Example.org", "name@example.org"));
}

/* NIST SP 800-63B, 5.1.1.2: common passwords, also in a row or with digits after them. */
static void test_common_passwords_are_refused(void)
{
    static const char *const common[] = {"password1234",  "Password1234",   "PASSWORDpassword",
                                         "qwertyuiop123", "aaaaaaaaaaaa",   "123456789012",
                                         "iloveyou2026",  "letmeinletmein", "asdfghjklqwerty"};
    static const char *const good[] = {"correct horse battery", "my password is long",
                                       "another long password", "twelve bytes",
                                       "\xEA\xB9\x80\xEC\xB9\x98 \xEC\xB0\x8C\xEA\xB0\x9C three of them"};
    for (size_t i = 0; i < sizeof common / sizeof common[0]; i++) {
        fresh();
        CU_ASSERT_FALSE(user_password_check(&context, "p", common[i], NULL));
        CU_ASSERT_EQUAL(context.detail_count, 1);
    }
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        fresh();
        CU_ASSERT_TRUE(user_password_check(&context, "p", good[i], NULL));
    }
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"addresses", test_addresses},
        {"passwords have a length", test_passwords_have_a_length},
        {"common passwords are refused", test_common_passwords_are_refused},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("user", tests);
}
