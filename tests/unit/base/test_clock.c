/* Times and dates. */
#include "base/clock.h"
#include "runner.h"

static void test_times_are_written_and_read_as_iso_8601(void)
{
    char iso[clock_iso_size];
    int64_t time_ms = 0;
    clock_iso(1773309600000, iso);
    CU_ASSERT_STRING_EQUAL(iso, "2026-03-12T10:00:00.000Z");
    CU_ASSERT(clock_iso_read("2026-03-12T10:00:00.000Z", &time_ms) && time_ms == 1773309600000);
    CU_ASSERT(clock_iso_read("2026-03-12T12:00:00+02:00", &time_ms) && time_ms == 1773309600000);
    CU_ASSERT(clock_iso_read("2026-03-12T10:00:00.1239Z", &time_ms) && time_ms == 1773309600123);
    CU_ASSERT(clock_iso_read("9999-12-31T23:59:59.999Z", &time_ms) && time_ms == 253402300799999);
    static const char *const bad[] = {"2026-02-30T10:00:00Z",      "2026-03-12",
                                      "2026-03-12T10:00:00",       "2026-3-12T10:00:00Z",
                                      "2026-13-12T10:00:00Z",      "2026-03-12T25:00:00Z",
                                      "2026-03-12T10:00:00Zx",     "",
                                      "9999-12-31T23:59:59-00:01", "1970-01-01T00:00:00+00:01"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CU_ASSERT_FALSE(clock_iso_read(bad[i], &time_ms));
    for (int64_t probe = 1; probe < 4102444800000; probe += 86400000LL * 37 + 1234567) {
        clock_iso(probe, iso);
        CU_ASSERT(clock_iso_read(iso, &time_ms) && time_ms == probe);
    }
    CU_ASSERT(clock_day_read("2024-02-29", &time_ms) && time_ms == 1709164800000);
    CU_ASSERT_FALSE(clock_day_read("2023-02-29", &time_ms));
    int64_t before = clock_now_ms();
    clock_offset_set_s(3600);
    CU_ASSERT(clock_now_ms() - before >= 3600000);
    clock_offset_set_s(0);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"times are written and read as ISO 8601", test_times_are_written_and_read_as_iso_8601},
        CU_TEST_INFO_NULL,
    };
    return runner_run("clock", tests);
}
