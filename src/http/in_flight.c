#include "http/in_flight.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

struct in_flight_entry {
    int64_t account_id; /* 0 if there is no request */
    enum in_flight_kind kind;
};

struct in_flight {
    pthread_mutex_t mutex; /* robust, because a process may be killed while it holds the mutex */
    size_t bytes;          /* size of the mapping */
    unsigned slot_count;
    struct in_flight_entry entries[];
};

struct in_flight *in_flight_new(unsigned slot_count)
{
    pthread_mutexattr_t attributes;
    size_t bytes = sizeof(struct in_flight) + slot_count * sizeof(struct in_flight_entry);
    struct in_flight *table = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (table == MAP_FAILED || pthread_mutexattr_init(&attributes) != 0 ||
        pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) != 0 ||
        pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) != 0 ||
        pthread_mutex_init(&table->mutex, &attributes) != 0)
        abort();
    pthread_mutexattr_destroy(&attributes);
    table->bytes = bytes;
    table->slot_count = slot_count;
    return table;
}

void in_flight_free(struct in_flight *table)
{
    if (table != NULL)
        munmap(table, table->bytes);
}

/*
 * Each entry is written in one step that any process can repeat, so a dead owner of the mutex leaves no
 * damage.
 */
static void table_lock(struct in_flight *table)
{
    if (pthread_mutex_lock(&table->mutex) == EOWNERDEAD)
        pthread_mutex_consistent(&table->mutex);
}

static void table_unlock(struct in_flight *table)
{
    pthread_mutex_unlock(&table->mutex);
}

/* Counts the entries of an account in other slots, of one kind or of any kind (-1). */
static unsigned entries_count(const struct in_flight *table, unsigned slot, int64_t account_id, int kind)
{
    unsigned count = 0;
    for (unsigned i = 0; i < table->slot_count; i++)
        count += i != slot && table->entries[i].account_id == account_id &&
                 (kind < 0 || (int)table->entries[i].kind == kind);
    return count;
}

bool in_flight_enter(struct in_flight *table, unsigned slot, int64_t account_id, unsigned most)
{
    if (table == NULL)
        return true;
    table_lock(table);
    bool is_entered = entries_count(table, slot, account_id, -1) < most;
    if (is_entered)
        table->entries[slot] = (struct in_flight_entry){account_id, IN_FLIGHT_PLAIN};
    table_unlock(table);
    return is_entered;
}

bool in_flight_mark(struct in_flight *table, unsigned slot, enum in_flight_kind kind)
{
    if (table == NULL)
        return true;
    table_lock(table);
    bool is_marked = entries_count(table, slot, table->entries[slot].account_id, (int)kind) == 0;
    if (is_marked)
        table->entries[slot].kind = kind;
    table_unlock(table);
    return is_marked;
}

void in_flight_leave(struct in_flight *table, unsigned slot)
{
    if (table == NULL)
        return;
    table_lock(table);
    table->entries[slot] = (struct in_flight_entry){.account_id = 0};
    table_unlock(table);
}
