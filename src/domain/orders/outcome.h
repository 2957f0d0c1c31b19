/*
 * Records the outcome of an attempt at a job: a result, an archive, a trouble.
 *
 * One transaction, fenced by the attempt's number, writes job, file, result, counts and usage.
 * With the last file it also writes the next job or the end of the order.
 * It is all or nothing, so it can be repeated after the database was away.
 * A worker that lost its lease changes nothing.
 */
#ifndef DOMAIN_ORDERS_OUTCOME_H
#define DOMAIN_ORDERS_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

#include "domain/domain.h"
#include "model/file.h"
#include "model/job.h"
#include "model/result.h"

enum outcome_kind {
    OUTCOME_RESULT,  /* a picture was made */
    OUTCOME_READING, /* an extraction has found a watermark, or none */
    OUTCOME_ARCHIVE,
    OUTCOME_FETCHED, /* a source is in the store */
    OUTCOME_PUSHED,  /* a result is at its target */
    OUTCOME_TROUBLE
};

struct outcome {
    const struct job *job;
    enum outcome_kind kind;

    /* OUTCOME_RESULT: outcome_record sets its order, file and name. */
    struct result result;
    const char *thumbnail_store_key; /* NULL if none was made */
    uint8_t thumbnail_digest[32];    /* valid if there is one */
    const void *view;                /* of the picture before it was marked; NULL if there is none */
    size_t view_bytes;

    /* The note on the file, with OUTCOME_RESULT and OUTCOME_READING; NULL if there is none. */
    const char *note_code; /* "METADATA_LEFT_OUT" */
    const char *note;

    /* OUTCOME_READING */
    const uint64_t *watermark_numbers;    /* those found in the picture, of any account */
    const int64_t *watermark_certainties; /* of each */
    const enum same_picture *watermark_same;
    unsigned watermark_count;

    /* OUTCOME_FETCHED */
    struct upload_facts fetched;

    /* OUTCOME_ARCHIVE */
    const char *archive_store_key;
    int64_t archive_bytes;
    uint8_t archive_digest[32];

    /* OUTCOME_TROUBLE: error and sentence for the client after the last attempt, reason for the log. */
    enum job_trouble trouble;
    enum iw_error error;
    const char *sentence;
    const char *reason;
    int64_t asked_ms; /* the server's Retry-After; 0 if there is none */
};

/* The effects of a record beyond the job. */
struct outcome_effect {
    bool is_fenced; /* the attempt lost its lease, and nothing was recorded; the rest is not valid */
    struct job_verdict verdict;
    bool is_thumbnail_used;   /* false if the file has a thumbnail already: the caller deletes the new one */
    bool is_job_queued;       /* a new job may be leased */
    bool is_order_ended;      /* the caller deletes its inputs */
    bool is_order_gone;       /* the order had ended without this job; the caller deletes the result */
    enum order_status status; /* of the order now; valid if is_order_ended */
    int64_t order_ms;         /* from the order's start to its end; valid if is_order_ended */
};

/* Records an outcome.  ORDER_NOT_FOUND; SERVICE_UNAVAILABLE if the database is away: call again later. */
enum iw_error outcome_record(const struct domain *domain, const struct outcome *outcome,
                             struct outcome_effect *effect) IW_MUST_USE;

/* Releases a leased job that did not start.  Without effect if the lease was lost. */
enum iw_error outcome_release(const struct domain *domain, const struct job *job) IW_MUST_USE;

#endif
