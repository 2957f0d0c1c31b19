#include "domain/orders/order_query.h"

#include <string.h>

#include "base/text.h"

enum iw_error order_find(struct domain *domain, int64_t account_id, int64_t id, struct order_view *view)
{
    *view = (struct order_view){.is_replay = false};
    domain->context->order_id = id;
    bool is_found = false;
    enum iw_error error = orders_find(&domain->db, account_id, id, &view->order, &view->files, &is_found);
    if (error == IW_OK && !is_found)
        return context_fail(domain->context, IW_ORDER_NOT_FOUND, NULL);
    if (error == IW_OK)
        context_trace_join(domain->context, view->order.trace_id);
    return error;
}

enum iw_error order_type_find(struct domain *domain, int64_t account_id, int64_t id, enum order_type *type)
{
    const char *trace_id;
    bool is_found = false;
    domain->context->order_id = id;
    enum iw_error error = orders_type(&domain->db, account_id, id, type, &trace_id, &is_found);
    if (error == IW_OK && !is_found)
        return context_fail(domain->context, IW_ORDER_NOT_FOUND, NULL);
    if (error == IW_OK)
        context_trace_join(domain->context, trace_id);
    return error;
}

enum iw_error order_texts(struct domain *domain, const struct order *order, struct order_text **texts,
                          size_t *count)
{
    *count = 0;
    if (order->type != ORDER_WATERMARK_EMBED)
        return IW_OK;
    return texts_list(&domain->db, order->id, texts, count);
}

enum iw_error order_findings(struct domain *domain, const struct order *order, struct text_finding **findings,
                             size_t *count)
{
    *count = 0;
    return order->watermark_text == NULL ? IW_OK : texts_findings(&domain->db, order->id, findings, count);
}

bool order_file_is_missing(const struct order_file *file)
{
    return file->status == FILE_PENDING && file->source_url == NULL;
}

const char *order_file_label(struct arena *arena, const struct order_view *view, unsigned index)
{
    const struct order_file *file = &view->files[index];
    for (unsigned i = 0; i < view->order.file_rows; i++)
        if (i != index && strcmp(view->files[i].name, file->name) == 0)
            return arena_printf(arena, "%s (position %u, fileId %lld)", file->name, file->position,
                                (long long)file->id);
    return file->name;
}

bool order_file_failure(const struct order *order, const struct order_file *file,
                        struct order_failure *failure)
{
    bool is_own = file->error_code != NULL || order->status != ORDER_FAILED;
    failure->code = is_own ? file->error_code : order->error_code;
    if (failure->code == NULL)
        return false;
    failure->sentence = file->error_sentence != NULL ? file->error_sentence
                                                     : iw_error_sentence(iw_error_by_code(failure->code));
    return true;
}

const char *order_errors(struct arena *arena, const struct order_view *view)
{
    struct order_failure failure;
    struct text text;
    text_init(&text, arena);
    for (unsigned i = 0; i < view->order.file_count; i++)
        if (order_file_failure(&view->order, &view->files[i], &failure))
            text_printf(&text, "%s%s: %s: %s", text.length > 0 ? "\n" : "", order_file_label(arena, view, i),
                        failure.code, failure.sentence);
    return text.length > 0 ? text.data : NULL;
}
