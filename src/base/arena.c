#include "base/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { block_default_bytes = 64 * 1024, alignment_bytes = 16 };
static const size_t limit_default_bytes = (size_t)64 << 20;

struct arena_block {
    struct arena_block *next;
    size_t size_bytes;
    size_t used_bytes;
    size_t padding; /* keeps the payload aligned to 16 bytes */
};

struct arena_ending {
    struct arena_ending *next;
    void (*end)(void *argument);
    void *argument;
};

struct arena {
    struct arena_block *first; /* not freed by arena_reset */
    struct arena_block *current;
    struct arena_ending *endings; /* in reverse order of arena_at_end */
    size_t limit_bytes;
    size_t used_bytes;
};

static void (*arena_end)(void) = abort;

void arena_end_set(void (*end)(void))
{
    arena_end = end;
}

static void arena_die(const char *why)
{
    fprintf(stderr, "{\"level\":\"error\",\"event\":\"out_of_memory\",\"reason\":\"%s\"}\n", why);
    arena_end();
    abort();
}

static struct arena_block *block_new(size_t size_bytes)
{
    struct arena_block *block = malloc(sizeof *block + size_bytes);
    if (block == NULL)
        arena_die("malloc");
    block->next = NULL;
    block->size_bytes = size_bytes;
    block->used_bytes = 0;
    return block;
}

static void blocks_free(struct arena_block *block)
{
    while (block != NULL) {
        struct arena_block *next = block->next;
        free(block);
        block = next;
    }
}

struct arena *arena_new(size_t limit_bytes)
{
    struct arena *arena = malloc(sizeof *arena);
    if (arena == NULL)
        arena_die("malloc");
    arena->first = arena->current = block_new(block_default_bytes);
    arena->endings = NULL;
    arena->limit_bytes = limit_bytes ? limit_bytes : limit_default_bytes;
    arena->used_bytes = 0;
    return arena;
}

void arena_at_end(struct arena *arena, void (*end)(void *argument), void *argument)
{
    struct arena_ending *ending = arena_alloc(arena, sizeof *ending);
    *ending = (struct arena_ending){arena->endings, end, argument};
    arena->endings = ending;
}

static void endings_run(struct arena *arena)
{
    for (const struct arena_ending *ending = arena->endings; ending != NULL; ending = ending->next)
        ending->end(ending->argument);
    arena->endings = NULL;
}

void arena_free(struct arena *arena)
{
    if (arena == NULL)
        return;
    endings_run(arena);
    blocks_free(arena->first);
    free(arena);
}

void arena_reset(struct arena *arena)
{
    endings_run(arena);
    blocks_free(arena->first->next);
    arena->first->next = NULL;
    arena->first->used_bytes = 0;
    arena->current = arena->first;
    arena->used_bytes = 0;
}

/* Free bytes of the current block: arena_vprintf prints into them before it knows the length. */
static size_t room_left(const struct arena *arena)
{
    return arena->current->size_bytes - arena->current->used_bytes;
}

static char *place_next(const struct arena *arena)
{
    return (char *)(arena->current + 1) + arena->current->used_bytes;
}

/* Like arena_alloc, but does not zero the bytes. Returns place_next() if room_left() is large enough. */
static char *arena_take(struct arena *arena, size_t bytes)
{
    if (bytes > arena->limit_bytes - arena->used_bytes)
        arena_die("arena limit");
    size_t rounded = (bytes + alignment_bytes - 1) & ~(size_t)(alignment_bytes - 1);
    if (rounded > room_left(arena)) {
        struct arena_block *block = block_new(rounded > block_default_bytes ? rounded : block_default_bytes);
        arena->current->next = block;
        arena->current = block;
    }
    char *memory = place_next(arena);
    arena->current->used_bytes += rounded;
    arena->used_bytes += bytes;
    return memory;
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
    return memset(arena_take(arena, bytes), 0, bytes);
}

void *arena_array(struct arena *arena, size_t count, size_t bytes)
{
    if (bytes != 0 && count > SIZE_MAX / bytes)
        arena_die("arena array overflow");
    return arena_alloc(arena, count * bytes);
}

/* The array has room for the next power of two. */
void *arena_more(struct arena *arena, void *items, size_t count, size_t bytes)
{
    if ((count & (count - 1)) != 0)
        return items;
    void *more = arena_array(arena, count == 0 ? 1 : 2 * count, bytes);
    if (count > 0)
        memcpy(more, items, count * bytes);
    return more;
}

char *arena_text_n(struct arena *arena, const char *text, size_t length)
{
    char *copy = arena_take(arena, length + 1);
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

char *arena_text(struct arena *arena, const char *text)
{
    return text == NULL ? NULL : arena_text_n(arena, text, strlen(text));
}

char *arena_vprintf(struct arena *arena, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    size_t room = room_left(arena);
    int length = vsnprintf(place_next(arena), room, format, again);
    va_end(again);
    if (length < 0)
        arena_die("vsnprintf");
    char *text = arena_take(arena, (size_t)length + 1);
    if ((size_t)length >= room)
        vsnprintf(text, (size_t)length + 1, format, arguments);
    return text;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = arena_vprintf(arena, format, arguments);
    va_end(arguments);
    return text;
}

size_t arena_used_bytes(const struct arena *arena)
{
    return arena->used_bytes;
}
