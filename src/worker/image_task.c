/* Jobs on pictures: descriptors into the image process, its answer into the store. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <imgward/fault.h>
#include <imgward/protect.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/log.h"
#include "base/text.h"
#include "service/sniff.h"
#include "store/texts.h"
#include "image/seal.h"
#include "worker/worker.h"

enum { copy_bytes = 256 * 1024 };

/* The picture is at fault: another try would say the same. */
static const enum iw_error final_errors[] = {IW_IMAGE_CORRUPT, IW_IMAGE_FORMAT_UNSUPPORTED,
                                             IW_IMAGE_TOO_LARGE, IW_IMAGE_TOO_SMALL,
                                             IW_WATERMARK_NOT_EMBEDDABLE};

static bool is_final(enum iw_error error)
{
    for (size_t i = 0; i < sizeof final_errors / sizeof final_errors[0]; i++)
        if (final_errors[i] == error)
            return true;
    return false;
}

/* ---- a job into the process ---- */

static int scratch_open(const char *name)
{
    return memfd_create(name, MFD_CLOEXEC);
}

static bool wants_thumbnail(const struct job *job)
{
    return !job->has_thumbnail && !job->is_zero_copy && job->kind != JOB_EXTRACT;
}

static void files_close(int *const files[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (*files[i] >= 0)
            close(*files[i]);
        *files[i] = -1;
    }
}

static void inputs_close(struct task *task)
{
    files_close((int *const[]){&task->input_file, &task->original_file}, 2);
}

void image_task_close(struct task *task)
{
    inputs_close(task);
    files_close((int *const[]){&task->result_file, &task->thumbnail_file}, 2);
}

/* The seed moves the pattern's grid: the same for every try of a file, another for every file. */
static uint64_t seed_of(const struct job *job)
{
    char text[64];
    uint8_t digest[sha256_bytes];
    uint64_t seed;
    int length = snprintf(text, sizeof text, "seed %" PRId64 " %" PRId64, job->order_id, job->file_id);
    crypto_sha256(text, (size_t)length, digest);
    memcpy(&seed, digest, sizeof seed);
    return seed;
}

static enum iw_error request_send(struct task *task, const struct image_process *process)
{
    static const enum image_kind kinds[JOB_KIND_COUNT] = {
        [JOB_PROTECT] = IMAGE_ANTI_AI,
        [JOB_EMBED] = IMAGE_WATERMARK_EMBED,
        [JOB_EXTRACT] = IMAGE_WATERMARK_EXTRACT,
    };
    static const enum protect_strength strengths[ORDER_STRENGTH_COUNT] = {
        [ORDER_STRENGTH_LOW] = PROTECT_LOW,
        [ORDER_STRENGTH_STANDARD] = PROTECT_STANDARD,
        [ORDER_STRENGTH_HIGH] = PROTECT_HIGH,
    };
    const struct image_request request = {
        .version = image_protocol_version,
        .kind = kinds[task->job.kind],
        .flags = (task->thumbnail_file >= 0 ? (uint32_t)IMAGE_WANTS_THUMBNAIL : 0) |
                 (task->original_file >= 0 ? (uint32_t)IMAGE_HAS_ORIGINAL : 0),
        .strength = (uint32_t)strengths[task->job.strength],
        .ticket = (uint64_t)task->job.id,
        .seed = seed_of(&task->job),
        .watermark_number = task->watermark_number,
    };
    const int files[image_file_count] = {[IMAGE_INPUT] = task->input_file,
                                         [IMAGE_ORIGINAL] = task->original_file,
                                         [IMAGE_OUTPUT] = task->result_file,
                                         [IMAGE_THUMBNAIL] = task->thumbnail_file};
    return image_client_send(&task->context, &process->client, &request, files);
}

/* The descriptor of an input, or what there is to say against it. */
static enum iw_error input_open(struct worker *worker, struct task *task, const char *text, int *input)
{
    struct storage_key key;
    if (text == NULL || !storage_key_read(text, &key)) {
        task->context.reason = "input_missing";
        return context_fail(&task->context, IW_NOT_FOUND, "The uploaded file is not there any more.");
    }
    return storage_get(worker->storage, &task->context, &key, input, NULL);
}

static enum iw_error supply_open(struct worker *worker, struct task *task)
{
    const struct job *job = &task->job;
    enum iw_error error = input_open(worker, task, job->store_key, &task->input_file);
    if (error == IW_OK && job->kind == JOB_EXTRACT && job->has_original)
        error = input_open(worker, task, job->original_key, &task->original_file);
    if (error == IW_OK && job->kind == JOB_EMBED)
        error = texts_number(&(struct store){&task->context, worker->domain.store.db}, job->order_id,
                             job->position, job->copy, &task->watermark_number);
    return error;
}

