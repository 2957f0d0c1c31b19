/*
 * imgwardctl: one table of commands, one file per group of commands.
 *
 * A table entry has the words of a command ("image", "embed"), its options and arguments, its
 * help line, and its function. Help, manual page and shell completion are made from the table.
 */
#ifndef CTL_CTL_H
#define CTL_CTL_H

#include <stdbool.h>

#include "base/config.h"
#include "base/context.h"

enum { ctl_options_max = 16, ctl_arguments_max = 16 };

/* Exit codes of all commands. */
enum ctl_exit {
    CTL_DONE = 0,
    CTL_NEGATIVE = 1, /* the answer is no: no watermark found, a check of doctor failed */
    CTL_FAILED = 2    /* bad usage, bad input or an error, with a line on stderr */
};

struct ctl_option {
    const char *name;  /* "--strength" */
    const char *value; /* name of the value in the help; NULL: an option without a value */
    const char *help;
};

struct ctl {
    struct context *context;
    const struct ctl_command *command;
    const char *config_path;             /* --config FILE, or the default path */
    const char *values[ctl_options_max]; /* by index in the command's table; NULL: not given; "" for a flag */
    const char *arguments[ctl_arguments_max];
    unsigned argument_count;
};

struct ctl_command {
    const char *words[3];  /* "image", "embed", NULL */
    const char *arguments; /* "IN OUT", for the help */
    unsigned arguments_least;
    unsigned arguments_most;
    struct ctl_option options[ctl_options_max];
    const char *help;
    enum ctl_exit (*run)(struct ctl *ctl);
};

/* Value of an option of the command; NULL when it was not given. */
const char *ctl_option(const struct ctl *ctl, const char *name);

/*
 * Reads an integer option within a range; fallback when it was not given. False, with a line
 * on stderr, when the value is invalid.
 */
bool ctl_option_integer(const struct ctl *ctl, const char *name, int64_t least, int64_t most,
                        int64_t fallback, int64_t *value);

/* Reads the configuration; false, with a line on stderr, on errors. */
bool ctl_config(struct ctl *ctl, struct config *config);

/* Prints "imgwardctl: SENTENCE" for the context's error on stderr and returns CTL_FAILED. */
enum ctl_exit ctl_failed(const struct ctl *ctl);

/*
 * Reads a whole file of at most limit bytes. The caller frees the bytes with free(). Error
 * messages name the file.
 */
enum iw_error ctl_file_read(struct context *context, const char *path, size_t limit, unsigned char **bytes,
                            size_t *size) IW_MUST_USE;

/*
 * Writes a file atomically: a temporary file, then a rename.  A symbolic link is followed.  An existing file
 * keeps its mode, owner and group.  A new one has the permissions of the file source within the umask.
 * IO_FAILED for a device, a pipe and another special file, which a rename would replace.
 */
enum iw_error ctl_file_write(struct context *context, const char *path, const char *source, const void *bytes,
                             size_t size) IW_MUST_USE;

/* Makes a new file such as a secret atomically: TWIN_EXISTS when the path exists; it is not changed. */
enum iw_error ctl_file_make(struct context *context, const char *path, const void *bytes, size_t size,
                            unsigned mode) IW_MUST_USE;

/* The command tables; each ends with an entry without words. */
extern const struct ctl_command *const ctl_families[]; /* all tables, terminated by NULL (main.c) */
extern const struct ctl_command ctl_commands_general[];
extern const struct ctl_command ctl_commands_manual[];
extern const struct ctl_command ctl_commands_init[];
extern const struct ctl_command ctl_commands_grants[];
extern const struct ctl_command ctl_commands_migrate[];
extern const struct ctl_command ctl_commands_account[];
extern const struct ctl_command ctl_commands_key[];
extern const struct ctl_command ctl_commands_user[];
extern const struct ctl_command ctl_commands_order[];
extern const struct ctl_command ctl_commands_queue[];
extern const struct ctl_command ctl_commands_webhook[];
extern const struct ctl_command ctl_commands_store[];
extern const struct ctl_command ctl_commands_store_copy[];
extern const struct ctl_command ctl_commands_doctor[];
extern const struct ctl_command ctl_commands_secret[];
extern const struct ctl_command ctl_commands_image_watermark[];
extern const struct ctl_command ctl_commands_image_protect[];

#endif
