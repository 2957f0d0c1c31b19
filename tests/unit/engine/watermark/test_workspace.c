/* Memory of the engine. */
#include "engine/watermark/workspace.h"
#include "watermark_maker.h"

/* Released memory is reused. Allocations larger than a block get a separate block. */
static void workspace_is_a_stack(void)
{
    struct workspace workspace;
    unsigned char *first, *second;

    workspace_init(&workspace);
    first = workspace_take(&workspace, 100, 1);
    size_t mark = workspace_mark(&workspace);
    for (int round = 0; round < 3; round++) {
        second = workspace_take(&workspace, (size_t)20 << 20, 1);
        CU_ASSERT_PTR_NOT_NULL_FATAL(second);
        CU_ASSERT_EQUAL((uintptr_t)second % 64, 0);
        second[((size_t)20 << 20) - 1] = 1;
        CU_ASSERT_EQUAL(second[0], 0);
        CU_ASSERT_PTR_NOT_NULL(workspace_take(&workspace, (size_t)5 << 20, 4));
        workspace_rewind(&workspace, mark);
        CU_ASSERT_EQUAL(workspace_mark(&workspace), mark);
    }
    first[99] = 1;
    CU_ASSERT_PTR_NULL(workspace_take(&workspace, SIZE_MAX / 4, 4));
    CU_ASSERT(workspace.failed);
    CU_ASSERT_PTR_NULL(workspace_take(&workspace, 1, 1));
    workspace_fini(&workspace);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"the workspace is a stack", workspace_is_a_stack},
        CU_TEST_INFO_NULL,
    };
    return runner_run("workspace", tests);
}
