/*
 * The image processes: starts, watches, kills, reaps and replaces them, and passes each answer
 * to the task of the picture.
 */
#ifndef WORKER_IMAGE_PROCESS_H
#define WORKER_IMAGE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "image/image_client.h"
#include "worker/loop.h"

struct keyring;
struct shared;
struct task;

enum image_process_state {
    IMAGE_PROCESS_NONE,
    IMAGE_PROCESS_STARTING, /* has not sent the first answer yet */
    IMAGE_PROCESS_READY,
    IMAGE_PROCESS_ENDING /* killed at a deadline, not reaped yet: gets no picture */
};

/* An image process, or the place for one. */
struct image_slot {
    struct image_client client;
    enum image_process_state state;
    struct task *task; /* of the picture that the process has; NULL if it has none, as always before READY */
    unsigned served;   /* pictures that the process received */
    bool is_stale;     /* started with an older configuration: gets no further picture */
    bool is_quick;     /* the last picture took less than task_quick_ms */
    int64_t at_ms; /* monotonic: when to start the next one after early deaths, or to kill one that starts */
    unsigned failures; /* early deaths in a row */
};

/* As many as worker.processes says. */
struct image_processes {
    struct shared *shared;
    const struct keyring *keyring; /* as at the start */
    struct image_slot *list;
    unsigned count;
    struct image_client_files files; /* of every process, also after an upgrade replaced them on disk */
    bool is_seal_logged; /* an incomplete seal was logged: every process of a machine has the same */
    bool is_proved;      /* a process was ready: the worker has started */
    int64_t failing_ms;  /* since when a place fails to start a process; 0 if every place works */
    char reason[400];    /* of the last failure */
};

/* CONFIG_INVALID if program or weights cannot be opened. */
enum iw_error image_process_open(struct image_processes *all, struct context *context,
                                 unsigned count) IW_MUST_USE;

/*
 * Starts the first process and waits at most 20 s until it is sealed and has read weights and key.
 * SERVICE_UNAVAILABLE, with the reason as its sentence, if it fails or a signal ends the wait.
 */
enum iw_error image_process_prove(struct image_processes *all, struct context *context) IW_MUST_USE;

/* Returns how many processes have a picture or could take one. */
unsigned image_process_ready_count(const struct image_processes *all);

/*
 * The configuration changed, such as image.timeout_s: replaces processes without a picture at once, the
 * others before their next one.
 */
void image_process_reload(struct image_processes *all);

/* Kills and reaps all processes. */
void image_process_close(struct image_processes *all);

/*
 * Returns a process that can take a picture; NULL if there is none.  is_fresh asks for a process that has
 * served no picture.  If every idle process has, one of them is replaced, and the caller tries again later.
 */
struct image_slot *image_process_idle(const struct image_processes *all, bool is_fresh);

/* Kills a process that failed, and pauses before the next start. */
void image_process_fail(struct image_processes *all, struct image_slot *process, const char *reason,
                        const char *message);

/* Kills a process at a deadline.  The loop reaps it later. */
void image_process_kill(struct image_slot *process);

extern const struct loop_source image_process_source; /* the sockets of all processes */
extern const struct loop_timer image_process_timer; /* starts processes, and kills those that do not start */

#endif
