/* The arena and the context that the tests of a program share. */
#ifndef UNIT_FIXTURE_H
#define UNIT_FIXTURE_H

#include "base/context.h"
#include "runner.h"

extern struct arena *arena;
extern struct context context;

/* Resets the context; the memory of the arena stays. */
void context_fresh(void);

/* Resets the context and the arena. */
void fresh(void);

/* Does the same as runner_run, with an arena for the tests. */
int fixture_run(const char *name, CU_TestInfo *tests);

#endif
