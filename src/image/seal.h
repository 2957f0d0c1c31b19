/*
 * Shuts a process in: no new descriptors but those passed to it, no files by
 * name, no sockets, no processes, no threads, no executable memory; bounded
 * memory, CPU time and file size.  What it holds when it is sealed it keeps.
 * Linux (seccomp, Landlock, rlimits, prctl).  A call that is not allowed kills it.
 *
 * seccomp is the wall.  Landlock stands behind it: it takes files by name, TCP
 * and signals away even where a container's own rules refuse us seccomp.
 */
#ifndef IMAGE_SEAL_H
#define IMAGE_SEAL_H

#include <stdbool.h>

#include <imgward/context.h>

struct seal_limits {
    uint64_t memory_bytes; /* writable private memory; mapped files are not counted */
    uint64_t file_bytes;   /* the largest file that can be written */
    unsigned cpu_seconds;  /* until the next seal_cpu_seconds; 0: no limit */
};

/* What a machine may refuse. */
enum seal_layer { SEAL_SECCOMP = 1, SEAL_LANDLOCK = 2 };

/* Closes every descriptor from first on. */
void seal_close_from(int first);

/*
 * Seals the calling process, which has one thread and talks on one socket.
 * missing gathers the layers that the machine refused.  SERVICE_UNAVAILABLE when
 * seccomp is one of them: then all else is done all the same, so that a caller
 * who may go on unsealed can.
 */
enum iw_error seal_process(struct context *context, const struct seal_limits *limits, int socket,
                           unsigned *missing) IW_MUST_USE;

/*
 * Puts standard input in the place of standard error, so that a process that was
 * taken over can write nothing into its parent's log.  Works when sealed.
 */
void seal_mute(void);

/* Allows the process so many CPU seconds more from now, as often as it is called.  Works when sealed. */
void seal_cpu_seconds(unsigned seconds);

#endif
