/*
 * Jobs on the network: sources fetched into the store, results pushed to their
 * targets.  All of them side by side on one event loop; none holds an image
 * process.  The table of model/peer.c has the meaning of each status.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <imgward/fault.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "domain/outgoing.h"
#include "model/peer.h"
#include "worker/worker.h"

enum { redirects_max = 3 };

/* The other side of a transfer, and its words. */
struct side {
    enum peer peer;
    const char *name;
    enum iw_error retried; /* the code after the last retry */
    enum iw_error refused;
};

static const struct side source_side = {PEER_SOURCE, "The source URL", IW_SOURCE_UNREACHABLE,
                                        IW_SOURCE_REFUSED};
static const struct side target_side = {PEER_TARGET, "The output target", IW_OUTPUT_TARGET_REFUSED,
                                        IW_OUTPUT_TARGET_REFUSED};

/* One rule for each end: an answer by the table of statuses, everything else by the outcome. */
static enum peer_fate fate_of(const struct side *side, const struct fetch_result *result)
{
    if (result->outcome != FETCH_ANSWERED)
        return result->outcome == FETCH_UNREACHABLE ? PEER_RETRIED : PEER_FINAL;
    return result->is_partial ? PEER_RETRIED : peer_status(result->status)->fates[side->peer];
}

static const char *reason_of(const struct fetch_result *result)
{
    return result->outcome == FETCH_ANSWERED ? "status" : result->reason;
}

/* "The source URL: the server answered with status 404: there is nothing at this URL." */
static const char *sentence_of(struct task *task, const struct side *side, const struct fetch_result *result)
{
    struct arena *arena = task->arena;
    if (result->outcome != FETCH_ANSWERED)
        return arena_printf(arena, "%s: %s.", side->name, result->message);
    const char *start =
        arena_printf(arena, "%s: the server answered with status %ld", side->name, result->status);
    if (result->is_partial)
        return arena_printf(arena, "%s: that is a part, and the whole file was asked for.", start);
    if (result->redirect_host[0] != '\0')
        return arena_printf(arena, "%s: it redirects to the host %s, and that is not followed.", start,
                            result->redirect_host);
    const char *clause = peer_status(result->status)->clause;
    return clause != NULL ? arena_printf(arena, "%s: %s.", start, clause) : arena_printf(arena, "%s.", start);
}

/* The end of a transfer that did not go well.  It is retried no sooner than the server asks for (RFC
 * 9110, 10.2.3). */
static void trouble_end(struct task *task, const struct side *side, const struct fetch_result *result)
{
    bool is_retried = fate_of(side, result) == PEER_RETRIED;
    int64_t asked_s = is_retried ? result->retry_after_s : 0;
    if (asked_s > job_wait_max_ms / 1000)
        asked_s = job_wait_max_ms / 1000;
    task->outcome = (struct outcome){.job = &task->job,
                                     .kind = OUTCOME_TROUBLE,
                                     .trouble = is_retried ? JOB_TROUBLE_TRANSIENT : JOB_TROUBLE_FINAL,
                                     .error = is_retried ? side->retried : side->refused,
                                     .sentence = sentence_of(task, side, result),
                                     .reason = reason_of(result),
                                     .asked_ms = asked_s * 1000};
    task_end(task->worker, task);
}

/* ---- fetching ---- */

static void upload_sink_end(struct task *task)
{
    if (task->sink != NULL)
        upload_sink_abandon(task->sink);
    task->sink = NULL;
}

static bool source_receive(void *user, const void *bytes, size_t size)
{
    struct task *task = user;
    return upload_sink_add(task->sink, &task->context, bytes, size) == IW_OK;
}

/* The store or the first bytes refused: what the context says. */
static void upload_sink_refused(struct task *task, const struct fetch_result *result)
{
    static const struct {
        enum iw_error from;
        enum iw_error to;
    } codes[] = {{IW_UNSUPPORTED_MEDIA_TYPE, IW_IMAGE_FORMAT_UNSUPPORTED},
                 {IW_PAYLOAD_TOO_LARGE, IW_SOURCE_TOO_LARGE},
                 {IW_IMAGE_CORRUPT, IW_IMAGE_CORRUPT}};
    const char *sentence = task->context.sentence;
    const char *reason = task->context.reason != NULL ? task->context.reason : "source_refused";
    enum iw_error error = task->context.error;
    if (error == IW_UNSUPPORTED_MEDIA_TYPE && result->is_coded)
        sentence =
            arena_printf(task->arena, "%s Its Content-Encoding is none of gzip, deflate and br.", sentence);
    upload_sink_end(task);
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
    upload_sink_end(task);
    if (result->outcome == FETCH_TOO_LARGE)
        task_trouble(task->worker, task, JOB_TROUBLE_FINAL, IW_SOURCE_TOO_LARGE,
                     arena_printf(task->arena, "The source URL: the file has more than %lld bytes.",
                                  (long long)task->worker->config.store_upload_max_bytes),
                     "too_large");
    else
        trouble_end(task, &source_side, result);
}

