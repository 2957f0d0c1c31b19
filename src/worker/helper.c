/* Image processes: started, given pictures, heard, killed and buried. */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include <imgward/fault.h>

#include "base/clock.h"
#include "base/log.h"
#include "worker/seal.h"
#include "worker/worker.h"

enum {
    /* A process that dies before its first word is not started again at once. */
    pause_first_ms = 250,
    pause_longest_ms = 10000,
    start_limit_ms = 20000
};

/* ---- begin and end ---- */

static void helper_pause(struct helper *helper, const char *reason, int wait_status)
{
    unsigned doublings = helper->failures < 6 ? helper->failures : 6;
    int64_t pause_ms = (int64_t)pause_first_ms << doublings;
    helper->failures++;
    helper->at_ms = clock_monotonic_ms() + (pause_ms < pause_longest_ms ? pause_ms : pause_longest_ms);
    log_event(LOG_ERROR, NULL, "image_process_failed", LOG_TEXT("reason", reason),
              LOG_NUMBER("signal", WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0),
              LOG_NUMBER("status", WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0));
}

void helper_end(struct helper *helper, int *wait_status)
{
    *wait_status = 0;
    image_client_kill(&helper->client);
    image_client_close(&helper->client);
    if (helper->client.pid > 0)
        while (waitpid(helper->client.pid, wait_status, 0) < 0 && errno == EINTR)
            continue;
    helper->client = (struct image_client){.pid = 0, .socket = -1};
    helper->state = HELPER_NONE;
    helper->task = NULL;
    helper->at_ms = 0;
}

void helper_kill(struct helper *helper)
{
    image_client_kill(&helper->client);
    helper->state = HELPER_ENDING;
}

static void helper_start(struct worker *worker, struct helper *helper)
{
    struct context *context = &worker->context;
    const struct image_client_options options = image_client_options_of(&worker->config);
    if (image_client_spawn(context, &options, &helper->client) != IW_OK) {
        log_failure(context, "image_process_failed");
        context_clear(context);
        helper_pause(helper, "spawn", 0);
        return;
    }
    helper->state = HELPER_STARTING;
    helper->is_quick = false;
    helper->at_ms = clock_monotonic_ms() + start_limit_ms;
}

/* What of the seal this machine refuses, told once: every process of it will say the same. */
static void seal_tell(struct worker *worker, const struct image_answer *answer)
{
    bool is_unsealed = (answer->seal_missing & SEAL_SECCOMP) != 0;
    bool is_landlocked = (answer->seal_missing & SEAL_LANDLOCK) == 0;
    if (answer->seal_missing == 0 || worker->is_seal_told)
        return;
    worker->is_seal_told = true;
    log_event(is_unsealed ? LOG_ERROR : LOG_WARN, NULL, "seal_incomplete",
              LOG_TEXT("missing", !is_unsealed    ? "landlock"
                                  : is_landlocked ? "seccomp"
                                                  : "seccomp landlock"),
              LOG_TEXT("cause", answer->cause));
}

/* The first word: the process has loaded what it needs and is sealed. */
static void helper_ready(struct worker *worker, struct helper *helper, const struct image_answer *answer)
{
    int wait_status;
    bool is_unsealed = (answer->seal_missing & SEAL_SECCOMP) != 0;
    if (answer->error == IW_OK && (!is_unsealed || worker->config.worker_allow_unsealed)) {
        helper->state = HELPER_READY;
        helper->failures = 0;
        helper->at_ms = 0;
        lease_look_ask(worker);
        seal_tell(worker, answer);
        return;
    }
    log_event(LOG_ERROR, NULL, "image_process_refused",
              LOG_TEXT("code", iw_error_code((enum iw_error)answer->error)),
              LOG_TEXT("reason", answer->reason), LOG_TEXT("message", answer->sentence),
              LOG_TEXT("cause", answer->cause));
    helper_end(helper, &wait_status);
    helper_pause(helper, "refused", wait_status);
}

/* ---- whose picture ---- */

unsigned helper_busy_count(const struct worker *worker)
{
    const struct pool *pool = &worker->pools[JOB_CLASS_IMAGE];
    unsigned count = 0;
    for (unsigned i = 0; i < pool->count; i++)
        count += pool->tasks[i].state == TASK_RUNNING;
    return count;
}

