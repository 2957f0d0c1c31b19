#include "codec/metadata/keep.h"

#include <stdlib.h>
#include <string.h>

bool keep_starts_with(const struct keep_chunk *chunk, const void *bytes, size_t size)
{
    return chunk->size >= size && memcmp(chunk->data, bytes, size) == 0;
}

struct keep_chunk *keep_find(const struct codec_keep *keep, uint32_t tag, const void *head, size_t size)
{
    for (struct keep_chunk *chunk = keep->first; chunk != NULL; chunk = chunk->next)
        if (chunk->tag == tag && keep_starts_with(chunk, head, size))
            return chunk;
    return NULL;
}

struct codec_keep *keep_new(void)
{
    struct arena *arena = arena_new((size_t)8 * keep_bytes_max);
    struct codec_keep *keep = arena_alloc(arena, sizeof *keep);
    keep->arena = arena;
    return keep;
}

void keep_free(struct codec_keep *keep)
{
    if (keep == NULL)
        return;
    free(keep->jpeg.inks);
    free(keep->jpeg.grid);
    arena_free(keep->arena);
}

void keep_insert(struct codec_keep *keep, struct keep_chunk *behind, uint32_t tag, const void *data,
                 size_t size)
{
    struct keep_chunk *chunk = arena_alloc(keep->arena, sizeof *chunk);
    chunk->tag = tag;
    chunk->size = size;
    chunk->data = (unsigned char *)arena_text_n(keep->arena, data, size);
    chunk->next = behind == NULL ? keep->first : behind->next;
    *(behind == NULL ? &keep->first : &behind->next) = chunk;
    if (keep->last == behind)
        keep->last = chunk;
    keep->chunk_bytes += size;
}

enum iw_error keep_add(struct context *context, struct codec_keep *keep, uint32_t tag, bool is_after_pixels,
                       const void *data, size_t size)
{
    /* Small pieces cost memory too. */
    enum { piece_cost_bytes = 64 };
    if (size > keep_bytes_max - keep->chunk_bytes ||
        keep_bytes_max - keep->chunk_bytes - size < piece_cost_bytes)
        return context_fail(context, IW_IMAGE_TOO_LARGE,
                            "The metadata of the picture takes more than %zu bytes; at most %d are allowed.",
                            keep->chunk_bytes + size, (int)keep_bytes_max);
    keep->chunk_bytes += piece_cost_bytes;
    keep_insert(keep, keep->last, tag, data, size);
    keep->last->is_after_pixels = is_after_pixels;
    return IW_OK;
}

void keep_sweep(struct codec_keep *keep)
{
    keep->last = NULL;
    for (struct keep_chunk **at = &keep->first; *at != NULL;) {
        if ((*at)->tag == 0) {
            *at = (*at)->next;
            continue;
        }
        keep->last = *at;
        at = &(*at)->next;
    }
}
