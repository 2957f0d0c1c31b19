/*
 * The memory of one call of the watermark engine: cut piece by piece from a few
 * large blocks, given back at once.  A piece that cannot be had is NULL and sets
 * the failed flag, so that a run of takings is checked once.
 */
#ifndef ENGINE_WATERMARK_WORKSPACE_H
#define ENGINE_WATERMARK_WORKSPACE_H

#include <stdbool.h>
#include <stddef.h>

#define WORKSPACE_BLOCKS 96

struct workspace_block {
    unsigned char *memory;
    size_t size;
    size_t used;
    size_t begin; /* what the blocks before it hold */
};

struct workspace {
    struct workspace_block blocks[WORKSPACE_BLOCKS]; /* from current on they are spare */
    unsigned current;
    bool is_begun; /* there is a block */
    bool failed;
};

void workspace_init(struct workspace *workspace);

/* Zeroed memory aligned for FFTW and SIMD; NULL after any failure.  The workspace's. */
void *workspace_take(struct workspace *workspace, size_t count, size_t bytes);

/* The same with anything in it, for what is written before it is read. */
void *workspace_take_unset(struct workspace *workspace, size_t count, size_t bytes);

/* A mark to which workspace_rewind gives back what was taken since. */
size_t workspace_mark(const struct workspace *workspace);
void workspace_rewind(struct workspace *workspace, size_t mark);

/* Gives everything back. */
void workspace_fini(struct workspace *workspace);

#endif
