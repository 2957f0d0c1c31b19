/* The values that follow the machine; doc/operating.md ("What a host needs") has the measurements. */
#include "base/config.h"

static const int64_t mib = 1 << 20;

/* MariaDB and Redis with Debian's settings, nginx, the pools, two sign-ins, the system. */
enum { others_mib = 448 };

/*
 * Memory of the worker's control group without its image processes: the worker, transfers, files in memory.
 */
enum { worker_mib = 256 };

/* The image processes' memory. The worker's unit may use 80 % of the machine (packaging/systemd). */
static int64_t pictures_bytes(const struct machine *machine)
{
    int64_t unit_bytes = machine->memory_bytes / 100 * 80;
    if (machine->worker_bytes < unit_bytes)
        unit_bytes = machine->worker_bytes;
    int64_t beside = machine->memory_bytes - others_mib * mib, inside = unit_bytes - worker_mib * mib;
    return beside < inside ? beside : inside;
}

static int64_t between(int64_t least, int64_t value, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/*
 * An image process may use this memory and half as much again for its results (image/main.c). 384 MiB are
 * enough for 24 megapixels of every kind of JPEG, 1 GiB for the contract's 100 megapixels (doc/pictures.md,
 * "Limits").
 */
static void pictures_follow(struct config *config, const struct machine *machine)
{
    enum { process_least_mib = 384, least_mib = 256, most_mib = 1024, step_mib = 16 };
    int64_t room_bytes = pictures_bytes(machine) / 3 * 2;
    int64_t each_bytes = config->image_memory_max_bytes;
    if (each_bytes == 0)
        each_bytes = process_least_mib * mib;
    if (config->worker_processes == 0)
        config->worker_processes = between(1, room_bytes / each_bytes, machine->cores);
    if (config->image_memory_max_bytes == 0)
        config->image_memory_max_bytes =
            between(least_mib, room_bytes / config->worker_processes / (step_mib * mib) * step_mib,
                    most_mib) *
            mib;
}

void config_follow(struct config *config, const struct machine *machine)
{
    enum { processes_a_core = 8, hash_part = 8, hashes_least = 2, hashes_most = 8 };
    /* A process and its connection to MariaDB take 5 MiB. */
    const int64_t process_bytes = 32 * mib;
    if (config->api_processes == 0)
        config->api_processes = between(processes_a_core, machine->memory_bytes / process_bytes,
                                        (int64_t)processes_a_core * machine->cores);
    if (config->console_processes == 0)
        config->console_processes = between(
            hashes_least, machine->memory_bytes / hash_part / config->console_hash_memory_bytes, hashes_most);
    pictures_follow(config, machine);
}
