/*
 * Cores and memory that this machine has for the service: those of the hardware, or less where control
 * groups limit them (a container, a slice, a unit).
 *
 * Sources: Documentation/admin-guide/cgroup-v2.rst (cpu.max, memory.max) and cgroup-v1/memory.rst,
 * scheduler/sched-bwc.rst (cfs_quota_us) of Linux.
 */
#ifndef BASE_MACHINE_H
#define BASE_MACHINE_H

#include <stdint.h>

struct machine {
    int cores;            /* at least 1; a part of a core counts as a whole one */
    int64_t memory_bytes; /* of the hardware or the container; a unit's own limit does not count */
    int64_t worker_bytes; /* limit of imgward-worker.service; INT64_MAX: none, or the unit does not run */
};

/*
 * Reads proc/self/cgroup and sys/fs/cgroup below root ("" on a real machine). What cannot be read sets no
 * limit. Every program of a host reads the same memory: the limit of a unit of another program is ignored.
 */
void machine_read(const char *root, struct machine *machine);

#endif
