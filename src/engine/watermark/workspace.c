#include "engine/watermark/workspace.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT_BYTES 64u

/*
 * Blocks are large, so that a call takes its memory at once and the next call
 * of the process finds it where this one left it: fresh pages cost as much as
 * the work on them.  Where overruns are looked for (valgrind: build with
 * ENGINE_PIECES_ALONE), every piece stands alone.
 */
#if defined __SANITIZE_ADDRESS__ || defined ENGINE_PIECES_ALONE
#define BLOCK_LEAST_BYTES 0u
#else
#define BLOCK_LEAST_BYTES ((size_t)16 << 20)
#endif

void workspace_init(struct workspace *workspace)
{
    memset(workspace, 0, sizeof *workspace);
}

/* Goes on to the next block, which is made or made anew where what is there is too small for size. */
static bool block_next(struct workspace *workspace, size_t size)
{
    size_t begin = workspace_mark(workspace);
    unsigned next = workspace->is_begun ? workspace->current + 1 : 0;
    struct workspace_block *block = &workspace->blocks[next];

    if (next == WORKSPACE_BLOCKS)
        return false;
    if (block->size < size) {
        free(block->memory);
        *block = (struct workspace_block){.size = size > BLOCK_LEAST_BYTES ? size : BLOCK_LEAST_BYTES};
        block->memory = aligned_alloc(ALIGNMENT_BYTES, block->size);
        if (block->memory == NULL) {
            block->size = 0;
            return false;
        }
    }
    block->begin = begin;
    block->used = 0;
    workspace->current = next;
    workspace->is_begun = true;
    return true;
}

void *workspace_take_unset(struct workspace *workspace, size_t count, size_t bytes)
{
    struct workspace_block *block = &workspace->blocks[workspace->current];
    size_t size;
    void *memory;

    if (workspace->failed || (bytes != 0 && count > SIZE_MAX / 2 / bytes)) {
        workspace->failed = true;
        return NULL;
    }
    size = (count * bytes + ALIGNMENT_BYTES) / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
    if (block->size - block->used < size || !workspace->is_begun) {
        workspace->failed = !block_next(workspace, size);
        if (workspace->failed)
            return NULL;
        block = &workspace->blocks[workspace->current];
    }
    memory = block->memory + block->used;
    block->used += size;
    return memory;
}

void *workspace_take(struct workspace *workspace, size_t count, size_t bytes)
{
    void *memory = workspace_take_unset(workspace, count, bytes);

    if (memory != NULL)
        memset(memory, 0, count * bytes);
    return memory;
}

size_t workspace_mark(const struct workspace *workspace)
{
    const struct workspace_block *block = &workspace->blocks[workspace->current];

    return block->begin + block->used;
}

void workspace_rewind(struct workspace *workspace, size_t mark)
{
    while (workspace->current > 0 && workspace->blocks[workspace->current].begin >= mark)
        workspace->current--;
    workspace->blocks[workspace->current].used = mark - workspace->blocks[workspace->current].begin;
}

void workspace_fini(struct workspace *workspace)
{
    unsigned i;

    for (i = 0; i < WORKSPACE_BLOCKS; i++)
        free(workspace->blocks[i].memory);
    workspace_init(workspace);
}
