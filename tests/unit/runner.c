#include "runner.h"

#include <stdint.h>
#include <stdlib.h>

int runner_run_suites(CU_SuiteInfo *suites)
{
    if (CU_initialize_registry() != CUE_SUCCESS || CU_register_suites(suites) != CUE_SUCCESS)
        return EXIT_FAILURE;
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures() + CU_get_number_of_suites_failed();
    CU_cleanup_registry();
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int runner_run(const char *name, CU_TestInfo *tests)
{
    CU_SuiteInfo suites[] = {{name, NULL, NULL, NULL, NULL, tests}, CU_SUITE_INFO_NULL};
    return runner_run_suites(suites);
}

int runner_run_each(const char *(*name_at)(unsigned place), CU_InitializeFunc begin, CU_CleanupFunc end,
                    CU_TestInfo *tests)
{
    enum { most = 8 };
    CU_SuiteInfo suites[most + 1] = {CU_SUITE_INFO_NULL};
    for (unsigned place = 0; place < most && name_at(place) != NULL; place++)
        suites[place] = (CU_SuiteInfo){name_at(place), begin, end, NULL, NULL, tests};
    return runner_run_suites(suites);
}
