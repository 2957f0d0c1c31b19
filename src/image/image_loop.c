#include "image/image_loop.h"

#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/crypto.h"
#include "base/fault.h"
#include "codec/thumbnail.h"
#include "image/mark_picture.h"
#include "image/protect_picture.h"
#include "image/seal.h"

enum { thumbnail_side_px = 320, files_all = (1 << image_file_count) - 1 };

_Static_assert((int)picture_embed_side_px == WATERMARK_SIDE_MIN_PX, "the model and the engine agree");

/* A file mapped for reading. */
struct mapped {
    const void *data;
    size_t size;
};

/* State of one request. */
struct image_work {
    const struct image_config *config;
    const struct image_request *request;
    const int *files;
    struct image_answer *answer;
    struct context context;
    struct mapped input;
    struct mapped original;
    struct mapped candidates;
    uint8_t watermark_key[WATERMARK_KEY_BYTES]; /* of the account */
    struct codec_limits limits;
    int64_t stage_start_us;
};

/* ---- steps ---- */

static int64_t cpu_us(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * 1000000 + used.tv_nsec / 1000;
}

/* Charges the CPU time since the last stage to this stage. */
static void stage_end(struct image_work *work, enum image_stage stage)
{
    int64_t now_us = cpu_us();
    work->answer->stage_ms[stage] += (uint32_t)((now_us - work->stage_start_us + 500) / 1000);
    work->stage_start_us = now_us;
}

static enum iw_error file_map(struct context *context, int file, struct mapped *mapped)
{
    off_t size = lseek(file, 0, SEEK_END);
    if (size == 0)
        return context_fail(context, IW_IMAGE_FORMAT_UNSUPPORTED, "The file is empty.");
    void *data = size < 0 ? MAP_FAILED : mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, file, 0);
    if (data == MAP_FAILED) {
        context_cause(context, "mapping the input: %s", strerror(errno));
        return context_fail(context, IW_IO_FAILED, NULL);
    }
    mapped->data = data;
    mapped->size = (size_t)size;
    return IW_OK;
}

static void file_unmap(const struct mapped *mapped)
{
    if (mapped->data != NULL)
        munmap((void *)(uintptr_t)mapped->data, mapped->size);
}

static enum iw_error file_write(struct context *context, int file, const struct codec_bytes *bytes)
{
    for (size_t at = 0; at < bytes->size;) {
        ssize_t put = write(file, bytes->data + at, bytes->size - at);
        if (put < 0 && errno != EINTR) {
            context_cause(context, "writing the result: %s", strerror(errno));
            return context_fail(context, IW_IO_FAILED, NULL);
        }
        at += put > 0 ? (size_t)put : 0;
    }
    return IW_OK;
}

static enum iw_error work_decode(struct image_work *work, const struct mapped *mapped,
                                 struct codec_picture *picture)
{
    enum iw_error error = codec_decode(&work->context, mapped->data, mapped->size, &work->limits, picture);
    stage_end(work, IMAGE_STAGE_DECODE);
    return error;
}

static void answer_header(struct image_answer *answer, const struct codec_header *header)
{
    answer->format = header->format;
    answer->width_px = header->width_px;
    answer->height_px = header->height_px;
}

/* Engines have no context; their errors get the default sentence. */
static enum iw_error work_engine_end(struct image_work *work, enum iw_error error)
{
    stage_end(work, IMAGE_STAGE_ENGINE);
    return error == IW_OK ? IW_OK : context_fail(&work->context, error, NULL);
}

static enum iw_error work_thumbnail(struct image_work *work, const struct codec_picture *picture)
{
    struct codec_bytes bytes;
    if (!(work->request->flags & IMAGE_WANTS_THUMBNAIL))
        return IW_OK;
    enum iw_error error = thumbnail_webp(&work->context, picture, thumbnail_side_px, &bytes);
    if (error == IW_OK)
        error = file_write(&work->context, work->files[IMAGE_THUMBNAIL], &bytes);
    if (error == IW_OK)
        work->answer->thumbnail_bytes = bytes.size;
    bytes_free(&bytes);
    stage_end(work, IMAGE_STAGE_THUMBNAIL);
    return error;
}

