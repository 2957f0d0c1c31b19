#include "http/probe.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "http/child.h"

enum { line_size = 1024, pause_ms = 10 * 1000, longest_ms = 60 * 1000 };

void probe_init(struct probe *probe)
{
    *probe = (struct probe){
        .line = mmap(NULL, line_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)};
    if (probe->line == MAP_FAILED)
        abort();
}

/* Runs in the forked process. */
static _Noreturn void probe_run(const struct probe *probe, const struct config *config, pid_t supervisor)
{
    struct context context;
    context_init(&context, arena_new(0), NULL);
    process_signals_reset();
    signal(SIGPIPE, SIG_IGN);
    log_level_set(LOG_ERROR); /* the line has the cause; the log would repeat it every ten seconds */
    if (!process_die_with_parent(supervisor))
        _exit(EXIT_FAILURE);
    snprintf(probe->line, line_size, "%s", child_status(&context, config));
    _exit(EXIT_SUCCESS);
}

void probe_step(struct probe *probe, const struct config *config)
{
    sigset_t all, before;
    int64_t now_ms = clock_monotonic_ms();
    pid_t supervisor = getpid();
    if (now_ms < probe->at_ms || getenv("NOTIFY_SOCKET") == NULL)
        return;
    probe->at_ms = now_ms + longest_ms;
    if (probe->pid != 0) {
        kill(probe->pid, SIGKILL);
        return;
    }
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        probe_run(probe, config, supervisor);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    probe->pid = pid > 0 ? pid : 0;
}

void probe_reaped(struct probe *probe, pid_t pid)
{
    if (probe->pid != pid)
        return;
    probe->pid = 0;
    probe->at_ms = clock_monotonic_ms() + pause_ms;
    process_status("%s", probe->line);
}

void probe_fini(struct probe *probe)
{
    if (probe->pid != 0)
        kill(probe->pid, SIGKILL);
    munmap(probe->line, line_size);
}
