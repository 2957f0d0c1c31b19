/* Unique names of an order's results. */
#include "domain/result_name.h"

#include <stdlib.h>
#include <string.h>

#include <CUnit/Basic.h>

#include "base/text.h"

static void expect(const char *const *names, const char *const *wanted, unsigned count)
{
    struct arena *arena = arena_new(0);
    const char **got = result_names(arena, names, count);
    for (unsigned i = 0; i < count; i++)
        CU_ASSERT_STRING_EQUAL(got[i], wanted[i]);
    arena_free(arena);
}

static void single_names_stay(void)
{
    expect((const char *const[]){"a.jpg", "b.jpg"}, (const char *const[]){"a.jpg", "b.jpg"}, 2);
}

static void twins_are_numbered(void)
{
    expect((const char *const[]){"a.jpg", "a.jpg", "a.jpg"},
           (const char *const[]){"a.jpg", "a (2).jpg", "a (3).jpg"}, 3);
    expect((const char *const[]){"a.jpg", "A.JPG"}, (const char *const[]){"a.jpg", "A (2).JPG"}, 2);
    expect((const char *const[]){"a.b.png", "a.b.png"}, (const char *const[]){"a.b.png", "a.b (2).png"}, 2);
}

static void a_numbered_name_may_be_there_already(void)
{
    expect((const char *const[]){"a (2).jpg", "a.jpg", "a.jpg"},
           (const char *const[]){"a (2).jpg", "a.jpg", "a (3).jpg"}, 3);
    expect((const char *const[]){"a.jpg", "a.jpg", "a (2).jpg"},
           (const char *const[]){"a.jpg", "a (2).jpg", "a (2) (2).jpg"}, 3);
}

static void a_hundred_twins_all_differ(void)
{
    const char *names[100];
    for (int i = 0; i < 100; i++)
        names[i] = "same.webp";
    struct arena *arena = arena_new(0);
    const char **got = result_names(arena, names, 100);
    for (int i = 0; i < 100; i++)
        for (int j = 0; j < i; j++)
            CU_ASSERT_FALSE(text_equal_nocase(got[i], got[j]));
    CU_ASSERT_STRING_EQUAL(got[99], "same (100).webp");
    arena_free(arena);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"single names stay", single_names_stay},
        {"twins are numbered", twins_are_numbered},
        {"a numbered name may be there already", a_numbered_name_may_be_there_already},
        {"a hundred twins all differ", a_hundred_twins_all_differ},
        CU_TEST_INFO_NULL,
    };
    static CU_SuiteInfo suites[] = {{"result_name", NULL, NULL, NULL, NULL, tests}, CU_SUITE_INFO_NULL};
    if (CU_initialize_registry() != CUE_SUCCESS || CU_register_suites(suites) != CUE_SUCCESS)
        return EXIT_FAILURE;
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
