#include "worker/transfer.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "db/files.h"
#include "domain/webhooks/outgoing.h"
#include "model/peer.h"
#include "service/files/upload_sink.h"
#include "worker/shared.h"
#include "worker/task.h"

enum { redirects_max = 3 };

/* The server at the other end, and the error codes about it. */
struct transfer_side {
    enum peer peer;
    const char *name;
    enum iw_error retried; /* after the last retry */
    enum iw_error refused;
};

static const struct transfer_side source_side = {PEER_SOURCE, "The source URL", IW_SOURCE_UNREACHABLE,
                                                 IW_SOURCE_REFUSED};
static const struct transfer_side target_side = {PEER_TARGET, "The output target", IW_OUTPUT_TARGET_REFUSED,
                                                 IW_OUTPUT_TARGET_REFUSED};

/* The table of statuses (model/peer.h) judges an answer.  Without an answer the outcome decides. */
static enum peer_fate fate_of(const struct transfer_side *side, const struct fetch_result *result)
{
    if (result->outcome != FETCH_ANSWERED)
        return result->outcome == FETCH_UNREACHABLE ? PEER_RETRIED : PEER_FINAL;
    return result->is_partial ? PEER_RETRIED : peer_status(result->status)->fates[side->peer];
}

/* "The source URL: the server answered with status 404: there is nothing at this URL." */
static const char *sentence_of(struct task *task, const struct transfer_side *side,
                               const struct fetch_result *result)
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

/* The server failed or refused.  A retry comes no sooner than Retry-After says (RFC 9110, 10.2.3). */
static struct outcome *peer_trouble(struct task *task, const struct transfer_side *side)
{
    const struct fetch_result *result = &task->transfer.result;
    bool is_retried = fate_of(side, result) == PEER_RETRIED;
    int64_t asked_s = is_retried ? result->retry_after_s : 0;
    struct outcome *outcome =
        task_trouble(task, is_retried ? JOB_TROUBLE_TRANSIENT : JOB_TROUBLE_FINAL,
                     is_retried ? side->retried : side->refused, sentence_of(task, side, result),
                     result->outcome == FETCH_ANSWERED ? "status" : result->reason);
    outcome->asked_ms = 1000 * (asked_s < job_wait_max_ms / 1000 ? asked_s : job_wait_max_ms / 1000);
    return outcome;
}

static void transfer_close(struct task *task)
{
    struct transfer_part *transfer = &task->transfer;
    if (transfer->sink != NULL)
        upload_sink_abandon(transfer->sink);
    if (transfer->source_file >= 0)
        close(transfer->source_file);
    transfer->sink = NULL;
    transfer->source_file = -1;
}

/* Called by the sender at the end of a request. */
static void transfer_done(void *user, const struct fetch_result *result)
{
    struct task *task = user;
    task->transfer.result = *result;
    task->state = TASK_ANSWERED;
}

/* True if the job must wait: an account may have as many requests to a server as stay free (deliver.c). */
static bool server_is_busy(const struct transfer_jobs *transfers, struct task *task, const char *url)
{
    const struct task_pool *pool = transfers->pool;
    unsigned busy = 0, own = 0;
    fetch_server(url, task->transfer.server);
    for (const struct task *other = pool->tasks; other < pool->tasks + pool->count; other++) {
        bool is_rival = other != task && other->state == TASK_RUNNING &&
                        strcmp(other->transfer.server, task->transfer.server) == 0;
        busy += is_rival;
        own += is_rival && other->job.account_id == task->job.account_id;
    }
    return busy + own >= (unsigned)transfers->shared->domain.config->outgoing_server_requests;
}

/* Returns the job to the queue without counting a failure: another server's jobs use the place. */
static struct outcome *later(struct task *task, const struct transfer_side *side, const char *reason)
{
    return task_trouble(task, JOB_TROUBLE_OURS, side->retried, NULL, reason);
}

