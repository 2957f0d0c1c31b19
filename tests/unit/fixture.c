#include "fixture.h"

struct arena *arena;
struct context context;

void context_fresh(void)
{
    context_init(&context, arena, "request-1");
}

void fresh(void)
{
    arena_reset(arena);
    context_fresh();
}

int fixture_run(const char *name, CU_TestInfo *tests)
{
    arena = arena_new(0);
    context_fresh();
    int code = runner_run(name, tests);
    arena_free(arena);
    return code;
}
