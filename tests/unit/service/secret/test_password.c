/* Hashes of passwords. */
#include <string.h>

#include "base/config.h"
#include "fixture.h"
#include "service/secret/password.h"

static struct config config;

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

int main(void)
{
    static CU_TestInfo tests[] = {
        {"a hash fits its password only", test_a_hash_fits_its_password_only},
        CU_TEST_INFO_NULL,
    };
    config_init(&config);
    config.console_hash_memory_bytes = 1 << 20;
    return fixture_run("password", tests);
}
