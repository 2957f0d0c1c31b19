/*
 * The command line of imgward-api and imgward-worker: reads the options, then checks a
 * configuration file or runs with it.
 */
#ifndef BASE_PROGRAM_H
#define BASE_PROGRAM_H

#include "base/context.h"

struct program {
    const char *name;  /* "imgward-api" */
    const char *usage; /* last lines of --help: effects of the signals */
    /* Checks the file and everything that the file refers to. Errors are in the context. */
    enum iw_error (*check)(struct context *context, const char *file);
    /*
     * Runs until a signal stops the program. Returns the exit code; if that is not 0, the context has a
     * sentence.
     */
    int (*run)(struct context *context, const char *file);
};

/*
 * Body of main(): reads the options, checks or runs, and prints errors on stderr. Returns the
 * exit code: 0, 1 after an error, 2 for wrong options.
 */
int program_main(const struct program *program, int argc, char **argv);

#endif
