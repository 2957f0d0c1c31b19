/*
 * The supervisor's state, shared by the files of src/worker that make it up:
 * supervisor.c (loop and timers), task.c (a job from lease to record), and one
 * file for each way of doing one: image_task.c, archive_task.c, transfer.c.
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
#include "service/fetch.h"
#include "service/intake.h"
#include "service/queue.h"
#include "service/storage.h"
#include "store/jobs.h"
#include "worker/deliver.h"
#include "worker/image_client.h"
#include "worker/owner.h"

enum task_state {
    TASK_FREE,     /* no job */
    TASK_RUNNING,  /* an image process or a child of ours works on it */
    TASK_RECORDING /* the outcome is known and waits for the database */
};

enum helper_state {
    HELPER_NONE,
    HELPER_STARTING, /* its first word is awaited */
    HELPER_READY
};

/* One place where one job at a time is done, with the image process that belongs to it. */
struct task {
    struct worker *worker; /* it belongs to */
    enum job_class class;  /* of the jobs that it takes; a transfer has no image process */
    enum task_state state;
    struct arena *arena;    /* of the job; reset with the next */
    struct context context; /* of the job; valid unless TASK_FREE */
    struct job job;
    int64_t begun_ms;    /* monotonic */
    int64_t deadline_ms; /* monotonic; valid when TASK_RUNNING */
    bool is_overdue;     /* was killed for its time */

    /* TASK_RUNNING on pictures: anonymous files that the process writes to; -1: none. */
    int result_file;
    int thumbnail_file;

    /* TASK_RUNNING on an archive: the child and the pipe that it reports on; 0 and -1: none. */
    pid_t child;
    int child_pipe;
    struct storage_key archive_key;

    /* TASK_RUNNING on a transfer: where the bytes go and where they come from; NULL and -1: none. */
    struct intake *intake;
    int source_file;

    /* TASK_RECORDING */
    struct outcome outcome;
    struct storage_key result_key;    /* what was put into the store for the outcome; */
    struct storage_key thumbnail_key; /* order_id 0: nothing */
    int64_t record_at_ms;             /* monotonic */
    unsigned record_failures;

    struct image_client helper;
    enum helper_state helper_state;
    int64_t helper_at_ms; /* when to start the next, after deaths before the first word */
    unsigned helper_failures;
};

/* The places for jobs of one class. */
struct pool {
    struct task *tasks;
    unsigned count;
    unsigned account_most; /* places that one account has at most */
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
    struct fetch *fetch;   /* of transfers */
    bool is_fetch_stale;   /* made with an older configuration: replaced when nothing is under way */
    bool fetch_allow_http; /* what it was made with */
    char *fetch_allow_addresses;

    struct metrics *metrics;

    bool is_paused;         /* an operator wants no new jobs begun */
    bool is_seal_told;      /* what the machine lacks to seal image processes with: told once */
    bool is_notice_refused; /* the table of workers is not there yet: told once */
    bool is_database_away;
    int64_t look_at_ms; /* all monotonic: not before */
    int64_t heartbeat_at_ms;
    int64_t sweep_at_ms;
    int64_t stranded_at_ms;
    int64_t upkeep_at_ms;
    int64_t reclaim_at_ms;
    int64_t orphans_at_ms;
    unsigned orphans_part; /* where the next step begins */
    int64_t stop_at_ms;    /* when to give up finishing; 0: not stopping */
};

/* Gives a free task a job and begins it; an outcome that is known at once is recorded. */
void task_begin(struct worker *worker, struct task *task, const struct job *job);

/* Takes what poll said of the task's descriptors. */
void task_poll(struct worker *worker, struct task *task);

/* The descriptor of the task to poll for reading, -1 for none. */
int task_descriptor(const struct task *task);

/* What time asks for: a job that takes too long, an outcome to be recorded, a helper to be started. */
void task_tick(struct worker *worker, struct task *task, int64_t now_ms);

/* When task_tick has something to do next (monotonic), INT64_MAX for never. */
int64_t task_next_ms(const struct task *task);

/* True when a job could begin at once. */
bool task_is_able(const struct task *task);

/* Ends helper and child, and forgets the job; its lease is left to end. */
void task_drop(struct task *task);

/* An outcome is known: these three record it, and free the task when that worked. */
void task_end(struct worker *worker, struct task *task);
void task_trouble(struct worker *worker, struct task *task, enum job_trouble trouble, enum iw_error error,
                  const char *sentence, const char *reason);

/* What kind of trouble the task's context tells of: what is not available now is ours, not the file's. */
enum job_trouble task_trouble_of(const struct task *task);

/* Deletes what the task put into the store. */
void task_discard(struct worker *worker, struct task *task);

/* The ways of doing a job.  begin ends in TASK_RUNNING or TASK_RECORDING or TASK_FREE. */
void image_task_begin(struct worker *worker, struct task *task);
void image_task_poll(struct worker *worker, struct task *task);
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

/* Looks for jobs of every class with the next turn of the loop. */
void worker_look_ask(struct worker *worker);

/* The image process of a task: started, killed and buried. */
void image_task_helper_start(struct worker *worker, struct task *task);
void image_task_helper_end(struct task *task, int *wait_status);

#endif
