/*
 * The image processes: started, watched, killed, reaped and replaced.
 * Takes their answers into the tasks whose pictures they have.
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
    IMAGE_PROCESS_STARTING, /* its first answer is still to come */
    IMAGE_PROCESS_READY,
    IMAGE_PROCESS_ENDING /* killed at a deadline: gets no picture, and its end is still to come */
};

/* An image process, or the place for one. */
struct image_slot {
    struct image_client client;
    enum image_process_state state;
    struct task *task; /* has its picture; NULL: none.  Only READY and ENDING have one */
    unsigned served;   /* pictures that it received */
    bool is_quick;     /* its last picture took less than task_quick_ms */
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
    bool is_proved;      /* one was ready: the worker has started */
    int64_t failing_ms;  /* since when some place fails to start a process; 0: none does */
    char reason[400];    /* of the last failure */
};

/* CONFIG_INVALID when program or weights cannot be opened. */
enum iw_error image_process_open(struct image_processes *all, struct context *context,
                                 unsigned count) IW_MUST_USE;

/*
 * Starts the first one and waits until it is sealed and has read weights and key, at most 20 s.  The error's
 * sentence is the reason why not; SERVICE_UNAVAILABLE also when a signal ends the wait.
 */
enum iw_error image_process_prove(struct image_processes *all, struct context *context) IW_MUST_USE;

/* How many could take a picture or have one. */
unsigned image_process_ready_count(const struct image_processes *all);

/* Kills and reaps all of them. */
void image_process_close(struct image_processes *all);

/*
 * A process that can take a picture; NULL: none. is_fresh: one that has served none. If the idle
 * ones have all served, one of them is replaced, and the caller waits for its successor.
 */
struct image_slot *image_process_idle(const struct image_processes *all, bool is_fresh);

/* The process is of no use: kills it, and pauses before the next start. */
void image_process_fail(struct image_processes *all, struct image_slot *process, const char *reason,
                        const char *message);

/* Kills it at a deadline.  Its end is an event. */
void image_process_kill(struct image_slot *process);

extern const struct loop_source image_process_source; /* the sockets of all processes */
extern const struct loop_timer image_process_timer; /* starts processes, and kills those that do not start */

#endif
