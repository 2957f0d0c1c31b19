/* Statuses of error codes. */
#include "http/failure.h"
#include "runner.h"

static void test_every_public_code_has_its_status(void)
{
    CU_ASSERT_EQUAL(failure_status(IW_VALIDATION_FAILED), 400);
    CU_ASSERT_EQUAL(failure_status(IW_AUTH_FORBIDDEN), 403);
    CU_ASSERT_EQUAL(failure_status(IW_PROCESSED_FILE_NOT_FOUND), 404);
    CU_ASSERT_EQUAL(failure_status(IW_ORDER_ALREADY_STARTED), 409);
    CU_ASSERT_EQUAL(failure_status(IW_RATE_LIMIT_EXCEEDED), 429);
    CU_ASSERT_EQUAL(failure_status(IW_SERVICE_UNAVAILABLE), 503);
    CU_ASSERT_EQUAL(failure_status(IW_TWIN_EXISTS), 500);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"every public code has its status", test_every_public_code_has_its_status},
        CU_TEST_INFO_NULL,
    };
    return runner_run("failure", tests);
}
