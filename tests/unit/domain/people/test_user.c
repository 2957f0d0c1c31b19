/* Users of the console: passwords, one-time codes, addresses, networks, the texts of mails. */
#include <string.h>

#include "base/config.h"
#include "domain/people/mail.h"
#include "domain/people/throttle.h"
#include "domain/people/user.h"
#include "runner.h"
#include "service/secret/password.h"
#include "service/secret/totp.h"

static struct arena *arena;
static struct context context;
static struct config config;

static void fresh(void)
{
    arena_reset(arena);
    context_init(&context, arena, NULL);
}

static void test_a_hash_fits_its_password_only(void)
{
    const char *hash, *other;
    fresh();
    CU_ASSERT_EQUAL_FATAL(password_hash(&context, &config, "correct horse battery", &hash), IW_OK);
    CU_ASSERT_EQUAL_FATAL(password_hash(&context, &config, "correct horse battery", &other), IW_OK);
    CU_ASSERT_STRING_NOT_EQUAL(hash, other);
    CU_ASSERT(strncmp(hash, "$argon2id$", 10) == 0 && strlen(hash) < 128);
    CU_ASSERT_TRUE(password_verify(&context, &config, hash, "correct horse battery"));
    CU_ASSERT_FALSE(password_verify(&context, &config, hash, "correct horse batterz"));
    CU_ASSERT_FALSE(password_verify(&context, &config, NULL, ""));
    CU_ASSERT_FALSE(password_verify(&context, &config, "no hash", "correct horse battery"));
    CU_ASSERT_FALSE(password_is_outdated(&config, hash));
    struct config harder = config;
    harder.console_hash_operations++;
    CU_ASSERT_TRUE(password_is_outdated(&harder, hash));
}

/* RFC 6238, appendix B: the last six digits of the SHA-1 codes. */
static void test_codes_are_those_of_the_standard(void)
{
    static const struct {
        int64_t time_s;
        const char *code;
    } rows[] = {{59, "287082"},         {1111111109, "081804"}, {1111111111, "050471"},
                {1234567890, "005924"}, {2000000000, "279037"}, {20000000000, "353130"}};
    const uint8_t *secret = (const uint8_t *)"12345678901234567890";
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t step = 0, ms = rows[i].time_s * 1000;
        CU_ASSERT_TRUE(totp_verify(secret, rows[i].code, ms, &step));
        CU_ASSERT_EQUAL(step, rows[i].time_s / 30);
        CU_ASSERT_TRUE(totp_verify(secret, rows[i].code, ms + 30000, &step));
        CU_ASSERT_EQUAL(step, rows[i].time_s / 30);
        CU_ASSERT_TRUE(totp_verify(secret, rows[i].code, ms - 30000, &step));
        CU_ASSERT_FALSE(totp_verify(secret, rows[i].code, ms + 90000, &step));
    }
    int64_t step;
    CU_ASSERT_FALSE(totp_verify(secret, "28708", 59000, &step));
    CU_ASSERT_FALSE(totp_verify(secret, "2870822", 59000, &step));
    CU_ASSERT_FALSE(totp_verify(secret, "28708a", 59000, &step));
    fresh();
    CU_ASSERT_STRING_EQUAL(totp_secret_text(arena, secret), "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
}

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

static void test_an_ipv6_address_counts_by_its_network(void)
{
    fresh();
    CU_ASSERT_STRING_EQUAL(throttle_network(arena, "192.0.2.7"), "192.0.2.7");
    CU_ASSERT_STRING_EQUAL(throttle_network(arena, "2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
    CU_ASSERT_STRING_EQUAL(throttle_network(arena, "::ffff:192.0.2.7"), "::ffff:192.0.2.7");
    CU_ASSERT_STRING_EQUAL(throttle_network(arena, "no address"), "no address");
}

static void test_each_mail_has_a_text_in_each_language(void)
{
    for (int kind = 0; kind < MAIL_KIND_COUNT; kind++)
        for (int language = 0; language < USER_LANGUAGE_COUNT; language++) {
            const char *subject, *text;
            fresh();
            const struct mail mail = {.kind = (enum mail_kind)kind,
                                      .language = (enum user_language)language,
                                      .values = {"https://one.example", "{1} two"}};
            mail_text(arena, &mail, &subject, &text);
            CU_ASSERT(strlen(subject) > 5 && strstr(text, "https://one.example") != NULL);
            CU_ASSERT_PTR_NULL(strstr(subject, "{2}"));
            /* A value is no pattern. */
            CU_ASSERT(strstr(text, "two") == NULL || strstr(text, "{1} two") != NULL);
        }
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"a hash fits its password only", test_a_hash_fits_its_password_only},
        {"codes are those of the standard", test_codes_are_those_of_the_standard},
        {"addresses", test_addresses},
        {"passwords have a length", test_passwords_have_a_length},
        {"an IPv6 address counts by its network", test_an_ipv6_address_counts_by_its_network},
        {"each mail has a text in each language", test_each_mail_has_a_text_in_each_language},
        CU_TEST_INFO_NULL,
    };
    arena = arena_new(0);
    config_init(&config);
    config.console_hash_memory_bytes = 1 << 20;
    int code = runner_run("user", tests);
    arena_free(arena);
    return code;
}
