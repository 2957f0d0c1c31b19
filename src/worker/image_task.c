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
#include "worker/seal.h"
#include "worker/worker.h"

enum {
    /* A process that dies before its first word is not started again at once. */
    pause_first_ms = 250,
    pause_longest_ms = 10000,
    start_limit_ms = 20000,
    copy_bytes = 256 * 1024
};

/* The picture is at fault: another try would say the same. */
static const enum iw_error final_errors[] = {IW_IMAGE_CORRUPT, IW_IMAGE_FORMAT_UNSUPPORTED,
                                             IW_IMAGE_TOO_LARGE, IW_IMAGE_TOO_SMALL};

static bool is_final(enum iw_error error)
{
    for (size_t i = 0; i < sizeof final_errors / sizeof final_errors[0]; i++)
        if (final_errors[i] == error)
            return true;
    return false;
}

/* ---- the image process ---- */

static void helper_pause(struct task *task, const char *reason, int wait_status)
{
    unsigned doublings = task->helper_failures < 6 ? task->helper_failures : 6;
    int64_t pause_ms = (int64_t)pause_first_ms << doublings;
    task->helper_failures++;
    task->helper_at_ms = clock_monotonic_ms() + (pause_ms < pause_longest_ms ? pause_ms : pause_longest_ms);
    log_event(LOG_ERROR, NULL, "image_process_failed", LOG_TEXT("reason", reason),
              LOG_NUMBER("signal", WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0),
              LOG_NUMBER("status", WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0));
}

void image_task_helper_end(struct task *task, int *wait_status)
{
    *wait_status = 0;
    image_client_kill(&task->helper);
    image_client_close(&task->helper);
    if (task->helper.pid > 0)
        while (waitpid(task->helper.pid, wait_status, 0) < 0 && errno == EINTR)
            continue;
    task->helper = (struct image_client){.pid = 0, .socket = -1};
    task->helper_state = HELPER_NONE;
}

void image_task_helper_start(struct worker *worker, struct task *task)
{
    const struct config *config = &worker->config;
    struct context *context = &worker->context;
    const struct image_client_options options = {
        .program = config->worker_image_program,
        .weights_path = config->image_weights_file,
        .watermark_key_path =
            access(config->image_watermark_key_file, R_OK) == 0 ? config->image_watermark_key_file : NULL,
        .memory_bytes = (uint64_t)config->image_memory_max_bytes,
        .cpu_seconds = (unsigned)config->image_timeout_s,
        .pixels_max = (uint64_t)config->image_pixels_max,
        .side_max_px = (uint32_t)config->image_side_max_px,
        .images_max = (unsigned)config->worker_images_per_process,
        .is_unsealed_allowed = config->worker_allow_unsealed,
    };
    if (image_client_spawn(context, &options, &task->helper) != IW_OK) {
        log_failure(context, "image_process_failed");
        context_clear(context);
        helper_pause(task, "spawn", 0);
        return;
    }
    task->helper_state = HELPER_STARTING;
    task->helper_at_ms = clock_monotonic_ms() + start_limit_ms;
}

/* What of the seal this machine refuses, told once: every process of it will say the same. */
static void seal_tell(struct worker *worker, const struct image_answer *answer)
{
    bool is_unsealed = (answer->seal_missing & SEAL_SECCOMP) != 0;
    bool is_landlocked = (answer->seal_missing & SEAL_LANDLOCK) == 0;
    if (answer->seal_missing == 0 || worker->is_seal_told)
        return;
    worker->is_seal_told = true;
    log_event(is_unsealed ? LOG_ERROR : LOG_WARN, NULL, "seal_incomplete",
              LOG_TEXT("missing", !is_unsealed    ? "landlock"
                                  : is_landlocked ? "seccomp"
                                                  : "seccomp landlock"),
              LOG_TEXT("cause", answer->cause));
}

