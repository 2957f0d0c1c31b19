#include "engine/workspace.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT_BYTES 64u

void workspace_init(struct workspace *workspace)
{
    memset(workspace, 0, sizeof *workspace);
}

void *workspace_take(struct workspace *workspace, size_t count, size_t bytes)
{
    void *piece;
    size_t size;

    if (workspace->failed || workspace->count == WORKSPACE_PIECES ||
        (bytes != 0 && count > SIZE_MAX / 2 / bytes)) {
        workspace->failed = true;
        return NULL;
    }
    size = (count * bytes + ALIGNMENT_BYTES) / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
    piece = aligned_alloc(ALIGNMENT_BYTES, size);
    if (piece == NULL) {
        workspace->failed = true;
        return NULL;
    }
    memset(piece, 0, size);
    workspace->pieces[workspace->count++] = piece;
    return piece;
}

unsigned workspace_mark(const struct workspace *workspace)
{
    return workspace->count;
}

void workspace_rewind(struct workspace *workspace, unsigned mark)
{
    while (workspace->count > mark)
        free(workspace->pieces[--workspace->count]);
}

void workspace_fini(struct workspace *workspace)
{
    workspace_rewind(workspace, 0);
}
