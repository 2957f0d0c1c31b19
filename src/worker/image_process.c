#include "worker/image_process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "domain/keyring.h"
#include "image/seal.h"
#include "worker/shared.h"
#include "worker/task.h"

enum {
    /* The pause before the next start if a process died before the first answer.  It doubles each time. */
    pause_first_ms = 250,
    pause_longest_ms = 10000,
    start_limit_ms = 20000
};

/* ---- start and end ---- */

/* Logs the failure, except before any process was ready: then the worker exits with the message. */
static void image_process_pause(struct image_processes *all, struct image_slot *process, const char *reason,
                                const char *message)
{
    unsigned doublings = process->failures < 6 ? process->failures : 6;
    int64_t pause_ms = (int64_t)pause_first_ms << doublings;
    process->failures++;
    process->at_ms = clock_monotonic_ms() + (pause_ms < pause_longest_ms ? pause_ms : pause_longest_ms);
    all->failing_ms = all->failing_ms != 0 ? all->failing_ms : clock_now_ms();
    snprintf(all->reason, sizeof all->reason, "%s", message);
    if (all->is_proved)
        log_event(LOG_ERROR, NULL, "image_process_failed", LOG_TEXT("reason", reason),
                  LOG_TEXT("message", message));
}

/* Kills and reaps a process; returns the status from waitpid. */
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

void image_process_fail(struct image_processes *all, struct image_slot *process, const char *reason,
                        const char *message)
{
    image_process_end(process);
    image_process_pause(all, process, reason, message);
}

void image_process_kill(struct image_slot *process)
{
    image_client_kill(&process->client);
    process->state = IMAGE_PROCESS_ENDING;
}

static void image_process_start(struct image_processes *all, struct image_slot *process)
{
    struct shared *shared = all->shared;
    struct context *context = shared->domain.context;
    struct image_client_options options = image_client_options_of(shared->domain.config);
    options.files = &all->files;
    if (image_client_spawn(context, &options, &process->client) != IW_OK) {
        image_process_pause(all, process, "spawn",
                            context->cause != NULL ? context->cause : context->sentence);
        context_clear(context);
        return;
    }
    process->state = IMAGE_PROCESS_STARTING;
    process->served = 0;
    process->is_quick = false;
    process->is_stale = false;
    process->at_ms = clock_monotonic_ms() + start_limit_ms;
}

/* ---- answers ---- */

/* Logs once which part of the seal this machine refuses. */
static void seal_log(struct image_processes *all, const struct image_answer *answer)
{
    static const char *const parts[] = {[SEAL_SECCOMP] = "seccomp",
                                        [SEAL_LANDLOCK] = "landlock",
                                        [SEAL_SECCOMP | SEAL_LANDLOCK] = "seccomp landlock"};
    unsigned missing = answer->seal_missing & (SEAL_SECCOMP | SEAL_LANDLOCK);
    if (missing == 0 || all->is_seal_logged)
        return;
    all->is_seal_logged = true;
    log_event((missing & SEAL_SECCOMP) != 0 ? LOG_ERROR : LOG_WARN, NULL, "seal_incomplete",
              LOG_TEXT("missing", parts[missing]), LOG_TEXT("cause", answer->cause));
}

/* The failure is over if no place waits for another start after an early death. */
static void failing_update(struct image_processes *all)
{
    for (unsigned i = 0; i < all->count; i++)
        if (all->list[i].failures > 0)
            return;
    all->failing_ms = 0;
}

