/* The cursor over the columns of a row, and statements that are put together. */
#include "db/query.h"
#include "fixture.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs a function in a child, which must abort. */
static void expect_abort(void (*run)(void))
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        run();
        _exit(0);
    }
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static struct db_rows rows_of(const struct db_value *values, size_t count, unsigned columns)
{
    return (struct db_rows){.count = count, .columns = columns, .values = values};
}

static void columns_are_read_in_order(void)
{
    size_t length = 7;
    const struct db_value values[] = {db_integer(5), db_text("five"), db_integer(1),       db_null(),
                                      db_null(),     db_integer(6),   db_bytes("a\0b", 3), db_integer(0),
                                      db_null(),     db_integer(9)};
    const struct db_rows rows = rows_of(values, 2, 5);
    struct db_row first = db_row(&rows, 0), second = db_row(&rows, 1);
    CU_ASSERT_EQUAL(db_next_integer(&first), 5);
    CU_ASSERT_STRING_EQUAL(db_next_text(&first), "five");
    CU_ASSERT(db_next_bool(&first));
    CU_ASSERT(db_next_is_null(&first));
    CU_ASSERT_PTR_NULL(db_next_bytes(&first, &length));
    CU_ASSERT_EQUAL(length, 0);
    CU_ASSERT_EQUAL(db_next_integer(&second), 6);
    CU_ASSERT_EQUAL(memcmp(db_next_bytes(&second, &length), "a\0b", 3), 0);
    CU_ASSERT_EQUAL(length, 3);
    CU_ASSERT_FALSE(db_next_bool(&second));
    CU_ASSERT_EQUAL(db_next_integer(&second), 0);
    CU_ASSERT_FALSE(db_next_is_null(&second));
    CU_ASSERT_EQUAL(db_next_integer(&second), 9);
}

static void read_too_far(void)
{
    const struct db_value values[] = {db_integer(5)};
    const struct db_rows rows = rows_of(values, 1, 1);
    struct db_row row = db_row(&rows, 0);
    (void)db_next_integer(&row);
    (void)db_next_integer(&row);
}

static void read_no_row(void)
{
    const struct db_rows rows = rows_of(NULL, 0, 1);
    (void)db_row(&rows, 0);
}

static void columns_end(void)
{
    expect_abort(read_too_far);
    expect_abort(read_no_row);
}

static void parts_bring_their_parameters(void)
{
    struct query query;
    const struct db_value values[] = {db_integer(1), db_text("two"), db_integer(3)};
    query_init(&query, arena);
    query_append(&query, "INSERT INTO t VALUES ", NULL, 0);
    query_append(&query, "(?, ?)", values, 2);
    query_append(&query, ", (?, 0)", values + 2, 1);
    CU_ASSERT_STRING_EQUAL(query.sql.data, "INSERT INTO t VALUES (?, ?), (?, 0)");
    CU_ASSERT_EQUAL_FATAL(query.count, 3);
    CU_ASSERT_EQUAL(query.parameters[0].integer, 1);
    CU_ASSERT_STRING_EQUAL(query.parameters[1].text, "two");
    CU_ASSERT_EQUAL(query.parameters[2].integer, 3);
}

static void append_wrong_number(void)
{
    struct query query;
    const struct db_value value = db_integer(1);
    query_init(&query, arena);
    query_append(&query, "(?, ?)", &value, 1);
}

static void question_marks_are_counted(void)
{
    expect_abort(append_wrong_number);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"columns are read in order", columns_are_read_in_order},
        {"columns end", columns_end},
        {"parts bring their parameters", parts_bring_their_parameters},
        {"question marks are counted", question_marks_are_counted},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("query", tests);
}