/* Starts the request of a job, unless an earlier step has failed. */
static struct outcome *transfer_send(struct transfer_jobs *transfers, struct task *task, enum iw_error error,
                                     const struct fetch_request *request)
{
    if (error == IW_OK)
        error = sender_send(&transfers->sender, &task->context, request);
    if (error == IW_OK)
        return NULL;
    transfer_close(task);
    return task_failure(task, "job_not_begun", "not_begun");
}

/* ---- fetching ---- */

static bool source_receive(void *user, const void *bytes, size_t size)
{
    struct task *task = user;
    return upload_sink_add(task->transfer.sink, &task->context, bytes, size) == IW_OK;
}

/*
 * Equal sources of an order are fetched once.  The job of the first file does it, and the others take the
 * bytes or the error.  NULL if this job fetches.
 */
static struct outcome *source_share(const struct transfer_jobs *transfers, struct task *task, const char *url)
{
    struct files_source first;
    const struct db db = {&task->context, transfers->shared->domain.db.connection};
    if (files_source_first(&db, task->job.order_id, url, &first) != IW_OK)
        return task_failure(task, "job_not_begun", "not_begun");
    if (first.file_id == task->job.file_id)
        return NULL;
    if (first.facts.store_key != NULL) {
        struct outcome *outcome = task_outcome(task, OUTCOME_FETCHED);
        outcome->fetched = first.facts;
        return outcome;
    }
    if (first.error_code == NULL)
        return later(task, &source_side, "same_source");
    return task_trouble(task, JOB_TROUBLE_FINAL, iw_error_by_code(first.error_code), first.error_sentence,
                        "same_source");
}

/* What an order's other files found at the server of a source. */
struct server_view {
    bool is_working;                /* a file from it was fetched */
    bool is_tried;                  /* an earlier file has failed and is retried */
    const struct files_try *failed; /* a file that failed for good; NULL if there is none */
};

static struct server_view server_view_of(const struct task *task, const struct files_try *tries, size_t count)
{
    char server[fetch_server_size];
    struct server_view view = {.failed = NULL};
    for (size_t i = 0; i < count; i++) {
        fetch_server(tries[i].source_url, server);
        if (tries[i].file_id == task->job.file_id || strcmp(server, task->transfer.server) != 0)
            continue;
        view.is_working |= tries[i].is_fetched;
        if (tries[i].error_code != NULL && iw_error_by_code(tries[i].error_code) == source_side.retried)
            view.failed = &tries[i];
        view.is_tried |= tries[i].error_code == NULL && !tries[i].is_fetched && tries[i].failures > 0 &&
                         tries[i].file_id < task->job.file_id;
    }
    return view;
}

/*
 * Each source is tried once.  While a server has answered no request of an order, only one of the failed
 * sources is retried, and the others take that outcome.  So an order does not amplify requests to a server
 * that is down.  NULL if this job fetches.
 */
static struct outcome *server_share(const struct transfer_jobs *transfers, struct task *task, const char *url)
{
    struct files_try *tries = NULL;
    size_t count = 0;
    const struct db db = {&task->context, transfers->shared->domain.db.connection};
    if (task->job.failures == 0)
        return NULL;
    if (files_tries(&db, task->job.order_id, &tries, &count) != IW_OK)
        return task_failure(task, "job_not_begun", "not_begun");
    fetch_server(url, task->transfer.server);
    const struct server_view view = server_view_of(task, tries, count);
    if (view.is_working)
        return NULL;
    if (view.failed != NULL)
        return task_trouble(task, JOB_TROUBLE_FINAL, source_side.retried, view.failed->error_sentence,
                            "same_server");
    return view.is_tried ? later(task, &source_side, "same_server") : NULL;
}

