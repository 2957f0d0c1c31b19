#include "domain/outcome.h"

#include "base/clock.h"
#include "domain/webhook.h"
#include "service/zip.h"

/* What goes through the transaction; all but the first two is filled anew with every run of it. */
struct record {
    const struct domain *domain;
    const struct outcome *outcome;
    struct closing_order order;
    struct outcome_effect effect;
    int64_t now_ms;
};

/* An archive is only bytes copied: no try of it is hopeless, and a full disk may be emptied. */
static struct job_verdict verdict_of(const struct domain *domain, const struct outcome *outcome)
{
    const struct job *job = outcome->job;
    const struct job_limits limits = {
        .failures_max = job->kind == JOB_ARCHIVE ? INT64_MAX : domain->config->worker_failures_max,
        .deaths_max = job->kind == JOB_ARCHIVE ? INT64_MAX : domain->config->worker_deaths_max,
        .retry_first_ms = domain->config->worker_retry_first_ms,
    };
    if (outcome->kind == OUTCOME_TROUBLE && job->kind == JOB_ARCHIVE)
        return job_judge(JOB_TROUBLE_TRANSIENT, job->failures, job->deaths, &limits);
    if (outcome->kind == OUTCOME_TROUBLE)
        return job_judge(outcome->trouble, job->failures, job->deaths, &limits);
    return (struct job_verdict){.event = JOB_EVENT_FINISH, .failures = job->failures, .deaths = job->deaths};
}

/* The name a result is given: its file's, unique among those of the order. */
static enum iw_error result_name(struct context *context, struct db *db, const struct job *job,
                                 const char **name)
{
    const char **names;
    unsigned count, own = 0;
    enum iw_error error = closing_file_names(context, db, job->order_id, &names, &count);
    if (error != IW_OK)
        return error;
    struct zip_entry *entries = arena_array(context->arena, count + 1, sizeof *entries);
    for (unsigned i = 0; i < count; i++)
        entries[i].name = names[i];
    if (job->position >= 1 && job->position <= count)
        own = (unsigned)job->position - 1;
    *name = count > 0 ? zip_names(context->arena, entries, count)[own] : job->file_name;
    return IW_OK;
}

static enum iw_error result_write(struct context *context, struct db *db, struct record *record)
{
    char day[11];
    const struct job *job = record->outcome->job;
    struct closing_result result = record->outcome->result;
    result.order_id = job->order_id;
    result.file_id = job->file_id;
    clock_day(record->now_ms, day);
    enum iw_error error = result_name(context, db, job, &result.name);
    if (error == IW_OK)
        error = closing_result_put(context, db, &result, record->now_ms);
    if (error == IW_OK)
        error = closing_file_end(context, db, job->file_id, IW_OK, NULL, record->now_ms);
    if (error == IW_OK)
        error = closing_usage_add(context, db, job->account_id, day, 1);
    record->order.completed_count++;
    record->order.result_count++;
    if (record->order.thumbnail_store_key == NULL && record->outcome->thumbnail_store_key != NULL) {
        record->order.thumbnail_store_key = record->outcome->thumbnail_store_key;
        record->effect.is_thumbnail_used = true;
    }
    return error;
}

/* Ends the order: the one transition function, and a compare-and-set on the status it was read with. */
static enum iw_error order_end(struct context *context, struct db *db, struct record *record,
                               enum order_event event)
{
    const struct closing_order *order = &record->order;
    enum order_status next;
    if (!order_next(order->type, order->status, event, &next)) {
        context_cause(context, "order event %s is not legal in %s", order_event_name(event),
                      order_status_name(order->status));
        return context_fail(context, IW_SERVER_INTERNAL_ERROR, NULL);
    }
    int64_t expires_at_ms =
        next == ORDER_COMPLETE ? order->created_at_ms + record->domain->config->orders_complete_s * 1000 : 0;
    record->effect.is_order_ended = true;
    record->effect.status = next;
    enum iw_error error = closing_order_close(context, db, order, next, record->now_ms, expires_at_ms);
    return error == IW_OK ? webhook_order_ended(context, db, order->account_id, order->id, order->type, next)
                          : error;
}

/* After the last file: nothing, one or several results. */
static enum iw_error files_done(struct context *context, struct db *db, struct record *record)
{
    const struct closing_order *order = &record->order;
    if (order->completed_count + order->failed_count < order->file_count)
        return IW_OK;
    if (order->result_count == 0)
        return order_end(context, db, record, ORDER_EVENT_FAIL);
    if (order->result_count == 1 || order->is_zero_copy)
        return order_end(context, db, record, ORDER_EVENT_SUCCEED);
    record->effect.is_archive_queued = true;
    return jobs_insert_archive(context, db, order->id);
}

static enum iw_error archive_write(struct context *context, struct db *db, struct record *record)
{
    const struct outcome *outcome = record->outcome;
    enum iw_error error = closing_archive_put(context, db, outcome->job->order_id, outcome->archive_store_key,
                                              outcome->archive_bytes);
    return error == IW_OK ? order_end(context, db, record, ORDER_EVENT_SUCCEED) : error;
}

static enum iw_error file_write(struct context *context, struct db *db, struct record *record)
{
    const struct outcome *outcome = record->outcome;
    enum iw_error error;
    if (outcome->kind == OUTCOME_RESULT) {
        error = result_write(context, db, record);
    } else {
        error = closing_file_end(context, db, outcome->job->file_id, outcome->error, outcome->sentence,
                                 record->now_ms);
        record->order.failed_count++;
    }
    if (error == IW_OK)
        error = closing_order_count(context, db, &record->order, record->now_ms);
    return error == IW_OK ? files_done(context, db, record) : error;
}

static enum iw_error record_work(struct context *context, struct db *db, void *user)
{
    struct record *record = user;
    const struct outcome *outcome = record->outcome;
    record->now_ms = clock_now_ms();
    record->effect = (struct outcome_effect){.verdict = verdict_of(record->domain, outcome)};
    enum iw_error error = closing_order_lock(context, db, outcome->job->order_id, &record->order);
    if (error != IW_OK)
        return error;
    if (record->order.status != ORDER_IN_PROGRESS) {
        record->effect.verdict.event = JOB_EVENT_CANCEL;
        record->effect.is_order_gone = true;
    }
    error = jobs_move(context, db, outcome->job, &record->effect.verdict, outcome->reason);
    if (error != IW_OK || record->effect.is_order_gone || record->effect.verdict.event == JOB_EVENT_RETRY)
        return error;
    return outcome->job->kind == JOB_ARCHIVE ? archive_write(context, db, record)
                                             : file_write(context, db, record);
}

enum iw_error outcome_record(const struct domain *domain, const struct outcome *outcome,
                             struct outcome_effect *effect)
{
    struct record record = {.domain = domain, .outcome = outcome};
    enum iw_error error = db_transaction(domain->context, domain->db, record_work, &record);
    *effect = record.effect;
    return error;
}

enum iw_error outcome_give_back(const struct domain *domain, const struct job *job)
{
    const struct job_verdict verdict = {
        .event = JOB_EVENT_GIVE_BACK, .failures = job->failures, .deaths = job->deaths};
    return jobs_move(domain->context, domain->db, job, &verdict, "given_back");
}