/* The first word: the process has loaded what it needs and is sealed. */
static void helper_ready(struct worker *worker, struct task *task, const struct image_answer *answer)
{
    int wait_status;
    bool is_unsealed = (answer->seal_missing & SEAL_SECCOMP) != 0;
    if (answer->error == IW_OK && (!is_unsealed || worker->config.worker_allow_unsealed)) {
        task->helper_state = HELPER_READY;
        task->helper_failures = 0;
        task->helper_at_ms = 0;
        worker_look_ask(worker);
        seal_tell(worker, answer);
        return;
    }
    log_event(LOG_ERROR, NULL, "image_process_refused",
              LOG_TEXT("code", iw_error_code((enum iw_error)answer->error)),
              LOG_TEXT("reason", answer->reason), LOG_TEXT("message", answer->sentence),
              LOG_TEXT("cause", answer->cause));
    image_task_helper_end(task, &wait_status);
    helper_pause(task, "refused", wait_status);
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

static void scratch_close(struct task *task)
{
    if (task->result_file >= 0)
        close(task->result_file);
    if (task->thumbnail_file >= 0)
        close(task->thumbnail_file);
    task->result_file = task->thumbnail_file = -1;
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

/* What a job needs of the outside: descriptors, -1 where there is none, and the number to embed. */
struct supply {
    int input;
    int original;
    uint64_t watermark_number;
};

static enum iw_error request_send(struct task *task, const struct supply *supply)
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
                 (supply->original >= 0 ? (uint32_t)IMAGE_HAS_ORIGINAL : 0),
        .strength = (uint32_t)strengths[task->job.strength],
        .ticket = (uint64_t)task->job.id,
        .seed = seed_of(&task->job),
        .watermark_number = supply->watermark_number,
    };
    const int files[image_file_count] = {[IMAGE_INPUT] = supply->input,
                                         [IMAGE_ORIGINAL] = supply->original,
                                         [IMAGE_OUTPUT] = task->result_file,
                                         [IMAGE_THUMBNAIL] = task->thumbnail_file};
    return image_client_send(&task->context, &task->helper, &request, files);
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

static enum iw_error supply_open(struct worker *worker, struct task *task, struct supply *supply)
{
    const struct job *job = &task->job;
    enum iw_error error = input_open(worker, task, job->store_key, &supply->input);
    if (error == IW_OK && job->kind == JOB_EXTRACT && job->has_original)
        error = input_open(worker, task, job->original_key, &supply->original);
    if (error == IW_OK && job->kind == JOB_EMBED)
        error = texts_number(&task->context, worker->domain.db, job->order_id, job->position, job->copy,
                             &supply->watermark_number);
    return error;
}

static void supply_close(const struct supply *supply)
{
    if (supply->input >= 0)
        close(supply->input);
    if (supply->original >= 0)
        close(supply->original);
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

void image_task_begin(struct worker *worker, struct task *task)
{
    struct supply supply = {.input = -1, .original = -1};
    enum iw_error error = supply_open(worker, task, &supply);
    if (error == IW_OK)
        error = scratch_make(task);
    if (error == IW_OK)
        error = request_send(task, &supply);
    if (error == IW_OK && fault_fails(FAULT_IMAGE_SENT))
        error = context_fail(&task->context, IW_IO_FAILED, NULL);
    supply_close(&supply);
    if (error == IW_OK) {
        task->deadline_ms = task->begun_ms + worker->config.image_timeout_s * 1000;
        return;
    }
    scratch_close(task);
    log_failure(&task->context, "job_not_begun");
    task_trouble(worker, task, task_trouble_of(task), IW_PROCESSING_CRASHED, NULL,
                 task->context.reason != NULL ? task->context.reason : "not_begun");
}

/* ---- the answer into the store ---- */

/* Copies an anonymous file into the store, hashing on the way; format gets what its first bytes say. */
static enum iw_error bytes_store(struct worker *worker, struct task *task, int file,
                                 const struct storage_key *key, struct closing_result *result)
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
            result->format = (const char *[]){"", "jpeg", "png", "webp"}[sniff_format(piece, (size_t)size)];
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
    struct closing_result written = {.format = ""};
    const struct storage_key key = {
        .kind = STORAGE_THUMBNAIL, .order_id = task->job.order_id, .version = storage_version_new()};
    enum iw_error error = bytes_store(worker, task, task->thumbnail_file, &key, &written);
    if (error == IW_OK && fault_fails(FAULT_THUMBNAIL_STORED))
        error = context_fail(&task->context, IW_IO_FAILED, NULL);
    if (error != IW_OK)
        return error;
    task->thumbnail_key = key;
    if (strcmp(written.format, "webp") != 0)
        return context_fail(&task->context, IW_IO_FAILED,
                            "The image process wrote a thumbnail that is none.");
    task->outcome.thumbnail_store_key = storage_key_text(task->arena, &key);
    memcpy(task->outcome.thumbnail_digest, written.digest, sizeof written.digest);
    return IW_OK;
}

static enum iw_error result_store(struct worker *worker, struct task *task, const struct image_answer *answer)
{
    struct outcome *outcome = &task->outcome;
    const struct storage_key key = {.kind = STORAGE_RESULT,
                                    .order_id = task->job.order_id,
                                    .number = task->job.file_id,
                                    .version = task->job.attempt,
                                    .part = task->job.copy};
    *outcome = (struct outcome){.job = &task->job, .kind = OUTCOME_RESULT};
    outcome->result.format = "";
    outcome->result.width_px = answer->width_px;
    outcome->result.height_px = answer->height_px;
    enum iw_error error = bytes_store(worker, task, task->result_file, &key, &outcome->result);
    if (error != IW_OK)
        return error;
    task->result_key = key;
    if (fault_fails(FAULT_RESULT_STORED))
        return context_fail(&task->context, IW_IO_FAILED, NULL);
    if (outcome->result.format[0] == '\0')
        return context_fail(&task->context, IW_IO_FAILED, "The image process wrote what is no picture.");
    outcome->result.store_key = storage_key_text(task->arena, &key);
    return answer->thumbnail_bytes > 0 && task->thumbnail_file >= 0 ? thumbnail_store(worker, task) : IW_OK;
}

/* A sentence of the process goes to the client; it may have been taken over by a picture. */
static const char *sentence_of(const struct task *task, const struct image_answer *answer)
{
    size_t length = strlen(answer->sentence);
    if (length == 0 || !text_is_utf8(answer->sentence, length) || text_has_control(answer->sentence, length))
        return NULL;
    return arena_text(task->arena, answer->sentence);
}

static void refusal_take(struct worker *worker, struct task *task, const struct image_answer *answer)
{
    enum iw_error error = (enum iw_error)answer->error;
    const char *reason = answer->reason[0] != '\0' ? arena_text(task->arena, answer->reason) : "refused";
    log_event(LOG_WARN, &task->context, "image_refused", LOG_TEXT("code", iw_error_code(error)),
              LOG_TEXT("reason", reason), LOG_TEXT("message", answer->sentence),
              LOG_TEXT("cause", answer->cause));
    if (is_final(error))
        task_trouble(worker, task, JOB_TROUBLE_FINAL, error, sentence_of(task, answer), reason);
    else if (error == IW_WATERMARK_NOT_EMBEDDED)
        /* The contract has no name of its own for it: what can be seen of the picture is too little. */
        task_trouble(worker, task, JOB_TROUBLE_FINAL, IW_IMAGE_TOO_SMALL,
                     "What can be seen of the image is too little for a watermark to be read back.", reason);
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
        scratch_close(task);
        refusal_take(worker, task, answer);
        return;
    }
    if (!is_believable(task, answer) || result_store(worker, task, answer) != IW_OK) {
        scratch_close(task);
        task_discard(worker, task);
        log_failure(&task->context, "result_not_stored");
        task_trouble(worker, task, task_trouble_of(task), IW_PROCESSING_CRASHED, NULL,
                     task->context.reason != NULL ? task->context.reason : "result_unsound");
        return;
    }
    scratch_close(task);
    task_end(worker, task);
}