static struct outcome *fetch_begin(void *jobs, struct task *task)
{
    struct transfer_jobs *transfers = jobs;
    const struct config *config = transfers->shared->domain.config;
    const char *url = task->job.source_url != NULL ? task->job.source_url : "";
    const struct fetch_request request = {.method = FETCH_GET,
                                          .url = url,
                                          .source = -1,
                                          .target = -1,
                                          .receive = source_receive,
                                          .body_max_bytes = config->store_upload_max_bytes,
                                          .timeout_s = config->outgoing_fetch_timeout_s,
                                          .redirects_max = redirects_max,
                                          .done = transfer_done,
                                          .user = task};
    task_start(task);
    struct outcome *outcome = source_share(transfers, task, url);
    if (outcome == NULL)
        outcome = server_share(transfers, task, url);
    if (outcome != NULL)
        return outcome;
    if (server_is_busy(transfers, task, url))
        return later(task, &source_side, "server_busy");
    task->transfer.key = (struct storage_key){.kind = FILEKEY_UPLOAD,
                                              .order_id = task->job.order_id,
                                              .number = task->job.position,
                                              .version = storage_version_new()};
    const struct upload_limits limits = {.max_bytes = config->store_upload_max_bytes,
                                         .formats = formats_taken(config, task->job.order_type),
                                         .type = task->job.order_type,
                                         .image_memory_bytes = config->image_memory_max_bytes};
    enum iw_error error = upload_sink_begin(transfers->shared->domain.storage, &task->context,
                                            &task->transfer.key, &limits, &task->transfer.sink);
    return transfer_send(transfers, task, error, &request);
}

/* The store or the first bytes refused the file; the task's context has the error. */
static struct outcome *sink_trouble(struct task *task)
{
    static const struct {
        enum iw_error from;
        enum iw_error to;
    } codes[] = {{IW_UNSUPPORTED_MEDIA_TYPE, IW_IMAGE_FORMAT_UNSUPPORTED},
                 {IW_PAYLOAD_TOO_LARGE, IW_SOURCE_TOO_LARGE},
                 {IW_IMAGE_TOO_LARGE, IW_IMAGE_TOO_LARGE},
                 {IW_IMAGE_CORRUPT, IW_IMAGE_CORRUPT}};
    const char *sentence = task->context.sentence;
    const char *reason = task->context.reason != NULL ? task->context.reason : "source_refused";
    enum iw_error error = task->context.error;
    if (error == IW_UNSUPPORTED_MEDIA_TYPE && task->transfer.result.is_coded)
        sentence = arena_printf(task->arena, "%s It could not be decoded by its Content-Encoding.", sentence);
    transfer_close(task);
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].from == error)
            return task_trouble(task, JOB_TROUBLE_FINAL, codes[i].to, sentence, reason);
    return task_failure(task, "source_not_stored", reason);
}

/* The bytes are complete: puts them into the store. */
static struct outcome *source_store(struct task *task)
{
    struct upload_sink_facts *facts = arena_alloc(task->arena, sizeof *facts);
    const struct storage_key key = task->transfer.key;
    if (upload_sink_finish(task->transfer.sink, &task->context, false, facts) != IW_OK)
        return sink_trouble(task);
    enum iw_error error = upload_sink_commit(task->transfer.sink, &task->context);
    task->transfer.sink = NULL;
    if (error != IW_OK)
        return sink_trouble(task);
    struct outcome *outcome = task_outcome(task, OUTCOME_FETCHED);
    task->result_key = key;
    outcome->fetched = (struct upload_facts){.store_key = storage_key_text(task->arena, &key),
                                             .format = facts->format,
                                             .size_bytes = facts->size_bytes,
                                             .sha256 = facts->sha256};
    return outcome;
}

static struct outcome *fetch_finish(void *jobs, struct task *task)
{
    struct transfer_jobs *transfers = jobs;
    const struct fetch_result *result = &task->transfer.result;
    if (result->outcome == FETCH_STOPPED)
        return sink_trouble(task);
    if (fate_of(&source_side, result) == PEER_TAKEN)
        return source_store(task);
    transfer_close(task);
    if (result->outcome != FETCH_TOO_LARGE)
        return peer_trouble(task, &source_side);
    return task_trouble(task, JOB_TROUBLE_FINAL, IW_SOURCE_TOO_LARGE,
                        arena_printf(task->arena, "The source URL: the file has more than %lld bytes.",
                                     (long long)transfers->shared->domain.config->store_upload_max_bytes),
                        "too_large");
}

