/*
 * Cores and memory that are available to the service: all of the hardware, or less if a control group limits
 * them (a container, a slice, a unit).
 *
 * Sources: Documentation/admin-guide/cgroup-v2.rst (cpu.max, memory.max) and cgroup-v1/memory.rst,
 * scheduler/sched-bwc.rst (cfs_quota_us) of Linux.
 */
#ifndef BASE_MACHINE_H
#define BASE_MACHINE_H

#include <stdint.h>

struct machine {
    int cores;            /* at least 1; a part of a core counts as a whole core */
    int64_t memory_bytes; /* of the hardware or the container; the limit of a unit does not count */
    int64_t worker_bytes; /* limit of imgward-worker.service; INT64_MAX if there is none or the unit does not
                             run */
};

/*
 * Reads proc/self/cgroup and sys/fs/cgroup below root ("" on a real machine). A file that cannot be read sets
 * no limit. Limits of the units of other programs are ignored, so that every program on a host reads the same
 * memory.
 */
void machine_read(const char *root, struct machine *machine);

#endif
