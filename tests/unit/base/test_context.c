/* Errors, details and notes of a context. */
#include "fixture.h"

static void test_the_first_error_stays(void)
{
    fresh();
    CU_ASSERT_EQUAL(context_fail(&context, IW_ORDER_NOT_FOUND, "order %d", 7), IW_ORDER_NOT_FOUND);
    CU_ASSERT_EQUAL(context_fail(&context, IW_NO_MEMORY, NULL), IW_ORDER_NOT_FOUND);
    CU_ASSERT_STRING_EQUAL(context.sentence, "order 7");
    context_clear(&context);
    CU_ASSERT_EQUAL(context_validated(&context), IW_OK);
    CU_ASSERT_STRING_EQUAL(context.request_id, "request-1");
}

static void test_validation_gathers_every_field(void)
{
    fresh();
    context_detail(&context, "files[0].fileName", "is missing");
    context_detail(&context, "files[3].fileName", "is missing");
    CU_ASSERT_EQUAL(context_validated(&context), IW_VALIDATION_FAILED);
    CU_ASSERT_EQUAL(context.detail_count, 2);
    CU_ASSERT_STRING_EQUAL(context.details->next->field, "files[3].fileName");
}

static void test_notes_are_joined_and_each_code_counts_once(void)
{
    CU_ASSERT_PTR_NULL(context_notes_text(&context));
    context_note(&context, "FIRST", "The first %d.", 1);
    context_note(&context, "SECOND", "The second.");
    context_note(&context, "FIRST", "Again.");
    context_clear(&context);
    CU_ASSERT_STRING_EQUAL(context.notes->code, "FIRST");
    CU_ASSERT_STRING_EQUAL(context_notes_text(&context), "The first 1. The second.");
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"the first error stays", test_the_first_error_stays},
        {"validation gathers every field", test_validation_gathers_every_field},
        {"notes are joined, each code once", test_notes_are_joined_and_each_code_counts_once},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("context", tests);
}