/* Writes the encoded result and frees it. */
static enum iw_error work_output(struct image_work *work, struct codec_bytes *bytes)
{
    enum iw_error error = file_write(&work->context, work->files[IMAGE_OUTPUT], bytes);
    if (error == IW_OK)
        work->answer->output_bytes = bytes->size;
    bytes_free(bytes);
    stage_end(work, IMAGE_STAGE_ENCODE);
    return error;
}

/* ---- kinds ---- */

static enum iw_error kind_probe(struct image_work *work)
{
    struct codec_header header;
    enum iw_error error =
        codec_probe(&work->context, work->input.data, work->input.size, &work->limits, &header);
    if (error == IW_OK)
        answer_header(work->answer, &header);
    stage_end(work, IMAGE_STAGE_DECODE);
    return error;
}

/* Engine and encoder alternate: the encoded result is measured and the strength corrected. */
static enum iw_error protect_in(struct image_work *work, struct codec_picture *picture)
{
    struct codec_bytes bytes;
    struct protect_report report;
    memset(&report, 0, sizeof report);
    const struct protect_order order = {.data = work->input.data,
                                        .size = work->input.size,
                                        .limits = &work->limits,
                                        .strength = (enum protect_strength)work->request->strength,
                                        .seed = work->request->seed,
                                        .growth_max_percent = work->config->growth_max_percent};
    enum iw_error error =
        protect_picture(&work->context, work->config->protect, &order, picture, &bytes, &report);
    stage_end(work, IMAGE_STAGE_ENGINE);
    if (error != IW_OK)
        return error;
    work->answer->psnr_hundredths = (uint32_t)lround(report.psnr_db * 100);
    work->answer->protection_percent = protect_percent(&report);
    error = work_output(work, &bytes);
    return error != IW_OK ? error : work_thumbnail(work, picture);
}

/* Marking, encoding and reading back alternate, so their time counts as one stage. */
static enum iw_error embed_in(struct image_work *work, struct codec_picture *picture)
{
    const struct mark_order order = {.data = work->input.data,
                                     .size = work->input.size,
                                     .limits = &work->limits,
                                     .key = work->watermark_key,
                                     .number = work->request->watermark_number};
    struct codec_bytes bytes;
    struct watermark_report report;
    memset(&report, 0, sizeof report);
    enum iw_error error = mark_picture(&work->context, &order, picture, &bytes, &report);
    stage_end(work, IMAGE_STAGE_ENGINE);
    if (error != IW_OK)
        return error;
    work->answer->psnr_hundredths = (uint32_t)lround(report.psnr_db * 100);
    work->answer->view = report.view;
    error = work_output(work, &bytes);
    return error != IW_OK ? error : work_thumbnail(work, picture);
}

/* Decodes the input and runs an engine on the picture. */
static enum iw_error work_change(struct image_work *work,
                                 enum iw_error (*engine)(struct image_work *work,
                                                         struct codec_picture *picture))
{
    struct codec_picture picture;
    enum iw_error error = work_decode(work, &work->input, &picture);
    if (error != IW_OK)
        return error;
    answer_header(work->answer, &picture.header);
    fault_point(FAULT_IMAGE_DECODED, "");
    error = engine(work, &picture);
    fault_point(FAULT_IMAGE_CHANGED, "");
    codec_picture_free(&picture);
    return error;
}

static enum iw_error kind_anti_ai(struct image_work *work)
{
    if (work->request->strength >= protect_strength_count)
        return context_fail(&work->context, IW_SERVER_INTERNAL_ERROR,
                            "The image process received an unknown strength.");
    return work_change(work, protect_in);
}

static enum iw_error kind_watermark_embed(struct image_work *work)
{
    return work_change(work, embed_in);
}

/* original may be NULL. */
static enum iw_error extract(struct image_work *work, const struct image *suspect,
                             const struct image *original)
{
    const struct watermark_candidates candidates = {work->candidates.size / sizeof(uint64_t),
                                                    work->candidates.data};
    return watermark_extract(suspect, original, work->watermark_key, &candidates, &work->answer->watermarks,
                             NULL);
}