/* Anonymous files for what the process is to write. */
static enum iw_error scratch_make(struct task *task)
{
    if (task->job.kind == JOB_EXTRACT)
        return IW_OK;
    task->result_file = scratch_open("result");
    if (wants_thumbnail(&task->job))
        task->thumbnail_file = scratch_open("thumbnail");
    if (task->result_file >= 0)
        return IW_OK;
    context_cause(&task->context, "memfd_create: %s", strerror(errno));
    return context_fail(&task->context, IW_SERVICE_UNAVAILABLE, NULL);
}

void image_task_prepare(struct worker *worker, struct task *task)
{
    task->watermark_number = 0;
    enum iw_error error = supply_open(worker, task);
    if (error == IW_OK)
        error = scratch_make(task);
    if (error == IW_OK)
        return;
    image_task_close(task);
    log_failure(&task->context, "job_not_begun");
    task_trouble(worker, task, task_trouble_of(task), IW_PROCESSING_CRASHED, NULL,
                 task->context.reason != NULL ? task->context.reason : "not_begun");
}

bool image_task_send(struct worker *worker, struct task *task, struct image_process *process)
{
    enum iw_error error = request_send(task, process);
    if (error == IW_OK && fault_fails(FAULT_IMAGE_SENT))
        error = context_fail(&task->context, IW_IO_FAILED, NULL);
    if (error != IW_OK)
        return false;
    inputs_close(task);
    task_begin(task);
    task->deadline_ms = task->begun_ms + worker->config.image_timeout_s * 1000;
    task->process = process;
    process->task = task;
    return true;
}

/* ---- the answer into the store ---- */

/* Copies an anonymous file into the store, hashing on the way; format gets what its first bytes say. */
static enum iw_error bytes_store(struct worker *worker, struct task *task, int file,
                                 const struct storage_key *key, struct result *result)
{
    struct context *context = &task->context;
    struct storage_writer *writer;
    unsigned char *piece = arena_alloc(task->arena, copy_bytes);
    struct crypto_hash *hash;
    ssize_t size;
    enum iw_error error = storage_put_begin(worker->storage, context, &writer);
    if (error != IW_OK)
        return error;
    hash = crypto_hash_begin();
    result->size_bytes = 0;
    while (error == IW_OK && (size = pread(file, piece, copy_bytes, result->size_bytes)) > 0) {
        if (result->size_bytes == 0)
            result->format = sniff_format(piece, (size_t)size);
        crypto_hash_add(hash, piece, (size_t)size);
        result->size_bytes += size;
        error = storage_put_add(writer, context, piece, (size_t)size);
    }
    crypto_hash_end(hash, result->digest);
    if (error != IW_OK) {
        storage_put_abandon(writer);
        return error;
    }
    return storage_put_commit(writer, context, key);
}

/* What the process says it wrote must be what lies there, or it is not to be believed. */
static bool is_believable(const struct task *task, const struct image_answer *answer)
{
    struct stat facts;
    return answer->output_bytes > 0 && answer->width_px > 0 && answer->height_px > 0 &&
           fstat(task->result_file, &facts) == 0 && (uint64_t)facts.st_size == answer->output_bytes;
}

static enum iw_error thumbnail_store(struct worker *worker, struct task *task)
{
    struct result written = {.format = FORMAT_NONE};
    const struct storage_key key = {
        .kind = FILEKEY_THUMBNAIL, .order_id = task->job.order_id, .version = storage_version_new()};
    enum iw_error error = bytes_store(worker, task, task->thumbnail_file, &key, &written);
    if (error == IW_OK && fault_fails(FAULT_THUMBNAIL_STORED))
        error = context_fail(&task->context, IW_IO_FAILED, NULL);
    if (error != IW_OK)
        return error;
    task->thumbnail_key = key;
    if (written.format != FORMAT_WEBP)
        return context_fail(&task->context, IW_IO_FAILED,
                            "The image process wrote a thumbnail that is none.");
    task->outcome.thumbnail_store_key = storage_key_text(task->arena, &key);
    memcpy(task->outcome.thumbnail_digest, written.digest, sizeof written.digest);
    return IW_OK;
}

static enum iw_error result_store(struct worker *worker, struct task *task, const struct image_answer *answer)
{
    struct outcome *outcome = &task->outcome;
    const struct storage_key key = {.kind = FILEKEY_RESULT,
                                    .order_id = task->job.order_id,
                                    .number = task->job.file_id,
                                    .version = task->job.attempt,
                                    .part = task->job.copy};
    *outcome = (struct outcome){.job = &task->job, .kind = OUTCOME_RESULT};
    outcome->result.width_px = answer->width_px;
    outcome->result.height_px = answer->height_px;
    enum iw_error error = bytes_store(worker, task, task->result_file, &key, &outcome->result);
    if (error != IW_OK)
        return error;
    task->result_key = key;
    image_process_turn(worker);
    if (fault_fails(FAULT_RESULT_STORED))
        return context_fail(&task->context, IW_IO_FAILED, NULL);
    if (outcome->result.format == FORMAT_NONE)
        return context_fail(&task->context, IW_IO_FAILED, "The image process produced an invalid file.");
    outcome->result.store_key = storage_key_text(task->arena, &key);
    return answer->thumbnail_bytes > 0 && task->thumbnail_file >= 0 ? thumbnail_store(worker, task) : IW_OK;
}

