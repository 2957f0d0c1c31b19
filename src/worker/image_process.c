/* Image processes: started, given pictures, heard, killed and buried. */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include <imgward/fault.h>

#include "base/clock.h"
#include "base/log.h"
#include "image/seal.h"
#include "worker/worker.h"

enum {
    /* A process that dies before its first word is not started again at once. */
    pause_first_ms = 250,
    pause_longest_ms = 10000,
    start_limit_ms = 20000
};

/* ---- begin and end ---- */

static void image_process_pause(struct image_process *process, const char *reason, int wait_status)
{
    unsigned doublings = process->failures < 6 ? process->failures : 6;
    int64_t pause_ms = (int64_t)pause_first_ms << doublings;
    process->failures++;
    process->at_ms = clock_monotonic_ms() + (pause_ms < pause_longest_ms ? pause_ms : pause_longest_ms);
    log_event(LOG_ERROR, NULL, "image_process_failed", LOG_TEXT("reason", reason),
              LOG_NUMBER("signal", WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0),
              LOG_NUMBER("status", WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0));
}

void image_process_end(struct image_process *process, int *wait_status)
{
    *wait_status = 0;
    image_client_kill(&process->client);
    image_client_close(&process->client);
    if (process->client.pid > 0)
        while (waitpid(process->client.pid, wait_status, 0) < 0 && errno == EINTR)
            continue;
    process->client = (struct image_client){.pid = 0, .socket = -1};
    process->state = IMAGE_PROCESS_NONE;
    process->task = NULL;
    process->at_ms = 0;
}

void image_process_kill(struct image_process *process)
{
    image_client_kill(&process->client);
    process->state = IMAGE_PROCESS_ENDING;
}