/* The first answer: the process has loaded its files and is sealed, or cannot work. */
static void image_process_ready(struct image_processes *all, struct image_slot *process,
                                const struct image_answer *answer)
{
    bool is_unsealed = (answer->seal_missing & SEAL_SECCOMP) != 0;
    /* The file may have been replaced since the worker compared it with the database. */
    if (answer->error == IW_OK &&
        strcmp(answer->watermark_key_id, all->keyring->ids[KEYRING_WATERMARK]) != 0) {
        image_process_fail(all, process, "watermark_key_changed",
                           "The watermark key is not that of the worker's start: restore "
                           "image.watermark_key_file, or restart imgward-worker.");
        return;
    }
    if (answer->error == IW_OK && (!is_unsealed || all->shared->domain.config->worker_allow_unsealed)) {
        process->state = IMAGE_PROCESS_READY;
        process->failures = 0;
        process->at_ms = 0;
        failing_update(all);
        shared_lease_want(all->shared);
        seal_log(all, answer);
        return;
    }
    image_process_fail(all, process, "refused", answer->error != IW_OK ? answer->sentence : answer->cause);
}

/* Passes the answer to the task; NULL if the process died. */
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
    process->is_quick = answer != NULL && clock_monotonic_ms() - task->begun_ms < task_quick_ms;
}

/* Reports a death before the first answer as a sentence. */
static void death_report(struct image_processes *all, struct image_slot *process, int wait_status)
{
    char message[sizeof all->reason];
    const char *program = all->shared->start->worker_image_program;
    int status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0;
    if (WIFSIGNALED(wait_status))
        snprintf(message, sizeof message, "%s was killed at its start by signal %d (%s).", program,
                 WTERMSIG(wait_status), strsignal(WTERMSIG(wait_status)));
    else if (status == image_exit_other_build)
        snprintf(message, sizeof message, "%s is of another build than this worker: restart imgward-worker.",
                 program);
    else
        snprintf(message, sizeof message, "%s ended at its start with exit status %d%s.", program, status,
                 status == image_exit_not_run ? ": it cannot be executed" : "");
    image_process_pause(all, process, status == image_exit_other_build ? "other_build" : "died_at_start",
                        message);
}

/* The death counts against the running picture only.  A prefetched picture goes to another process. */
static void image_process_ended(struct image_processes *all, struct image_slot *process)
{
    bool was_starting = process->state == IMAGE_PROCESS_STARTING;
    struct task *task = process->task;
    int wait_status = image_process_end(process);
    process->task = task;
    if (was_starting)
        death_report(all, process, wait_status);
    if (task != NULL)
        answer_take(process, NULL, wait_status);
}

static void image_process_receive(struct image_processes *all, struct image_slot *process)
{
    struct image_answer answer;
    enum image_client_event event = image_client_receive(&process->client, &answer);
    if (event == IMAGE_CLIENT_NOTHING)
        return;
    if (event == IMAGE_CLIENT_ENDED) {
        image_process_ended(all, process);
        return;
    }
    if (process->state == IMAGE_PROCESS_STARTING && answer.kind == IMAGE_READY) {
        image_process_ready(all, process, &answer);
        return;
    }
    if (process->task == NULL || answer.ticket != (uint64_t)process->task->job.id) {
        image_process_ended(all, process); /* An answer without a request: do not trust the process. */
        return;
    }
    answer_take(process, &answer, 0);
    if (answer.is_last)
        image_process_end(process);
}

/* Ends a process that did not start within the limit. */
static void start_end(struct image_processes *all, struct image_slot *process)
{
    char message[sizeof all->reason];
    snprintf(message, sizeof message, "%s did not start within %d s.",
             all->shared->start->worker_image_program, start_limit_ms / 1000);
    image_process_fail(all, process, "start_limit", message);
}

/* ---- for the loop ---- */

enum iw_error image_process_open(struct image_processes *all, struct context *context, unsigned count)
{
    const struct image_client_options options = image_client_options_of(all->shared->domain.config);
    all->list = calloc(count, sizeof(struct image_slot));
    all->count = count;
    all->files = (struct image_client_files){-1, -1};
    if (all->list == NULL)
        abort();
    for (unsigned i = 0; i < count; i++)
        all->list[i].client.socket = -1;
    return image_client_files_open(context, &options, &all->files);
}

