/*
 * The life of a job: its states, what may happen to it, and what happens then.
 *
 * One table says which event leads from which state to which, and one function
 * reads it: no other place decides about a job's state.  job_judge adds the
 * counting: how often a job may fail or kill its process, and how long it waits
 * before the next try.  Knows no database; src/store/jobs.c writes what is
 * decided here.
 */
#ifndef IMGWARD_JOB_H
#define IMGWARD_JOB_H

#include <stdbool.h>
#include <stdint.h>

enum job_state {
    JOB_NONE,   /* no state: an illegal step */
    JOB_QUEUED, /* may be leased once its time has come */
    JOB_LEASED, /* belongs to a worker until its lease ends */
    JOB_DONE,
    JOB_FAILED,
    JOB_STATE_COUNT
};

/*
 * What there is to do.  An archive is a job on the order as a whole; the others
 * are on one file.  A fetch brings a file by its URL and queues the job on it; a
 * push takes a result of a zero-copy order to its target.
 */
enum job_kind { JOB_PROTECT, JOB_EMBED, JOB_EXTRACT, JOB_ARCHIVE, JOB_FETCH, JOB_PUSH, JOB_KIND_COUNT };

/* What a job waits for: a place at an image process, or one on the network. */
enum job_class { JOB_CLASS_IMAGE, JOB_CLASS_TRANSFER, JOB_CLASS_COUNT };

enum job_event {
    JOB_EVENT_LEASE,     /* a worker takes it */
    JOB_EVENT_FINISH,    /* its result is recorded */
    JOB_EVENT_GIVE_BACK, /* its worker stops before it began */
    JOB_EVENT_LOSE,      /* its worker died or was silent for a lease */
    JOB_EVENT_RETRY,     /* transient trouble or a dead process: once more */
    JOB_EVENT_FAIL,      /* no more tries, or none that could help */
    JOB_EVENT_CANCEL,    /* its order ended without it */
    JOB_EVENT_REOPEN,    /* it had failed, and an operator wants it tried again */
    JOB_EVENT_COUNT
};

/* What became of one try that did not succeed. */
enum job_trouble {
    JOB_TROUBLE_FINAL,     /* the input is at fault: another try gives the same */
    JOB_TROUBLE_TRANSIENT, /* network, an odd answer: counted as a failure */
    JOB_TROUBLE_OURS,      /* disk full, database away: no fault of the file's, see job_wait_out */
    JOB_TROUBLE_DEATH      /* the image process died or was killed: counted as a death */
};

struct job_limits {
    int64_t failures_max;
    int64_t deaths_max;
    int64_t retry_first_ms;
};

/* How a job stands after a try that did not succeed. */
struct job_verdict {
    enum job_event event; /* JOB_EVENT_RETRY or JOB_EVENT_FAIL */
    int64_t failures;
    int64_t deaths;
    int64_t wait_ms; /* before the next try */
};

/* Retries never wait longer than this. */
enum { job_wait_max_ms = 15 * 60 * 1000 };

/* The state that the event leads to, or JOB_NONE when it may not happen in this state. */
enum job_state job_next(enum job_state state, enum job_event event);

/*
 * Counts one trouble on top of the failures and deaths so far and decides between retry and failure.
 * asked_ms is how long somebody asked us to stay away (Retry-After; 0: nobody): a retry comes no
 * sooner, but never later than job_wait_max_ms, whatever was asked.
 */
struct job_verdict job_judge(enum job_trouble trouble, int64_t failures, int64_t deaths, int64_t asked_ms,
                             const struct job_limits *limits);

/* What is our own trouble is looked at again at least this often: it is over when the operator is done. */
enum { job_ours_wait_max_ms = 30 * 1000 };

/* The verdict on JOB_TROUBLE_OURS at a try of this number: once more, and neither failure nor death is
 * counted. */
struct job_verdict job_wait_out(int64_t attempt, int64_t failures, int64_t deaths,
                                const struct job_limits *limits);

/* "protect" and so on, as the database has it; static text. */
const char *job_kind_name(enum job_kind kind);

/* "image", "transfer", as the database has it; static text. */
const char *job_class_name(enum job_class class);

/* The class of a kind. */
enum job_class job_kind_class(enum job_kind kind);

/* False when there is no such kind. */
bool job_kind_read(const char *name, enum job_kind *kind);

/* "queued" and so on, as the database has it; static text.  NULL for JOB_NONE. */
const char *job_state_name(enum job_state state);

/* JOB_NONE when there is no such state. */
enum job_state job_state_by_name(const char *name);

#endif
