/* Orders: detail, list, download, fresh upload URLs (contract 6), deletion. */
#include <string.h>

#include "api/page.h"
#include "api/view.h"
#include "api/stream.h"
#include "api/tables.h"
#include "base/text.h"
#include "model/account.h"
#include "domain/orders/order_confirm.h"
#include "domain/orders/order_download.h"
#include "domain/orders/order_search.h"
#include "domain/orders/order_query.h"
#include "domain/orders/order_request.h"
#include "domain/files/retention.h"
#include "http/response.h"

/* The id in the path.  ORDER_NOT_FOUND if it is not a number. */
static enum iw_error path_id(struct request *request, int64_t *id)
{
    if (text_integer(request_capture(request, "orderId"), 1, INT64_MAX, id))
        return IW_OK;
    return context_fail(request->context, IW_ORDER_NOT_FOUND, NULL);
}

/* The texts of an order, in the order of its files. */
struct texts {
    struct order_text *items;
    size_t count;
    size_t next; /* the first text that is not rendered with a file yet */
};

static void files_render(struct render *render, const struct domain *domain, const struct order_view *view,
                         struct texts *texts)
{
    render_array_begin(render, "files");
    for (unsigned i = 0; i < view->order.file_count; i++) {
        const struct order_file *file = &view->files[i];
        struct order_failure failure = {NULL, NULL};
        order_file_failure(&view->order, file, &failure);
        render_object_begin(render, NULL);
        view_file_id(render, &view->order, file->id);
        render_string(render, "fileName", file->name);
        render_string(render, "status", file_status_name(file->status));
        render_array_begin(render, "watermarks");
        for (; texts->next < texts->count && texts->items[texts->next].file_id == file->id; texts->next++)
            render_string_n(render, NULL, texts->items[texts->next].text, texts->items[texts->next].length);
        render_array_end(render);
        render_string(render, "thumbnailImageUrl",
                      order_thumbnail_url(domain, domain->context->arena, &view->order, file));
        view_size(render, "inputBytes", file->input_bytes);
        view_size(render, "resultBytes", file->result_bytes);
        if (view->order.type == ORDER_ANTI_AI)
            view_protection(render, file->protection_percent);
        view_reason(render, "error", failure.code, failure.sentence);
        view_reason(render, "note", file->note_code, file->note_sentence);
        render_object_end(render);
    }
    render_array_end(render);
}

/* Each text once, in the order of first occurrence. */
static void texts_render(struct render *render, struct arena *arena, const struct texts *texts)
{
    size_t seen_count = 0;
    int64_t *seen = arena_array(arena, texts->count + 1, sizeof *seen);
    render_array_begin(render, "watermarks");
    for (size_t i = 0; i < texts->count; i++) {
        size_t at = 0;
        while (at < seen_count && seen[at] != texts->items[i].id)
            at++;
        if (at < seen_count)
            continue;
        seen[seen_count++] = texts->items[i].id;
        render_string_n(render, NULL, texts->items[i].text, texts->items[i].length);
    }
    render_array_end(render);
}

static void same_render(struct render *render, enum same_picture same)
{
    if (same == SAME_PICTURE_UNKNOWN)
        render_null(render, "isSamePicture");
    else
        render_boolean(render, "isSamePicture", same == SAME_PICTURE_YES);
}

static void finding_render(struct render *render, const struct text_finding *finding)
{
    render_string(render, "watermark", finding->text);
    render_id(render, "orderId", finding->order_id);
    render_string(render, "orderName", finding->order_name);
    render_string(render, "fileName", finding->file_name);
    render_time(render, "createdAt", finding->created_at_ms);
    same_render(render, finding->same);
}

/* The copy that was found. A collage may hold several: then the newest, and the others. */
static void findings_render(struct render *render, const struct text_finding *findings, size_t count)
{
    if (count == 0) {
        render_null(render, "foundIn");
        return;
    }
    render_object_begin(render, "foundIn");
    finding_render(render, &findings[0]);
    render_array_begin(render, "others");
    for (size_t i = 1; i < count; i++) {
        render_object_begin(render, NULL);
        finding_render(render, &findings[i]);
        render_object_end(render);
    }
    render_array_end(render);
    render_object_end(render);
}

static enum iw_error show_detail(struct request *request)
{
    int64_t id;
    struct order_view view;
    struct texts texts = {NULL, 0, 0};
    struct text_finding *findings = NULL;
    size_t finding_count = 0;
    enum iw_error error = path_id(request, &id);
    if (error == IW_OK)
        error = order_find(request->domain, request->account->id, id, &view);
    if (error == IW_OK)
        error = order_texts(request->domain, &view.order, &texts.items, &texts.count);
    if (error == IW_OK)
        error = order_findings(request->domain, &view.order, &findings, &finding_count);
    if (error != IW_OK)
        return error;
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    view_order(render, request->domain, request->arena, &view.order);
    render_string(render, "errors", order_errors(request->arena, &view));
    texts_render(render, request->arena, &texts);
    render_string(render, "watermarkText", view.order.watermark_text);
    if (view.order.type == ORDER_WATERMARK_EXTRACT) {
        if (view.order.certainty > 0)
            render_integer(render, "certainty", view.order.certainty);
        else
            render_null(render, "certainty");
        same_render(render, view.order.same_picture);
        findings_render(render, findings, finding_count);
    }
    files_render(render, request->domain, &view, &texts);
    render_object_end(render);
    return IW_OK;
}

