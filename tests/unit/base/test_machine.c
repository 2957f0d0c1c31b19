/* Cores and memory of the machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/machine.h"
#include "runner.h"

/* Writes a file below the folder test_machine.tmp. */
static void machine_file(const char *path, const char *content)
{
    char whole[200] = "test_machine.tmp/";
    strcat(whole, path);
    for (char *at = whole; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        mkdir(whole, 0700);
        *at = '/';
    }
    FILE *file = fopen(whole, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs(content, file);
    fclose(file);
}

static void machine_forget(void)
{
    CU_ASSERT_EQUAL(system("rm -rf test_machine.tmp"), 0);
}

/* Control groups, version 2 and 1, limit a machine with more cores and memory. */
static void test_control_groups_limit_the_machine(void)
{
    struct machine machine, whole;
    machine_forget();
    machine_read("test_machine.tmp", &whole);
    CU_ASSERT(whole.cores >= 1 && whole.memory_bytes > 256 << 20 && whole.worker_bytes == INT64_MAX);
    /* A container with a limit on the worker's unit. The limit of another unit does not affect pictures. */
    machine_file("proc/self/cgroup", "0::/system.slice/imgward-api.service\n");
    machine_file("sys/fs/cgroup/memory.max", "268435456\n");
    machine_file("sys/fs/cgroup/cpu.max", "max 100000\n");
    machine_file("sys/fs/cgroup/system.slice/memory.max", "max\n");
    machine_file("sys/fs/cgroup/system.slice/cpu.max", "50000 100000\n");
    machine_file("sys/fs/cgroup/system.slice/imgward-api.service/memory.max", "1048576\n");
    machine_file("sys/fs/cgroup/system.slice/imgward-worker.service/memory.max", "200000000\n");
    machine_read("test_machine.tmp", &machine);
    CU_ASSERT_EQUAL(machine.memory_bytes, 268435456);
    CU_ASSERT_EQUAL(machine.worker_bytes, 200000000);
    CU_ASSERT_EQUAL(machine.cores, 1);
    machine_forget();
    /* Version 1. The path exists on the host, but not in this container. */
    machine_file("proc/self/cgroup", "4:memory:/docker/a\n3:cpuset:/\n1:cpu,cpuacct:/docker/a\n0::/\n");
    machine_file("sys/fs/cgroup/memory/memory.limit_in_bytes", "134217728\n");
    machine_file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    machine_file("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    machine_read("test_machine.tmp", &machine);
    CU_ASSERT_EQUAL(machine.memory_bytes, 134217728);
    CU_ASSERT_EQUAL(machine.cores, whole.cores);
    machine_file("sys/fs/cgroup/cpu/docker/a/cpu.cfs_quota_us", "20000\n");
    machine_file("sys/fs/cgroup/cpu/docker/a/cpu.cfs_period_us", "100000\n");
    machine_file("sys/fs/cgroup/memory/docker/a/memory.limit_in_bytes", "9223372036854771712\n");
    machine_read("test_machine.tmp", &machine);
    CU_ASSERT_EQUAL(machine.memory_bytes, 134217728);
    CU_ASSERT_EQUAL(machine.cores, 1);
    machine_forget();
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"control groups limit the machine", test_control_groups_limit_the_machine},
        CU_TEST_INFO_NULL,
    };
    return runner_run("machine", tests);
}
