#include "ctl/batch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "model/sniff.h"
#include "service/files/name.h"

enum { progress_ms = 2000 };

static const size_t arena_bytes = (size_t)1 << 30;

__attribute__((format(printf, 2, 3))) static bool refuse(struct batch *batch, const char *format, ...)
{
    va_list arguments;
    batch->is_refused = true;
    fprintf(stderr, "imgwardctl: ");
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\n");
    return false;
}

static bool is_folder(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static void picture_add(struct batch *batch, const char *in)
{
    if (batch->count == batch->room) {
        size_t room = batch->room * 2 + 64;
        struct batch_pair *pairs = arena_array(batch->outer->arena, room, sizeof *pairs);
        if (batch->count > 0)
            memcpy(pairs, batch->pairs, batch->count * sizeof *pairs);
        batch->pairs = pairs;
        batch->room = room;
    }
    batch->pairs[batch->count++].in = in;
}

static bool is_picture(const char *path)
{
    unsigned char bytes[sniff_bytes];
    struct stat facts;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t size = -1;
    if (descriptor < 0)
        return false;
    if (fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode))
        size = read(descriptor, bytes, sizeof bytes);
    close(descriptor);
    return size > 0 && sniff_format(bytes, (size_t)size) != FORMAT_NONE;
}

static bool folder_add(struct batch *batch, const char *folder)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, alphasort);
    if (count < 0)
        return refuse(batch, "%s: %s.", folder, strerror(errno));
    for (int i = 0; i < count; i++) {
        const char *path = arena_printf(batch->outer->arena, "%s/%s", folder, entries[i]->d_name);
        bool is_hidden = entries[i]->d_name[0] == '.' || is_folder(path);
        free(entries[i]);
        if (is_hidden)
            continue;
        if (is_picture(path))
            picture_add(batch, path);
        else
            batch->skipped++;
    }
    free(entries);
    return true;
}

static int pairs_compare(const void *one, const void *other)
{
    return strcmp(((const struct batch_pair *)one)->key, ((const struct batch_pair *)other)->key);
}

/* A name of the disk may be no UTF-8; then its bytes are compared. */
static const char *key_of(struct arena *arena, const char *name)
{
    return text_is_utf8(name, strlen(name)) ? name_fold(arena, name) : name;
}

/*
 * Names the results in a folder.  No result replaces a picture of the list or another result, also on a file
 * system that folds case or normal forms, such as a USB stick's.
 */
static bool outputs_name(struct batch *batch, const char *folder)
{
    for (size_t i = 0; i < batch->count; i++) {
        struct stat before, after;
        struct batch_pair *pair = &batch->pairs[i];
        pair->out = arena_printf(batch->outer->arena, "%s/%s", folder, name_of(pair->in));
        pair->key = key_of(batch->outer->arena, name_of(pair->in));
        if (lstat(pair->out, &after) == 0 && S_ISLNK(after.st_mode))
            return refuse(batch, "%s: is a symbolic link; remove it or name another folder.", pair->out);
        if (stat(pair->in, &before) == 0 && stat(pair->out, &after) == 0 && before.st_dev == after.st_dev &&
            before.st_ino == after.st_ino)
            return refuse(batch, "%s: the result would replace the picture; name another folder.", pair->in);
    }
    struct batch_pair *sorted = arena_array(batch->outer->arena, batch->count + 1, sizeof *sorted);
    memcpy(sorted, batch->pairs, batch->count * sizeof *sorted);
    qsort(sorted, batch->count, sizeof *sorted, pairs_compare);
    for (size_t i = 1; i < batch->count; i++)
        if (strcmp(sorted[i - 1].key, sorted[i].key) == 0)
            return refuse(
                batch,
                "%s and %s have one name if case is ignored; run the command once for each, with another "
                "folder.",
                sorted[i - 1].in, sorted[i].in);
    return true;
}

static bool outputs_choose(struct batch *batch, const char *last)
{
    if (is_folder(last))
        return outputs_name(batch, last);
    if (!batch->is_one)
        return refuse(batch,
                      "%s: is not a folder; for several pictures the last argument is an existing folder.",
                      last);
    batch->pairs[0].out = last;
    return true;
}

bool batch_begin(struct batch *batch, struct ctl *ctl, bool has_outputs)
{
    *batch = (struct batch){.ctl = ctl, .outer = ctl->context, .told_ms = clock_monotonic_ms()};
    batch->arena = arena_new(arena_bytes);
    const unsigned inputs = ctl->argument_count - (has_outputs ? 1 : 0);
    batch->is_one = inputs == 1 && !is_folder(ctl->arguments[0]);
    for (unsigned i = 0; i < inputs; i++) {
        if (!is_folder(ctl->arguments[i]))
            picture_add(batch, ctl->arguments[i]);
        else if (!folder_add(batch, ctl->arguments[i]))
            return false;
    }
    if (batch->count == 0)
        return refuse(batch, "there is no picture in %s.", ctl->arguments[0]);
    return !has_outputs || outputs_choose(batch, ctl->arguments[inputs]);
}

bool batch_next(struct batch *batch)
{
    if (batch->at == batch->count)
        return false;
    if (batch->count > 1 && clock_monotonic_ms() - batch->told_ms >= progress_ms) {
        batch->told_ms = clock_monotonic_ms();
        fprintf(stderr, "imgwardctl: %zu of %zu pictures\n", batch->at, batch->count);
    }
    batch->in = batch->pairs[batch->at].in;
    batch->out = batch->pairs[batch->at].out;
    batch->at++;
    arena_reset(batch->arena);
    context_init(&batch->context, batch->arena, NULL);
    batch->ctl->context = &batch->context;
    batch->ctl->about = batch->is_one ? NULL : batch->in;
    return true;
}

void batch_done(struct batch *batch, enum iw_error error)
{
    if (error == IW_OK)
        return;
    batch->failed++;
    ctl_failed(batch->ctl);
}

enum ctl_exit batch_end(struct batch *batch)
{
    batch->ctl->context = batch->outer;
    batch->ctl->about = NULL;
    arena_free(batch->arena);
    if (batch->skipped > 0)
        fprintf(stderr, "imgwardctl: %zu files that are not pictures were skipped\n", batch->skipped);
    if (batch->failed > 0 && batch->count > 1)
        fprintf(stderr, "imgwardctl: %zu of %zu pictures failed\n", batch->failed, batch->count);
    return batch->is_refused || batch->failed > 0 ? CTL_FAILED : CTL_DONE;
}
