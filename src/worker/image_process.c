#include "worker/image_process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/log.h"
#include "image/seal.h"
#include "worker/worker.h"

enum {
    /* The pause before the next start, after a process that died before its first answer; it doubles. */
    pause_first_ms = 250,
    pause_longest_ms = 10000,
    start_limit_ms = 20000
};

/* ---- start and end ---- */

static void image_process_pause(struct image_slot *process, const char *reason, int wait_status)
{
    unsigned doublings = process->failures < 6 ? process->failures : 6;
    int64_t pause_ms = (int64_t)pause_first_ms << doublings;
    process->failures++;
    process->at_ms = clock_monotonic_ms() + (pause_ms < pause_longest_ms ? pause_ms : pause_longest_ms);
    log_event(LOG_ERROR, NULL, "image_process_failed", LOG_TEXT("reason", reason),
              LOG_NUMBER("signal", WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0),
              LOG_NUMBER("status", WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0));
}

/* Kills and reaps it; returns its exit status as waitpid has it. */
static int image_process_end(struct image_slot *process)
{
    int wait_status = 0;
    image_client_kill(&process->client);
    image_client_close(&process->client);
    if (process->client.pid > 0)
        while (waitpid(process->client.pid, &wait_status, 0) < 0 && errno == EINTR)
            continue;
    process->client = (struct image_client){.pid = 0, .socket = -1};
    process->state = IMAGE_PROCESS_NONE;
    process->task = NULL;
    process->at_ms = 0;
    return wait_status;
}

void image_process_fail(struct image_slot *process, const char *reason)
{
    image_process_pause(process, reason, image_process_end(process));
}

void image_process_kill(struct image_slot *process)
{
    image_client_kill(&process->client);
    process->state = IMAGE_PROCESS_ENDING;
}

static void image_process_start(struct worker *worker, struct image_slot *process)
{
    struct context *context = &worker->context;
    struct image_client_options options = image_client_options_of(&worker->config);
    options.files = &worker->processes.files;
    if (image_client_spawn(context, &options, &process->client) != IW_OK) {
        log_failure(context, "image_process_failed");
        context_clear(context);
        image_process_pause(process, "spawn", 0);
        return;
    }
    process->state = IMAGE_PROCESS_STARTING;
    process->served = 0;
    process->is_quick = false;
    process->at_ms = clock_monotonic_ms() + start_limit_ms;
}

/* ---- answers ---- */

/* Logs once which part of the seal this machine refuses. */
static void seal_log(struct worker *worker, const struct image_answer *answer)
{
    static const char *const parts[] = {[SEAL_SECCOMP] = "seccomp",
                                        [SEAL_LANDLOCK] = "landlock",
                                        [SEAL_SECCOMP | SEAL_LANDLOCK] = "seccomp landlock"};
    unsigned missing = answer->seal_missing & (SEAL_SECCOMP | SEAL_LANDLOCK);
    if (missing == 0 || worker->processes.is_seal_logged)
        return;
    worker->processes.is_seal_logged = true;
    log_event((missing & SEAL_SECCOMP) != 0 ? LOG_ERROR : LOG_WARN, NULL, "seal_incomplete",
              LOG_TEXT("missing", parts[missing]), LOG_TEXT("cause", answer->cause));
}

/* The first answer: the process has loaded its files and is sealed, or cannot work. */
static void image_process_ready(struct worker *worker, struct image_slot *process,
                                const struct image_answer *answer)
{
    bool is_unsealed = (answer->seal_missing & SEAL_SECCOMP) != 0;
    /* The file may have been replaced since the worker compared it with the database. */
    if (answer->error == IW_OK &&
        strcmp(answer->watermark_key_id, worker->keyring.ids[KEYRING_WATERMARK]) != 0) {
        log_event(LOG_ERROR, NULL, "image_process_refused", LOG_TEXT("reason", "watermark_key_changed"),
                  LOG_TEXT("message", "The watermark key is not that of the worker's start: restore "
                                      "image.watermark_key_file, or restart imgward-worker."));
        image_process_fail(process, "refused");
        return;
    }
    if (answer->error == IW_OK && (!is_unsealed || worker->config.worker_allow_unsealed)) {
        process->state = IMAGE_PROCESS_READY;
        process->failures = 0;
        process->at_ms = 0;
        flags_lease_want(&worker->flags);
        seal_log(worker, answer);
        return;
    }
    log_event(LOG_ERROR, NULL, "image_process_refused",
              LOG_TEXT("code", iw_error_code((enum iw_error)answer->error)),
              LOG_TEXT("reason", answer->reason), LOG_TEXT("message", answer->sentence),
              LOG_TEXT("cause", answer->cause));
    image_process_fail(process, "refused");
}

