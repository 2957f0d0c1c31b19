#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

volatile sig_atomic_t process_stop_count;
volatile sig_atomic_t process_reload_asked;
volatile sig_atomic_t process_child_died;

static int wake_pipe[2] = {-1, -1};
static const int handled[] = {SIGTERM, SIGINT, SIGHUP, SIGCHLD};

static void on_signal(int number)
{
    int saved = errno;
    if (number == SIGHUP)
        process_reload_asked = 1;
    else if (number == SIGCHLD)
        process_child_died = 1;
    else
        process_stop_count++;
    ssize_t written = write(wake_pipe[1], "", 1);
    (void)written; /* EAGAIN can be ignored, because a full pipe wakes the poll as well. */
    errno = saved;
}

void process_signals_install(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    if (wake_pipe[0] < 0 && pipe2(wake_pipe, O_CLOEXEC | O_NONBLOCK) != 0)
        abort();
    for (size_t i = 0; i < sizeof handled / sizeof handled[0]; i++)
        sigaction(handled[i], &action, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
}

void process_signals_reset(void)
{
    struct sigaction fallback = {.sa_handler = SIG_DFL};
    for (size_t i = 0; i < sizeof handled / sizeof handled[0]; i++)
        sigaction(handled[i], &fallback, NULL);
    sigaction(SIGPIPE, &fallback, NULL);
    process_stop_count = process_reload_asked = process_child_died = 0;
    for (int end = 0; end < 2; end++) {
        if (wake_pipe[end] >= 0)
            close(wake_pipe[end]);
        wake_pipe[end] = -1;
    }
}

int process_signal_descriptor(void)
{
    return wake_pipe[0];
}

void process_signal_drain(void)
{
    char bytes[64];
    while (read(wake_pipe[0], bytes, sizeof bytes) > 0)
        continue;
}

enum iw_error process_pid_file_write(struct context *context, const char *path)
{
    if (path[0] == '\0')
        return IW_OK;
    char *fresh = arena_printf(context->arena, "%s.new", path);
    FILE *file = fopen(fresh, "we");
    if (file == NULL || fprintf(file, "%ld\n", (long)getpid()) < 0 || fclose(file) != 0 ||
        rename(fresh, path) != 0)
        return context_fail(context, IW_IO_FAILED, "The pid file %s cannot be written: %s.", path,
                            strerror(errno));
    return IW_OK;
}

void process_pid_file_remove(const char *path)
{
    if (path[0] != '\0')
        unlink(path);
}

void process_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (path == NULL || strlen(path) >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(address.sun_path, path, strlen(path));
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    if (path[0] == '@')
        address.sun_path[0] = '\0';
    int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0)
        return;
    /* The service must not hang if the service manager does not read. */
    const struct timeval longest = {.tv_sec = 1};
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &longest, sizeof longest);
    sendto(descriptor, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&address, size);
    close(descriptor);
}

void process_status(const char *format, ...)
{
    char state[1024] = "STATUS=";
    size_t start = strlen(state);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(state + start, sizeof state - start, format, arguments);
    va_end(arguments);
    for (char *at = state + start; *at != '\0'; at++)
        *at = (unsigned char)*at < ' ' ? ' ' : *at;
    process_notify(state);
}

bool process_listens(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return false;
    memcpy(address.sun_path, path, strlen(path));
    int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_answered = probe >= 0 && connect(probe, (const struct sockaddr *)&address, sizeof address) == 0;
    int saved = errno;
    if (probe >= 0)
        close(probe);
    errno = saved;
    return is_answered;
}

bool process_die_with_parent(pid_t parent)
{
    return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent;
}

int process_core_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    return CPU_COUNT(&set) > 0 ? CPU_COUNT(&set) : 1;
}
