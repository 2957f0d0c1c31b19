/* The seal of an image process: allowed calls, calls that kill, and limits. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "picture_maker.h"
#include "runner.h"
#include "seal_child.h"

static bool is_seal_refused;

static void try_open(void)
{
    open("/etc/passwd", O_RDONLY);
}

static void try_create(void)
{
    open("/tmp/imgward-sealed", O_WRONLY | O_CREAT, 0600);
}

static void try_socket(void)
{
    socket(AF_INET, SOCK_STREAM, 0);
}

static void try_unix_socket(void)
{
    int ends[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
}

static void try_fork(void)
{
    if (fork() == 0)
        _exit(0);
}

static void try_thread(void)
{
    syscall(SYS_clone, 0x10f00, NULL, NULL, NULL, NULL);
}

static void try_execute(void)
{
    execl("/bin/true", "true", (char *)NULL);
}

static void try_executable_mapping(void)
{
    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void try_executable_protection(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
}

static void try_kill_parent(void)
{
    kill(getppid(), 0);
}

static void try_other_limits(void)
{
    struct rlimit limit = {0, 0};
    getrlimit(RLIMIT_NOFILE, &limit);
}

static void try_stat(void)
{
    access("/etc", F_OK);
}

static void try_message_elsewhere(void)
{
    char byte = 0;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    sendmsg(1, &message, 0);
}

static void try_ptrace(void)
{
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}

static void try_other_memory(void)
{
    syscall(SYS_process_vm_readv, getppid(), NULL, 0, NULL, 0, 0);
}

static void try_unshare(void)
{
    unshare(CLONE_NEWUSER);
}

static void try_memory_file(void)
{
    memfd_create("x", 0);
}

static void try_writable_and_executable(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
}

static void try_rings(void)
{
    syscall(SYS_io_uring_setup, 1, NULL);
}

static void try_message_from_elsewhere(void)
{
    struct msghdr message = {.msg_iov = NULL};
    recvmsg(0, &message, 0);
}

/* 32-bit programs have other call numbers, which do not bypass the seal. */
static void try_32_bit_calls(void)
{
#ifdef __x86_64__
    long answer;
    __asm__ volatile("int $0x80" : "=a"(answer) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
    (void)answer;
#else
    abort();
#endif
}

static void try_x32_calls(void)
{
#ifdef __x86_64__
    syscall(0x40000000L | SYS_getpid);
#else
    abort();
#endif
}

static void test_seal_kills(void)
{
    static const struct {
        const char *name;
        void (*action)(void);
    } attempts[] = {
        {"opening a file", try_open},
        {"creating a file", try_create},
        {"a network socket", try_socket},
        {"a unix socket", try_unix_socket},
        {"a process", try_fork},
        {"a thread", try_thread},
        {"another program", try_execute},
        {"an executable mapping", try_executable_mapping},
        {"executable protection", try_executable_protection},
        {"a signal to the parent", try_kill_parent},
        {"another limit", try_other_limits},
        {"looking for a file", try_stat},
        {"a message elsewhere", try_message_elsewhere},
        {"a message from elsewhere", try_message_from_elsewhere},
        {"being traced", try_ptrace},
        {"another's memory", try_other_memory},
        {"a separate namespace", try_unshare},
        {"a file in memory", try_memory_file},
        {"writable and executable memory", try_writable_and_executable},
        {"calls through rings", try_rings},
    };
    for (size_t i = 0; i < sizeof attempts / sizeof attempts[0]; i++) {
        int status = sealed_status(attempts[i].action, &test_limits);
        if (is_refused(status)) {
            is_seal_refused = true;
            printf("skipped: this machine refuses seccomp ");
            return;
        }
        CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
        if (!WIFSIGNALED(status))
            printf("%s was allowed\n", attempts[i].name);
    }
}

static long call_number;

static void call_any(void)
{
    syscall(call_number, -1L, -1L, -1L, -1L, -1L, -1L);
}

/*
 * Tries every call number with invalid arguments. Numbers that are not on this list kill the
 * process. Calls with argument rules are on the list.
 */
static void test_seal_allows_no_other_call(void)
{
    static const long allowed[] = {
        SYS_sched_getaffinity, /* returns an error */
        SYS_read,
        SYS_write,
        SYS_readv,
        SYS_writev,
        SYS_pread64,
        SYS_pwrite64,
        SYS_lseek,
        SYS_fstat,
        SYS_ftruncate,
        SYS_close,
        SYS_munmap,
        SYS_mremap,
        SYS_brk,
        SYS_madvise,
        SYS_futex,
        SYS_clock_gettime,
        SYS_exit,
        SYS_exit_group,
        SYS_rt_sigaction,
        SYS_rt_sigprocmask,
        SYS_rt_sigreturn,
        SYS_restart_syscall,
        SYS_sched_yield,
        SYS_getpid,
        SYS_gettid,
        SYS_sigaltstack,
        SYS_getrandom,
        SYS_sysinfo,
#ifdef __x86_64__
        /* uretprobe and uprobe: the kernel does not filter them, and outside its trampolines they have no
           effect. */
        335,
        336,
#endif
    };
    enum { numbers = 512 };
    unsigned killed = 0;
    if (is_seal_refused)
        return;
    for (call_number = 0; call_number < numbers; call_number++) {
        bool is_allowed = false;
        for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++)
            is_allowed |= allowed[i] == call_number;
        if (is_allowed)
            continue;
        int status = sealed_status(call_any, &test_limits);
        bool is_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS;
        CU_ASSERT(is_killed);
        killed += is_killed;
        if (!is_killed)
            printf("call %ld was allowed\n", call_number);
    }
    CU_ASSERT_EQUAL(killed, numbers - sizeof allowed / sizeof allowed[0]);
}

