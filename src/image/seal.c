#include "image/seal.h"

#include <errno.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * Allowed with any arguments: none reaches anything that the process does not hold already.
 * sysinfo is used by the C library's qsort.
 */
static const int calls_free[] = {
    SCMP_SYS(read),         SCMP_SYS(write),           SCMP_SYS(readv),        SCMP_SYS(writev),
    SCMP_SYS(pread64),      SCMP_SYS(pwrite64),        SCMP_SYS(lseek),        SCMP_SYS(fstat),
    SCMP_SYS(ftruncate),    SCMP_SYS(close),           SCMP_SYS(munmap),       SCMP_SYS(mremap),
    SCMP_SYS(brk),          SCMP_SYS(madvise),         SCMP_SYS(futex),        SCMP_SYS(clock_gettime),
    SCMP_SYS(exit),         SCMP_SYS(exit_group),      SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn), SCMP_SYS(restart_syscall), SCMP_SYS(sched_yield),  SCMP_SYS(getpid),
    SCMP_SYS(gettid),       SCMP_SYS(sigaltstack),     SCMP_SYS(getrandom),    SCMP_SYS(sysinfo),
};

/* Allowed if one argument, masked, has one value. */
struct call_bound {
    int call;
    unsigned argument;
    uint64_t mask;
    uint64_t value;
};

static void limit_set(__rlimit_resource_t resource, rlim_t value)
{
    struct rlimit limit = {value, value};
    setrlimit(resource, &limit);
}

static void limits_set(const struct seal_limits *limits)
{
    enum { descriptors_max = 32 };
    limit_set(RLIMIT_CORE, 0);
    limit_set(RLIMIT_NPROC, 0);
    limit_set(RLIMIT_NOFILE, descriptors_max);
    if (limits->file_bytes != 0)
        limit_set(RLIMIT_FSIZE, limits->file_bytes);
        /* A sanitizer's shadow memory counts as memory and exceeds any limit. */
#ifndef __SANITIZE_ADDRESS__
    if (limits->memory_bytes != 0)
        limit_set(RLIMIT_DATA, limits->memory_bytes);
#endif
    if (limits->cpu_seconds != 0)
        seal_cpu_seconds(limits->cpu_seconds);
}

static int rules_add(scmp_filter_ctx filter, int socket)
{
    const struct call_bound bounds[] = {
        {SCMP_SYS(mmap), 2, PROT_EXEC, 0},
        {SCMP_SYS(mprotect), 2, PROT_EXEC, 0},
        {SCMP_SYS(recvmsg), 0, UINT32_MAX, (uint64_t)socket},
        {SCMP_SYS(sendmsg), 0, UINT32_MAX, (uint64_t)socket},
        {SCMP_SYS(tgkill), 0, UINT32_MAX, (uint64_t)getpid()}, /* abort() */
    };
    int failed = 0;
    for (size_t i = 0; i < sizeof calls_free / sizeof calls_free[0]; i++)
        failed |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls_free[i], 0);
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        struct scmp_arg_cmp compare = {bounds[i].argument, SCMP_CMP_MASKED_EQ, bounds[i].mask,
                                       bounds[i].value};
        failed |= seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, bounds[i].call, 1, &compare);
    }
    /* seal_cpu_seconds: the CPU limit of this process only. */
    struct scmp_arg_cmp own_cpu[] = {{0, SCMP_CMP_EQ, 0, 0}, {1, SCMP_CMP_EQ, RLIMIT_CPU, 0}};
    failed |= seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 2, own_cpu);
    /* seal_mute: from standard input to standard error only. */
    struct scmp_arg_cmp mute[] = {{0, SCMP_CMP_EQ, STDIN_FILENO, 0}, {1, SCMP_CMP_EQ, STDERR_FILENO, 0}};
    failed |= seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, SCMP_SYS(dup3), 2, mute);
    /* dav1d counts the processors, and works without threads if that fails. */
    failed |= seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(sched_getaffinity), 0);
    return failed;
}

/*
 * Rights that Landlock removes, as far as the kernel supports them
 * (Documentation/userspace-api/landlock.rst). The ABI version of the kernel gives the size of the struct and
 * the valid bits. They are numbers because older headers lack the later names.
 */
struct landlock_rules {
    uint64_t files;
    uint64_t ports; /* TCP bind and connect, from ABI 4 */
    uint64_t scope; /* abstract unix sockets and signals to others, from ABI 6 */
};

static bool landlock_restrict(void)
{
    static const struct {
        long abi;
        uint64_t files;
        size_t size;
    } steps[] = {{1, 0x1FFF, 8},  {2, 0x3FFF, 8},  {3, 0x7FFF, 8},
                 {4, 0x7FFF, 16}, {5, 0xFFFF, 16}, {6, 0xFFFF, 24}};
    struct landlock_rules rules = {.ports = 3, .scope = 3};
    size_t size = 0;
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0] && steps[i].abi <= abi; i++) {
        rules.files = steps[i].files;
        size = steps[i].size;
    }
    int ruleset = size == 0 ? -1 : (int)syscall(SYS_landlock_create_ruleset, &rules, size, 0);
    bool is_done = ruleset >= 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
    if (ruleset >= 0)
        close(ruleset);
    return is_done;
}

void seal_close_from(int first)
{
    close_range((unsigned)first, ~0U, 0);
}

static enum iw_error seccomp_restrict(struct context *context, int socket)
{
    /* libseccomp reports a refused call as lack of memory, so the kernel is asked first. */
    uint32_t action = SECCOMP_RET_KILL_PROCESS;
    if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) != 0)
        return context_fail(context, IW_SERVICE_UNAVAILABLE,
                            "The kernel refused seccomp (%s). SystemCallFilter= of the unit, or the rules of "
                            "the container, must allow it.",
                            strerrorname_np(errno));
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
    int failed = filter == NULL ? -ENOMEM : rules_add(filter, socket);
    if (failed == 0)
        failed = seccomp_load(filter);
    if (filter != NULL)
        seccomp_release(filter);
    if (failed != 0)
        return context_fail(context, IW_SERVICE_UNAVAILABLE, "libseccomp failed: %s.", strerror(-failed));
    return IW_OK;
}

enum iw_error seal_process(struct context *context, const struct seal_limits *limits, int socket,
                           unsigned *missing)
{
    *missing = SEAL_SECCOMP | SEAL_LANDLOCK;
    prctl(PR_SET_DUMPABLE, 0);
    /* The C library reads the time zone from a file at the first date, for example in lcms2's profiles. */
    tzset();
    limits_set(limits);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return context_fail(context, IW_SERVICE_UNAVAILABLE, "The kernel refused no-new-privileges: %s.",
                            strerror(errno));
    if (landlock_restrict())
        *missing &= ~(unsigned)SEAL_LANDLOCK;
    enum iw_error error = seccomp_restrict(context, socket);
    if (error == IW_OK)
        *missing &= ~(unsigned)SEAL_SECCOMP;
    return error;
}

void seal_mute(void)
{
    syscall(SYS_dup3, STDIN_FILENO, STDERR_FILENO, 0);
}

void seal_cpu_seconds(unsigned seconds)
{
    struct timespec used;
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    /* The kernel rounds CPU time down to whole seconds. */
    if (seconds != 0)
        limit.rlim_cur = (rlim_t)used.tv_sec + seconds + 1;
    setrlimit(RLIMIT_CPU, &limit);
}
