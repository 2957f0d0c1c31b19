#include "engine/workspace.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT_BYTES 64u

void workspace_init(struct workspace *workspace)
{
    memset(workspace, 0, sizeof *workspace);
}

/* The smallest spare piece that holds size and wastes at most a quarter; its place, or the count. */
static unsigned spare_find(const struct workspace *workspace, size_t size)
{
    unsigned best = workspace->spare_count;
    unsigned i;

    for (i = 0; i < workspace->spare_count; i++) {
        size_t had = workspace->spares[i].size;

        if (had >= size && had - size <= size / 4 &&
            (best == workspace->spare_count || had < workspace->spares[best].size))
            best = i;
    }
    return best;
}

static struct workspace_piece piece_get(struct workspace *workspace, size_t size)
{
    unsigned spare = spare_find(workspace, size);
    struct workspace_piece piece = {NULL, size};

    if (spare < workspace->spare_count) {
        piece = workspace->spares[spare];
        workspace->spares[spare] = workspace->spares[--workspace->spare_count];
    } else {
        piece.memory = aligned_alloc(ALIGNMENT_BYTES, size);
    }
    return piece;
}

void *workspace_take(struct workspace *workspace, size_t count, size_t bytes)
{
    struct workspace_piece piece;

    if (workspace->failed || workspace->count == WORKSPACE_PIECES ||
        (bytes != 0 && count > SIZE_MAX / 2 / bytes)) {
        workspace->failed = true;
        return NULL;
    }
    piece = piece_get(workspace, (count * bytes + ALIGNMENT_BYTES) / ALIGNMENT_BYTES * ALIGNMENT_BYTES);
    if (piece.memory == NULL) {
        workspace->failed = true;
        return NULL;
    }
    memset(piece.memory, 0, count * bytes);
    workspace->pieces[workspace->count++] = piece;
    return piece.memory;
}

unsigned workspace_mark(const struct workspace *workspace)
{
    return workspace->count;
}

void workspace_rewind(struct workspace *workspace, unsigned mark)
{
    while (workspace->count > mark) {
        struct workspace_piece piece = workspace->pieces[--workspace->count];

        if (workspace->spare_count < WORKSPACE_PIECES)
            workspace->spares[workspace->spare_count++] = piece;
        else
            free(piece.memory);
    }
}

void workspace_fini(struct workspace *workspace)
{
    workspace_rewind(workspace, 0);
    while (workspace->spare_count > 0)
        free(workspace->spares[--workspace->spare_count].memory);
}
