#include "domain/orders/outcome.h"

#include <string.h>

#include "base/clock.h"
#include "db/db.h"
#include "db/files.h"
#include "db/jobs.h"
#include "db/orders.h"
#include "db/quotas.h"
#include "db/results.h"
#include "db/texts.h"
#include "db/transaction.h"
#include "db/usage.h"
#include "domain/webhooks/webhook_event.h"
#include "model/plan.h"
#include "service/files/name.h"

/* The state of one run of the transaction. */
struct outcome_write {
    const struct domain *domain;
    const struct outcome *outcome;
    struct order_progress order;
    struct outcome_effect effect;
    enum order_event order_event; /* of a reading; ORDER_EVENT_COUNT if the results decide */
    int64_t now_ms;
};

/* True if the client's file, address or target is at fault. An unreachable source may be the network's. */
static bool is_refusal(enum iw_error error)
{
    static const enum iw_error refusals[] = {
        IW_IMAGE_CORRUPT,  IW_IMAGE_FORMAT_UNSUPPORTED, IW_IMAGE_TOO_LARGE,       IW_IMAGE_TOO_SMALL,
        IW_SOURCE_REFUSED, IW_SOURCE_TOO_LARGE,         IW_OUTPUT_TARGET_REFUSED, IW_WATERMARK_NOT_EMBEDDABLE,
    };
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        if (refusals[i] == error)
            return true;
    return false;
}

/* An archive only copies bytes: every failure is the service's, and every attempt may succeed. */
static struct job_verdict verdict_of(const struct domain *domain, const struct outcome *outcome)
{
    const struct job *job = outcome->job;
    const struct job_limits limits = {
        .failures_max = domain->config->worker_failures_max,
        .deaths_max = domain->config->worker_deaths_max,
        .retry_first_ms = domain->config->worker_retry_first_ms,
    };
    bool is_ours = job->kind == JOB_ARCHIVE || outcome->trouble == JOB_TROUBLE_OURS;
    if (outcome->kind == OUTCOME_TROUBLE && is_ours)
        return job_wait_out(job->attempt, job->failures, job->deaths, &limits);
    if (outcome->kind == OUTCOME_TROUBLE) {
        struct job_verdict verdict =
            job_judge(outcome->trouble, job->failures, job->deaths, outcome->asked_ms, &limits);
        if (verdict.event == JOB_EVENT_FAIL && is_refusal(outcome->error))
            verdict.event = JOB_EVENT_REFUSE;
        return verdict;
    }
    return (struct job_verdict){.event = JOB_EVENT_FINISH, .failures = job->failures, .deaths = job->deaths};
}

/*
 * "photo-2.png" for the second of several copies of "photo.jpg" that is a PNG; one copy has no number. The
 * order's suffix comes before the number.
 */
static struct name_request result_name_request(struct arena *arena, const struct order_progress *order,
                                               const struct result_slot *slot)
{
    const char *word = order->result_suffix;
    const char *number = slot->copy_count < 2 ? "" : arena_printf(arena, "-%lld", (long long)slot->copy);
    const char *suffix = arena_printf(arena, "%s%s", word != NULL ? word : "", number);
    return (struct name_request){.name = slot->file_name, .suffix = suffix, .format = slot->format};
}

/*
 * Makes the names of an order's results unique, after its last file: the extension depends on the format.
 * Failed files count too, so that "photo-2.png" keeps its number if "photo.png" failed.
 */
static enum iw_error names_settle(const struct db *db, const struct order_progress *order)
{
    struct result_slot *slots;
    unsigned count;
    enum iw_error error = results_slots(db, order->id, &slots, &count);
    if (error != IW_OK)
        return error;
    struct name_request *requests = arena_array(db->context->arena, count + 1, sizeof *requests);
    for (unsigned i = 0; i < count; i++)
        requests[i] = result_name_request(db->context->arena, order, &slots[i]);
    const char **names = name_list(db->context->arena, requests, count);
    for (unsigned i = 0; i < count && error == IW_OK; i++)
        if (slots[i].result_id != 0 && strcmp(slots[i].result_name, names[i]) != 0)
            error = results_rename(db, slots[i].result_id, names[i]);
    return error;
}

static enum iw_error usage_count(const struct db *db, const struct outcome_write *record)
{
    char day[11];
    clock_day(record->now_ms, day);
    return usage_add(db, record->order.account_id, day, 1);
}

/* Writes the thumbnail of a file. The order shows that of its first file, and until then that of another one.
 */
static enum iw_error thumbnail_write(const struct db *db, struct outcome_write *record)
{
    const struct outcome *outcome = record->outcome;
    bool *is_used = &record->effect.is_thumbnail_used;
    enum iw_error error = files_thumbnail_write(db, outcome->job->file_id, outcome->thumbnail_store_key,
                                                outcome->thumbnail_digest, is_used);
    if (*is_used && (record->order.thumbnail_store_key == NULL || outcome->job->position == 1))
        record->order.thumbnail_store_key = outcome->thumbnail_store_key;
    return error;
}

