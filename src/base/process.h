/*
 * What every long-running program of ours does alike: signals as flags, a pid
 * file, word to systemd, descriptors, names.
 */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include <imgward/context.h>

/* Set by the handlers of process_signals_install, looked at by main loops. */
extern volatile sig_atomic_t process_stop_count;   /* TERM and INT, counted */
extern volatile sig_atomic_t process_reload_asked; /* HUP */
extern volatile sig_atomic_t process_child_died;   /* CHLD */

/*
 * TERM, INT, HUP and CHLD become flags, PIPE is ignored.  Without SA_RESTART:
 * a blocking call answers EINTR so that the loop sees the flag.
 */
void process_signals_install(void);

/* Back to the defaults, for a child that goes its own way. */
void process_signals_reset(void);

/* The pipe that the handlers write a byte to: a poll loop wakes without a race.  -1 before install. */
int process_signal_descriptor(void);
void process_signal_drain(void);

/* Writes the pid file (a new file renamed into place); "" writes none.  Removed by process_pid_file_remove.
 */
enum iw_error process_pid_file_write(struct context *context, const char *path) IW_MUST_USE;
void process_pid_file_remove(const char *path);

/* "READY=1", "RELOADING=1", "STOPPING=1", "WATCHDOG=1" to systemd, if it listens ($NOTIFY_SOCKET). */
void process_notify(const char *state);

/* The child dies with its parent; false when the parent is gone already. */
bool process_die_with_parent(pid_t parent);

/* Cores that this process may run on. */
int process_core_count(void);

#endif
