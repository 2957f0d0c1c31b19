/* What the unit tests' programs have in common: the tests are run, and the exit code says how it went. */
#ifndef UNIT_RUNNER_H
#define UNIT_RUNNER_H

#include <CUnit/Basic.h>

/* Runs suites, closed by CU_SUITE_INFO_NULL; the exit code of main: 0 when all began and every assertion
 * held. */
int runner_run_suites(CU_SuiteInfo *suites);

/*
 * One suite of the same tests for every name, by place from 0 on, until there is
 * none (NULL): for what is tested in several forms, which begin takes in turn.
 */
int runner_run_each(const char *(*name_at)(unsigned place), CU_InitializeFunc begin, CU_CleanupFunc end,
                    CU_TestInfo *tests);

/* runner_run_suites for one suite of tests, closed by CU_TEST_INFO_NULL. */
int runner_run(const char *name, CU_TestInfo *tests);

#endif
