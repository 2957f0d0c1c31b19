#include "domain/orders/intake.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/message.h"
#include "db/files.h"
#include "db/quotas.h"
#include "service/files/header.h"

/* Memory, where the header is in the first bytes; the image process decides about the others. */
static void header_judge(struct domain *domain, const struct storage_object *object, enum order_type type,
                         struct intake_file *file)
{
    struct context context;
    struct header header = {.form.format = file->format};
    context_init_part(&context, domain->context);
    if (header_add(&header, object->first, object->first_count))
        file->refusal = header_check(&context, &header, type, domain->config->image_memory_max_bytes);
    file->sentence = context.sentence;
}

/* Size and first bytes, with the sentences of uploads that the service receives itself. */
static void object_judge(struct domain *domain, const struct storage_object *object, enum order_type type,
                         struct intake_file *file)
{
    struct arena *arena = domain->context->arena;
    int64_t most = domain->config->store_upload_max_bytes;
    file->format = sniff_format(object->first, object->first_count);
    if (object->size_bytes > most) {
        file->refusal = IW_IMAGE_TOO_LARGE;
        file->sentence =
            arena_printf(arena, message_file_bytes, (long long)object->size_bytes, (long long)most);
    } else if (!format_is_in(file->format, formats_taken(domain->config, type))) {
        file->refusal = IW_IMAGE_FORMAT_UNSUPPORTED;
        file->sentence = sniff_advice(arena, object->first, object->first_count);
    } else
        header_judge(domain, object, type, file);
}

/*
 * Copies the accepted objects. If an object changed since the look, it counts as missing: the next look
 * finds it.
 */
static enum iw_error objects_copy(struct domain *domain, struct intake *intake)
{
    struct arena *arena = domain->context->arena;
    struct storage_object *taken = arena_array(arena, intake->count + 1, sizeof *taken);
    struct storage_key *to = arena_array(arena, intake->count + 1, sizeof *to);
    size_t count = 0;
    for (size_t i = 0; i < intake->count; i++) {
        intake->copies[i] = intake->objects[i].key;
        intake->copies[i].version = storage_version_new();
        if (intake->files[i].refusal != IW_OK)
            continue;
        taken[count] = intake->objects[i];
        to[count++] = intake->copies[i];
    }
    enum iw_error error = storage_copy(domain->storage, domain->context, taken, to, count);
    count = 0;
    for (size_t i = 0; error == IW_OK && i < intake->count; i++)
        if (intake->files[i].refusal == IW_OK)
            intake->objects[i] = taken[count++];
    return error;
}

enum iw_error intake_collect(struct domain *domain, const struct order_view *view, struct intake *intake)
{
    struct arena *arena = domain->context->arena;
    unsigned rows = view->order.file_rows;
    *intake = (struct intake){.files = arena_array(arena, rows + 1, sizeof *intake->files),
                              .objects = arena_array(arena, rows + 1, sizeof *intake->objects),
                              .copies = arena_array(arena, rows + 1, sizeof *intake->copies)};
    struct storage_object *found = arena_array(arena, rows + 1, sizeof *found);
    for (unsigned i = 0; i < rows; i++)
        found[i].key =
            (struct storage_key){.kind = view->files[i].is_original ? FILEKEY_ORIGINAL : FILEKEY_UPLOAD,
                                 .order_id = view->order.id,
                                 .number = view->files[i].position};
    enum iw_error error = storage_peek(domain->storage, domain->context, found, rows);
    for (unsigned i = 0; error == IW_OK && i < rows; i++) {
        intake->is_missing =
            intake->is_missing || (!found[i].is_there && order_file_is_missing(&view->files[i]));
        if (!found[i].is_there || view->files[i].source_url != NULL)
            continue;
        struct intake_file *file = &intake->files[intake->count];
        *file = (struct intake_file){.index = i, .file_id = view->files[i].id};
        object_judge(domain, &found[i], view->order.type, file);
        intake->objects[intake->count++] = found[i];
    }
    return error == IW_OK && !intake->is_missing ? objects_copy(domain, intake) : error;
}

