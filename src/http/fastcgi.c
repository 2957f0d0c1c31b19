#include "http/fastcgi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <fcgiapp.h>

#include "base/fault.h"
#include "base/process.h"

struct fastcgi {
    FCGX_Request request;
    int listener;
    int poll; /* epoll descriptor; one connection wakes one process, the process that ran last */
};

/* Binds the socket to a temporary name and renames it, so that clients always find a socket. */
static bool bind_and_rename(int listener, const char *path, int backlog)
{
    struct sockaddr_un temporary = {.sun_family = AF_UNIX};
    if (snprintf(temporary.sun_path, sizeof temporary.sun_path, "%s.new", path) >=
        (int)sizeof temporary.sun_path) {
        errno = ENAMETOOLONG;
        return false;
    }
    unlink(temporary.sun_path);
    mode_t saved = umask(0117);
    bool is_bound = bind(listener, (const struct sockaddr *)&temporary, sizeof temporary) == 0;
    umask(saved);
    return is_bound && listen(listener, backlog) == 0 && rename(temporary.sun_path, path) == 0;
}

int fastcgi_listen(struct context *context, const char *path, int backlog)
{
    if (strlen(path) + sizeof ".new" > sizeof((struct sockaddr_un *)NULL)->sun_path) {
        context_fail(context, IW_CONFIG_INVALID, "api.socket is longer than the path of a socket may be: %s",
                     path);
        return -1;
    }
    if (process_listens(path)) {
        context_fail(context, IW_CONFIG_INVALID, "Another process serves %s.", path);
        return -1;
    }
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listener >= 0 && bind_and_rename(listener, path, backlog))
        return listener;
    context_fail(context, IW_CONFIG_INVALID, "Cannot listen on %s: %s.", path, strerror(errno));
    if (listener >= 0)
        close(listener);
    return -1;
}

struct fastcgi *fastcgi_new(int listener)
{
    struct fastcgi *fastcgi = calloc(1, sizeof *fastcgi);
    struct epoll_event event = {.events = EPOLLIN | EPOLLEXCLUSIVE};
    if (fastcgi == NULL || FCGX_Init() != 0 ||
        FCGX_InitRequest(&fastcgi->request, listener, FCGI_FAIL_ACCEPT_ON_INTR) != 0)
        abort();
    fastcgi->listener = listener;
    fastcgi->poll = epoll_create1(EPOLL_CLOEXEC);
    if (fastcgi->poll < 0 || epoll_ctl(fastcgi->poll, EPOLL_CTL_ADD, listener, &event) != 0)
        abort();
    return fastcgi;
}

void fastcgi_free(struct fastcgi *fastcgi)
{
    if (fastcgi == NULL)
        return;
    FCGX_Free(&fastcgi->request, 1);
    close(fastcgi->poll);
    free(fastcgi);
}

static long body_read(void *handle, void *buffer, size_t size)
{
    struct fastcgi *fastcgi = handle;
    FCGX_Stream *in = fastcgi->request.in;
    int room = size > 1 << 20 ? 1 << 20 : (int)size;
    int count = FCGX_GetStr(buffer, room, in);
    if (count > 0)
        return count;
    return FCGX_GetError(in) != 0 ? -1 : 0;
}

static bool answer_write(void *handle, const void *bytes, size_t size)
{
    struct fastcgi *fastcgi = handle;
    FCGX_Stream *out = fastcgi->request.out;
    const char *at = bytes;
    fault_point(FAULT_MESSAGE_SENDING, "response");
    while (size > 0) {
        int piece = size > 1 << 20 ? 1 << 20 : (int)size;
        if (FCGX_PutStr(at, piece, out) != piece || FCGX_GetError(out) != 0)
            return false;
        at += piece;
        size -= (size_t)piece;
    }
    return true;
}

char *const *fastcgi_accept(struct fastcgi *fastcgi, const sigset_t *mask, int timeout_ms, struct wire *wire)
{
    struct epoll_event event;
    if (epoll_pwait(fastcgi->poll, &event, 1, timeout_ms, mask) != 1 || FCGX_Accept_r(&fastcgi->request) != 0)
        return NULL;
    *wire = (struct wire){.read = body_read, .write = answer_write, .handle = fastcgi};
    fault_point(FAULT_MESSAGE_TAKEN, "request");
    return fastcgi->request.envp;
}

/*
 * Returns true if everything that the peer sent was read. The end of a request without a body arrives with
 * the request.
 */
static bool is_input_read(const FCGX_Request *request)
{
    const char *length = FCGX_GetParam("CONTENT_LENGTH", request->envp);
    if (FCGX_HasSeenEOF(request->in) == 0 && (length == NULL || length[0] == '\0'))
        FCGX_GetChar(request->in);
    return FCGX_HasSeenEOF(request->in) != 0;
}

void fastcgi_finish(struct fastcgi *fastcgi, bool is_cut)
{
    fault_point(FAULT_MESSAGE_SENT, "response");
    /*
     * Without unread input, close() does not reset the connection, so shutdown() and a wait are unnecessary.
     */
    if (!is_cut && is_input_read(&fastcgi->request))
        FCGX_Detach(&fastcgi->request);
    if (!is_cut)
        FCGX_Finish_r(&fastcgi->request);
    /*
     * Closes the connection even if the peer asked to keep it, because an open connection would occupy this
     * process.
     */
    FCGX_Free(&fastcgi->request, 1);
}
