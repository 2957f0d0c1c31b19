#include <imgward/fault.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const char variable[] = "IMGWARD_FAULTS";

/* Index of the letter that distinguishes the programs: the first one after "imgward-". */
enum { program_letter = 8 };

static struct fault_slot *slots; /* NULL: no fault is armed */
static bool is_opened;
static int program;

void fault_open(void)
{
    const char *path = getenv(variable);
    size_t size = FAULT_COUNT * sizeof *slots;
    is_opened = true;
    if (strlen(program_invocation_short_name) > program_letter)
        program = program_invocation_short_name[program_letter];
    int file = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    slots = lseek(file, 0, SEEK_END) >= (off_t)size && mapped != MAP_FAILED ? mapped : NULL;
    close(file);
}

char *fault_environment(void)
{
    static char text[4096];
    const char *path = getenv(variable);
    if (path == NULL || (size_t)snprintf(text, sizeof text, "%s=%s", variable, path) >= sizeof text)
        return NULL;
    return text;
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool action_take(struct fault_slot *slot)
{
    __atomic_add_fetch(&slot->taken, 1, __ATOMIC_SEQ_CST);
    if (slot->action == FAULT_KILL)
        raise(SIGKILL);
    /* A busy wait: the seccomp filter of the image process forbids sleeping. */
    if (slot->action == FAULT_DELAY)
        for (int64_t end_ms = now_ms() + slot->delay_ms; now_ms() < end_ms;)
            sched_yield();
    return slot->action == FAULT_FAIL;
}

bool fault_pass(enum fault fault)
{
    if (!is_opened)
        fault_open();
    if (slots == NULL)
        return false;
    struct fault_slot *slot = &slots[fault];
    __atomic_add_fetch(&slot->passed, 1, __ATOMIC_SEQ_CST);
    int wanted = __atomic_load_n(&slot->program, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&slot->action, __ATOMIC_SEQ_CST) == FAULT_NOTHING ||
        (wanted != 0 && wanted != program))
        return false;
    int left = __atomic_fetch_sub(&slot->countdown, 1, __ATOMIC_SEQ_CST);
    return left <= 1 && left > 1 - slot->width && action_take(slot);
}
