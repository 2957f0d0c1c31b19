/*
 * The command line of imgward-api and imgward-worker: reads the options, then checks a
 * configuration file or runs with it.
 */
#ifndef BASE_PROGRAM_H
#define BASE_PROGRAM_H

#include <imgward/context.h>

struct program {
    const char *name;  /* "imgward-api" */
    const char *usage; /* last lines of --help: effects of the signals */
    /* Checks the file and everything it refers to. Errors are in the context. */
    enum iw_error (*check)(struct context *context, const char *file);
    /*
     * Runs until a signal stops it. Returns the exit code; the context has a sentence when that is
     * not 0.
     */
    int (*run)(struct context *context, const char *file);
};

/*
 * Body of main(): reads the options, checks or runs, and prints errors on stderr. Returns the
 * exit code: 0, 1 after an error, 2 for wrong options.
 */
int program_main(const struct program *program, int argc, char **argv);

#endif
