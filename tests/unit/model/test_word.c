/* Words of enums. */
#include "model/account.h"
#include "model/file.h"
#include "runner.h"

static void test_words_of_files_and_accounts_read_back(void)
{
    for (int i = 0; i < FILE_STATUS_COUNT; i++) {
        enum file_status status = FILE_STATUS_COUNT;
        CU_ASSERT(file_status_read(file_status_name((enum file_status)i), &status) && (int)status == i);
    }
    for (int i = 0; i < ACCOUNT_STATUS_COUNT; i++) {
        enum account_status status = ACCOUNT_STATUS_COUNT;
        CU_ASSERT(account_status_read(account_status_name((enum account_status)i), &status) &&
                  (int)status == i);
    }
    enum file_status unchanged = FILE_COMPLETE;
    CU_ASSERT(!file_status_read("Pending", &unchanged) && unchanged == FILE_COMPLETE);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"words of files and accounts read back", test_words_of_files_and_accounts_read_back},
        CU_TEST_INFO_NULL,
    };
    return runner_run("word", tests);
}
