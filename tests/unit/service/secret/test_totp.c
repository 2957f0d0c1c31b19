/* One-time codes. */
#include "fixture.h"
#include "service/secret/totp.h"

/* The codes are the last six digits of the SHA-1 codes in RFC 6238, appendix B. */
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

int main(void)
{
    static CU_TestInfo tests[] = {
        {"codes are those of the standard", test_codes_are_those_of_the_standard},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("totp", tests);
}
