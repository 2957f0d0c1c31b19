#include "base/context.h"

#include <stdio.h>
#include <string.h>

/*
 * More than the largest valid order needs: 100 files with a name, a URL and 10 texts each, and
 * 100 targets.
 */
enum { details_kept = 2000 };

void context_init(struct context *context, struct arena *arena, const char *request_id)
{
    memset(context, 0, sizeof *context);
    context->arena = arena;
    if (request_id != NULL)
        snprintf(context->request_id, sizeof context->request_id, "%s", request_id);
}

void context_init_part(struct context *context, const struct context *caller)
{
    context_init(context, caller->arena, caller->request_id);
    context->trace = caller->trace;
    context->account_id = caller->account_id;
    context->order_id = caller->order_id;
    context->job_id = caller->job_id;
}

void context_trace_join(struct context *context, const char *trace_id)
{
    if (trace_id != NULL && !context->trace.is_given)
        snprintf(context->trace.id, sizeof context->trace.id, "%s", trace_id);
}

void context_order_end(struct context *context)
{
    context->order_id = 0;
    if (!context->trace.is_given)
        context->trace.id[0] = '\0';
}

void context_clear(struct context *context)
{
    context->error = IW_OK;
    context->sentence = context->cause = context->reason = context->expired_at = NULL;
    context->retry_after_s = 0;
    context->details = context->details_last = NULL;
    context->detail_count = 0;
}

enum iw_error context_fail(struct context *context, enum iw_error error, const char *format, ...)
{
    if (context->error != IW_OK)
        return context->error;
    context->error = error;
    context->sentence = iw_error_sentence(error);
    if (format != NULL) {
        va_list arguments;
        va_start(arguments, format);
        context->sentence = arena_vprintf(context->arena, format, arguments);
        va_end(arguments);
    }
    return error;
}

void context_cause(struct context *context, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    context->cause = arena_vprintf(context->arena, format, arguments);
    va_end(arguments);
}

void context_detail(struct context *context, const char *field, const char *format, ...)
{
    if (context->detail_count++ >= details_kept)
        return;
    struct context_detail *detail = arena_alloc(context->arena, sizeof *detail);
    va_list arguments;
    va_start(arguments, format);
    detail->field = arena_text(context->arena, field);
    detail->message = arena_vprintf(context->arena, format, arguments);
    va_end(arguments);
    if (context->details_last == NULL)
        context->details = detail;
    else
        context->details_last->next = detail;
    context->details_last = detail;
}

void context_note(struct context *context, const char *code, const char *format, ...)
{
    struct context_note **end = &context->notes;
    for (; *end != NULL; end = &(*end)->next)
        if (strcmp((*end)->code, code) == 0)
            return;
    va_list arguments;
    va_start(arguments, format);
    *end = arena_alloc(context->arena, sizeof **end);
    **end = (struct context_note){.code = code, .sentence = arena_vprintf(context->arena, format, arguments)};
    va_end(arguments);
}

void context_note_lead(struct context *context, const char *code)
{
    for (struct context_note **at = &context->notes; *at != NULL; at = &(*at)->next)
        if (strcmp((*at)->code, code) == 0) {
            struct context_note *note = *at;
            *at = note->next;
            note->next = context->notes;
            context->notes = note;
            return;
        }
}

const char *context_notes_text(const struct context *context)
{
    const char *text = NULL;
    for (const struct context_note *note = context->notes; note != NULL; note = note->next)
        text = text == NULL ? note->sentence : arena_printf(context->arena, "%s %s", text, note->sentence);
    return text;
}

enum iw_error context_validated(struct context *context)
{
    if (context->detail_count == 0)
        return context->error;
    if (context->detail_count == 1)
        return context_fail(context, IW_VALIDATION_FAILED, "%s: %s.", context->details->field,
                            context->details->message);
    return context_fail(context, IW_VALIDATION_FAILED,
                        "%u fields of the request are not valid; details names each of them.",
                        context->detail_count);
}
