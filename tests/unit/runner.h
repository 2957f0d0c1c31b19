/* Runs the tests of a unit test program and returns its exit code. */
#ifndef UNIT_RUNNER_H
#define UNIT_RUNNER_H

#include <CUnit/Basic.h>

/*
 * Runs suites, terminated by CU_SUITE_INFO_NULL. Returns the exit code for main: 0 when every
 * suite started and every assertion held.
 */
int runner_run_suites(CU_SuiteInfo *suites);

/*
 * Runs the same tests once per name: name_at is called with 0, 1, ... until it returns NULL.
 * The functions begin and end run before and after each pass; begin selects the form to test, in that order.
 */
int runner_run_each(const char *(*name_at)(unsigned place), CU_InitializeFunc begin, CU_CleanupFunc end,
                    CU_TestInfo *tests);

/* runner_run_suites for one suite of tests, terminated by CU_TEST_INFO_NULL. */
int runner_run(const char *name, CU_TestInfo *tests);

#endif