/* Writes a result for download, or in a zero-copy order for the push that follows. */
static enum iw_error result_write(const struct db *db, struct outcome_write *record)
{
    const struct job *job = record->outcome->job;
    struct result result = record->outcome->result;
    result.order_id = job->order_id;
    result.file_id = job->file_id;
    result.copy = job->copy;
    const struct result_slot slot = {
        .file_name = job->file_name, .copy = job->copy, .copy_count = job->copy, .format = result.format};
    const struct name_request wanted = result_name_request(db->context->arena, &record->order, &slot);
    result.name = name_one(db->context->arena, &wanted);
    enum iw_error error = results_write(db, &result, record->now_ms);
    if (error == IW_OK && record->outcome->view != NULL && job->copy == 1)
        error = texts_view_write(db, job->order_id, job->position, record->outcome->view,
                                 record->outcome->view_bytes);
    if (error == IW_OK)
        error = files_result_write(db, job->file_id, result.size_bytes,
                                   job->kind == JOB_PROTECT ? result.protection_percent : -1);
    if (error != IW_OK)
        return error;
    if (record->order.is_zero_copy) {
        record->effect.is_job_queued = true;
        return jobs_insert_push(db, job);
    }
    record->order.result_count++;
    if (record->outcome->thumbnail_store_key != NULL)
        error = thumbnail_write(db, record);
    if (error == IW_OK)
        error = usage_count(db, record);
    return error == IW_OK ? quotas_stored(db, record->order.account_id, result.size_bytes) : error;
}

static enum iw_error pushed_write(const struct db *db, struct outcome_write *record)
{
    record->order.result_count++;
    return usage_count(db, record);
}

/*
 * What an extraction found of the account: the texts, one a line, and the worst of all certainties and
 * matches.
 */
struct findings {
    struct text texts;
    int64_t certainty;
    enum same_picture same;
};

/* Add a number if it is of the order's account. */
static enum iw_error finding_add(const struct db *db, const struct outcome_write *record, unsigned index,
                                 struct findings *findings)
{
    const char *text;
    size_t length;
    uint64_t number = record->outcome->watermark_numbers[index];
    int64_t certainty = record->outcome->watermark_certainties[index];
    enum same_picture same = record->outcome->watermark_same[index];
    enum iw_error error = texts_find(db, record->order.account_id, number, &text, &length);
    if (error != IW_OK || text == NULL)
        return error;
    if (findings->texts.length > 0)
        text_add_string(&findings->texts, "\n");
    text_add(&findings->texts, text, length);
    findings->certainty = certainty < findings->certainty ? certainty : findings->certainty;
    findings->same = same < findings->same ? same : findings->same;
    return texts_reading_write(db, record->order.id, number, same);
}

/* A collage may hold marks of several accounts. */
static enum iw_error reading_write(const struct db *db, struct outcome_write *record)
{
    struct findings findings = {.certainty = INT64_MAX, .same = SAME_PICTURE_YES};
    enum iw_error error = usage_count(db, record);
    text_init(&findings.texts, db->context->arena);
    for (unsigned i = 0; error == IW_OK && i < record->outcome->watermark_count; i++)
        error = finding_add(db, record, i, &findings);
    record->order_event = findings.texts.length > 0 ? ORDER_EVENT_DETECT : ORDER_EVENT_UNDETECT;
    if (error != IW_OK || findings.texts.length == 0)
        return error;
    return orders_watermark_write(db, record->order.id, findings.texts.data, findings.texts.length,
                                  findings.certainty, findings.same);
}

/* Writes the row that names the fetched bytes, and the job on them. */
static enum iw_error fetched_write(const struct db *db, struct outcome_write *record)
{
    const struct job *job = record->outcome->job;
    record->effect.is_job_queued = true;
    const struct upload_facts *fetched = &record->outcome->fetched;
    enum iw_error error = files_upload_write(db, job->file_id, record->now_ms, fetched);
    if (error == IW_OK)
        error = jobs_insert_for_file(db, job->order_id, job->file_id);
    return error == IW_OK ? quotas_stored(db, record->order.account_id, fetched->size_bytes) : error;
}

static enum iw_error trouble_write(const struct db *db, struct outcome_write *record)
{
    const struct outcome *outcome = record->outcome;
    return files_error_write(db, outcome->job->file_id, outcome->error, outcome->sentence);
}

/* Ends the order by the table of transitions; fails if its status changed since it was read. */
static enum iw_error order_end(const struct db *db, struct outcome_write *record, enum order_event event)
{
    const struct order_progress *order = &record->order;
    enum order_status next;
    if (!order_next(order->type, order->status, event, &next)) {
        context_cause(db->context, "order event %s is not legal in %s", order_event_name(event),
                      order_status_name(order->status));
        return context_fail(db->context, IW_SERVER_INTERNAL_ERROR, NULL);
    }
    int64_t expires_at_ms =
        next == ORDER_COMPLETE ? order->created_at_ms + plan_retention_ms(record->domain->config, order->plan)
                               : 0;
    record->effect.is_order_ended = true;
    record->effect.status = next;
    record->effect.order_ms = record->now_ms - order->started_at_ms;
    enum iw_error error = orders_close(db, order, next, record->now_ms, expires_at_ms);
    return error == IW_OK
               ? webhook_order_ended(record->domain, order->account_id, order->id, order->type, next)
               : error;
}

