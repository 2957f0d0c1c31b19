#include "api/stream.h"

#include "http/response.h"

enum { piece_bytes = 16384 };

void stream_init(struct stream *stream, struct request *request, const struct page *page, const char *name)
{
    *stream = (struct stream){.request = request, .page = page, .name = name, .scratch = arena_new(0)};
}

static bool stream_begin(struct stream *stream)
{
    stream->error = response_stream_begin(stream->request);
    stream->render = page_begin(stream->request, stream->name);
    return stream->error == IW_OK;
}

bool stream_item(struct stream *stream, bool *is_shown)
{
    if (stream->render == NULL && !stream_begin(stream))
        return false;
    stream->count++;
    *is_shown = stream->page->number == 1;
    return true;
}

bool stream_pass(struct stream *stream)
{
    arena_reset(stream->scratch);
    return stream->request->response.body.length < piece_bytes || response_stream_flush(stream->request);
}

enum iw_error stream_end(struct stream *stream, enum iw_error error)
{
    arena_free(stream->scratch);
    if (error == IW_OK)
        error = stream->error;
    if (error == IW_OK && stream->render == NULL && !stream_begin(stream))
        error = stream->error;
    if (error != IW_OK)
        return error;
    page_end(stream->render, stream->page, stream->count);
    return IW_OK;
}