/* Reads with the original, which may have another format and size. */
static enum iw_error extract_informed(struct image_work *work, const struct codec_picture *suspect)
{
    struct codec_picture original;
    /* The engine works at the suspect's scale, and takes the same memory with an original. */
    uint64_t suspect_bytes =
        suspect->image.stride_bytes * suspect->image.height_px + work->limits.engine.bytes_max;
    uint64_t limit_bytes = work->limits.memory_max_bytes;
    if (limit_bytes != 0)
        work->limits.memory_max_bytes = limit_bytes > suspect_bytes ? limit_bytes - suspect_bytes : 1;
    work->limits.engine.bytes_px = 0;
    work->limits.is_partial_allowed = false;
    enum iw_error error = work_decode(work, &work->original, &original);
    if (error != IW_OK) {
        work->context.sentence =
            arena_printf(work->context.arena, "The original: %s", work->context.sentence);
        return error;
    }
    error = extract(work, &suspect->image, &original.image);
    codec_picture_free(&original);
    return work_engine_end(work, error);
}

/*
 * The thumbnail comes first, because clients need it even without a mark. A suspect that is cut
 * or damaged is read as far as its rows go.
 */
static enum iw_error kind_watermark_extract(struct image_work *work)
{
    struct codec_picture picture;
    work->limits.is_partial_allowed = true;
    work->limits.formats_more = work->config->formats_more;
    enum iw_error error = work_decode(work, &work->input, &picture);
    if (error != IW_OK)
        return error;
    answer_header(work->answer, &picture.header);
    error = work_thumbnail(work, &picture);
    if (error == IW_OK && (work->request->flags & IMAGE_HAS_ORIGINAL))
        error = extract_informed(work, &picture);
    else if (error == IW_OK)
        error = work_engine_end(work, extract(work, &picture.image, NULL));
    codec_picture_free(&picture);
    return error;
}

enum {
    file_input = 1 << IMAGE_INPUT,
    file_original = 1 << IMAGE_ORIGINAL,
    file_candidates = 1 << IMAGE_CANDIDATES,
    file_output = 1 << IMAGE_OUTPUT
};

/* Resources that a kind requires. */
enum need { NEEDS_NOTHING, NEEDS_WATERMARK_KEY, NEEDS_WEIGHTS };

/* The kinds of work. A kind without a function is not served. */
static const struct image_kind_row {
    enum iw_error (*run)(struct image_work *work);
    unsigned files_needed;
    unsigned files_allowed;
    enum order_type order_type; /* whose engine runs; unused by a probe */
    enum need need;
} kinds[image_kind_count] = {
    [IMAGE_PROBE] = {.run = kind_probe, .files_needed = file_input, .files_allowed = file_input},
    [IMAGE_ANTI_AI] = {.run = kind_anti_ai,
                       .files_needed = file_input | file_output,
                       .files_allowed = files_all & ~(file_original | file_candidates),
                       .order_type = ORDER_ANTI_AI,
                       .need = NEEDS_WEIGHTS},
    [IMAGE_WATERMARK_EMBED] = {.run = kind_watermark_embed,
                               .files_needed = file_input | file_output,
                               .files_allowed = files_all & ~(file_original | file_candidates),
                               .order_type = ORDER_WATERMARK_EMBED,
                               .need = NEEDS_WATERMARK_KEY},
    [IMAGE_WATERMARK_EXTRACT] = {.run = kind_watermark_extract,
                                 .files_needed = file_input,
                                 .files_allowed = files_all & ~file_output,
                                 .order_type = ORDER_WATERMARK_EXTRACT,
                                 .need = NEEDS_WATERMARK_KEY},
};

/* ---- a request ---- */

/* Bit mask of the files that a request must carry; 0 for an invalid request. */
static unsigned request_files(const struct image_request *request)
{
    if (request->version != image_protocol_version || request->kind >= image_kind_count)
        return 0;
    const struct image_kind_row *row = &kinds[request->kind];
    unsigned files = row->files_needed;
    if (request->flags & IMAGE_HAS_ORIGINAL)
        files |= file_original;
    if (request->flags & IMAGE_HAS_CANDIDATES)
        files |= file_candidates;
    if (request->flags & IMAGE_WANTS_THUMBNAIL)
        files |= 1U << IMAGE_THUMBNAIL;
    return row->run == NULL || (files & ~row->files_allowed) != 0 ? 0 : files;
}

