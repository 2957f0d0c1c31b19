/*
 * The archive of an order, copied together by a child process: gigabytes may
 * have to be copied, and the supervisor must get round to its heartbeat.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>

#include <imgward/fault.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "service/zip.h"
#include "store/results.h"
#include "worker/worker.h"

enum { archive_limit_ms = 60 * 60 * 1000, cause_bytes = 200 };

/* What the child says at its end. */
struct report {
    enum iw_error error;
    struct zip_facts facts;
    char cause[cause_bytes];
};

/* The child.  It must not touch the database connection that it was forked with. */
static _Noreturn void child_run(struct worker *worker, struct task *task, const struct zip_entry *entries,
                                unsigned count, int pipe_end, pid_t supervisor)
{
    struct report report = {.error = IW_IO_FAILED};
    process_signals_reset();
    signal(SIGPIPE, SIG_IGN);
    fault_point(FAULT_ARCHIVE_BEGUN);
    if (process_die_with_parent(supervisor))
        report.error = zip_build(worker->storage, &task->context,
                                 &(struct zip_source){entries, count, order_id_time_ms(task->job.order_id)},
                                 &task->archive_key, &report.facts);
    fault_point(FAULT_ARCHIVE_BUILT);
    const char *cause = task->context.cause != NULL ? task->context.cause : task->context.sentence;
    if (report.error != IW_OK && cause != NULL)
        strncpy(report.cause, cause, sizeof report.cause - 1);
    bool is_told = write(pipe_end, &report, sizeof report) == (ssize_t)sizeof report;
    _exit(is_told && report.error == IW_OK ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* Signals wait while forking, so that the child takes none with our handlers. */
static bool child_fork(struct worker *worker, struct task *task, const struct zip_entry *entries,
                       unsigned count)
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
        child_run(worker, task, entries, count, ends[1], supervisor);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return false;
    }
    task->child = pid;
    task->child_pipe = ends[0];
    return true;
}

/* The results of the order as entries; the names are unique already. */
static enum iw_error entries_read(struct worker *worker, struct task *task, struct zip_entry **entries,
                                  unsigned *count)
{
    struct result *results;
    enum iw_error error = results_list(&(struct store){&task->context, worker->domain.store.db},
                                       task->job.order_id, &results, count);
    if (error != IW_OK)
        return error;
    *entries = arena_array(task->arena, *count + 1, sizeof **entries);
    for (unsigned i = 0; i < *count; i++) {
        (*entries)[i].name = results[i].name;
        (*entries)[i].format = results[i].format;
        memcpy((*entries)[i].sha256, results[i].digest, sizeof(*entries)[i].sha256);
        if (!storage_key_read(results[i].store_key, &(*entries)[i].key))
            return context_fail(&task->context, IW_SERVER_INTERNAL_ERROR, NULL);
    }
    return IW_OK;
}

void archive_task_begin(struct worker *worker, struct task *task)
{
    struct zip_entry *entries = NULL;
    unsigned count = 0;
    task_begin(task);
    enum iw_error error = entries_read(worker, task, &entries, &count);
    task->archive_key = (struct storage_key){
        .kind = FILEKEY_ZIP, .order_id = task->job.order_id, .version = storage_version_new()};
    if (error == IW_OK && !fault_fails(FAULT_ARCHIVE_FORKED) && child_fork(worker, task, entries, count)) {
        task->deadline_ms = task->begun_ms + archive_limit_ms;
        return;
    }
    log_failure(&task->context, "archive_not_begun");
    task_trouble(worker, task, JOB_TROUBLE_TRANSIENT, IW_PROCESSING_CRASHED, NULL, "archive_not_begun");
}

static void report_take(struct worker *worker, struct task *task, const struct report *report)
{
    task->result_key = task->archive_key;
    task->outcome = (struct outcome){.job = &task->job,
                                     .kind = OUTCOME_ARCHIVE,
                                     .archive_store_key = storage_key_text(task->arena, &task->archive_key),
                                     .archive_bytes = report->facts.size_bytes};
    memcpy(task->outcome.archive_digest, report->facts.sha256, sizeof task->outcome.archive_digest);
    task_end(worker, task);
}

void archive_task_poll(struct worker *worker, struct task *task)
{
    struct report report = {.error = IW_IO_FAILED};
    ssize_t size = read(task->child_pipe, &report, sizeof report);
    int wait_status = 0;
    if (size < 0 && errno == EINTR)
        return;
    close(task->child_pipe);
    while (waitpid(task->child, &wait_status, 0) < 0 && errno == EINTR)
        continue;
    task->child = 0;
    task->child_pipe = -1;
    fault_point(FAULT_ARCHIVE_HEARD);
    if (size == (ssize_t)sizeof report && report.error == IW_OK) {
        report_take(worker, task, &report);
        return;
    }
    report.cause[cause_bytes - 1] = '\0';
    log_event(LOG_ERROR, &task->context, "archive_failed", LOG_TEXT("code", iw_error_code(report.error)),
              LOG_TEXT("cause", report.cause),
              LOG_NUMBER("signal", WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0));
    task_trouble(worker, task, JOB_TROUBLE_TRANSIENT, IW_PROCESSING_CRASHED, NULL, "archive_failed");
}
