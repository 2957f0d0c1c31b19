/*
 * Jobs on the network: sources fetched into the store, results pushed to their
 * targets.  All of them side by side on one event loop; none holds an image
 * process.  What can go wrong is told by two tables below.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <imgward/fault.h>

#include "base/clock.h"
#include "base/log.h"
#include "worker/worker.h"

enum { redirects_max = 3, status_success = 200, status_success_last = 299, status_server_first = 500 };

static bool is_success(const struct fetch_result *result)
{
    return result->status >= status_success && result->status <= status_success_last;
}

/* What a server says when it may say otherwise later: request timeout, too early, too many requests. */
static bool is_status_transient(long status)
{
    return status == 408 || status == 425 || status == 429 || status >= status_server_first;
}

/* There is a status that decides, whatever became of the body. */
static bool is_answered_otherwise(const struct fetch_result *result)
{
    bool is_answer = result->outcome == FETCH_ANSWERED || result->outcome == FETCH_TOO_LARGE;
    return is_answer && !is_success(result);
}

static bool is_transient(const struct fetch_result *result)
{
    if (is_answered_otherwise(result))
        return is_status_transient(result->status);
    return result->outcome == FETCH_UNREACHABLE;
}

static const char *reason_of(const struct fetch_result *result)
{
    return is_answered_otherwise(result) ? "status" : result->reason;
}

/* "The source URL: the server answered with status 404."  Nothing of the URL is in it. */
static const char *sentence_of(struct task *task, const char *what, const struct fetch_result *result)
{
    if (is_answered_otherwise(result))
        return arena_printf(task->arena, "%s: the server answered with status %ld.", what, result->status);
    return arena_printf(task->arena, "%s: %s.", what, result->message);
}

/* Once more later, and no sooner than the server asks for (RFC 9110, 10.2.3). */
static void trouble_transient(struct task *task, enum iw_error error, const char *what,
                              const struct fetch_result *result)
{
    int64_t asked_s = is_answered_otherwise(result) ? result->retry_after_s : 0;
    if (asked_s > job_wait_max_ms / 1000)
        asked_s = job_wait_max_ms / 1000;
    task->outcome = (struct outcome){.job = &task->job,
                                     .kind = OUTCOME_TROUBLE,
                                     .trouble = JOB_TROUBLE_TRANSIENT,
                                     .error = error,
                                     .sentence = sentence_of(task, what, result),
                                     .reason = reason_of(result),
                                     .asked_ms = asked_s * 1000};
    task_end(task->worker, task);
}

/* ---- fetching ---- */

static void intake_end(struct task *task)
{
    if (task->intake != NULL)
        intake_abandon(task->intake);
    task->intake = NULL;
}

static bool source_receive(void *user, const void *bytes, size_t size)
{
    struct task *task = user;
    return intake_add(task->intake, &task->context, bytes, size) == IW_OK;
}

/* The store or the first bytes refused: what the context says. */
static void intake_refused(struct task *task)
{
    static const struct {
        enum iw_error from;
        enum iw_error to;
    } codes[] = {{IW_UNSUPPORTED_MEDIA_TYPE, IW_IMAGE_FORMAT_UNSUPPORTED},
                 {IW_PAYLOAD_TOO_LARGE, IW_SOURCE_TOO_LARGE}};
    const char *sentence = task->context.sentence;
    const char *reason = task->context.reason != NULL ? task->context.reason : "source_refused";
    enum iw_error error = task->context.error;
    intake_end(task);
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].from == error) {
            task_trouble(task->worker, task, JOB_TROUBLE_FINAL, codes[i].to, sentence, reason);
            return;
        }
    log_failure(&task->context, "source_not_stored");
    task_trouble(task->worker, task, task_trouble_of(task), IW_PROCESSING_CRASHED, NULL, reason);
}

