/*
 * Memory of a call of the watermark engine: pieces of a few large blocks, released together. A failed
 * allocation returns NULL and sets the failed flag, so a series of allocations needs one check.
 */
#ifndef ENGINE_WATERMARK_WORKSPACE_H
#define ENGINE_WATERMARK_WORKSPACE_H

#include <stdbool.h>
#include <stddef.h>

enum { workspace_blocks = 96 };

struct workspace_block {
    unsigned char *memory;
    size_t size;
    size_t used;
    size_t begin; /* bytes in the blocks before it */
};

struct workspace {
    struct workspace_block blocks[workspace_blocks]; /* blocks after current are spare */
    unsigned current;
    bool is_begun; /* at least one block exists */
    bool failed;
};

void workspace_init(struct workspace *workspace);

/*
 * Returns zeroed memory, aligned for FFTW and SIMD, or NULL after any failure. The memory belongs to the
 * workspace.
 */
void *workspace_take(struct workspace *workspace, size_t count, size_t bytes);

/* Does the same without initialising the memory. */
void *workspace_take_unset(struct workspace *workspace, size_t count, size_t bytes);

/* workspace_rewind releases all pieces that were taken after the mark. */
size_t workspace_mark(const struct workspace *workspace);
void workspace_rewind(struct workspace *workspace, size_t mark);

/* Releases all memory. */
void workspace_fini(struct workspace *workspace);

#endif