static enum iw_error file_write(const struct db *db, int64_t account_id, const struct intake *intake,
                                size_t i)
{
    const struct intake_file *file = &intake->files[i];
    if (file->refusal != IW_OK)
        return files_refuse(db, file->file_id, clock_now_ms(), file->refusal, file->sentence);
    const struct upload_facts facts = {.store_key = storage_key_text(db->context->arena, &intake->copies[i]),
                                       .etag = intake->objects[i].etag,
                                       .format = file->format,
                                       .size_bytes = intake->objects[i].size_bytes};
    enum iw_error error = files_upload_write(db, file->file_id, clock_now_ms(), &facts);
    return error == IW_OK ? quotas_stored(db, account_id, facts.size_bytes) : error;
}

enum iw_error intake_write(const struct domain *domain, int64_t account_id, const struct intake *intake,
                           struct order_view *view)
{
    enum iw_error error = IW_OK;
    for (size_t i = 0; error == IW_OK && i < intake->count; i++) {
        if (!intake->objects[i].is_there)
            continue;
        if (!intake->is_missing)
            error = file_write(&domain->db, account_id, intake, i);
        view->files[intake->files[i].index].status = FILE_UPLOADED;
    }
    return error;
}

void intake_settle(struct domain *domain, const struct intake *intake, bool is_written)
{
    struct context quiet;
    struct storage_key *keys = arena_array(domain->context->arena, intake->count + 1, sizeof *keys);
    size_t count = 0;
    for (size_t i = 0; i < intake->count; i++) {
        bool is_refused = intake->files[i].refusal != IW_OK;
        if (is_refused == is_written)
            keys[count++] = is_refused ? intake->objects[i].key : intake->copies[i];
    }
    context_init_part(&quiet, domain->context);
    /* After a failure the objects are deleted with the inputs of the order, or by reclaim_files. */
    if (storage_delete_list(domain->storage, &quiet, keys, count) != IW_OK)
        log_failure(&quiet, "upload_leftover");
}

/* ---- Orders that start by themselves ---- */

/* The files of an order that have an object or a row with bytes. */
struct presence {
    const struct order_view *view;
    bool *is_there;
};

static bool object_note(void *user, const struct storage_key *key, const struct storage_facts *facts)
{
    struct presence *presence = user;
    (void)facts;
    for (unsigned i = 0; key->version == 0 && i < presence->view->order.file_rows; i++) {
        const struct order_file *file = &presence->view->files[i];
        if (file->position == key->number && file->is_original == (key->kind == FILEKEY_ORIGINAL))
            presence->is_there[i] = true;
    }
    return true;
}

enum iw_error intake_is_complete(struct domain *domain, const struct order_view *view, bool *is_complete)
{
    static const enum filekey_kind kinds[] = {FILEKEY_UPLOAD, FILEKEY_ORIGINAL};
    unsigned rows = view->order.file_rows;
    struct presence presence = {
        .view = view, .is_there = arena_array(domain->context->arena, rows + 1, sizeof *presence.is_there)};
    enum iw_error error = IW_OK;
    bool has_original = false;
    memset(presence.is_there, 0, rows * sizeof *presence.is_there);
    for (unsigned i = 0; i < rows; i++)
        has_original = has_original || view->files[i].is_original;
    for (unsigned i = 0; error == IW_OK && i < (has_original ? 2u : 1u); i++)
        error =
            storage_list(domain->storage, domain->context, kinds[i], view->order.id, object_note, &presence);
    *is_complete = error == IW_OK;
    for (unsigned i = 0; i < rows; i++)
        *is_complete = *is_complete && (presence.is_there[i] || !order_file_is_missing(&view->files[i]));
    return error;
}
