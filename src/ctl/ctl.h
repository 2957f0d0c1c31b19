/*
 * imgwardctl: one table of commands, one file per group of commands.
 *
 * A table entry has the words of a command ("image", "embed"), the options and arguments, the help line, and
 * the function. Help, manual page and shell completion are generated from the table.
 */
#ifndef CTL_CTL_H
#define CTL_CTL_H

#include <stdbool.h>

#include "base/config.h"
#include "base/context.h"

enum { ctl_options_max = 16, ctl_arguments_any = 1 << 30 };

/* Exit codes of all commands. */
enum ctl_exit {
    CTL_DONE = 0,
    CTL_NEGATIVE = 1, /* a negative result: no watermark was found, or a check of doctor failed */
    CTL_FAILED = 2    /* bad usage, bad input or an error, with a line on stderr */
};

struct ctl_option {
    const char *name;  /* "--strength" */
    const char *value; /* name of the value, or the permitted values as "a|b"; NULL if the option has none */
    const char *help;
};

struct ctl {
    struct context *context;
    const struct ctl_family *families; /* all commands */
    const struct ctl_command *command;
    const char *config_path; /* --config FILE, or the default path */
    const char *about;       /* the picture of several that messages are about, or NULL */
    bool is_config_named;    /* by --config or IMGWARD_CONFIG */
    const char
        *values[ctl_options_max]; /* by index in the command's table; NULL if not given; "" for a flag */
    const char **arguments;
    unsigned argument_count;
};

struct ctl_command {
    const char *words[2];  /* "image", "embed"; the second may be NULL */
    const char *arguments; /* "IN OUT", for the help */
    unsigned arguments_least;
    unsigned arguments_most;
    struct ctl_option options[ctl_options_max];
    const char *help;
    const char *example; /* for help and manual; may be NULL */
    enum ctl_exit (*run)(struct ctl *ctl);
};

/* The commands of one file. */
struct ctl_family {
    const char *title;                  /* begins a group of the help; NULL if the group before goes on */
    const struct ctl_command *commands; /* ends with an entry without words; NULL ends the table */
};

/* Returns the value of an option of the command, NULL if the option was not given. */
const char *ctl_option(const struct ctl *ctl, const char *name);

/*
 * Reads an integer option within a range. The value is fallback if the option was not given. If the value is
 * invalid, prints a line on stderr and returns false.
 */
bool ctl_option_integer(const struct ctl *ctl, const char *name, int64_t least, int64_t most,
                        int64_t fallback, int64_t *value);

/* Reads the configuration. After an error, prints a line on stderr and returns false. */
bool ctl_config(struct ctl *ctl, struct config *config);

/*
 * The same for commands that work without the service: the defaults if no file is named and the default path
 * does not exist.
 */
bool ctl_config_or_defaults(struct ctl *ctl, struct config *config);

/* Prints the notes of the context on stderr, if there are any. */
void ctl_notes_print(const struct ctl *ctl);

/* Prints "imgwardctl: SENTENCE" for the context's error on stderr and returns CTL_FAILED. */
enum ctl_exit ctl_failed(const struct ctl *ctl);

/*
 * Reads a whole file of at most limit bytes. The caller frees the bytes with free(). Error
 * messages name the file.
 */
enum iw_error ctl_file_read(struct context *context, const char *path, size_t limit, unsigned char **bytes,
                            size_t *size) IW_MUST_USE;

/*
 * Writes a file atomically: a temporary file, then a rename. A symbolic link is followed. An existing file
 * keeps its mode, owner and group. A new file has the permissions of the file source within the umask.
 * IO_FAILED for a device, a pipe or another special file, because a rename would replace it.
 */
enum iw_error ctl_file_write(struct context *context, const char *path, const char *source, const void *bytes,
                             size_t size) IW_MUST_USE;

/*
 * Creates a new file, such as a secret, atomically. TWIN_EXISTS if the path exists; the existing file is not
 * changed.
 */
enum iw_error ctl_file_make(struct context *context, const char *path, const void *bytes, size_t size,
                            unsigned mode) IW_MUST_USE;

/* ---- database and Redis ---- */

struct db;
struct db_connection;
struct redis;

/*
 * Reads the configuration and the password file, and creates a database handle, which connects on first use.
 * After an error, prints a line on stderr and returns NULL. The caller frees it with ctl_db_close; config
 * must outlive it. With unix_socket authentication, a process of root becomes the service's user permanently.
 */
const struct db *ctl_db_open(struct ctl *ctl, struct config *config);

/* Closes the connection; db may be NULL. */
void ctl_db_close(const struct db *db);

/*
 * True for a local database with unix_socket authentication, where the process must run as the database user.
 */
bool ctl_is_socket_user(const struct config *config);

/*
 * With unix_socket authentication, a process of root becomes the service's user. If that fails, prints a line
 * on stderr and returns false.
 */
bool ctl_user_become(const struct config *config);

/*
 * A database handle for the administrator: root over the local socket. This works only if the process runs as
 * root. copy is filled and must outlive the handle. database is the one to use.
 */
struct db_connection *ctl_db_administrator(const struct config *config, const char *database,
                                           struct config *copy);

/* Does not connect yet. Returns NULL if the password cannot be read. Free the result with redis_free. */
struct redis *ctl_redis_open(struct ctl *ctl, const struct config *config);

/*
 * Wakes a worker, so that jobs and deliveries need not wait for the next sweep. order_id is 0 if they do not
 * belong to a single order.
 */
void ctl_worker_wake(struct ctl *ctl, const struct config *config, int64_t order_id);

/* "2026-03-12T10:00:00.000Z", or "-" for 0; in the arena. */
const char *ctl_time(const struct ctl *ctl, int64_t time_ms);

/* ---- tables ---- */

/* The command tables; each ends with an entry without words. */
extern const struct ctl_command main_commands[];
extern const struct ctl_command manual_commands[];
extern const struct ctl_command init_commands[];
extern const struct ctl_command grants_commands[];
extern const struct ctl_command migrate_commands[];
extern const struct ctl_command account_commands[];
extern const struct ctl_command key_commands[];
extern const struct ctl_command user_commands[];
extern const struct ctl_command order_commands[];
extern const struct ctl_command queue_commands[];
extern const struct ctl_command webhook_commands[];
extern const struct ctl_command store_commands[];
extern const struct ctl_command store_copy_commands[];
extern const struct ctl_command doctor_commands[];
extern const struct ctl_command secret_commands[];
extern const struct ctl_command image_watermark_commands[];
extern const struct ctl_command image_protect_commands[];

#endif
