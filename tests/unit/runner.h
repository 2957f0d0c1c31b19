/* Runs the tests of a unit test program and returns its exit code. */
#ifndef UNIT_RUNNER_H
#define UNIT_RUNNER_H

#include <CUnit/Basic.h>

/*
 * Runs suites, terminated by CU_SUITE_INFO_NULL. Returns the exit code for main: 0 if every
 * suite started and every assertion held.
 */
int runner_run_suites(CU_SuiteInfo *suites);

/*
 * Runs the same tests once per name; name_at is called with 0, 1, ... until it returns NULL.
 * Each pass begins with begin, which selects the next form to test, and ends with end.
 */
int runner_run_each(const char *(*name_at)(unsigned place), CU_InitializeFunc begin, CU_CleanupFunc end,
                    CU_TestInfo *tests);

/* Does the same as runner_run_suites for one suite, terminated by CU_TEST_INFO_NULL. */
int runner_run(const char *name, CU_TestInfo *tests);

#endif
