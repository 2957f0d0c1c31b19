/*
 * The supervisor's state, shared by the files of src/worker that make it up:
 * supervisor.c (the loop, begin and end), lease.c (which jobs, when, and back
 * again), task.c (a job from lease to record), process.c (image processes and
 * whose picture they have), clear.c (what ended orders leave), chores.c (what
 * the dead leave, and what is due), and one file for each way of doing a job:
 * image_task.c, archive_task.c, transfer.c.
 *
 * One thread, no pixel work, nothing that takes longer than copying a file: it
 * must get round to its heartbeat.
 */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <imgward/context.h>

#include "base/config.h"
#include "base/metrics.h"
#include "domain/domain.h"
#include "domain/outcome.h"
#include "domain/retention.h"
#include "service/fetch.h"
#include "service/upload_sink.h"
#include "service/queue.h"
#include "service/storage.h"
#include "store/jobs.h"
#include "worker/deliver.h"
#include "image/image_client.h"
#include "worker/owner.h"

enum task_state {
    TASK_FREE,     /* no job */
    TASK_AHEAD,    /* leased and made ready, not begun: waits for an image process */
    TASK_RUNNING,  /* an image process, a child of ours or the network works on it */
    TASK_HEARD,    /* its image process has answered, or died: what to make of it is still to be seen */
    TASK_RECORDING /* the outcome is known and waits for the database */
};

enum image_process_state {
    IMAGE_PROCESS_NONE,
    IMAGE_PROCESS_STARTING, /* its first word is awaited */
    IMAGE_PROCESS_READY,
    IMAGE_PROCESS_ENDING /* was killed for its time; gets no picture any more, and its end is awaited */
};

/* What a picture may take for another to wait behind the next one, and how long that waits at most. */
enum { image_process_quick_ms = 1000 };

/* An image process, or the place for one; as many as worker.processes says. */
struct image_process {
    struct image_client client;
    enum image_process_state state;
    struct task *task; /* whose picture it has; NULL: nobody's.  Not NULL in IMAGE_PROCESS_READY and
                          IMAGE_PROCESS_ENDING alone */
    bool is_quick;     /* its last picture took less than image_process_quick_ms */
    int64_t at_ms; /* when to start the next, after deaths before the first word, or to give its start up */
    unsigned failures;
};

/* One job from its lease to its record. */
struct task {
    struct worker *worker; /* it belongs to */
    enum job_class class;  /* of the jobs that it takes; a transfer needs no image process */
    enum task_state state;
    struct arena *arena;    /* of the job; reset with the next */
    struct context context; /* of the job; valid unless TASK_FREE */
    struct job job;
    int64_t begun_ms;    /* monotonic; of the lease while TASK_AHEAD */
    int64_t deadline_ms; /* monotonic; valid when TASK_RUNNING */
    bool is_overdue;     /* was killed for its time */

    /* TASK_AHEAD */
    uint64_t turn;        /* the lowest begins first */
    int64_t give_back_ms; /* monotonic */

    /* Pictures: what they are made from, until they are begun, and what the process writes to; -1: none. */
    int input_file;
    int original_file;
    uint64_t watermark_number;
    int result_file;
    int thumbnail_file;
    struct image_process *process; /* valid when TASK_RUNNING */

    /* TASK_HEARD */
    const struct image_answer *answer; /* NULL: it died, */
    int wait_status;                   /* and how */

    /* TASK_RUNNING on an archive: the child and the pipe that it reports on; 0 and -1: none. */
    pid_t child;
    int child_pipe;
    struct storage_key archive_key;

    /* TASK_RUNNING on a transfer: where the bytes go and where they come from; NULL and -1: none. */
    struct upload_sink *sink;
    int source_file;

    /* TASK_RECORDING */
    struct outcome outcome;
    struct storage_key result_key;    /* what was put into the store for the outcome; */
    struct storage_key thumbnail_key; /* order_id 0: nothing */
    int64_t record_at_ms;             /* monotonic */
    unsigned record_failures;
};

/*
 * The tasks for jobs of one class.  For pictures there are two for each image
 * process: while one has it, the job before is recorded or the next one waits.
 */
struct pool {
    struct task *tasks;
    unsigned count;
    unsigned account_most; /* jobs in work that one account has at most */
    bool is_look_asked;    /* there may be jobs */
    int64_t cursor;        /* of jobs_lease */
};

struct worker {
    const char *config_file;
    struct arena *start_arena;  /* of the configuration that the drivers borrow */
    struct arena *config_arena; /* of the one in force */
    struct config start;
    struct config config;
    struct arena *arena; /* of one turn of the loop */
    struct context context;
    struct domain domain; /* over context */
    struct storage *storage;
    struct queue queue;
    struct deliver *deliver;
    char owner[owner_size];
    char machine[owner_size];

    struct pool pools[JOB_CLASS_COUNT];
    struct image_process *processes;
    unsigned process_count;
    uint64_t turn;       /* of the next job */
    struct fetch *fetch; /* of transfers */
    bool is_fetch_stale; /* made with an older configuration: replaced when nothing is under way */

    struct metrics *metrics;

    bool is_paused;         /* an operator wants no new jobs begun */
    bool is_seal_told;      /* what the machine lacks to seal image processes with: told once */
    bool is_notice_refused; /* the table of workers is not there yet: told once */
    bool is_database_away;
    int64_t look_at_ms; /* all monotonic: not before */
    int64_t tell_at_ms;
    int64_t tell_order_id; /* what other workers are to be told of then; 0: nothing */
    int64_t heartbeat_at_ms;
    int64_t sweep_at_ms;
    int64_t stranded_at_ms;
    int64_t retention_at_ms;
    int64_t reclaim_at_ms;
    int64_t orphans_at_ms;
    unsigned orphans_part; /* where the next step begins */

