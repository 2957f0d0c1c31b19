/* The loop of a transaction.  The connection is simulated, so no server is needed. */
#include <string.h>

#include "db/transaction.h"
#include "runner.h"

/* The steps of the loop: "b" begin, "c" commit, "r" rollback. */
static char steps[32];
static bool is_begun, is_conflict;
static enum iw_error begin_error, commit_error;
static struct context context;
static const struct db db = {.context = &context};

static void step_add(const char *step)
{
    strncat(steps, step, sizeof steps - strlen(steps) - 1);
}

enum iw_error db_begin(const struct db *of)
{
    (void)of;
    step_add("b");
    is_begun = begin_error == IW_OK;
    return begin_error;
}

enum iw_error db_commit(const struct db *of)
{
    (void)of;
    step_add("c");
    is_begun = false;
    return commit_error;
}

void db_rollback(struct db_connection *connection)
{
    (void)connection;
    step_add("r");
    is_begun = false;
}

bool db_is_begun(const struct db_connection *connection)
{
    (void)connection;
    return is_begun;
}

bool db_is_conflict(const struct db_connection *connection)
{
    (void)connection;
    return is_conflict;
}

static void reset(void)
{
    memset(steps, 0, sizeof steps);
    is_begun = is_conflict = false;
    begin_error = commit_error = IW_OK;
}

/* Runs a body that returns an error until its last run, which returns last. */
static enum iw_error run(enum iw_error first, enum iw_error last, unsigned last_run, unsigned *runs)
{
    enum iw_error error;
    *runs = 0;
    for (struct transaction t = transaction_begin(&db); transaction_goes_on(&t, &error);) {
        CU_ASSERT_EQUAL(error, IW_OK);
        error = ++*runs < last_run ? first : last;
    }
    return error;
}

static void success_commits(void)
{
    unsigned runs;
    reset();
    CU_ASSERT_EQUAL(run(IW_OK, IW_OK, 1, &runs), IW_OK);
    CU_ASSERT_EQUAL(runs, 1);
    CU_ASSERT_STRING_EQUAL(steps, "bc");
}

static void an_error_rolls_back(void)
{
    unsigned runs;
    reset();
    CU_ASSERT_EQUAL(run(IW_NOT_FOUND, IW_NOT_FOUND, 1, &runs), IW_NOT_FOUND);
    CU_ASSERT_EQUAL(runs, 1);
    CU_ASSERT_STRING_EQUAL(steps, "br");
}

/* The error of the conflict is cleared before the next run. */
static void a_conflict_repeats_the_body_three_times_at_most(void)
{
    unsigned runs;
    reset();
    is_conflict = true;
    context_init(&context, NULL, NULL);
    context.error = IW_SERVICE_UNAVAILABLE;
    CU_ASSERT_EQUAL(run(IW_SERVICE_UNAVAILABLE, IW_OK, 3, &runs), IW_OK);
    CU_ASSERT_EQUAL(runs, 3);
    CU_ASSERT_EQUAL(context.error, IW_OK);
    CU_ASSERT_STRING_EQUAL(steps, "brbrbc");
    reset();
    is_conflict = true;
    CU_ASSERT_EQUAL(run(IW_SERVICE_UNAVAILABLE, IW_OK, 4, &runs), IW_SERVICE_UNAVAILABLE);
    CU_ASSERT_EQUAL(runs, 3);
    CU_ASSERT_STRING_EQUAL(steps, "brbrbr");
}

static void a_failed_commit_is_the_result(void)
{
    unsigned runs;
    reset();
    commit_error = IW_SERVICE_UNAVAILABLE;
    CU_ASSERT_EQUAL(run(IW_OK, IW_OK, 1, &runs), IW_SERVICE_UNAVAILABLE);
    CU_ASSERT_STRING_EQUAL(steps, "bcr");
}

static void a_failed_start_runs_no_body(void)
{
    unsigned runs;
    reset();
    begin_error = IW_SERVICE_UNAVAILABLE;
    CU_ASSERT_EQUAL(run(IW_OK, IW_OK, 1, &runs), IW_SERVICE_UNAVAILABLE);
    CU_ASSERT_EQUAL(runs, 0);
    CU_ASSERT_STRING_EQUAL(steps, "b");
}

static void a_loop_inside_another_one_joins_it(void)
{
    unsigned runs;
    reset();
    is_conflict = true;
    enum iw_error error;
    for (struct transaction t = transaction_begin(&db); transaction_goes_on(&t, &error);)
        error = run(IW_SERVICE_UNAVAILABLE, IW_OK, t.calls < 2 ? 2 : 1, &runs);
    CU_ASSERT_EQUAL(error, IW_OK);
    CU_ASSERT_EQUAL(runs, 1);
    CU_ASSERT_STRING_EQUAL(steps, "brbc");
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"success commits", success_commits},
        {"an error rolls back", an_error_rolls_back},
        {"a conflict repeats the body three times at most", a_conflict_repeats_the_body_three_times_at_most},
        {"a failed commit is the result", a_failed_commit_is_the_result},
        {"a failed start runs no body", a_failed_start_runs_no_body},
        {"a loop inside another one joins it", a_loop_inside_another_one_joins_it},
        CU_TEST_INFO_NULL,
    };
    return runner_run("transaction", tests);
}