enum iw_error image_process_prove(struct image_processes *all, struct context *context)
{
    struct image_slot *first = &all->list[0];
    image_process_start(all, first);
    while (first->state == IMAGE_PROCESS_STARTING && process_stop_count == 0) {
        struct pollfd polls[] = {{.fd = first->client.socket, .events = POLLIN},
                                 {.fd = process_signal_descriptor(), .events = POLLIN}};
        int64_t left_ms = first->at_ms - clock_monotonic_ms();
        poll(polls, 2, left_ms > 0 ? (int)left_ms : 0);
        process_signal_drain();
        if (polls[0].revents != 0)
            image_process_receive(all, first);
        else if (left_ms <= 0)
            start_end(all, first);
    }
    all->is_proved = first->state == IMAGE_PROCESS_READY;
    return all->is_proved ? IW_OK : context_fail(context, IW_SERVICE_UNAVAILABLE, "%s", all->reason);
}

unsigned image_process_ready_count(const struct image_processes *all)
{
    unsigned count = 0;
    for (unsigned i = 0; i < all->count; i++)
        count += all->list[i].state == IMAGE_PROCESS_READY;
    return count;
}

void image_process_reload(struct image_processes *all)
{
    for (unsigned i = 0; i < all->count; i++) {
        struct image_slot *process = &all->list[i];
        process->is_stale = true;
        if (process->task == NULL)
            image_process_end(process);
    }
}

void image_process_close(struct image_processes *all)
{
    for (unsigned i = 0; i < all->count; i++)
        image_process_end(&all->list[i]);
    image_client_files_close(&all->files);
    free(all->list);
}

struct image_slot *image_process_idle(const struct image_processes *all, bool is_fresh)
{
    struct image_slot *used = NULL;
    for (unsigned i = 0; i < all->count; i++) {
        struct image_slot *process = &all->list[i];
        if (process->state != IMAGE_PROCESS_READY || process->task != NULL)
            continue;
        if (process->is_stale) {
            image_process_end(process);
            continue;
        }
        if (!is_fresh || process->served == 0)
            return process;
        used = process;
    }
    if (used != NULL)
        image_process_end(used);
    return NULL;
}

static unsigned image_process_poll(void *part, struct pollfd *polls, unsigned room)
{
    const struct image_processes *all = part;
    unsigned count = all->count < room ? all->count : room;
    for (unsigned i = 0; i < count; i++)
        polls[i] = (struct pollfd){.fd = all->list[i].client.socket, .events = POLLIN};
    return count;
}

static void image_process_take(void *part, const struct pollfd *polls, unsigned count)
{
    struct image_processes *all = part;
    for (unsigned i = 0; i < count; i++)
        if (polls[i].revents != 0)
            image_process_receive(all, &all->list[i]);
}

static bool is_waiting(const struct image_slot *process)
{
    return process->state == IMAGE_PROCESS_NONE || process->state == IMAGE_PROCESS_STARTING;
}

/* A worker that stops starts no process. */
static int64_t image_process_next_ms(const void *part)
{
    const struct image_processes *all = part;
    int64_t next_ms = INT64_MAX;
    for (unsigned i = 0; i < all->count && all->shared->stop_at_ms == 0; i++) {
        const struct image_slot *process = &all->list[i];
        if (is_waiting(process) && process->at_ms < next_ms)
            next_ms = process->at_ms;
    }
    return next_ms;
}

static void image_process_step(void *part, int64_t now_ms)
{
    struct image_processes *all = part;
    for (unsigned i = 0; i < all->count; i++) {
        struct image_slot *process = &all->list[i];
        if (!is_waiting(process) || now_ms < process->at_ms)
            continue;
        if (process->state == IMAGE_PROCESS_NONE) {
            image_process_start(all, process);
            continue;
        }
        start_end(all, process);
    }
}

const struct loop_source image_process_source = {.poll = image_process_poll, .take = image_process_take};
const struct loop_timer image_process_timer = {image_process_next_ms, image_process_step};