/* Without support for such programs, another signal reports that. */
static void test_seal_knows_one_architecture(void)
{
    static void (*const actions[])(void) = {try_32_bit_calls, try_x32_calls};
    for (size_t i = 0; i < sizeof actions / sizeof actions[0] && !is_seal_refused; i++)
        CU_ASSERT(WIFSIGNALED(sealed_status(actions[i], &test_limits)));
}

static void work_plainly(void)
{
    unsigned char *memory = malloc(20 << 20);
    memset(memory, 1, 20 << 20);
    struct made_spec spec = {"PNG", FORMAT_PNG, 97, 71, 3, true, .depth_bits = 8};
    struct codec_bytes file = make_picture(&spec);
    if (memory[12345] != 1 || file.size == 0)
        _exit(1);
    free(memory);
}

static void write_muted(void)
{
    seal_mute();
    if (write(STDERR_FILENO, "forged\n", 7) != 7)
        _exit(8);
}

/* Later output to standard error is discarded. */
static void test_seal_mutes(void)
{
    if (is_seal_refused)
        return;
    int log = memfd_create("log", MFD_CLOEXEC), null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int kept_in = dup(STDIN_FILENO), kept_error = dup(STDERR_FILENO);
    dup2(null, STDIN_FILENO);
    dup2(log, STDERR_FILENO);
    int status = sealed_status(write_muted, &test_limits);
    dup2(kept_error, STDERR_FILENO);
    dup2(kept_in, STDIN_FILENO);
    CU_ASSERT_EQUAL(status, 0);
    CU_ASSERT_EQUAL(lseek(log, 0, SEEK_END), 0);
    close(kept_error);
    close(kept_in);
    close(null);
    close(log);
}

static void pass_memory(void)
{
    if (malloc((size_t)1 << 30) == NULL)
        _exit(5);
}

static int size_file;

/* Writes more than the limit to an open file. */
static void pass_file_size(void)
{
    static const char bytes[1 << 16];
    for (int i = 0; i < 32; i++)
        if (write(size_file, bytes, sizeof bytes) != (ssize_t)sizeof bytes)
            _exit(7);
}

static void pass_cpu_time(void)
{
    seal_cpu_seconds(1);
    for (volatile unsigned turns = 0;; turns++)
        continue;
}

static void abort_plainly(void)
{
    abort();
}

static void test_seal_leaves_work(void)
{
    if (is_seal_refused)
        return;
    CU_ASSERT_EQUAL(sealed_status(work_plainly, &test_limits), 0);
    int status = sealed_status(abort_plainly, &test_limits);
    CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void test_seal_bounds(void)
{
    if (is_seal_refused)
        return;
    int status = sealed_status(pass_cpu_time, &test_limits);
    CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU);
#ifndef __SANITIZE_ADDRESS__
    status = sealed_status(pass_memory, &test_limits);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 5);
#else
    (void)pass_memory;
#endif
    size_file = memfd_create("result", MFD_CLOEXEC);
    status = sealed_status(pass_file_size, &test_limits);
    CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
    CU_ASSERT(lseek(size_file, 0, SEEK_END) <= (off_t)test_limits.file_bytes);
    close(size_file);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"forbidden calls kill the process", test_seal_kills},
        {"no other call is allowed", test_seal_allows_no_other_call},
        {"calls of other architectures end it", test_seal_knows_one_architecture},
        {"plain work goes on sealed", test_seal_leaves_work},
        {"a sealed process says nothing to the log", test_seal_mutes},
        {"memory, CPU time and file size are bounded", test_seal_bounds},
        CU_TEST_INFO_NULL,
    };
    return runner_run("seal", tests);
}