/* Gives the answer to the task; NULL: the process died. */
static void answer_take(struct image_slot *process, const struct image_answer *answer, int wait_status)
{
    struct task *task = process->task;
    struct image_answer *kept = answer == NULL ? NULL : arena_alloc(task->arena, sizeof *kept);
    if (kept != NULL)
        *kept = *answer;
    task->state = TASK_ANSWERED;
    task->picture.answer = kept;
    task->picture.wait_status = wait_status;
    task->picture.is_stored = false;
    process->task = NULL;
    process->is_quick = answer != NULL && clock_monotonic_ms() - task->begun_ms < picture_quick_ms;
}

/* Only the running picture is charged with a death; a prefetched one goes to another process. */
static void image_process_ended(struct image_slot *process)
{
    bool was_starting = process->state == IMAGE_PROCESS_STARTING;
    struct task *task = process->task;
    int wait_status = image_process_end(process);
    process->task = task;
    bool is_other_build = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == image_exit_other_build;
    if (was_starting)
        image_process_pause(process, is_other_build ? "other_build" : "died_at_start", wait_status);
    if (task != NULL)
        answer_take(process, NULL, wait_status);
}

static void image_process_receive(struct worker *worker, struct image_slot *process)
{
    struct image_answer answer;
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
        image_process_ended(process); /* An answer without a request: do not trust the process. */
        return;
    }
    answer_take(process, &answer, 0);
    if (answer.is_last)
        image_process_end(process);
}

/* ---- for the loop ---- */

enum iw_error image_process_open(struct worker *worker, struct context *context, unsigned count)
{
    const struct image_client_options options = image_client_options_of(&worker->config);
    worker->processes = (struct image_processes){
        .list = calloc(count, sizeof(struct image_slot)), .count = count, .files = {-1, -1}};
    if (worker->processes.list == NULL)
        abort();
    for (unsigned i = 0; i < count; i++)
        worker->processes.list[i].client.socket = -1;
    return image_client_files_open(context, &options, &worker->processes.files);
}

void image_process_close(struct worker *worker)
{
    for (unsigned i = 0; i < worker->processes.count; i++)
        image_process_end(&worker->processes.list[i]);
    image_client_files_close(&worker->processes.files);
    free(worker->processes.list);
}

struct image_slot *image_process_idle(const struct worker *worker, bool is_fresh)
{
    struct image_slot *used = NULL;
    for (unsigned i = 0; i < worker->processes.count; i++) {
        struct image_slot *process = &worker->processes.list[i];
        if (process->state != IMAGE_PROCESS_READY || process->task != NULL)
            continue;
        if (!is_fresh || process->served == 0)
            return process;
        used = process;
    }
    if (used != NULL)
        image_process_end(used);
    return NULL;
}

unsigned image_process_poll(struct worker *worker, struct pollfd *polls, unsigned room)
{
    unsigned count = worker->processes.count < room ? worker->processes.count : room;
    for (unsigned i = 0; i < count; i++)
        polls[i] = (struct pollfd){.fd = worker->processes.list[i].client.socket, .events = POLLIN};
    return count;
}

void image_process_take(struct worker *worker, const struct pollfd *polls, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (polls[i].revents != 0)
            image_process_receive(worker, &worker->processes.list[i]);
}

static bool is_waiting(const struct image_slot *process)
{
    return process->state == IMAGE_PROCESS_NONE || process->state == IMAGE_PROCESS_STARTING;
}

/* A worker that stops starts no process. */
int64_t image_process_next_ms(const struct worker *worker)
{
    int64_t next_ms = INT64_MAX;
    for (unsigned i = 0; i < worker->processes.count && worker->flags.stop_at_ms == 0; i++) {
        const struct image_slot *process = &worker->processes.list[i];
        if (is_waiting(process) && process->at_ms < next_ms)
            next_ms = process->at_ms;
    }
    return next_ms;
}

void image_process_step(struct worker *worker, int64_t now_ms)
{
    for (unsigned i = 0; i < worker->processes.count; i++) {
        struct image_slot *process = &worker->processes.list[i];
        if (!is_waiting(process) || now_ms < process->at_ms)
            continue;
        if (process->state == IMAGE_PROCESS_NONE) {
            image_process_start(worker, process);
            continue;
        }
        image_client_kill(&process->client);
        process->at_ms = now_ms + start_limit_ms;
    }
}