static void image_process_start(struct worker *worker, struct image_process *process)
{
    struct context *context = &worker->context;
    const struct image_client_options options = image_client_options_of(&worker->config);
    if (image_client_spawn(context, &options, &process->client) != IW_OK) {
        log_failure(context, "image_process_failed");
        context_clear(context);
        image_process_pause(process, "spawn", 0);
        return;
    }
    process->state = IMAGE_PROCESS_STARTING;
    process->is_quick = false;
    process->at_ms = clock_monotonic_ms() + start_limit_ms;
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
static void image_process_ready(struct worker *worker, struct image_process *process,
                                const struct image_answer *answer)
{
    int wait_status;
    bool is_unsealed = (answer->seal_missing & SEAL_SECCOMP) != 0;
    if (answer->error == IW_OK && (!is_unsealed || worker->config.worker_allow_unsealed)) {
        process->state = IMAGE_PROCESS_READY;
        process->failures = 0;
        process->at_ms = 0;
        lease_look_ask(worker);
        seal_tell(worker, answer);
        return;
    }
    log_event(LOG_ERROR, NULL, "image_process_refused",
              LOG_TEXT("code", iw_error_code((enum iw_error)answer->error)),
              LOG_TEXT("reason", answer->reason), LOG_TEXT("message", answer->sentence),
              LOG_TEXT("cause", answer->cause));
    image_process_end(process, &wait_status);
    image_process_pause(process, "refused", wait_status);
}

/* ---- whose picture ---- */

unsigned image_process_busy_count(const struct worker *worker)
{
    const struct pool *pool = &worker->pools[JOB_CLASS_IMAGE];
    unsigned count = 0;
    for (unsigned i = 0; i < pool->count; i++)
        count += pool->tasks[i].state == TASK_RUNNING;
    return count;
}

struct task *image_process_task_next(const struct worker *worker)
{
    const struct pool *pool = &worker->pools[JOB_CLASS_IMAGE];
    struct task *next = NULL;
    for (struct task *task = pool->tasks; task < pool->tasks + pool->count; task++)
        if (task->state == TASK_AHEAD && (next == NULL || task->turn < next->turn))
            next = task;
    return next;
}

static struct image_process *image_process_idle(const struct worker *worker)
{
    if (image_process_busy_count(worker) >= worker->process_count)
        return NULL;
    for (struct image_process *process = worker->processes;
         process < worker->processes + worker->process_count; process++)
        if (process->state == IMAGE_PROCESS_READY && process->task == NULL)
            return process;
    return NULL;
}

/*
 * An archive keeps its turn, and the place, until the loop comes round to it: it
 * needs the database, and image_process_turn may be called beside a job's record.  A
 * process that takes no picture is at fault, not the picture, which stays.
 */
static void pictures_begin(struct worker *worker)
{
    struct image_process *process;
    struct task *task;
    int wait_status;
    while (!worker->is_paused && (process = image_process_idle(worker)) != NULL &&
           (task = image_process_task_next(worker)) != NULL && task->job.kind != JOB_ARCHIVE) {
        if (image_task_send(worker, task, process))
            continue;
        log_failure(&task->context, "job_not_begun");
        context_clear(&task->context);
        image_process_end(process, &wait_status);
        image_process_pause(process, "not_sent", wait_status);
    }
}

/* NULL: it died. */
static void task_hear(struct image_process *process, const struct image_answer *answer, int wait_status)
{
    struct task *task = process->task;
    struct image_answer *kept = answer == NULL ? NULL : arena_alloc(task->arena, sizeof *kept);
    if (kept != NULL)
        *kept = *answer;
    task->state = TASK_HEARD;
    task->answer = kept;
    task->wait_status = wait_status;
    process->task = NULL;
    process->is_quick = answer != NULL && clock_monotonic_ms() - task->begun_ms < image_process_quick_ms;
}

/* In the middle of a picture that one alone is told; what waits goes to another process. */
static void image_process_ended(struct image_process *process)
{
    int wait_status;
    bool was_starting = process->state == IMAGE_PROCESS_STARTING;
    struct task *task = process->task;
    image_process_end(process, &wait_status);
    process->task = task;
    if (was_starting)
        image_process_pause(process, "died_at_start", wait_status);
    if (task != NULL)
        task_hear(process, NULL, wait_status);
}

static void image_process_hear(struct worker *worker, struct image_process *process)
{
    struct image_answer answer;
    int wait_status;
    enum image_client_event event = image_client_receive(&process->client, &answer);
    if (event == IMAGE_CLIENT_NOTHING)
        return;
    if (event == IMAGE_CLIENT_ENDED) {
        image_process_ended(process);
        return;
    }
    if (process->state == IMAGE_PROCESS_STARTING && answer.kind == IMAGE_READY) {
        image_process_ready(worker, process, &answer);
        return;
    }
    if (process->task == NULL || answer.ticket != (uint64_t)process->task->job.id) {
        image_process_ended(process); /* Words that nobody asked for: it is not to be trusted. */
        return;
    }
    fault_point(FAULT_IMAGE_HEARD);
    task_hear(process, &answer, 0);
    if (answer.is_last)
        image_process_end(process, &wait_status);
}

/* ---- for the supervisor ---- */

void image_process_turn(struct worker *worker)
{
    for (struct image_process *process = worker->processes;
         process < worker->processes + worker->process_count; process++)
        if (process->task != NULL)
            image_process_hear(worker, process);
    pictures_begin(worker);
}

void image_process_poll(struct worker *worker, struct image_process *process)
{
    if (process->client.socket >= 0)
        image_process_hear(worker, process);
    pictures_begin(worker);
}

void image_process_tick(struct worker *worker, struct image_process *process, int64_t now_ms)
{
    if (process->state == IMAGE_PROCESS_STARTING && now_ms >= process->at_ms)
        image_client_kill(&process->client);
    if (process->state == IMAGE_PROCESS_NONE && now_ms >= process->at_ms && worker->stop_at_ms == 0)
        image_process_start(worker, process);
}

int64_t image_process_next_ms(const struct image_process *process)
{
    bool is_waiting = process->state == IMAGE_PROCESS_NONE || process->state == IMAGE_PROCESS_STARTING;
    return is_waiting ? process->at_ms : INT64_MAX;
}