static enum iw_error work_check(struct image_work *work)
{
    unsigned there = 0;
    for (int i = 0; i < image_file_count; i++)
        there |= work->files[i] >= 0 ? 1U << i : 0;
    if (there == 0 || request_files(work->request) != there)
        return context_fail(&work->context, IW_SERVER_INTERNAL_ERROR,
                            "The image process received an invalid request.");
    enum need need = kinds[work->request->kind].need;
    if (need == NEEDS_WATERMARK_KEY && !work->config->has_watermark_key)
        return context_fail(&work->context, IW_CONFIG_INVALID,
                            "The image process was started without a watermark key.");
    if (need == NEEDS_WEIGHTS && work->config->protect == NULL)
        return context_fail(&work->context, IW_CONFIG_INVALID,
                            "The image process was started without weights.");
    return IW_OK;
}

static enum iw_error work_run(struct image_work *work)
{
    enum iw_error error = work_check(work);
    if (error == IW_OK)
        error = file_map(&work->context, work->files[IMAGE_INPUT], &work->input);
    if (error == IW_OK && (work->request->flags & IMAGE_HAS_ORIGINAL))
        error = file_map(&work->context, work->files[IMAGE_ORIGINAL], &work->original);
    if (error == IW_OK && (work->request->flags & IMAGE_HAS_CANDIDATES))
        error = file_map(&work->context, work->files[IMAGE_CANDIDATES], &work->candidates);
    if (error != IW_OK)
        return error;
    if (work->config->has_watermark_key)
        crypto_key_derive(work->config->watermark_key, WATERMARK_KEY_PURPOSE, work->request->account_id,
                          work->watermark_key);
    work->limits.engine = work->request->kind == IMAGE_PROBE
                              ? (struct picture_engine){.is_read_only = true}
                              : *picture_engine(kinds[work->request->kind].order_type);
    work->limits.side_min_px = work->limits.engine.side_min_px;
    return kinds[work->request->kind].run(work);
}

/* Copies a text, or as many whole code points as fit. */
static void text_put(char *room, size_t size, const char *text)
{
    size_t length = text == NULL ? 0 : strlen(text);
    if (length >= size)
        for (length = size - 1; length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80;)
            length--;
    if (length > 0)
        memcpy(room, text, length);
    room[length] = '\0';
}

/*
 * A failure reports reason and times, but no result. An extraction without a mark keeps the
 * picture's header, thumbnail and notes.
 */
static void answer_failure(struct image_answer *answer, const struct context *context)
{
    if (context->error != IW_WATERMARK_NOT_FOUND) {
        answer->format = answer->width_px = answer->height_px = answer->psnr_hundredths = 0;
        answer->protection_percent = 0;
        answer->output_bytes = answer->thumbnail_bytes = 0;
    }
    answer->watermarks.count = 0;
    answer->error = context->error;
    text_put(answer->reason, sizeof answer->reason, context->reason);
    text_put(answer->sentence, sizeof answer->sentence, context->sentence);
    text_put(answer->cause, sizeof answer->cause, context->cause);
}

/* Serves one request. The files of the request are mapped or written, but not closed. The answer holds the
 * result or the error. */
static void image_loop_serve(const struct image_config *config, const struct image_request *request,
                             const int files[image_file_count], struct image_answer *answer)
{
    struct image_work work = {.config = config, .request = request, .files = files, .answer = answer};
    struct arena *arena = arena_new(0);
    context_init(&work.context, arena, NULL);
    memset(answer, 0, sizeof *answer);
    answer->version = image_protocol_version;
    answer->kind = request->kind;
    answer->ticket = request->ticket;
    work.limits = config->limits;
    work.stage_start_us = cpu_us();
    enum iw_error error = work_run(&work);
    if (error != IW_OK)
        answer_failure(answer, &work.context);
    if ((error == IW_OK || error == IW_WATERMARK_NOT_FOUND) && work.context.notes != NULL) {
        text_put(answer->note_code, sizeof answer->note_code, work.context.notes->code);
        text_put(answer->note, sizeof answer->note, context_notes_text(&work.context));
    }
    file_unmap(&work.input);
    file_unmap(&work.original);
    file_unmap(&work.candidates);
    crypto_wipe(work.watermark_key, sizeof work.watermark_key);
    arena_free(arena);
}

