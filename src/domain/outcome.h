/*
 * What becomes of an order when one of its jobs has been tried.
 *
 * The outcome of a try - a result, an archive, a trouble - is recorded in one
 * transaction that the job's attempt fences: job, file, result, counts, usage,
 * and, with the last file, the next job or the end of the order.  Recording is
 * all or nothing, so it can be tried again after a database that was away; a
 * worker whose lease was lost meanwhile changes nothing.
 */
#ifndef DOMAIN_OUTCOME_H
#define DOMAIN_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

#include "domain/domain.h"
#include "model/file.h"
#include "model/job.h"
#include "model/result.h"

enum outcome_kind {
    OUTCOME_RESULT,  /* a picture was made */
    OUTCOME_READING, /* an extraction has looked */
    OUTCOME_ARCHIVE,
    OUTCOME_FETCHED, /* a source is in the store */
    OUTCOME_PUSHED,  /* a result is at its target */
    OUTCOME_TROUBLE
};

struct outcome {
    const struct job *job;
    enum outcome_kind kind;

    /* OUTCOME_RESULT: its order, file and name are filled in here. */
    struct result result;
    const char *thumbnail_store_key; /* NULL: none was made */
    uint8_t thumbnail_digest[32];    /* valid when there is one */

    /* What the client should know of a file that is worked on; NULL: nothing.  With OUTCOME_RESULT and
     * OUTCOME_READING. */
    const char *note_code; /* "METADATA_LEFT_OUT" */
    const char *note;

    /* OUTCOME_READING */
    bool is_found;
    uint64_t watermark_number; /* valid when is_found */

    /* OUTCOME_FETCHED */
    struct upload_facts fetched;

    /* OUTCOME_ARCHIVE */
    const char *archive_store_key;
    int64_t archive_bytes;
    uint8_t archive_digest[32];

    /* OUTCOME_TROUBLE: what a client reads if it was the last try, and why for the log. */
    enum job_trouble trouble;
    enum iw_error error;
    const char *sentence;
    const char *reason;
    int64_t asked_ms; /* how long a server asked us to stay away; 0: nobody did */
};

/* What recording changed beside the job. */
struct outcome_effect {
    struct job_verdict verdict;
    bool is_thumbnail_used;   /* false: the order had one; the caller deletes the one it made */
    bool is_job_queued;       /* there is a job for whoever looks now */
    bool is_order_ended;      /* the caller clears its inputs away */
    bool is_order_gone;       /* the order had ended without this job; its file is of no use */
    enum order_status status; /* of the order now; valid when is_order_ended */
};

/*
 * Records an outcome.  NOT_FOUND with the reason "fenced" when the attempt no
 * longer holds the lease; SERVICE_UNAVAILABLE when the database is away, to be
 * tried again.
 */
enum iw_error outcome_record(const struct domain *domain, const struct outcome *outcome,
                             struct outcome_effect *effect) IW_MUST_USE;

/* Puts a leased job back that was not begun. */
enum iw_error outcome_give_back(const struct domain *domain, const struct job *job) IW_MUST_USE;

#endif
