#include "service/intake.h"

#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"
#include "service/cutoff.h"

struct intake {
    struct storage_writer *writer;
    struct crypto_hash *sha256; /* NULL once ended */
    struct crypto_md5 *md5;     /* NULL once ended, or not asked for */
    unsigned char first[sniff_bytes];
    size_t first_count;
    struct cutoff cutoff; /* its format is that of the first bytes, once they tell it */
    int64_t size_bytes;
    int64_t max_bytes;
};

enum iw_error intake_begin(struct storage *storage, struct context *context, int64_t max_bytes, bool with_md5,
                           struct intake **intake)
{
    struct storage_writer *writer;
    enum iw_error error = storage_put_begin(storage, context, &writer);
    if (error != IW_OK)
        return error;
    struct intake *made = calloc(1, sizeof *made);
    if (made == NULL)
        abort();
    made->writer = writer;
    made->max_bytes = max_bytes;
    made->sha256 = crypto_hash_begin();
    made->md5 = with_md5 ? crypto_md5_begin() : NULL;
    *intake = made;
    return IW_OK;
}

/* By the first bytes, as many as there are. */
static enum iw_error no_picture(const struct intake *intake, struct context *context)
{
    const char *advice = sniff_advice(intake->first, intake->first_count);
    context->reason = "no_picture";
    return context_fail(context, IW_UNSUPPORTED_MEDIA_TYPE, "%s", advice);
}

/* Gathers the first bytes until there are enough of them to tell; what is known of the format looks on. */
static enum iw_error first_look(struct intake *intake, struct context *context, const void *bytes,
                                size_t size)
{
    size_t wanted = sizeof intake->first - intake->first_count;
    size_t count = size < wanted ? size : wanted;
    bool was_known = intake->cutoff.format != SNIFF_NONE;
    memcpy(intake->first + intake->first_count, bytes, count);
    intake->first_count += count;
    if (was_known) {
        cutoff_add(&intake->cutoff, bytes, size);
        return IW_OK;
    }
    intake->cutoff.format = sniff_format(intake->first, intake->first_count);
    cutoff_add(&intake->cutoff, intake->first, intake->first_count);
    cutoff_add(&intake->cutoff, (const unsigned char *)bytes + count, size - count);
    bool is_decided = intake->first_count == sizeof intake->first;
    return intake->cutoff.format == SNIFF_NONE && is_decided ? no_picture(intake, context) : IW_OK;
}

enum iw_error intake_add(struct intake *intake, struct context *context, const void *bytes, size_t size)
{
    if ((int64_t)size > intake->max_bytes - intake->size_bytes)
        return context_fail(context, IW_PAYLOAD_TOO_LARGE,
                            "The file has at least %lld bytes; at most %lld are allowed.",
                            (long long)(intake->size_bytes + (int64_t)size), (long long)intake->max_bytes);
    enum iw_error error = first_look(intake, context, bytes, size);
    if (error != IW_OK)
        return error;
    intake->size_bytes += (int64_t)size;
    crypto_hash_add(intake->sha256, bytes, size);
    if (intake->md5 != NULL)
        crypto_md5_add(intake->md5, bytes, size);
    return storage_put_add(intake->writer, context, bytes, size);
}

/* Ends the hashes, which frees them. */
static void hashes_end(struct intake *intake, struct intake_facts *facts)
{
    if (intake->sha256 != NULL)
        crypto_hash_end(intake->sha256, facts->sha256);
    if (intake->md5 != NULL)
        crypto_md5_end(intake->md5, facts->md5);
    intake->sha256 = NULL;
    intake->md5 = NULL;
}

enum iw_error intake_finish(struct intake *intake, struct context *context, struct intake_facts *facts)
{
    if (intake->cutoff.format == SNIFF_NONE)
        return no_picture(intake, context);
    if (cutoff_is_cut(&intake->cutoff)) {
        context->reason = "cut_off";
        return context_fail(context, IW_IMAGE_CORRUPT, "The file is cut off after %lld bytes.",
                            (long long)intake->size_bytes);
    }
    *facts = (struct intake_facts){.format = intake->cutoff.format, .size_bytes = intake->size_bytes};
    hashes_end(intake, facts);
    return IW_OK;
}

enum iw_error intake_commit(struct intake *intake, struct context *context, const struct storage_key *key)
{
    struct storage_writer *writer = intake->writer;
    free(intake);
    return storage_put_commit(writer, context, key);
}

void intake_abandon(struct intake *intake)
{
    struct intake_facts unused;
    hashes_end(intake, &unused);
    storage_put_abandon(intake->writer);
    free(intake);
}