/* ---- pushing ---- */

/* The headers of the PUT: the client's headers for its target, and Content-Type if they have none. */
static enum iw_error headers_fill(struct task *task, const char **headers)
{
    const struct json *given = NULL;
    const char *text = task->job.target_headers, *name = NULL;
    bool has_type = false;
    unsigned count = 0;
    enum iw_error error = text != NULL ? json_read(&task->context, text, strlen(text), &given) : IW_OK;
    if (error != IW_OK)
        return error;
    for (const struct json *header; (header = json_member_next(given, &name)) != NULL;) {
        if (!json_is(header, JSON_KIND_STRING) || count == outgoing_headers_max)
            return context_fail(&task->context, IW_SERVER_INTERNAL_ERROR, NULL);
        has_type = has_type || text_equal_nocase(name, "Content-Type");
        headers[count++] = arena_printf(task->arena, "%s: %s", name, json_string_of(header));
    }
    if (!has_type)
        headers[count] =
            arena_printf(task->arena, "Content-Type: %s", format_media_type(task->job.result_format));
    return IW_OK;
}

static struct outcome *push_begin(void *jobs, struct task *task)
{
    struct transfer_jobs *transfers = jobs;
    struct shared *shared = transfers->shared;
    struct fetch_request request = {.method = FETCH_PUT,
                                    .url = task->job.target_url,
                                    .target = -1,
                                    .timeout_s = shared->domain.config->outgoing_push_timeout_s,
                                    .redirects_max = 0,
                                    .done = transfer_done,
                                    .user = task};
    struct storage_key key;
    task_start(task);
    if (task->job.target_expires_ms != 0 && task->job.target_expires_ms <= clock_now_ms())
        return task_trouble(task, JOB_TROUBLE_FINAL, IW_OUTPUT_TARGET_REFUSED,
                            "The output target: its URL has expired.", "target_expired");
    if (server_is_busy(transfers, task, task->job.target_url != NULL ? task->job.target_url : ""))
        return later(task, &target_side, "server_busy");
    bool has_result = task->job.result_key != NULL && task->job.target_url != NULL &&
                      storage_key_read(task->job.result_key, &key);
    enum iw_error error =
        has_result
            ? storage_get(shared->domain.storage, &task->context, &key, &task->transfer.source_file, NULL)
            : context_fail(&task->context, IW_NOT_FOUND, "There is no result to push.");
    if (error == IW_OK)
        error = headers_fill(task, request.headers);
    request.source = task->transfer.source_file;
    return transfer_send(transfers, task, error, &request);
}

static struct outcome *push_finish(void *jobs, struct task *task)
{
    (void)jobs;
    transfer_close(task);
    bool is_taken = fate_of(&target_side, &task->transfer.result) == PEER_TAKEN;
    return is_taken ? task_outcome(task, OUTCOME_PUSHED) : peer_trouble(task, &target_side);
}

/* ---- for the loop ---- */

static unsigned transfer_poll(void *part, struct pollfd *polls, unsigned room)
{
    return sender_poll(&((struct transfer_jobs *)part)->sender, polls, room);
}

static void transfer_take(void *part, const struct pollfd *polls, unsigned count)
{
    struct transfer_jobs *transfers = part;
    if (sender_step(&transfers->sender, transfers->shared->domain.context, polls, count))
        shared_lease_want(transfers->shared);
}

static int64_t transfer_next_ms(const void *part)
{
    return sender_next_ms(&((const struct transfer_jobs *)part)->sender);
}

const struct kind transfer_fetch_kind = {
    .begin = fetch_begin, .finish = fetch_finish, .close = transfer_close};
const struct kind transfer_push_kind = {.begin = push_begin, .finish = push_finish, .close = transfer_close};
const struct loop_source transfer_source = {
    .poll = transfer_poll, .take = transfer_take, .next_ms = transfer_next_ms};
