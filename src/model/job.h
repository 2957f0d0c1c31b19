/*
 * Jobs: kinds, states, the table of legal transitions, retries, and the row of a leased job.
 *
 * job_next is the only place that decides the next state of a job.  job_judge adds the limits: how often a
 * job may fail or kill its process, and the backoff before the next attempt.  src/db/jobs.c writes the
 * decision.
 */
#ifndef MODEL_JOB_H
#define MODEL_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "model/format.h"
#include "model/order.h"

enum job_state {
    JOB_NONE,   /* no state: an illegal transition */
    JOB_QUEUED, /* may be leased from that time on */
    JOB_LEASED, /* belongs to a worker until the lease ends */
    JOB_DONE,
    JOB_FAILED,
    JOB_REFUSED, /* the client's file or address is at fault; no operator is needed */
    JOB_STATE_COUNT
};

/*
 * An archive is a job on the whole order; the others are on one file.  A fetch downloads a file from a URL
 * and queues the job on it.  A push sends a result of a zero-copy order to its output target.
 */
enum job_kind { JOB_PROTECT, JOB_EMBED, JOB_EXTRACT, JOB_ARCHIVE, JOB_FETCH, JOB_PUSH, JOB_KIND_COUNT };

/* The resource that a job needs: an image process, or the network. */
enum job_class { JOB_CLASS_IMAGE, JOB_CLASS_TRANSFER, JOB_CLASS_COUNT };

enum job_event {
    JOB_EVENT_LEASE,   /* a worker leases it */
    JOB_EVENT_FINISH,  /* the result is recorded */
    JOB_EVENT_RELEASE, /* the worker returns the job before it started */
    JOB_EVENT_LOSE,    /* the worker died or did not renew the lease */
    JOB_EVENT_RETRY,   /* a transient failure or a dead process */
    JOB_EVENT_FAIL,    /* the limit is reached, or a retry cannot help */
    JOB_EVENT_REFUSE,  /* the same, and the client's file or address is at fault */
    JOB_EVENT_CANCEL,  /* the order ended without the job */
    JOB_EVENT_REOPEN,  /* an operator requeues a failed job */
    JOB_EVENT_COUNT
};

/* The reason why an attempt did not succeed. */
enum job_trouble {
    JOB_TROUBLE_FINAL,     /* the input is at fault: a retry gives the same */
    JOB_TROUBLE_TRANSIENT, /* network, an unexpected answer: counts as a failure */
    JOB_TROUBLE_OURS,      /* disk full, no database: not the file's fault, see job_wait_out */
    JOB_TROUBLE_DEATH      /* the image process died or was killed: counts as a death */
};

struct job_limits {
    int64_t failures_max;
    int64_t deaths_max;
    int64_t retry_first_ms;
};

/* The decision after an attempt that did not succeed. */
struct job_verdict {
    enum job_event event; /* JOB_EVENT_RETRY, JOB_EVENT_FAIL or JOB_EVENT_REFUSE */
    int64_t failures;
    int64_t deaths;
    int64_t wait_ms; /* before the next attempt */
};

/* The longest backoff. */
enum { job_wait_max_ms = 15 * 60 * 1000 };

/* The state after the event; JOB_NONE if the event is illegal in this state. */
enum job_state job_next(enum job_state state, enum job_event event);

/*
 * Adds one trouble to the failures and deaths so far and decides between retry and failure.  asked_ms is the
 * peer's Retry-After (0 if there is none): a retry comes no sooner, but never later than job_wait_max_ms.
 */
struct job_verdict job_judge(enum job_trouble trouble, int64_t failures, int64_t deaths, int64_t asked_ms,
                             const struct job_limits *limits);

/* The longest backoff for JOB_TROUBLE_OURS: it ends soon after the operator's repair. */
enum { job_ours_wait_max_ms = 30 * 1000 };

/* The verdict on JOB_TROUBLE_OURS at this attempt: a retry that counts neither a failure nor a death. */
struct job_verdict job_wait_out(int64_t attempt, int64_t failures, int64_t deaths,
                                const struct job_limits *limits);

/* "protect" and so on, as in the database; static text. */
const char *job_kind_name(enum job_kind kind);

/* "image", "transfer", as in the database; static text. */
const char *job_class_name(enum job_class class);

/* False if there is no such kind. */
bool job_kind_read(const char *name, enum job_kind *kind);

/* "queued" and so on, as in the database; static text.  NULL for JOB_NONE. */
const char *job_state_name(enum job_state state);

/* JOB_NONE if there is no such state. */
enum job_state job_state_by_name(const char *name);

/* A leased job with the fields of order and file that the kind needs; texts are the arena's. */
struct job {
    int64_t id;
    int64_t account_id;
    int64_t order_id;
    int64_t file_id; /* 0 for a job on the whole order; then no file field is valid */
    enum job_kind kind;
    int64_t attempt; /* the fencing token */
    int64_t failures;
    int64_t deaths;
    bool was_lost;     /* the previous attempt lost its lease */
    int64_t queued_ms; /* from the time when it was due to the lease */
    const char *request_id;
    const char *trace_id; /* of the order; NULL if it has none */

    enum order_type order_type;
    enum order_strength strength; /* valid for ORDER_ANTI_AI */
    bool is_zero_copy;
    bool has_original;  /* an extraction with the unmarked original */
    bool has_thumbnail; /* the file has one already */

    const char *file_name;
    const char *store_key;      /* of the input; NULL if it was deleted */
    const char *original_key;   /* of the unmarked original; NULL if there is none */
    const char *etag;           /* of the input in an object store; NULL: not confirmed by one */
    const char *original_etag;  /* the same for the original */
    const char *error_code;     /* of the file, or of the original: the uploaded object was refused */
    const char *error_sentence; /* valid with error_code */
    int64_t position;
    int64_t copy; /* position of the watermark text; 0 if there is none */

    const char *source_url;    /* JOB_FETCH */
    const char *target_url;    /* JOB_PUSH */
    int64_t target_expires_ms; /* JOB_PUSH */
    const char
        *target_headers;       /* JOB_PUSH: a JSON object of strings for the request; NULL if there is none */
    const char *result_key;    /* JOB_PUSH: the result's bytes; NULL if they were deleted */
    enum format result_format; /* JOB_PUSH */
};

#endif
