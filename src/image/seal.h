/*
 * Seals a process. It gets no new descriptors except those passed to it, no files by name, no
 * sockets, processes, threads or executable memory. Memory, CPU time and file size are limited.
 * Open descriptors remain usable. A forbidden call kills the process.
 *
 * Linux only (seccomp, Landlock, rlimits, prctl). seccomp is the main layer. Landlock removes
 * files by name, TCP and signals even where a container's rules refuse seccomp.
 */
#ifndef IMAGE_SEAL_H
#define IMAGE_SEAL_H

#include <stdbool.h>

#include "base/context.h"

struct seal_limits {
    uint64_t memory_bytes; /* writable private memory; mapped files are not counted */
    uint64_t file_bytes;   /* largest file that can be written */
    unsigned cpu_seconds;  /* until the next seal_cpu_seconds; 0 means no limit */
};

/* Layers that the kernel may refuse. */
enum seal_layer { SEAL_SECCOMP = 1, SEAL_LANDLOCK = 2 };

/* Closes every descriptor from first on. */
void seal_close_from(int first);

/*
 * Seals the calling process, which has one thread and one socket. missing receives the layers
 * that the kernel refused.
 *
 * SERVICE_UNAVAILABLE if seccomp is missing. All other layers are active even then, so a caller
 * may continue unsealed.
 */
enum iw_error seal_process(struct context *context, const struct seal_limits *limits, int socket,
                           unsigned *missing) IW_MUST_USE;

/*
 * Replaces standard error by standard input, so that a compromised process cannot write to its
 * parent's log. Works when sealed.
 */
void seal_mute(void);

/* Allows the given CPU seconds from now. Can be repeated; works when sealed. */
void seal_cpu_seconds(unsigned seconds);

#endif
