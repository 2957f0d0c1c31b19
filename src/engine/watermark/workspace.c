#include "engine/watermark/workspace.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { alignment_bytes = 64 }; /* of a cache line; more than AVX2 needs */

/*
 * Blocks are large, and the next call of the process reuses them, because page faults on new memory cost as
 * much as the work on it. Builds that look for overruns (valgrind: ENGINE_PIECES_ALONE) allocate every piece
 * separately and without padding.
 */
#if defined __SANITIZE_ADDRESS__ || defined ENGINE_PIECES_ALONE
enum { are_pieces_alone = true, block_least_bytes = 0 };
#else
enum { are_pieces_alone = false, block_least_bytes = 16 << 20 };
#endif

void workspace_init(struct workspace *workspace)
{
    memset(workspace, 0, sizeof *workspace);
}

/* Uses the next block; allocates it, or replaces it if it is too small. */
static bool workspace_grow(struct workspace *workspace, size_t size)
{
    size_t begin = workspace_mark(workspace);
    unsigned next = workspace->is_begun ? workspace->current + 1 : 0;
    struct workspace_block *block = &workspace->blocks[next];

    if (next == workspace_blocks)
        return false;
    if (block->size < size || (are_pieces_alone && block->size != size)) {
        free(block->memory);
        *block = (struct workspace_block){.size = size > block_least_bytes ? size : block_least_bytes};
        void *memory = NULL;
        if (posix_memalign(&memory, alignment_bytes, block->size) != 0) {
            block->size = 0;
            return false;
        }
        block->memory = memory;
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

    if (workspace->failed || (bytes != 0 && count > SIZE_MAX / 2 / bytes)) {
        workspace->failed = true;
        return NULL;
    }
    size_t size = are_pieces_alone && count * bytes > 0
                      ? count * bytes
                      : (count * bytes + alignment_bytes) / alignment_bytes * alignment_bytes;
    if (are_pieces_alone || block->size - block->used < size || !workspace->is_begun) {
        workspace->failed = !workspace_grow(workspace, size);
        if (workspace->failed)
            return NULL;
        block = &workspace->blocks[workspace->current];
    }
    void *memory = block->memory + block->used;
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
    for (unsigned i = 0; i < workspace_blocks; i++)
        free(workspace->blocks[i].memory);
    workspace_init(workspace);
}
