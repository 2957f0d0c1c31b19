/*
 * The command line that imgward-api and imgward-worker share: which
 * configuration file, check it or run on it.
 */
#ifndef BASE_PROGRAM_H
#define BASE_PROGRAM_H

#include <imgward/context.h>

/* One long-running program. */
struct program {
    const char *name;  /* as typed: "imgward-api" */
    const char *usage; /* the last lines of its help: what the signals do */
    /* Checks the file and all that it names; the context says what is wrong. */
    enum iw_error (*check)(struct context *context, const char *file);
    /* Runs until it is told to stop; answers the exit code, with a sentence in the context unless it is 0. */
    int (*run)(struct context *context, const char *file);
};

/*
 * The whole of main(): reads the options, checks or runs, complains on
 * stderr.  Answers the exit code: 0, 1 after an error, 2 for a wrong option.
 */
int program_main(const struct program *program, int argc, char **argv);

#endif