static void source_failed(struct task *task, const struct fetch_result *result)
{
    bool is_too_large = result->outcome == FETCH_TOO_LARGE && !is_answered_otherwise(result);
    intake_end(task);
    if (is_too_large)
        task_trouble(task->worker, task, JOB_TROUBLE_FINAL, IW_SOURCE_TOO_LARGE,
                     arena_printf(task->arena, "The source URL: the file has more than %lld bytes.",
                                  (long long)task->worker->config.store_upload_max_bytes),
                     "too_large");
    else if (is_transient(result))
        trouble_transient(task, IW_SOURCE_UNREACHABLE, "The source URL", result);
    else
        task_trouble(task->worker, task, JOB_TROUBLE_FINAL, IW_SOURCE_REFUSED,
                     sentence_of(task, "The source URL", result), reason_of(result));
}

/* All bytes are here: into the store, and then they are the outcome. */
static enum iw_error source_keep(struct task *task)
{
    static const char *const formats[] = {
        [SNIFF_NONE] = "", [SNIFF_JPEG] = "jpeg", [SNIFF_PNG] = "png", [SNIFF_WEBP] = "webp"};
    struct intake_facts *facts = arena_alloc(task->arena, sizeof *facts);
    const struct storage_key key = {.kind = STORAGE_UPLOAD,
                                    .order_id = task->job.order_id,
                                    .number = task->job.position,
                                    .version = storage_version_new()};
    enum iw_error error = intake_finish(task->intake, &task->context, facts);
    if (error != IW_OK)
        return error;
    error = intake_commit(task->intake, &task->context, &key);
    task->intake = NULL;
    if (error == IW_OK && fault_fails(FAULT_SOURCE_STORED))
        error = context_fail(&task->context, IW_IO_FAILED, NULL);
    if (error != IW_OK)
        return error;
    task->result_key = key;
    task->outcome = (struct outcome){.job = &task->job,
                                     .kind = OUTCOME_FETCHED,
                                     .fetched = {.store_key = storage_key_text(task->arena, &key),
                                                 .format = formats[facts->format],
                                                 .size_bytes = facts->size_bytes,
                                                 .sha256 = facts->sha256}};
    return IW_OK;
}

static void source_done(void *user, const struct fetch_result *result)
{
    struct task *task = user;
    if (result->outcome == FETCH_STOPPED)
        intake_refused(task);
    else if (result->outcome != FETCH_ANSWERED || !is_success(result))
        source_failed(task, result);
    else if (source_keep(task) != IW_OK)
        intake_refused(task);
    else
        task_end(task->worker, task);
}

static enum iw_error source_begin(struct worker *worker, struct task *task)
{
    const struct config *config = &worker->config;
    const struct fetch_request request = {.method = FETCH_GET,
                                          .url = task->job.source_url != NULL ? task->job.source_url : "",
                                          .source = -1,
                                          .target = -1,
                                          .receive = source_receive,
                                          .body_max_bytes = config->store_upload_max_bytes,
                                          .timeout_s = config->outgoing_fetch_timeout_s,
                                          .redirects_max = redirects_max,
                                          .done = source_done,
                                          .user = task};
    enum iw_error error =
        intake_begin(worker->storage, &task->context, config->store_upload_max_bytes, false, &task->intake);
    if (error == IW_OK && fault_fails(FAULT_SOURCE_ASKED))
        error = context_fail(&task->context, IW_IO_FAILED, NULL);
    return error == IW_OK ? fetch_start(worker->fetch, &task->context, &request) : error;
}

/* ---- pushing ---- */

static void target_done(void *user, const struct fetch_result *result)
{
    struct task *task = user;
    bool is_taken = result->outcome == FETCH_ANSWERED || result->outcome == FETCH_TOO_LARGE;
    transfer_drop(task);
    fault_point(FAULT_TARGET_TOOK);
    if (is_taken && is_success(result)) {
        task->outcome = (struct outcome){.job = &task->job, .kind = OUTCOME_PUSHED};
        task_end(task->worker, task);
        return;
    }
    if (is_transient(result))
        trouble_transient(task, IW_OUTPUT_TARGET_REFUSED, "The output target", result);
    else
        task_trouble(task->worker, task, JOB_TROUBLE_FINAL, IW_OUTPUT_TARGET_REFUSED,
                     sentence_of(task, "The output target", result), reason_of(result));
}

