#include "seal_child.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/context.h"
#include "image/image_protocol.h"

enum { refused = 77 };

const struct seal_limits test_limits = {(uint64_t)256 << 20, 1 << 20, 10};

int sealed_status(void (*action)(void), const struct seal_limits *limits)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct context own;
        context_init(&own, arena_new(0), NULL);
        unsigned missing;
        if (seal_process(&own, limits, image_socket, &missing) != IW_OK)
            _exit(refused);
        action();
        _exit(0);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    return status;
}

bool is_refused(int status)
{
    return WIFEXITED(status) && WEXITSTATUS(status) == refused;
}