/* After the last file: ends the order, or queues the archive of several results. */
static enum iw_error files_done(const struct db *db, struct outcome_write *record)
{
    const struct order_progress *order = &record->order;
    if (order->completed_count + order->failed_count < order->file_count)
        return IW_OK;
    if (record->order_event != ORDER_EVENT_COUNT)
        return order_end(db, record, record->order_event);
    if (order->result_count == 0)
        return order_end(db, record, ORDER_EVENT_FAIL);
    bool is_alone = order->file_count == 1 && order->type == ORDER_ANTI_AI;
    enum iw_error error = is_alone || order->is_zero_copy ? IW_OK : names_settle(db, order);
    if (error != IW_OK)
        return error;
    if (order->result_count == 1 || order->is_zero_copy)
        return order_end(db, record, ORDER_EVENT_SUCCEED);
    record->effect.is_job_queued = true;
    return jobs_insert_archive(db, order->id);
}

static enum iw_error archive_write(const struct db *db, struct outcome_write *record)
{
    const struct outcome *outcome = record->outcome;
    enum iw_error error = orders_archive_write(db, outcome->job->order_id, outcome->archive_store_key,
                                               outcome->archive_bytes, outcome->archive_digest);
    if (error == IW_OK)
        error = quotas_stored(db, record->order.account_id, outcome->archive_bytes);
    return error == IW_OK ? order_end(db, record, ORDER_EVENT_SUCCEED) : error;
}

/* A file ends as soon as no job on it is left. */
static enum iw_error file_end(const struct db *db, struct outcome_write *record)
{
    int64_t left;
    bool is_failed;
    const struct job *job = record->outcome->job;
    enum iw_error error = jobs_left(db, job->order_id, job->file_id, &left);
    if (error != IW_OK || left > 0)
        return error;
    error = files_end(db, job->file_id, record->now_ms, &is_failed);
    if (error == IW_OK && is_failed)
        record->order.failed_count++;
    else if (error == IW_OK)
        record->order.completed_count++;
    return error;
}

static enum iw_error file_write(const struct db *db, struct outcome_write *record)
{
    static enum iw_error (*const writers[])(const struct db *, struct outcome_write *) = {
        [OUTCOME_RESULT] = result_write, [OUTCOME_READING] = reading_write, [OUTCOME_FETCHED] = fetched_write,
        [OUTCOME_PUSHED] = pushed_write, [OUTCOME_TROUBLE] = trouble_write,
    };
    const struct job *job = record->outcome->job;
    enum iw_error error = writers[record->outcome->kind](db, record);
    if (error == IW_OK && record->outcome->note_code != NULL)
        error = files_note_write(db, job->file_id, record->outcome->note_code, record->outcome->note);
    /* A zero-copy result is deleted after the push, even if the push failed. */
    if (error == IW_OK && job->kind == JOB_PUSH)
        error = results_forget(db, job->order_id, job->file_id, job->copy);
    if (error == IW_OK)
        error = file_end(db, record);
    if (error == IW_OK)
        error = orders_progress_write(db, &record->order, record->now_ms);
    return error == IW_OK ? files_done(db, record) : error;
}

static enum iw_error record_write(const struct db *db, struct outcome_write *record)
{
    const struct outcome *outcome = record->outcome;
    record->effect.verdict = verdict_of(record->domain, outcome);
    enum iw_error error = orders_progress_lock(db, outcome->job->order_id, &record->order);
    if (error != IW_OK)
        return error;
    if (record->order.status != ORDER_IN_PROGRESS) {
        record->effect.verdict.event = JOB_EVENT_CANCEL;
        record->effect.is_order_gone = true;
    }
    error = jobs_move(db, outcome->job, &record->effect.verdict, outcome->reason, &record->effect.is_fenced);
    if (error != IW_OK || record->effect.is_fenced || record->effect.is_order_gone ||
        record->effect.verdict.event == JOB_EVENT_RETRY)
        return error;
    return outcome->job->kind == JOB_ARCHIVE ? archive_write(db, record) : file_write(db, record);
}

enum iw_error outcome_record(const struct domain *domain, const struct outcome *outcome,
                             struct outcome_effect *effect)
{
    enum iw_error error;
    *effect = (struct outcome_effect){0};
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        struct outcome_write record = {
            .domain = domain, .outcome = outcome, .order_event = ORDER_EVENT_COUNT, .now_ms = clock_now_ms()};
        error = record_write(&domain->db, &record);
        *effect = record.effect;
    }
    return error;
}

enum iw_error outcome_release(const struct domain *domain, const struct job *job)
{
    const struct job_verdict verdict = {
        .event = JOB_EVENT_RELEASE, .failures = job->failures, .deaths = job->deaths};
    bool is_fenced;
    return jobs_move(&domain->db, job, &verdict, "given_back", &is_fenced);
}