/* What is to be pushed.  NOT_FOUND when it is gone. */
static enum iw_error result_open(struct worker *worker, struct task *task)
{
    struct storage_key key;
    if (task->job.result_key == NULL || task->job.target_url == NULL ||
        !storage_key_read(task->job.result_key, &key))
        return context_fail(&task->context, IW_NOT_FOUND, "There is no result to push.");
    return storage_get(worker->storage, &task->context, &key, &task->source_file, NULL);
}

static enum iw_error target_begin(struct worker *worker, struct task *task)
{
    enum iw_error error = result_open(worker, task);
    if (error != IW_OK)
        return error;
    const struct fetch_request request = {
        .method = FETCH_PUT,
        .url = task->job.target_url,
        .headers = {arena_printf(task->arena, "Content-Type: image/%s", task->job.result_format)},
        .source = task->source_file,
        .target = -1,
        .timeout_s = worker->config.outgoing_push_timeout_s,
        .redirects_max = 0,
        .done = target_done,
        .user = task};
    if (fault_fails(FAULT_TARGET_ASKED))
        return context_fail(&task->context, IW_IO_FAILED, NULL);
    return fetch_start(worker->fetch, &task->context, &request);
}

/* ---- for the supervisor ---- */

void transfer_drop(struct task *task)
{
    intake_end(task);
    if (task->source_file >= 0)
        close(task->source_file);
    task->source_file = -1;
}

void transfer_begin(struct worker *worker, struct task *task)
{
    bool is_push = task->job.kind == JOB_PUSH;
    task_begin(task);
    if (is_push && task->job.target_expires_ms != 0 && task->job.target_expires_ms <= clock_now_ms()) {
        task_trouble(worker, task, JOB_TROUBLE_FINAL, IW_OUTPUT_TARGET_REFUSED,
                     "The output target: its URL has expired.", "target_expired");
        return;
    }
    if ((is_push ? target_begin(worker, task) : source_begin(worker, task)) == IW_OK)
        return;
    transfer_drop(task);
    log_failure(&task->context, "job_not_begun");
    task_trouble(worker, task, task_trouble_of(task), IW_PROCESSING_CRASHED, NULL,
                 task->context.reason != NULL ? task->context.reason : "not_begun");
}

static enum iw_error fetch_make(struct worker *worker, struct context *context)
{
    struct fetch *fresh;
    enum iw_error error = fetch_new(context, &worker->config, &fresh);
    worker->is_fetch_stale = false;
    if (error != IW_OK)
        return error;
    fetch_free(worker->fetch);
    free(worker->fetch_allow_addresses);
    worker->fetch = fresh;
    worker->fetch_allow_http = worker->config.outgoing_allow_http;
    worker->fetch_allow_addresses = strdup(worker->config.outgoing_allow_addresses);
    if (worker->fetch_allow_addresses == NULL)
        abort();
    return IW_OK;
}

enum iw_error transfer_open(struct worker *worker, struct context *context)
{
    return fetch_make(worker, context);
}

void transfer_close(struct worker *worker)
{
    fetch_free(worker->fetch);
    worker->fetch = NULL;
    free(worker->fetch_allow_addresses);
    worker->fetch_allow_addresses = NULL;
}

void transfer_reload(struct worker *worker)
{
    worker->is_fetch_stale =
        worker->fetch_allow_http != worker->config.outgoing_allow_http ||
        strcmp(worker->fetch_allow_addresses, worker->config.outgoing_allow_addresses) != 0;
}

void transfer_step(struct worker *worker, const struct pollfd *polls, unsigned count)
{
    fetch_step(worker->fetch, polls, count);
    if (!worker->is_fetch_stale || fetch_count(worker->fetch) > 0)
        return;
    if (fetch_make(worker, &worker->context) != IW_OK) {
        log_failure(&worker->context, "reload_refused");
        context_clear(&worker->context);
    }
    lease_look_ask(worker);
}
