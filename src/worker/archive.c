#include "worker/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/process.h"
#include "db/results.h"
#include "service/files/zip.h"
#include "worker/shared.h"
#include "worker/task.h"

enum { archive_limit_ms = 60 * 60 * 1000, cause_bytes = 200 };

/* The child writes a report into the pipe before it exits. */
struct archive_report {
    enum iw_error error;
    struct zip_facts facts;
    char cause[cause_bytes];
    int wait_status; /* filled by the parent */
};

/* The child.  It must not touch the database connection that it inherits. */
static _Noreturn void archive_child_run(const struct shared *shared, struct task *task,
                                        const struct zip_source *source, int pipe_end, pid_t supervisor)
{
    struct archive_report report = {.error = IW_IO_FAILED};
    process_signals_reset();
    signal(SIGPIPE, SIG_IGN);
    fault_point(FAULT_PROCESS_STARTED, "archive");
    if (process_die_with_parent(supervisor))
        report.error =
            zip_build(shared->domain.storage, &task->context, source, &task->archive.key, &report.facts);
    const char *cause = task->context.cause != NULL ? task->context.cause : task->context.sentence;
    if (report.error != IW_OK && cause != NULL)
        strncpy(report.cause, cause, sizeof report.cause - 1);
    bool is_reported = write(pipe_end, &report, sizeof report) == (ssize_t)sizeof report;
    _exit(is_reported && report.error == IW_OK ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* Blocks signals during the fork, because the child starts with the handlers of the worker. */
static bool child_fork(const struct shared *shared, struct task *task, const struct zip_source *source)
{
    sigset_t all, before;
    int ends[2];
    pid_t supervisor = getpid();
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        sigprocmask(SIG_SETMASK, &before, NULL);
        archive_child_run(shared, task, source, ends[1], supervisor);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return false;
    }
    task->archive.child = pid;
    task->archive.child_pipe = ends[0];
    return true;
}

/* A field of CSV (RFC 4180). */
static void field_add(struct text *csv, const char *value, const char *end)
{
    text_add_string(csv, "\"");
    for (; *value != '\0'; value++)
        text_printf(csv, *value == '"' ? "\"\"" : "%c", *value);
    text_printf(csv, "\"%s", end);
}

/* Which copy has which text: copies.csv of an embedding order. */
static void copy_add(struct zip_source *source, const struct result *result, struct arena *arena)
{
    if (source->text_name == NULL) {
        source->text_name = "copies.csv";
        text_init(&source->text, arena);
        text_add_string(&source->text, "fileName,watermark,sha256\r\n");
    }
    field_add(&source->text, result->name, ",");
    field_add(&source->text, result->watermark, ",");
    text_printf(&source->text, "%s\r\n", crypto_hex(arena, result->digest, sizeof result->digest));
}

/* The results of the order as entries; their names are unique already. */
static enum iw_error source_read(const struct shared *shared, struct task *task, struct zip_source *source)
{
    unsigned count;
    struct result *results;
    enum iw_error error = results_list(&(struct db){&task->context, shared->domain.db.connection},
                                       task->job.order_id, &results, &count);
    if (error != IW_OK)
        return error;
    struct zip_entry *entries = arena_array(task->arena, count + 1, sizeof *entries);
    *source = (struct zip_source){
        .entries = entries, .count = count, .time_ms = order_id_time_ms(task->job.order_id)};
    for (unsigned i = 0; i < count; i++) {
        entries[i].name = results[i].name;
        entries[i].format = results[i].format;
        memcpy(entries[i].sha256, results[i].digest, sizeof entries[i].sha256);
        if (!storage_key_read(results[i].store_key, &entries[i].key))
            return context_fail(&task->context, IW_SERVER_INTERNAL_ERROR, NULL);
        if (results[i].watermark != NULL)
            copy_add(source, &results[i], task->arena);
    }
    return IW_OK;
}

static struct outcome *archive_begin(void *jobs, struct task *task)
{
    const struct shared *shared = ((const struct archive_jobs *)jobs)->shared;
    struct zip_source source;
    task_start(task);
    enum iw_error error = source_read(shared, task, &source);
    task->archive.key = (struct storage_key){
        .kind = FILEKEY_ZIP, .order_id = task->job.order_id, .version = storage_version_new()};
    if (error == IW_OK && !fault_fails(FAULT_PROCESS_SPAWN, "archive") && child_fork(shared, task, &source)) {
        task->deadline_ms = task->begun_ms + archive_limit_ms;
        return NULL;
    }
    log_failure(&task->context, "archive_not_begun");
    return task_trouble(task, JOB_TROUBLE_TRANSIENT, IW_PROCESSING_CRASHED, NULL, "archive_not_begun");
}

/* The pipe of the killed child ends, and the loop sees that event. */
static void archive_kill(struct task *task)
{
    kill(task->archive.child, SIGKILL);
}

static int child_reap(struct archive_part *archive)
{
    int wait_status = 0;
    close(archive->child_pipe);
    while (waitpid(archive->child, &wait_status, 0) < 0 && errno == EINTR)
        continue;
    archive->child = 0;
    archive->child_pipe = -1;
    return wait_status;
}

static void archive_close(struct task *task)
{
    if (task->archive.child == 0)
        return;
    archive_kill(task);
    child_reap(&task->archive);
}

static unsigned archive_poll(void *part, struct pollfd *polls, unsigned room)
{
    const struct task_pool *pool = ((const struct archive_jobs *)part)->pool;
    unsigned count = pool->count < room ? pool->count : room;
    for (unsigned i = 0; i < count; i++)
        polls[i] = (struct pollfd){.fd = pool->tasks[i].archive.child_pipe, .events = POLLIN};
    return count;
}

/* Reads the report of a child.  A child that died wrote no complete report. */
static void report_take(struct task *task)
{
    struct archive_report *report = arena_alloc(task->arena, sizeof *report);
    ssize_t size = read(task->archive.child_pipe, report, sizeof *report);
    if (size < 0 && errno == EINTR)
        return;
    if (size != (ssize_t)sizeof *report)
        *report = (struct archive_report){.error = IW_IO_FAILED};
    report->cause[cause_bytes - 1] = '\0';
    report->wait_status = child_reap(&task->archive);
    fault_point(FAULT_PROCESS_REAPED, "archive");
    task->archive.report = report;
    task->state = TASK_ANSWERED;
}

static void archive_take(void *part, const struct pollfd *polls, unsigned count)
{
    const struct archive_jobs *archives = part;
    for (unsigned i = 0; i < count; i++)
        if (polls[i].revents != 0)
            report_take(&archives->pool->tasks[i]);
}

static struct outcome *archive_finish(void *jobs, struct task *task)
{
    (void)jobs;
    const struct archive_report *report = task->archive.report;
    if (report->error != IW_OK) {
        log_event(LOG_ERROR, &task->context, "archive_failed", LOG_TEXT("code", iw_error_code(report->error)),
                  LOG_TEXT("cause", report->cause),
                  LOG_NUMBER("signal", WIFSIGNALED(report->wait_status) ? WTERMSIG(report->wait_status) : 0));
        return task_trouble(task, JOB_TROUBLE_TRANSIENT, IW_PROCESSING_CRASHED, NULL, "archive_failed");
    }
    struct outcome *outcome = task_outcome(task, OUTCOME_ARCHIVE);
    task->result_key = task->archive.key;
    outcome->archive_store_key = storage_key_text(task->arena, &task->archive.key);
    outcome->archive_bytes = report->facts.size_bytes;
    memcpy(outcome->archive_digest, report->facts.sha256, sizeof outcome->archive_digest);
    return outcome;
}

const struct kind archive_kind = {
    .begin = archive_begin, .finish = archive_finish, .kill = archive_kill, .close = archive_close};

const struct loop_source archive_source = {.poll = archive_poll, .take = archive_take};