    int64_t clear_ids[retention_orders_max]; /* ended orders that are still to be cleared, */
    unsigned clear_count;
    int64_t clear_at_ms; /* and when at the latest (monotonic) */

    int64_t stop_at_ms; /* when to give up finishing; 0: not stopping */
};

/* ---- task.c ---- */

/* Gives a free task a job that was just leased: a transfer is begun, a picture made ready. */
void task_lease(struct worker *worker, struct task *task, const struct job *job);

/* A job that was leased is begun: its time runs. */
void task_begin(struct task *task);

/* What time asks for: a job that takes or waits too long, an outcome to be taken or recorded. */
void task_tick(struct worker *worker, struct task *task, int64_t now_ms);

/* When task_tick has something to do next (monotonic), INT64_MAX for never. */
int64_t task_next_ms(const struct task *task);

/* The task has no job any more. */
void task_free(struct worker *worker, struct task *task);

/* Ends its child, and forgets the job; its lease is left to end. */
void task_drop(struct task *task);

/* An outcome is known: these record it, and free the task when that worked. */
void task_end(struct worker *worker, struct task *task);
void task_trouble(struct worker *worker, struct task *task, enum job_trouble trouble, enum iw_error error,
                  const char *sentence, const char *reason);

/* What kind of trouble the task's context tells of: what is not available now is ours, not the file's. */
enum job_trouble task_trouble_of(const struct task *task);

/* Deletes what the task put into the store. */
void task_discard(struct worker *worker, struct task *task);

/* ---- lease.c ---- */

/* Looks for jobs of a class where there is room for them. */
void lease_look(struct worker *worker, enum job_class class);

/* Looks for jobs of every class with the next turn of the loop. */
void lease_look_ask(struct worker *worker);

/* Tells other workers that there may be jobs which this one has no room for, if that is owed. */
void lease_tell_tick(struct worker *worker, int64_t now_ms);

/* How many jobs of a class could be leased now. */
unsigned lease_room(const struct worker *worker, enum job_class class);

/* Puts a job back that is not begun; false when the database did not hear of it. */
bool lease_give_back(struct worker *worker, struct task *task);

/* Puts back all that are not begun: no more are to begin here. */
void lease_give_all_back(struct worker *worker);

/* What a call about the database came to; tells once that it is away, and that it is back. */
bool worker_database_said(struct worker *worker, enum iw_error error, const char *event);

/* ---- clear.c ---- */

/* An order has ended: its inputs are to be deleted soon. */
void clear_note(struct worker *worker, int64_t order_id);

/* Deletes the inputs of those noted, where nothing waits to be recorded or the time has come. */
void clear_tick(struct worker *worker, int64_t now_ms);

/* Deletes them now. */
void clear_run(struct worker *worker);

/* ---- chores.c ---- */

/* What time asks of jobs and orders beside those that are worked on here. */
void chores_tick(struct worker *worker, int64_t now_ms);

/* When it asks next (monotonic). */
int64_t chores_next_ms(const struct worker *worker);

/* ---- process.c ---- */

/*
 * Takes what image processes have said, and hands them the pictures that wait.
 * Called between any two steps of the supervisor that take milliseconds, so that
 * no image process waits for what follows a picture; begins nothing but pictures.
 */
void image_process_turn(struct worker *worker);

/* Takes what poll said of one of them. */
void image_process_poll(struct worker *worker, struct image_process *process);

/* What time asks for: one to be started, one that does not start. */
void image_process_tick(struct worker *worker, struct image_process *process, int64_t now_ms);

/* When image_process_tick has something to do next (monotonic), INT64_MAX for never. */
int64_t image_process_next_ms(const struct image_process *process);

/* How many jobs an image process or an archive's child works on; at most as many as there are processes. */
unsigned image_process_busy_count(const struct worker *worker);

/* The job that begins next of those that wait; NULL: none waits. */
struct task *image_process_task_next(const struct worker *worker);

/* Kills it for the time it takes; its end is heard of later. */
void image_process_kill(struct image_process *process);

/* Kills and buries it. */
void image_process_end(struct image_process *process, int *wait_status);

/* ---- the ways of doing a job ---- */

/* Opens what a picture needs, or records why that cannot be. */
void image_task_prepare(struct worker *worker, struct task *task);

/* Hands a prepared picture to an image process; false when it does not take it. */
bool image_task_send(struct worker *worker, struct task *task, struct image_process *process);

/* Makes an outcome of what was heard, and records it. */
void image_task_take(struct worker *worker, struct task *task);

/* Closes what it has open. */
void image_task_close(struct task *task);

/* Ends in TASK_RUNNING, TASK_RECORDING or TASK_FREE. */
void archive_task_begin(struct worker *worker, struct task *task);
void archive_task_poll(struct worker *worker, struct task *task);

void transfer_begin(struct worker *worker, struct task *task);

/* Transfers have one event loop of libcurl's together. */
enum iw_error transfer_open(struct worker *worker, struct context *context) IW_MUST_USE;
void transfer_close(struct worker *worker);
void transfer_reload(struct worker *worker);
void transfer_step(struct worker *worker, const struct pollfd *polls, unsigned count);

/* Ends what the task has under way, without a word to anybody. */
void transfer_drop(struct task *task);

#endif