static enum iw_error refresh_urls(struct request *request)
{
    int64_t id;
    struct order_view view;
    enum iw_error error = path_id(request, &id);
    if (error == IW_OK)
        error = order_refresh(request->domain, request->account->id, id, &view);
    if (error != IW_OK)
        return error;
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    render_id(render, "orderId", id);
    render_array_begin(render, "files");
    for (unsigned i = 0; i < view.order.file_rows; i++) {
        if (view.files[i].source_url != NULL)
            continue;
        render_object_begin(render, NULL);
        render_id(render, "fileId", view.files[i].id);
        render_string(render, "fileName", view.files[i].name);
        view_upload(render, request->domain, &view.order, &view.files[i]);
        render_boolean(render, "uploaded", !order_file_is_missing(&view.files[i]));
        render_object_end(render);
    }
    render_array_end(render);
    render_object_end(render);
    return IW_OK;
}

static void results_render(struct render *render, const struct request *request,
                           const struct order_download *download)
{
    render_array_begin(render, "files");
    for (size_t i = 0; i < download->result_count; i++) {
        const struct order_result *result = &download->results[i];
        render_object_begin(render, NULL);
        view_file_id(render, &download->order, result->file_id);
        render_string(render, "fileName", result->name);
        render_string(render, "contentType", format_media_type(result->format));
        if (result->watermark != NULL)
            render_string(render, "watermark", result->watermark);
        render_string(render, "downloadUrl",
                      order_result_url(request->domain, request->arena, download->order.id, result));
        render_object_end(render);
    }
    render_array_end(render);
}

static enum iw_error show_download(struct request *request)
{
    int64_t id;
    struct order_download found;
    enum iw_error error = path_id(request, &id);
    if (error == IW_OK)
        error = order_download(request->domain, request->account->id, id, &found);
    if (error != IW_OK)
        return error;
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    render_string(render, "downloadUrl", found.url);
    render_integer(render, "expiresIn", request->config->store_download_url_s);
    render_string(render, "fileName", found.name);
    render_string(render, "contentType", format_media_type(found.format));
    results_render(render, request, &found);
    render_object_end(render);
    return IW_OK;
}

/* The query of a list. */
struct list_query {
    struct order_filter filter;
    struct page page;
};

/* Reads a word of a set.  "all" leaves *value as it is, and so does an invalid word, which adds a detail. */
static void word_read(struct request *request, const char *name, const char *(*word_of)(unsigned),
                      unsigned count, int *value)
{
    const char *text = request_query(request, name);
    if (text == NULL || strcmp(text, "all") == 0)
        return;
    for (unsigned i = 0; i < count; i++)
        if (strcmp(text, word_of(i)) == 0) {
            *value = (int)i;
            return;
        }
    struct text words;
    text_init(&words, request->arena);
    for (unsigned i = 0; i < count; i++)
        text_printf(&words, "%s, ", word_of(i));
    context_detail(request->context, name, "is \"%.*s\"; it must be one of %sall", text_head(text, 40), text,
                   words.data);
}

static const char *status_word(unsigned value)
{
    return order_status_name((enum order_status)value);
}

static const char *type_word(unsigned value)
{
    return order_type_name((enum order_type)value);
}

static const char *channel_word(unsigned value)
{
    return order_channel_name((enum order_channel)value);
}

/* The line of a parameter metadata[KEY]=VALUE; NULL and a detail if no order can have it. */
static const char *metadata_line(struct request *request, const struct request_pair *pair)
{
    const char *begin = pair->name + strlen("metadata"), *end = strrchr(begin, ']');
    if (begin[0] != '[' || end == NULL || end[1] != '\0') {
        context_detail(request->context, pair->name, "must be written as metadata[KEY]=VALUE");
        return NULL;
    }
    const char *key = arena_text_n(request->arena, begin + 1, (size_t)(end - begin - 1));
    size_t key_length = text_code_points(key, strlen(key)),
           value_length = text_code_points(pair->value, strlen(pair->value));
    if (key_length < 1 || key_length > order_metadata_key_code_points_max)
        context_detail(request->context, pair->name, "has a key of %zu characters; 1 to %d are allowed",
                       key_length, order_metadata_key_code_points_max);
    else if (value_length > order_metadata_value_code_points_max)
        context_detail(request->context, pair->name, "has %zu characters; at most %d are allowed",
                       value_length, order_metadata_value_code_points_max);
    else if (text_has_control(key, strlen(key)) || text_has_control(pair->value, strlen(pair->value)))
        context_detail(request->context, pair->name, "has control characters, which no metadata has");
    else
        return arena_printf(request->arena, "%s\t%s\n", key, pair->value);
    return NULL;
}