struct task *helper_task_next(const struct worker *worker)
{
    const struct pool *pool = &worker->pools[JOB_CLASS_IMAGE];
    struct task *next = NULL;
    for (struct task *task = pool->tasks; task < pool->tasks + pool->count; task++)
        if (task->state == TASK_AHEAD && (next == NULL || task->turn < next->turn))
            next = task;
    return next;
}

static struct helper *helper_idle(const struct worker *worker)
{
    if (helper_busy_count(worker) >= worker->helper_count)
        return NULL;
    for (struct helper *helper = worker->helpers; helper < worker->helpers + worker->helper_count; helper++)
        if (helper->state == HELPER_READY && helper->task == NULL)
            return helper;
    return NULL;
}

/*
 * An archive keeps its turn, and the place, until the loop comes round to it: it
 * needs the database, and helper_turn may be called beside a job's record.  A
 * process that takes no picture is at fault, not the picture, which stays.
 */
static void pictures_begin(struct worker *worker)
{
    struct helper *helper;
    struct task *task;
    int wait_status;
    while (!worker->is_paused && (helper = helper_idle(worker)) != NULL &&
           (task = helper_task_next(worker)) != NULL && task->job.kind != JOB_ARCHIVE) {
        if (image_task_send(worker, task, helper))
            continue;
        log_failure(&task->context, "job_not_begun");
        context_clear(&task->context);
        helper_end(helper, &wait_status);
        helper_pause(helper, "not_sent", wait_status);
    }
}

/* NULL: it died. */
static void task_hear(struct helper *helper, const struct image_answer *answer, int wait_status)
{
    struct task *task = helper->task;
    struct image_answer *kept = answer == NULL ? NULL : arena_alloc(task->arena, sizeof *kept);
    if (kept != NULL)
        *kept = *answer;
    task->state = TASK_HEARD;
    task->answer = kept;
    task->wait_status = wait_status;
    helper->task = NULL;
    helper->is_quick = answer != NULL && clock_monotonic_ms() - task->begun_ms < helper_quick_ms;
}

/* In the middle of a picture that one alone is told; what waits goes to another process. */
static void helper_ended(struct helper *helper)
{
    int wait_status;
    bool was_starting = helper->state == HELPER_STARTING;
    struct task *task = helper->task;
    helper_end(helper, &wait_status);
    helper->task = task;
    if (was_starting)
        helper_pause(helper, "died_at_start", wait_status);
    if (task != NULL)
        task_hear(helper, NULL, wait_status);
}

static void helper_hear(struct worker *worker, struct helper *helper)
{
    struct image_answer answer;
    int wait_status;
    enum image_client_event event = image_client_receive(&helper->client, &answer);
    if (event == IMAGE_CLIENT_NOTHING)
        return;
    if (event == IMAGE_CLIENT_ENDED) {
        helper_ended(helper);
        return;
    }
    if (helper->state == HELPER_STARTING && answer.kind == IMAGE_READY) {
        helper_ready(worker, helper, &answer);
        return;
    }
    if (helper->task == NULL || answer.ticket != (uint64_t)helper->task->job.id) {
        helper_ended(helper); /* Words that nobody asked for: it is not to be trusted. */
        return;
    }
    fault_point(FAULT_IMAGE_HEARD);
    task_hear(helper, &answer, 0);
    if (answer.is_last)
        helper_end(helper, &wait_status);
}

/* ---- for the supervisor ---- */

void helper_turn(struct worker *worker)
{
    for (struct helper *helper = worker->helpers; helper < worker->helpers + worker->helper_count; helper++)
        if (helper->task != NULL)
            helper_hear(worker, helper);
    pictures_begin(worker);
}

void helper_poll(struct worker *worker, struct helper *helper)
{
    if (helper->client.socket >= 0)
        helper_hear(worker, helper);
    pictures_begin(worker);
}

void helper_tick(struct worker *worker, struct helper *helper, int64_t now_ms)
{
    if (helper->state == HELPER_STARTING && now_ms >= helper->at_ms)
        image_client_kill(&helper->client);
    if (helper->state == HELPER_NONE && now_ms >= helper->at_ms && worker->stop_at_ms == 0)
        helper_start(worker, helper);
}

int64_t helper_next_ms(const struct helper *helper)
{
    bool is_waiting = helper->state == HELPER_NONE || helper->state == HELPER_STARTING;
    return is_waiting ? helper->at_ms : INT64_MAX;
}
