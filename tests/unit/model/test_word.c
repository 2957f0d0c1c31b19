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

static void test_scopes_read_back_and_unknown_ones_give_no_right(void)
{
    struct arena *arena = arena_new(0);
    static const char *const wrong[] = {
        "", "Read", "read,", ",read", "read webhooks", "all", "watermarkExtracts"};
    for (unsigned scopes = 1; scopes < 1u << key_scope_count; scopes++) {
        unsigned read = 0;
        CU_ASSERT(key_scopes_read(key_scopes_text(arena, scopes, ","), &read) && read == scopes);
    }
    CU_ASSERT_PTR_NULL(key_scopes_text(arena, KEY_SCOPE_UNKNOWN, ","));
    CU_ASSERT_STRING_EQUAL(key_scopes_text(arena, KEY_SCOPE_READ | KEY_SCOPE_WEBHOOKS, " or "),
                           "read or webhooks");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        unsigned read = 0;
        CU_ASSERT(!key_scopes_read(wrong[i], &read));
    }
    for (int type = 0; type < ORDER_TYPE_COUNT; type++) {
        unsigned read = 0;
        CU_ASSERT(key_scopes_read(order_type_name((enum order_type)type), &read));
        CU_ASSERT_EQUAL(read, key_scope_of((enum order_type)type));
    }
    arena_free(arena);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"words of files and accounts read back", test_words_of_files_and_accounts_read_back},
        {"scopes read back, and unknown ones give no right",
         test_scopes_read_back_and_unknown_ones_give_no_right},
        CU_TEST_INFO_NULL,
    };
    return runner_run("word", tests);
}
