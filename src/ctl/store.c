/* imgwardctl store: whether the files that the database names are there, and what nobody names any more. */
#include <inttypes.h>
#include <stdio.h>

#include "base/render.h"
#include "ctl/ctl_store.h"
#include "domain/upkeep.h"
#include "service/storage.h"
#include "store/inspect.h"

enum { unfinished_age_s = 24 * 60 * 60 };

struct verification {
    struct ctl *ctl;
    struct arena *arena; /* of one file */
    struct storage *storage;
    bool is_json;
    struct render *render;
    int64_t checked;
    int64_t bad;
};

static void fault_tell(struct verification *work, const char *key, int64_t order_id, const char *what)
{
    work->bad++;
    if (!work->is_json) {
        printf("%s of order %" PRId64 ": %s\n", key, order_id, what);
        return;
    }
    render_object_begin(work->render, NULL);
    render_string(work->render, "storeKey", key);
    render_id(work->render, "orderId", order_id);
    render_string(work->render, "fault", what);
    render_object_end(work->render);
}

static bool file_verify(void *user, const char *store_key, int64_t size_bytes, int64_t order_id)
{
    struct verification *work = user;
    struct context context;
    struct storage_key key;
    struct storage_facts facts;
    context_init(&context, work->arena, NULL);
    work->checked++;
    if (!storage_key_read(store_key, &key))
        fault_tell(work, store_key, order_id, "is no key of the store");
    else if (storage_stat(work->storage, &context, &key, &facts) != IW_OK)
        fault_tell(work, store_key, order_id, "missing");
    else if (size_bytes >= 0 && facts.size_bytes != size_bytes)
        fault_tell(work, store_key, order_id, "has another size than the database says");
    arena_reset(work->arena);
    return true;
}

static enum ctl_exit verify_run(struct ctl *ctl)
{
    struct config config;
    struct text text;
    struct render render;
    struct verification work = {.ctl = ctl, .is_json = ctl_option(ctl, "--json") != NULL, .render = &render};
    struct db *db = ctl_db(ctl, &config);
    if (db == NULL)
        return CTL_FAILED;
    text_init(&text, ctl->context->arena);
    render_init(&render, &text);
    render_array_begin(&render, NULL);
    work.arena = arena_new(0);
    enum iw_error error = storage_open(ctl->context, config.store_path, &work.storage);
    if (error == IW_OK)
        error = inspect_files(ctl->context, db, file_verify, &work);
    storage_close(work.storage);
    db_free(db);
    arena_free(work.arena);
    if (error != IW_OK)
        return ctl_failed(ctl);
    render_array_end(&render);
    if (work.is_json)
        puts(text.data);
    else
        printf("store: %" PRId64 " files that the database names, %" PRId64 " not as it says\n", work.checked,
               work.bad);
    return work.bad == 0 ? CTL_DONE : CTL_NEGATIVE;
}

static enum ctl_exit reclaim_run(struct ctl *ctl)
{
    struct config config;
    struct storage *storage = NULL;
    unsigned orders = 0, unfinished = 0;
    struct db *db = ctl_db(ctl, &config);
    if (db == NULL)
        return CTL_FAILED;
    const struct domain domain = {.context = ctl->context, .config = &config, .db = db};
    enum iw_error error = storage_open(ctl->context, config.store_path, &storage);
    if (error == IW_OK)
        error = upkeep_reclaim(&domain, storage, &orders);
    if (error == IW_OK)
        error = storage_sweep(storage, ctl->context, unfinished_age_s, &unfinished);
    storage_close(storage);
    db_free(db);
    if (error != IW_OK)
        return ctl_failed(ctl);
    printf("store: inputs of %u ended orders deleted, %u unfinished writes removed\n", orders, unfinished);
    return CTL_DONE;
}

const struct ctl_command ctl_commands_store[] = {
    {.words = {"store", "verify"},
     .arguments = "",
     .options = {{"--json", NULL, "the faults, as a JSON array"}},
     .help = "Looks whether every file that the database names is in the store, in its size; exit code 1 "
             "when not.",
     .run = verify_run},
    {.words = {"store", "reclaim"},
     .arguments = "",
     .help = "Deletes inputs of ended orders and unfinished writes, as a worker does once an hour.",
     .run = reclaim_run},
    {.words = {NULL}},
};
