#include "base/machine.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "base/process.h"

/* A controller of cgroup version 1 or 2: the folder of its groups, and the file of its limit. */
struct controller {
    const char *name; /* in /proc/self/cgroup; "" for version 2 */
    const char *mount;
    const char *file;
    const char *period_file; /* version 1; NULL if the limit has no period */
};

static const struct controller memory_kinds[] = {
    {"", "/sys/fs/cgroup", "memory.max", NULL},
    {"memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", NULL},
};
static const struct controller cpu_kinds[] = {
    {"", "/sys/fs/cgroup", "cpu.max", NULL},
    {"cpu", "/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "cpu.cfs_period_us"},
};
enum { kind_count = 2 };

static const char worker_unit[] = "/system.slice/imgward-worker.service";

/* Reads the numbers in the first line of a file. Returns 0 if there are none, as in "max". */
static int numbers_read(const char *root, const char *folder, const char *file, double *first, double *second)
{
    char path[PATH_MAX];
    int count = 0;
    if (snprintf(path, sizeof path, "%s%s/%s", root, folder, file) >= (int)sizeof path)
        return 0;
    FILE *stream = fopen(path, "re");
    if (stream != NULL) {
        count = fscanf(stream, "%lf %lf", first, second);
        fclose(stream);
    }
    return count > 0 ? count : 0;
}

/* Returns the limit of one group, INFINITY if it has none. A limit of the CPU is a number of cores. */
static double group_limit(const char *root, const struct controller *kind, const char *folder)
{
    double first = 0, second = 1, unused;
    if (numbers_read(root, folder, kind->file, &first, &second) == 0 || first <= 0)
        return INFINITY;
    if (kind->period_file != NULL && numbers_read(root, folder, kind->period_file, &second, &unused) == 0)
        return INFINITY;
    return second > 0 ? first / second : INFINITY;
}

/* Returns true if a list such as "cpu,cpuacct" contains the name. Version 2 has no names. */
static bool names_have(const char *names, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = names;; at += strcspn(at, ","), at++) {
        if (strcspn(at, ",") == length && strncmp(at, name, length) == 0)
            return true;
        if (at[strcspn(at, ",")] == '\0')
            return false;
    }
}

/*
 * Reads the path of this process's group; "/" if there is none. The file has lines such as
 * "4:cpu,cpuacct:/path".
 */
static void group_path(const char *root, const char *name, char path[PATH_MAX])
{
    char file[PATH_MAX], line[PATH_MAX];
    snprintf(path, PATH_MAX, "/");
    snprintf(file, sizeof file, "%s/proc/self/cgroup", root);
    FILE *stream = fopen(file, "re");
    while (stream != NULL && fgets(line, sizeof line, stream) != NULL) {
        char *names = strchr(line, ':'), *at = names == NULL ? NULL : strchr(names + 1, ':');
        if (at == NULL)
            continue;
        *at++ = '\0';
        at[strcspn(at, "\n")] = '\0';
        if (at[0] == '/' && names_have(names + 1, name))
            snprintf(path, PATH_MAX, "%s", at);
    }
    if (stream != NULL)
        fclose(stream);
}

/*
 * Returns the smallest limit between this process's group and the root. Limits of units count only if
 * with_units is set.
 */
static double least_limit(const char *root, const struct controller *kind, bool with_units)
{
    char path[PATH_MAX], folder[2 * PATH_MAX];
    double least = INFINITY;
    group_path(root, kind->name, path);
    for (;;) {
        snprintf(folder, sizeof folder, "%s%s", kind->mount, path);
        size_t length = strlen(path);
        bool is_unit = length > 8 && strcmp(path + length - 8, ".service") == 0;
        double limit = with_units || !is_unit ? group_limit(root, kind, folder) : INFINITY;
        least = limit < least ? limit : least;
        char *slash = strrchr(path, '/');
        if (slash == NULL || path[1] == '\0')
            return least;
        slash[slash == path] = '\0';
    }
}

static double less_of(double a, double b)
{
    return a < b ? a : b;
}

static int64_t bytes_of(double limit)
{
    return limit < (double)INT64_MAX ? (int64_t)limit : INT64_MAX;
}

void machine_read(const char *root, struct machine *machine)
{
    char folder[PATH_MAX];
    struct sysinfo facts;
    double memory = sysinfo(&facts) == 0 ? (double)facts.totalram * facts.mem_unit : INFINITY;
    double worker = INFINITY, cores = process_core_count();
    for (int i = 0; i < kind_count; i++) {
        memory = less_of(memory, least_limit(root, &memory_kinds[i], false));
        cores = less_of(cores, least_limit(root, &cpu_kinds[i], true));
        snprintf(folder, sizeof folder, "%s%s", memory_kinds[i].mount, worker_unit);
        worker = less_of(worker, group_limit(root, &memory_kinds[i], folder));
    }
    /* Counts a part of a core as a core. */
    *machine =
        (struct machine){(int)cores + ((double)(int)cores < cores), bytes_of(memory), bytes_of(worker)};
}
