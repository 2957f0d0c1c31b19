#include "base/fault.h"

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

/* Index of the letter that distinguishes the programs: the first letter after "imgward-". */
enum { program_letter = 8 };

static struct fault_slot *slots; /* NULL if no fault is armed */
static size_t slot_count;
static char keys[FAULT_KEY_COUNT][16384];
static bool is_opened;
static int program;

void fault_open(void)
{
    const char *path = getenv(variable);
    is_opened = true;
    if (strlen(program_invocation_short_name) > program_letter)
        program = program_invocation_short_name[program_letter];
    int file = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    off_t size = lseek(file, 0, SEEK_END);
    slot_count = size > 0 ? (size_t)size / sizeof *slots : 0;
    void *mapped =
        slot_count > 0 ? mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    slots = mapped != MAP_FAILED ? mapped : NULL;
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
    /* A busy wait, because the seccomp filter of the image process forbids sleeping.  Disarming ends it. */
    for (int64_t end_ms = now_ms() + slot->delay_ms;
         __atomic_load_n(&slot->action, __ATOMIC_SEQ_CST) == FAULT_DELAY && now_ms() < end_ms;)
        sched_yield();
    return slot->action == FAULT_FAIL;
}

void fault_key_clear(enum fault_key which)
{
    keys[which][0] = '\0';
}

void fault_key_add(enum fault_key which, const char *text)
{
    size_t length = strlen(keys[which]);
    snprintf(keys[which] + length, sizeof keys[which] - length, "%s ", text);
}

const char *fault_key(enum fault_key which)
{
    return keys[which];
}

static bool slot_pass(struct fault_slot *slot)
{
    int wanted = __atomic_load_n(&slot->program, __ATOMIC_SEQ_CST);
    if (wanted != 0 && wanted != program)
        return false;
    __atomic_add_fetch(&slot->passed, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&slot->action, __ATOMIC_SEQ_CST) == FAULT_NOTHING)
        return false;
    int left = __atomic_fetch_sub(&slot->countdown, 1, __ATOMIC_SEQ_CST);
    return left <= 1 && left > 1 - slot->width && action_take(slot);
}

bool fault_pass(enum fault fault, const char *key)
{
    bool is_failing = false;
    if (!is_opened)
        fault_open();
    for (size_t i = 0; slots != NULL && i < slot_count; i++)
        if (slots[i].point == (int32_t)fault && strstr(key, slots[i].key) != NULL)
            is_failing |= slot_pass(&slots[i]);
    return is_failing;
}
