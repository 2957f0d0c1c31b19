#include "worker/owner.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/crypto.h"

enum { line_size = 128, digest_size = 17, stat_size = 1024 };

struct owner_name {
    char machine[digest_size];
    char boot[digest_size];
    long pid;
    unsigned long long start_ticks;
};

/* 16 hexadecimal digits of the SHA-256 of a text. */
static void digest_write(const char *text, char digest[digest_size])
{
    uint8_t bytes[sha256_bytes];
    crypto_sha256(text, strlen(text), bytes);
    for (int i = 0; i < (digest_size - 1) / 2; i++)
        snprintf(digest + 2 * i, 3, "%02x", bytes[i]);
}

/* Reads the first line of a file; "" if the file cannot be read. */
static void line_read(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "re");
    line[0] = '\0';
    if (file == NULL)
        return;
    if (fgets(line, (int)size, file) == NULL)
        line[0] = '\0';
    fclose(file);
    line[strcspn(line, "\r\n")] = '\0';
}

/*
 * The machine is systemd's machine id, the host name, and the namespace of process ids.
 * Containers of one machine do not see each other's processes, so they must not judge each other dead.
 */
static void machine_digest_read(char machine[digest_size])
{
    char id[line_size], host[line_size] = "", space[line_size], text[3 * line_size];
    line_read("/etc/machine-id", id, sizeof id);
    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = '\0';
    ssize_t length = readlink("/proc/self/ns/pid", space, sizeof space - 1);
    space[length > 0 ? length : 0] = '\0';
    snprintf(text, sizeof text, "%s/%s/%s", id, host, space);
    digest_write(text, machine);
}

static void boot_read(char boot[digest_size])
{
    char line[line_size];
    line_read("/proc/sys/kernel/random/boot_id", line, sizeof line);
    digest_write(line, boot);
}

/*
 * Reads the tick at which a process started: the 22nd field of the stat file.  Fields are counted after the
 * name, because the name may contain blanks and brackets.  0 if there is no such process, or a zombie.
 */
static unsigned long long start_ticks_read(long pid)
{
    char path[64], stat[stat_size];
    unsigned long long ticks = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    size_t length = fread(stat, 1, sizeof stat - 1, file);
    fclose(file);
    stat[length] = '\0';
    const char *at = strrchr(stat, ')');
    if (at == NULL || at[1] == '\0' || at[2] == 'Z' || at[2] == 'X')
        return 0;
    for (int field = 2; at != NULL && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (at == NULL || sscanf(at, "%llu", &ticks) != 1)
        return 0;
    return ticks;
}

void owner_self(char owner[owner_size])
{
    char machine[digest_size], boot[digest_size];
    machine_digest_read(machine);
    boot_read(boot);
    long pid = (long)getpid();
    snprintf(owner, owner_size, "%s:%s:%ld:%llu", machine, boot, pid, start_ticks_read(pid));
}

void owner_machine(char prefix[owner_size])
{
    char machine[digest_size];
    machine_digest_read(machine);
    snprintf(prefix, owner_size, "%s:", machine);
}

/* True if the owner is surely dead: of this machine, and of an earlier boot or a process that ended. */
static bool owner_is_dead(const char *owner)
{
    struct owner_name named;
    char machine[digest_size], boot[digest_size];
    if (sscanf(owner, "%16[^:]:%16[^:]:%ld:%llu", named.machine, named.boot, &named.pid,
               &named.start_ticks) != 4)
        return false;
    machine_digest_read(machine);
    boot_read(boot);
    if (strcmp(machine, named.machine) != 0)
        return false;
    return strcmp(boot, named.boot) != 0 || start_ticks_read(named.pid) != named.start_ticks;
}

enum iw_error owner_leases_release(const struct db *db, enum leases_table table, const char *machine,
                                   int64_t *released)
{
    struct query_texts owners = {.count = 0};
    int64_t count = 0;
    enum iw_error error = leases_owners(db, table, machine, &owners);
    *released = 0;
    for (unsigned i = 0; error == IW_OK && i < owners.count; i++) {
        if (!owner_is_dead(owners.items[i]))
            continue;
        error = leases_release_owner(db, table, owners.items[i], &count);
        *released += error == IW_OK ? count : 0;
    }
    if (error == IW_OK)
        error = leases_release_silent(db, table, &count);
    *released += error == IW_OK ? count : 0;
    return error;
}
