/* Codes and sentences of errors. */
#include <string.h>

#include "base/error.h"
#include "runner.h"

static void test_every_error_has_a_code_a_sentence_and_a_way_back(void)
{
    for (unsigned error = 1; error < IW_ERROR_COUNT; error++) {
        CU_ASSERT_EQUAL(iw_error_by_code(iw_error_code((enum iw_error)error)), error);
        CU_ASSERT(strlen(iw_error_sentence((enum iw_error)error)) > 10);
    }
    CU_ASSERT_EQUAL(iw_error_by_code("NO_SUCH_CODE"), IW_OK);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"every error has a code, a sentence and a way back",
         test_every_error_has_a_code_a_sentence_and_a_way_back},
        CU_TEST_INFO_NULL,
    };
    return runner_run("error", tests);
}
