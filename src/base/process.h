/*
 * Process management that all long-running programs share: signals as flags, pid file, systemd
 * notification, wake-up pipe.
 */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/context.h"

/* Set by the handlers of process_signals_install, polled by main loops. */
extern volatile sig_atomic_t process_stop_count;   /* number of TERM and INT signals */
extern volatile sig_atomic_t process_reload_asked; /* HUP */
extern volatile sig_atomic_t process_child_died;   /* CHLD */

/*
 * TERM, INT, HUP and CHLD set flags, PIPE is ignored. SA_RESTART is not set, so that a blocking call returns
 * EINTR and the main loop sees the flag.
 */
void process_signals_install(void);

/* Restores the default handlers in a forked child. */
void process_signals_reset(void);

/*
 * Read end of the pipe that the handlers write to. A poll loop includes this descriptor to avoid the race
 * between checking a flag and polling. Returns -1 before process_signals_install.
 */
int process_signal_descriptor(void);
void process_signal_drain(void);

/*
 * Writes the pid file atomically (new file, then rename), unless the path is empty. Delete the file with
 * process_pid_file_remove.
 */
enum iw_error process_pid_file_write(struct context *context, const char *path) IW_MUST_USE;
void process_pid_file_remove(const char *path);

/* Sends "READY=1", "RELOADING=1", "STOPPING=1" or "WATCHDOG=1" to systemd if $NOTIFY_SOCKET is set. */
void process_notify(const char *state);

/* Sends STATUS, the line that systemctl status shows.  Control characters become blanks. */
void process_status(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* True if a process accepts connections at the unix socket. */
bool process_listens(const char *path);

/* Makes the child die with its parent (PR_SET_PDEATHSIG). Returns false if the parent is already dead. */
bool process_die_with_parent(pid_t parent);

/* Number of cores that this process may run on. */
int process_core_count(void);

#endif
