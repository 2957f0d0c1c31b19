/*
 * The memory of one call of the watermark engine: taken piece by piece, given
 * back at once.  A piece that cannot be had is NULL and sets the failed flag,
 * so that a run of takings is checked once.
 */
#ifndef ENGINE_WORKSPACE_H
#define ENGINE_WORKSPACE_H

#include <stdbool.h>
#include <stddef.h>

#define WORKSPACE_PIECES 64

/* A piece that was given back is kept for the next that fits: the kernel's pages cost as much as the work on
 * them. */
struct workspace_piece {
    void *memory;
    size_t size;
};

struct workspace {
    struct workspace_piece pieces[WORKSPACE_PIECES];
    struct workspace_piece spares[WORKSPACE_PIECES];
    unsigned count;
    unsigned spare_count;
    bool failed;
};

void workspace_init(struct workspace *workspace);

/* Zeroed memory aligned for FFTW and SIMD; NULL after any failure.  The workspace's. */
void *workspace_take(struct workspace *workspace, size_t count, size_t bytes);

/* A mark to which workspace_rewind gives back what was taken since. */
unsigned workspace_mark(const struct workspace *workspace);
void workspace_rewind(struct workspace *workspace, unsigned mark);

/* Gives everything back. */
void workspace_fini(struct workspace *workspace);

#endif
