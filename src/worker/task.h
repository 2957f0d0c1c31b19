/*
 * A task: a job between lease and record.  Also the pools of tasks.
 * Holds the data only.  work.h decides the steps, kind.h has the kinds of jobs.
 */
#ifndef WORKER_TASK_H
#define WORKER_TASK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/context.h"
#include "db/jobs.h"
#include "domain/orders/outcome.h"
#include "model/job.h"
#include "service/files/storage.h"
#include "service/net/fetch.h"

struct archive_report;
struct image_answer;
struct image_slot;
struct upload_sink;

/* A picture that takes less time is quick.  A prefetched job waits no longer than this. */
enum { task_quick_ms = 1000 };

enum task_state {
    TASK_FREE,       /* no job */
    TASK_LEASED,     /* the inputs are not open yet */
    TASK_PREFETCHED, /* ready to start; waits for a place */
    TASK_RUNNING,    /* an image process, a child or the network works on it */
    TASK_ANSWERED,   /* the work ended; the outcome is not made yet */
    TASK_RECORDING   /* the outcome waits for the database */
};

/* The part of a job on one picture.  A closed descriptor is -1. */
struct picture_part {
    int input_file;    /* open until the job starts */
    int original_file; /* the same; only for an extraction with an original */
    int64_t input_bytes;
    int candidates_file; /* the same; the account's numbers, only for an extraction */
    uint64_t watermark_number;
    int result_file; /* anonymous; the image process writes to it */
    int thumbnail_file;
    struct image_slot *process; /* valid if TASK_RUNNING */
    bool is_process_fresh;      /* the process served no picture before */

    /* TASK_ANSWERED */
    const struct image_answer *answer; /* NULL if the process died */
    int wait_status;                   /* valid if it died */
    bool is_stored;                    /* the result is stored, the thumbnail is not */
};

/* The part of an archive. */
struct archive_part {
    pid_t child;    /* 0 if none runs */
    int child_pipe; /* the child writes the report into it; -1 if none runs */
    struct storage_key key;
    const struct archive_report *report; /* valid if TASK_ANSWERED */
};

/* The part of a transfer. */
struct transfer_part {
    struct upload_sink *sink;       /* of a fetch; NULL in other cases */
    struct storage_key key;         /* of the fetched bytes; valid with sink */
    int source_file;                /* of a push; -1 in other cases */
    char server[fetch_server_size]; /* valid if TASK_RUNNING */
    struct fetch_result result;     /* valid if TASK_ANSWERED */
};

struct task {
    enum job_class class; /* of the jobs that it takes */
    enum task_state state;
    struct arena *arena;    /* of the job; reset with the next one */
    struct context context; /* of the job; valid unless TASK_FREE */
    struct job job;
    uint64_t turn;            /* the lowest starts first */
    int64_t begun_ms;         /* monotonic: of the lease, then of the start */
    int64_t queued_ms;        /* from the time when the job was due to the lease, then to the start */
    int64_t deadline_ms;      /* monotonic; valid if TASK_RUNNING */
    bool is_overdue;          /* killed at the deadline */
    int64_t release_at_ms;    /* monotonic; valid if TASK_PREFETCHED */
    int64_t release_retry_ms; /* monotonic: no release before, after a failed release */

    /* The part of the job's kind is valid from TASK_LEASED to TASK_ANSWERED. */
    struct picture_part picture;
    struct archive_part archive;
    struct transfer_part transfer;

    /* TASK_RECORDING.  The keys name the files that the task stored; order_id is 0 if there is no such file.
     */
    struct outcome outcome;
    struct storage_key result_key;
    struct storage_key thumbnail_key;
    int64_t record_at_ms; /* monotonic */
    unsigned record_failures;
};

/* The tasks for jobs of one class. */
struct task_pool {
    struct task *tasks;
    unsigned count;
    unsigned account_most; /* jobs of one account at the same time */
    uint64_t turn;         /* of the next job */
};

/* Makes a pool of count free tasks.  The caller frees it; the kinds have closed its tasks before. */
void task_pool_make(struct task_pool *pool, enum job_class class, unsigned count, unsigned account_most);
void task_pool_free(struct task_pool *pool);

/* Tasks in a state, and tasks with a job. */
unsigned task_count(const struct task_pool *pool, enum task_state state);
unsigned task_busy_count(const struct task_pool *pool);

/* Returns the task in a state with the lowest turn; NULL if there is none. */
struct task *task_first(const struct task_pool *pool, enum task_state state);

/* Puts a leased job into a free task, with copies of its texts. */
void task_assign(struct task_pool *pool, const struct job *job);

/* The job starts: TASK_RUNNING without a deadline. */
void task_start(struct task *task);

/* Makes an empty outcome of this kind, to fill and return. */
struct outcome *task_outcome(struct task *task, enum outcome_kind kind);

/* Makes the outcome of a failed attempt.  If sentence is NULL, it is that of the error.  The task borrows
 * reason. */
struct outcome *task_trouble(struct task *task, enum job_trouble trouble, enum iw_error error,
                             const char *sentence, const char *reason);

/*
 * Makes the outcome of the error in the task's context, and logs it as event.  An unavailable service
 * does not count as a failure of the file.  If the context has no reason, the outcome gets reason.
 */
struct outcome *task_failure(struct task *task, const char *event, const char *reason);

/* Deletes the files that the task stored.  Files that remain are deleted with the order. */
void task_discard(struct task *task, struct storage *storage);

#endif