/* The process is gone in the middle of a picture: its death counts, whoever killed it. */
static void death_take(struct worker *worker, struct task *task, int wait_status)
{
    scratch_close(task);
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

static void helper_ended(struct worker *worker, struct task *task)
{
    int wait_status;
    bool was_starting = task->helper_state == HELPER_STARTING;
    bool had_job = task->state == TASK_RUNNING && task->child == 0;
    image_task_helper_end(task, &wait_status);
    if (was_starting)
        helper_pause(task, "died_at_start", wait_status);
    if (had_job)
        death_take(worker, task, wait_status);
}

void image_task_poll(struct worker *worker, struct task *task)
{
    struct image_answer answer;
    int wait_status;
    enum image_client_event event = image_client_receive(&task->helper, &answer);
    if (event == IMAGE_CLIENT_NOTHING)
        return;
    if (event == IMAGE_CLIENT_ENDED) {
        helper_ended(worker, task);
        return;
    }
    if (task->helper_state == HELPER_STARTING && answer.kind == IMAGE_READY) {
        helper_ready(worker, task, &answer);
        return;
    }
    bool is_awaited =
        task->state == TASK_RUNNING && task->child == 0 && answer.ticket == (uint64_t)task->job.id;
    if (!is_awaited) {
        helper_ended(worker, task); /* Words that nobody asked for: it is not to be trusted. */
        return;
    }
    fault_point(FAULT_IMAGE_HEARD);
    if (answer.is_last)
        image_task_helper_end(task, &wait_status);
    answer_take(worker, task, &answer);
}