/* ---- the socket ---- */

/* Assigns the packed descriptors to the slots of the request. Surplus descriptors are closed. */
static void files_unpack(const struct image_request *request, struct msghdr *message,
                         int files[image_file_count])
{
    struct cmsghdr *head = CMSG_FIRSTHDR(message);
    if (head == NULL || head->cmsg_type != SCM_RIGHTS)
        return;
    size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    unsigned expected = request_files(request);
    for (size_t i = 0, slot = 0; i < count; i++) {
        int file;
        memcpy(&file, CMSG_DATA(head) + i * sizeof file, sizeof file);
        while (slot < image_file_count && !(expected >> slot & 1))
            slot++;
        if (slot < image_file_count)
            files[slot++] = file;
        else
            close(file);
    }
}

/* Receives one request. False if the other end closed the socket or violated the protocol. */
static bool request_take(int socket, struct image_request *request, int files[image_file_count])
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(image_file_count * sizeof(int))];
    } control;
    struct iovec part = {request, sizeof *request};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t got;
    do
        got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof *request || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
        return false;
    files_unpack(request, &message, files);
    return true;
}

static bool answer_send(int socket, struct image_answer *answer)
{
    struct iovec part = {answer, sizeof *answer};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    fault_point(FAULT_MESSAGE_SENDING, answer->kind == IMAGE_READY ? "image ready" : "image answer");
    bool is_sent = sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)sizeof *answer;
    fault_point(FAULT_MESSAGE_SENT, answer->kind == IMAGE_READY ? "image ready" : "image answer");
    return is_sent;
}

bool image_loop_refuse(int socket, const struct context *context, unsigned seal_missing)
{
    struct image_answer answer = {
        .version = image_protocol_version, .kind = IMAGE_READY, .is_last = 1, .seal_missing = seal_missing};
    answer_failure(&answer, context);
    return answer_send(socket, &answer);
}

/* ---- memory between pictures ---- */

/* Bytes that the C library holds. Also free bytes count against the process's limit. */
static size_t memory_held(void)
{
    struct mallinfo2 facts = mallinfo2();
    return facts.arena + facts.hblkhd;
}

/*
 * Returns free memory to the kernel. True if the process still holds much more than at the start, so
 * that the next picture would have less room than the estimate assumes.
 */
static bool memory_grew(const struct image_config *config, size_t start_bytes)
{
    enum { grown_part = 32 }; /* of the limit: 28 MiB by default; 100 megapixels leave 2 MiB */
    size_t most = start_bytes + (size_t)config->limits.memory_max_bytes / grown_part;
    if (config->limits.memory_max_bytes == 0 || memory_held() <= most)
        return false;
    malloc_trim(0);
    return memory_held() > most;
}

void image_loop_run(const struct image_config *config, int socket, unsigned seal_missing, const char *cause)
{
    struct image_answer answer = {
        .version = image_protocol_version, .kind = IMAGE_READY, .seal_missing = seal_missing};
    snprintf(answer.cause, sizeof answer.cause, "%s", cause);
    snprintf(answer.watermark_key_id, sizeof answer.watermark_key_id, "%s", config->watermark_key_id);
    fault_point(FAULT_PROCESS_STARTED, "image");
    size_t start_bytes = memory_held();
    bool is_open = answer_send(socket, &answer);
    for (unsigned served = 1; is_open && served <= config->images_max; served++) {
        struct image_request request;
        int files[image_file_count] = {-1, -1, -1, -1, -1};
        is_open = request_take(socket, &request, files);
        if (!is_open)
            continue;
        fault_point(FAULT_MESSAGE_TAKEN, "image request");
        seal_cpu_seconds(config->cpu_seconds);
        image_loop_serve(config, &request, files, &answer);
        for (int i = 0; i < image_file_count; i++)
            if (files[i] >= 0)
                close(files[i]);
        answer.is_last = served == config->images_max || memory_grew(config, start_bytes);
        is_open = answer_send(socket, &answer) && !answer.is_last;
    }
}
