/*
 * imgwardctl: one table of commands, one file per family of commands.
 *
 * A command names its words ("image", "embed"), its options and arguments, a
 * sentence of help, and the function that runs it.  Help, man page and shell
 * completion come from the table.
 */
#ifndef CTL_CTL_H
#define CTL_CTL_H

#include <stdbool.h>

#include <imgward/context.h>

#include "base/config.h"

enum { ctl_options_max = 16, ctl_arguments_max = 16 };

/* Exit codes, the same for every command. */
enum ctl_exit {
    CTL_DONE = 0,
    CTL_NEGATIVE = 1, /* the answer is no: no watermark, a check of doctor failed */
    CTL_FAILED = 2    /* bad usage, bad input, or something that failed: one line on stderr */
};

struct ctl_option {
    const char *name;  /* "--strength" */
    const char *value; /* what the help calls the value; NULL: the option takes none */
    const char *help;
};

struct ctl {
    struct context *context;
    const struct ctl_command *command;
    const char *config_path; /* --config FILE, or the default place */
    const char
        *values[ctl_options_max]; /* by the place in the command's table; NULL: not given; "" for a flag */
    const char *arguments[ctl_arguments_max];
    unsigned argument_count;
};

struct ctl_command {
    const char *words[3];  /* "image", "embed", NULL */
    const char *arguments; /* "IN OUT" for the help */
    unsigned arguments_least;
    unsigned arguments_most;
    struct ctl_option options[ctl_options_max];
    const char *help;
    enum ctl_exit (*run)(struct ctl *ctl);
};

/* The value of an option of the command, or NULL when it was not given. */
const char *ctl_option(const struct ctl *ctl, const char *name);

/*
 * An integer option within a range; fallback when it was not given.  False after
 * one line on stderr when it is no such integer.
 */
bool ctl_option_integer(const struct ctl *ctl, const char *name, int64_t least, int64_t most,
                        int64_t fallback, int64_t *value);

/* Reads the configuration; false after one line on stderr. */
bool ctl_config(struct ctl *ctl, struct config *config);

/* Prints "imgwardctl: SENTENCE" of the context's error on stderr and answers CTL_FAILED. */
enum ctl_exit ctl_failed(const struct ctl *ctl);

/*
 * Reads a whole file of at most limit bytes.  The bytes are malloc'ed and the
 * caller's.  Errors name the file.
 */
enum iw_error ctl_file_read(struct context *context, const char *path, size_t limit, unsigned char **bytes,
                            size_t *size) IW_MUST_USE;

/* Writes a file whole or not at all: a new file beside it, then a rename. */
enum iw_error ctl_file_write(struct context *context, const char *path, const void *bytes, size_t size,
                             unsigned mode) IW_MUST_USE;

/* The same for a file that must be new, such as a secret: TWIN_EXISTS when something is there already, which
 * stays. */
enum iw_error ctl_file_make(struct context *context, const char *path, const void *bytes, size_t size,
                            unsigned mode) IW_MUST_USE;

/* The commands of the families, each closed by an entry without words. */
extern const struct ctl_command *const ctl_families[]; /* all of them, closed by NULL (main.c) */
extern const struct ctl_command ctl_commands_general[];
extern const struct ctl_command ctl_commands_manual[];
extern const struct ctl_command ctl_commands_init[];
extern const struct ctl_command ctl_commands_migrate[];
extern const struct ctl_command ctl_commands_account[];
extern const struct ctl_command ctl_commands_key[];
extern const struct ctl_command ctl_commands_order[];
extern const struct ctl_command ctl_commands_queue[];
extern const struct ctl_command ctl_commands_webhook[];
extern const struct ctl_command ctl_commands_store[];
extern const struct ctl_command ctl_commands_doctor[];
extern const struct ctl_command ctl_commands_secret[];
extern const struct ctl_command ctl_commands_image_watermark[];
extern const struct ctl_command ctl_commands_image_protect[];

#endif