/* All bytes are here: into the store, and then they are the outcome. */
static enum iw_error source_keep(struct task *task)
{
    struct upload_sink_facts *facts = arena_alloc(task->arena, sizeof *facts);
    const struct storage_key key = {.kind = FILEKEY_UPLOAD,
                                    .order_id = task->job.order_id,
                                    .number = task->job.position,
                                    .version = storage_version_new()};
    enum iw_error error = upload_sink_finish(task->sink, &task->context, false, facts);
    if (error != IW_OK)
        return error;
    error = upload_sink_commit(task->sink, &task->context, &key);
    task->sink = NULL;
    if (error == IW_OK && fault_fails(FAULT_SOURCE_STORED))
        error = context_fail(&task->context, IW_IO_FAILED, NULL);
    if (error != IW_OK)
        return error;
    task->result_key = key;
    task->outcome = (struct outcome){.job = &task->job,
                                     .kind = OUTCOME_FETCHED,
                                     .fetched = {.store_key = storage_key_text(task->arena, &key),
                                                 .format = facts->format,
                                                 .size_bytes = facts->size_bytes,
                                                 .sha256 = facts->sha256}};
    return IW_OK;
}

static void source_done(void *user, const struct fetch_result *result)
{
    struct task *task = user;
    if (result->outcome == FETCH_STOPPED)
        upload_sink_refused(task, result);
    else if (fate_of(&source_side, result) != PEER_TAKEN)
        source_failed(task, result);
    else if (source_keep(task) != IW_OK)
        upload_sink_refused(task, result);
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
    enum iw_error error = upload_sink_begin(worker->storage, &task->context, config->store_upload_max_bytes,
                                            false, &task->sink);
    if (error == IW_OK && fault_fails(FAULT_SOURCE_ASKED))
        error = context_fail(&task->context, IW_IO_FAILED, NULL);
    return error == IW_OK ? fetch_start(worker->fetch, &task->context, &request) : error;
}

/* ---- pushing ---- */

static void target_done(void *user, const struct fetch_result *result)
{
    struct task *task = user;
    transfer_drop(task);
    fault_point(FAULT_TARGET_TOOK);
    if (fate_of(&target_side, result) != PEER_TAKEN) {
        trouble_end(task, &target_side, result);
        return;
    }
    task->outcome = (struct outcome){.job = &task->job, .kind = OUTCOME_PUSHED};
    task_end(task->worker, task);
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

/*
 * The headers of the PUT: those that the client gave for its target, as they are, and our Content-Type unless
 * one of them is it.
 */
static enum iw_error headers_fill(struct task *task, const char **headers)
{
    const struct json *given = NULL;
    const char *text = task->job.target_headers;
    bool has_type = false;
    unsigned count = 0;
    enum iw_error error = text != NULL ? json_read(&task->context, text, strlen(text), &given) : IW_OK;
    if (error != IW_OK)
        return error;
    for (const struct json *header = given != NULL ? given->first : NULL; header != NULL;
         header = header->next) {
        if (!json_is(header, JSON_KIND_STRING) || count == outgoing_headers_max)
            return context_fail(&task->context, IW_SERVER_INTERNAL_ERROR, NULL);
        has_type = has_type || text_equal_nocase(header->name, "Content-Type");
        headers[count++] = arena_printf(task->arena, "%s: %s", header->name, header->string);
    }
    if (!has_type)
        headers[count] =
            arena_printf(task->arena, "Content-Type: %s", format_media_type(task->job.result_format));
    return IW_OK;
}

static enum iw_error target_begin(struct worker *worker, struct task *task)
{
    struct fetch_request request = {.method = FETCH_PUT,
                                    .target = -1,
                                    .timeout_s = worker->config.outgoing_push_timeout_s,
                                    .redirects_max = 0,
                                    .done = target_done,
                                    .user = task};
    enum iw_error error = result_open(worker, task);
    if (error == IW_OK)
        error = headers_fill(task, request.headers);
    if (error == IW_OK && fault_fails(FAULT_TARGET_ASKED))
        error = context_fail(&task->context, IW_IO_FAILED, NULL);
    if (error != IW_OK)
        return error;
    request.url = task->job.target_url;
    request.source = task->source_file;
    return fetch_start(worker->fetch, &task->context, &request);
}

/* ---- for the supervisor ---- */

void transfer_drop(struct task *task)
{
    upload_sink_end(task);
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
    worker->fetch = fresh;
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
}

void transfer_reload(struct worker *worker)
{
    worker->is_fetch_stale = !fetch_is_made_with(worker->fetch, &worker->config);
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