static void metadata_read(struct request *request, struct order_filter *filter)
{
    unsigned count = 0;
    const char **lines = arena_array(request->arena, order_metadata_pairs_max, sizeof *lines);
    for (const struct request_pair *pair = request->queries; pair != NULL; pair = pair->next) {
        if (strcmp(pair->name, "metadata") != 0 && strncmp(pair->name, "metadata[", 9) != 0)
            continue;
        const char *line = ++count <= order_metadata_pairs_max ? metadata_line(request, pair) : NULL;
        if (line != NULL)
            lines[filter->metadata_count++] = line;
    }
    if (count > order_metadata_pairs_max)
        context_detail(request->context, "metadata", "has %u keys; at most %d are allowed", count,
                       order_metadata_pairs_max);
    filter->metadata = lines;
}

static enum iw_error list_query_read(struct request *request, struct list_query *query)
{
    *query = (struct list_query){
        .filter = {.account_id = request->account->id, .type = -1, .status = -1, .channel = -1}};
    page_read(request, &query->page);
    word_read(request, "status", status_word, ORDER_STATUS_COUNT, &query->filter.status);
    word_read(request, "type", type_word, ORDER_TYPE_COUNT, &query->filter.type);
    word_read(request, "channel", channel_word, ORDER_CHANNEL_COUNT, &query->filter.channel);
    query->filter.keyword = query->page.keyword;
    metadata_read(request, &query->filter);
    return context_validated(request->context);
}

static void item_render(struct render *render, const struct domain *domain, struct arena *scratch,
                        const struct order *order)
{
    render_object_begin(render, NULL);
    view_order(render, domain, scratch, order);
    render_object_end(render);
}

static enum iw_error list_page(struct request *request, const struct list_query *query)
{
    struct order_page page;
    enum iw_error error = order_search_page(request->domain, &query->filter, query->page.limit,
                                            page_offset(&query->page), &page);
    if (error != IW_OK)
        return error;
    struct render *render = page_begin(request, "orders");
    for (size_t i = 0; i < page.count; i++)
        item_render(render, request->domain, request->arena, &page.orders[i]);
    page_end(render, &query->page, page.total);
    return IW_OK;
}

static bool stream_take(void *user, const struct order *order)
{
    struct stream *stream = user;
    bool is_shown;
    if (!stream_item(stream, &is_shown))
        return false;
    if (is_shown)
        item_render(stream->render, stream->request->domain, stream->scratch, order);
    return stream_pass(stream);
}

static enum iw_error show_list(struct request *request)
{
    struct list_query query;
    enum iw_error error = list_query_read(request, &query);
    bool is_search = query.filter.metadata_count > 0 && query.page.limit != page_limit_all;
    if (error == IW_OK)
        error = is_search ? page_search_take(request) : page_place_take(request, &query.page);
    if (error != IW_OK)
        return error;
    if (query.page.limit != page_limit_all)
        return list_page(request, &query);
    struct stream stream;
    stream_init(&stream, request, &query.page, "orders");
    return stream_end(&stream, order_search_stream(request->domain, &query.filter, stream_take, &stream));
}

static enum iw_error delete_order(struct request *request)
{
    int64_t id;
    enum order_status status;
    enum iw_error error = path_id(request, &id);
    if (error == IW_OK)
        error = retention_delete(request->domain, request->account->id, id, &status);
    if (error != IW_OK)
        return error;
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    render_id(render, "orderId", id);
    render_string(render, "status", order_status_name(status));
    render_boolean(render, "deleted", true);
    render_object_end(render);
    return IW_OK;
}

const struct route api_orders[] = {
    {METHOD_GET, "/api/v2/orders", show_list, ROUTE_SCOPE(KEY_SCOPE_READ)},
    {METHOD_GET, "/api/v2/orders/{orderId}", show_detail, ROUTE_SCOPE(KEY_SCOPE_READ) | ROUTE_SCOPE_OF_ORDER},
    {METHOD_DELETE, "/api/v2/orders/{orderId}", delete_order, ROUTE_SCOPE_OF_ORDER},
    {METHOD_GET, "/api/v2/orders/{orderId}/download", show_download,
     ROUTE_SCOPE(KEY_SCOPE_READ) | ROUTE_SCOPE_OF_ORDER},
    {METHOD_POST, "/api/v2/orders/{orderId}/refresh-urls", refresh_urls, ROUTE_SCOPE_OF_ORDER},
    {.pattern = NULL},
};
