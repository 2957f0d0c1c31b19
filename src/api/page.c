#include "api/page.h"

#include <string.h>

#include "base/message.h"
#include "base/text.h"
#include "http/in_flight.h"
#include "http/response.h"

enum { limit_default = 10, limit_max = 100, keyword_code_points_max = 255 };

/* A page after the end is empty, not an error.  Larger numbers would overflow the offset. */
static const int64_t number_max = INT64_MAX / limit_max;

static void number_read(struct request *request, const char *name, int64_t most, const char *or_else,
                        int64_t *number)
{
    const char *text = request_query(request, name);
    if (text != NULL && !text_integer(text, 1, most, number))
        context_detail(request->context, name, "is \"%.*s\"; it must be an integer from 1 to %lld%s",
                       text_head(text, 40), text, (long long)most, or_else);
}

void page_read(struct request *request, struct page *page)
{
    *page = (struct page){.number = 1, .limit = limit_default};
    request_query_read(request);
    number_read(request, "page", number_max, "", &page->number);
    const char *limit = request_query(request, "limit");
    if (limit != NULL && strcmp(limit, "-1") == 0)
        page->limit = page_limit_all;
    else
        number_read(request, "limit", limit_max, ", or -1 for all", &page->limit);
    const char *keyword = request_query(request, "keyword");
    size_t length = keyword != NULL ? text_code_points(keyword, strlen(keyword)) : 0;
    if (length > keyword_code_points_max)
        context_detail(request->context, "keyword", message_too_long, length,
                       (size_t)keyword_code_points_max);
    page->keyword = keyword != NULL && keyword[0] != '\0' ? keyword : NULL;
}

static enum iw_error place_take(struct request *request, enum in_flight_kind kind)
{
    if (in_flight_mark(request->in_flight, request->in_flight_slot, kind))
        return IW_OK;
    request->context->reason = "in_flight";
    request->context->retry_after_s = in_flight_retry_s;
    return context_fail(request->context, IW_RATE_LIMIT_EXCEEDED,
                        "An account may run one %s at a time; repeat this one when the other has ended.",
                        kind == IN_FLIGHT_WHOLE_LIST ? "list with limit=-1" : "search");
}

enum iw_error page_place_take(struct request *request, const struct page *page)
{
    bool is_whole = page->limit == page_limit_all;
    enum in_flight_kind kind = is_whole ? IN_FLIGHT_WHOLE_LIST : IN_FLIGHT_SEARCH;
    return is_whole || page->keyword != NULL ? place_take(request, kind) : IW_OK;
}

enum iw_error page_search_take(struct request *request)
{
    return place_take(request, IN_FLIGHT_SEARCH);
}

int64_t page_offset(const struct page *page)
{
    if (page->limit == page_limit_all)
        return page->number == 1 ? 0 : INT64_MAX;
    return (page->number - 1) * page->limit;
}

struct render *page_begin(struct request *request, const char *name)
{
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    render_array_begin(render, name);
    return render;
}

static void info_render(struct render *render, const struct page *page, int64_t total)
{
    bool is_all = page->limit == page_limit_all;
    render_array_end(render);
    render_object_begin(render, "pageInfo");
    render_integer(render, "totalItems", total);
    render_integer(render, "totalPages", is_all ? total > 0 : (total + page->limit - 1) / page->limit);
    render_integer(render, "currentPage", page->number);
    render_integer(render, "itemsPerPage", is_all ? total : page->limit);
}

void page_end(struct render *render, const struct page *page, int64_t total)
{
    info_render(render, page, total);
    render_object_end(render);
    render_object_end(render);
}

void page_window_end(struct render *render, const struct page *page, int64_t total, int64_t older_id)
{
    info_render(render, page, total);
    if (older_id > 0)
        render_id(render, "olderBefore", older_id);
    else
        render_null(render, "olderBefore");
    render_object_end(render);
    render_object_end(render);
}