/* A sentence of the process goes to the client; it may have been taken over by a picture. */
static const char *sentence_of(const struct task *task, const char *sentence)
{
    size_t length = strlen(sentence);
    if (length == 0 || !text_is_utf8(sentence, length) || text_has_control(sentence, length))
        return NULL;
    return arena_text(task->arena, sentence);
}

/* What the client should know of a result that is there. */
static void note_take(struct task *task, const struct image_answer *answer)
{
    const char *sentence = sentence_of(task, answer->note);
    if (answer->note_code[0] == '\0' || sentence == NULL)
        return;
    task->outcome.note_code = arena_text(task->arena, answer->note_code);
    task->outcome.note = sentence;
    log_event(LOG_INFO, &task->context, "image_noted", LOG_TEXT("code", task->outcome.note_code),
              LOG_TEXT("message", sentence));
}

static void refusal_take(struct worker *worker, struct task *task, const struct image_answer *answer)
{
    enum iw_error error = (enum iw_error)answer->error;
    const char *reason = answer->reason[0] != '\0' ? arena_text(task->arena, answer->reason) : "refused";
    log_event(LOG_WARN, &task->context, "image_refused", LOG_TEXT("code", iw_error_code(error)),
              LOG_TEXT("reason", reason), LOG_TEXT("message", answer->sentence),
              LOG_TEXT("cause", answer->cause));
    if (is_final(error))
        task_trouble(worker, task, JOB_TROUBLE_FINAL, error, sentence_of(task, answer->sentence), reason);
    else if (error == IW_CONFIG_INVALID)
        task_trouble(worker, task, JOB_TROUBLE_FINAL, IW_PROCESSING_CRASHED,
                     "The service is not set up for this kind of work.", "image_process_not_set_up");
    else if (error == IW_NO_MEMORY)
        task_trouble(worker, task, JOB_TROUBLE_DEATH, IW_PROCESSING_CRASHED, NULL, "memory");
    else
        task_trouble(worker, task, JOB_TROUBLE_TRANSIENT, IW_PROCESSING_CRASHED, NULL, reason);
}

static void reading_take(struct worker *worker, struct task *task, const struct image_answer *answer)
{
    task->outcome = (struct outcome){.job = &task->job,
                                     .kind = OUTCOME_READING,
                                     .is_found = answer->error == IW_OK,
                                     .watermark_number = answer->watermark_number};
    note_take(task, answer);
    task_end(worker, task);
}

static void answer_take(struct worker *worker, struct task *task, const struct image_answer *answer)
{
    bool is_reading = answer->error == IW_OK || answer->error == IW_WATERMARK_NOT_FOUND;
    for (unsigned stage = 0; stage < image_stage_count; stage++)
        metrics_add(worker->metrics, METRIC_STAGE_MS, stage, 0, answer->stage_ms[stage]);
    if (task->job.kind == JOB_EXTRACT && is_reading) {
        reading_take(worker, task, answer);
        return;
    }
    if (answer->error != IW_OK) {
        image_task_close(task);
        refusal_take(worker, task, answer);
        return;
    }
    if (!is_believable(task, answer) || result_store(worker, task, answer) != IW_OK) {
        image_task_close(task);
        task_discard(worker, task);
        log_failure(&task->context, "result_not_stored");
        task_trouble(worker, task, task_trouble_of(task), IW_PROCESSING_CRASHED, NULL,
                     task->context.reason != NULL ? task->context.reason : "result_unsound");
        return;
    }
    image_task_close(task);
    note_take(task, answer);
    task_end(worker, task);
}

/* The process is gone in the middle of a picture: its death counts, whoever killed it. */
static void death_take(struct worker *worker, struct task *task, int wait_status)
{
    image_task_close(task);
    log_event(LOG_ERROR, &task->context, "image_process_died",
              LOG_TEXT("reason", task->is_overdue ? "timeout" : "crash"),
              LOG_NUMBER("signal", WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0),
              LOG_NUMBER("status", WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0),
              LOG_NUMBER("attempt", task->job.attempt), LOG_NUMBER("deaths", task->job.deaths + 1));
    bool is_timeout = task->is_overdue || (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGXCPU);
    metrics_add(worker->metrics, METRIC_IMAGE_DEATHS, is_timeout ? METRIC_DEATH_TIMEOUT : METRIC_DEATH_CRASH,
                0, 1);
    task_trouble(worker, task, JOB_TROUBLE_DEATH, is_timeout ? IW_PROCESSING_TIMEOUT : IW_PROCESSING_CRASHED,
                 NULL, is_timeout ? "timeout" : "crash");
}

void image_task_take(struct worker *worker, struct task *task)
{
    if (task->answer != NULL)
        answer_take(worker, task, task->answer);
    else
        death_take(worker, task, task->wait_status);
}
