#include "worker/picture.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/crypto.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/message.h"
#include "base/text.h"
#include "db/texts.h"
#include "engine/protect/protect.h"
#include "engine/watermark/likeness.h"
#include "model/sniff.h"
#include "worker/image_process.h"
#include "worker/shared.h"
#include "worker/task.h"

enum { copy_bytes = 256 * 1024 };

/* Errors of the picture: another attempt would end with the same error. */
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

static void files_close(int *const files[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (*files[i] >= 0)
            close(*files[i]);
        *files[i] = -1;
    }
}

static void picture_close(struct task *task)
{
    struct picture_part *picture = &task->picture;
    files_close((int *const[]){&picture->input_file, &picture->original_file, &picture->candidates_file,
                               &picture->result_file, &picture->thumbnail_file},
                5);
}

/* Opens an input for reading. */
static enum iw_error input_open(const struct shared *shared, struct task *task, const char *text,
                                const char *etag, int *input, struct storage_facts *facts)
{
    struct storage_key key;
    if (text == NULL || !storage_key_read(text, &key)) {
        task->context.reason = "input_missing";
        return context_fail(&task->context, IW_NOT_FOUND, "The uploaded file no longer exists.");
    }
    return storage_get_match(shared->domain.storage, &task->context, &key, etag, input, facts);
}

/*
 * Makes an anonymous file unchangeable before it is read.  If a picture has taken over the process, the
 * process may have the file open, and could change it between digest and copy.  Fails while the file is
 * mapped writable.
 */
static bool file_freeze(int file)
{
    return fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == 0;
}

/* Writes the newest numbers of the account into an anonymous file. */
static enum iw_error candidates_open(const struct db *db, struct task *task)
{
    size_t count;
    uint64_t *numbers;
    enum iw_error error =
        texts_candidates(db, task->job.account_id, WATERMARK_CANDIDATES_MOST, &numbers, &count);
    if (error != IW_OK || count == 0)
        return error;
    size_t size = count * sizeof *numbers;
    int file = task->picture.candidates_file = memfd_create("candidates", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file >= 0 && write(file, numbers, size) == (ssize_t)size && file_freeze(file))
        return IW_OK;
    context_cause(db->context, "the file of candidates: %s", strerror(errno));
    return context_fail(db->context, IW_SERVICE_UNAVAILABLE, NULL);
}

static enum iw_error inputs_open(const struct shared *shared, struct task *task)
{
    const struct job *job = &task->job;
    const struct db db = {&task->context, shared->domain.db.connection};
    struct picture_part *picture = &task->picture;
    struct storage_facts facts;
    picture->watermark_number = 0;
    enum iw_error error = input_open(shared, task, job->store_key, job->etag, &picture->input_file, &facts);
    if (error == IW_OK)
        picture->input_bytes = facts.size_bytes;
    if (error == IW_OK && job->kind == JOB_EXTRACT && job->has_original)
        error =
            input_open(shared, task, job->original_key, job->original_etag, &picture->original_file, NULL);
    if (error == IW_OK && job->kind == JOB_EXTRACT)
        error = candidates_open(&db, task);
    if (error == IW_OK && job->kind == JOB_EMBED)
        error = texts_number(&db, job->order_id, job->position, job->copy, &picture->watermark_number);
    return error;
}

/* Opens anonymous files for the output of the process. */
static enum iw_error outputs_open(struct task *task)
{
    const struct job *job = &task->job;
    if (job->kind == JOB_EXTRACT)
        return IW_OK;
    task->picture.result_file = memfd_create("result", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (!job->has_thumbnail && !job->is_zero_copy)
        task->picture.thumbnail_file = memfd_create("thumbnail", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (task->picture.result_file >= 0)
        return IW_OK;
    context_cause(&task->context, "memfd_create: %s", strerror(errno));
    return context_fail(&task->context, IW_SERVICE_UNAVAILABLE, NULL);
}

/* Returns an outcome if the uploaded object is too large or no picture (domain/orders/intake.h). */
static struct outcome *refused_outcome(struct task *task)
{
    const struct job *job = &task->job;
    bool is_refused = job->store_key == NULL || (job->has_original && job->original_key == NULL);
    if (!is_refused || job->error_code == NULL)
        return NULL;
    return task_trouble(task, JOB_TROUBLE_FINAL, iw_error_by_code(job->error_code), job->error_sentence,
                        "upload_refused");
}

static struct outcome *picture_prepare(void *jobs, struct task *task)
{
    const struct picture_jobs *pictures = jobs;
    struct outcome *refused = refused_outcome(task);
    if (refused != NULL)
        return refused;
    enum iw_error error = inputs_open(pictures->shared, task);
    if (error == IW_OK)
        error = outputs_open(task);
    if (error == IW_OK)
        return NULL;
    picture_close(task);
    return task_failure(task, "job_not_begun", "not_begun");
}

/* The seed moves the grid of the pattern: it differs between files, not between attempts on one file. */
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

static enum iw_error request_send(struct task *task, const struct image_slot *process)
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
    const struct picture_part *picture = &task->picture;
    const struct image_request request = {
        .version = image_protocol_version,
        .kind = kinds[task->job.kind],
        .flags = (picture->thumbnail_file >= 0 ? (uint32_t)IMAGE_WANTS_THUMBNAIL : 0) |
                 (picture->original_file >= 0 ? (uint32_t)IMAGE_HAS_ORIGINAL : 0) |
                 (picture->candidates_file >= 0 ? (uint32_t)IMAGE_HAS_CANDIDATES : 0),
        .strength = (uint32_t)strengths[task->job.strength],
        .ticket = (uint64_t)task->job.id,
        .seed = seed_of(&task->job),
        .account_id = (uint64_t)task->job.account_id,
        .watermark_number = picture->watermark_number,
    };
    const int files[image_file_count] = {[IMAGE_INPUT] = picture->input_file,
                                         [IMAGE_ORIGINAL] = picture->original_file,
                                         [IMAGE_CANDIDATES] = picture->candidates_file,
                                         [IMAGE_OUTPUT] = picture->result_file,
                                         [IMAGE_THUMBNAIL] = picture->thumbnail_file};
    return image_client_send(&task->context, &process->client, &request, files);
}

/*
 * If a process takes no picture, the process is at fault, and the picture waits for the next process.
 * After a death the picture gets a process that served no other picture, because an earlier picture may
 * have caused the death.
 */
static struct outcome *picture_begin(void *jobs, struct task *task)
{
    const struct picture_jobs *pictures = jobs;
    struct image_slot *process;
    while ((process = image_process_idle(pictures->processes, task->job.deaths > 0)) != NULL) {
        if (request_send(task, process) == IW_OK) {
            files_close((int *const[]){&task->picture.input_file, &task->picture.original_file,
                                       &task->picture.candidates_file},
                        3);
            task_start(task);
            task->deadline_ms = task->begun_ms + pictures->shared->domain.config->image_timeout_s * 1000;
            task->picture.process = process;
            task->picture.is_process_fresh = process->served++ == 0;
            process->task = task;
            return NULL;
        }
        log_failure(&task->context, "job_not_begun");
        context_clear(&task->context);
        image_process_fail(pictures->processes, process, "not_sent", "An image process takes no requests.");
    }
    return NULL;
}

static void picture_kill(struct task *task)
{
    image_process_kill(task->picture.process);
}

/* ---- the answer into the store ---- */

/* Copies an anonymous file into the store and hashes it; sets size, digest, and format by the first bytes. */
static enum iw_error bytes_store(const struct shared *shared, struct task *task, int file,
                                 const struct storage_key *key, struct result *result)
{
    struct context *context = &task->context;
    struct storage_writer *writer;
    unsigned char *piece = arena_alloc(task->arena, copy_bytes);
    struct crypto_hash *hash;
    ssize_t size;
    enum iw_error error = storage_put_begin(shared->domain.storage, context, key, &writer);
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
    return storage_put_commit(writer, context);
}

static enum iw_error result_store(const struct shared *shared, struct task *task,
                                  const struct image_answer *answer)
{
    struct outcome *outcome = task_outcome(task, OUTCOME_RESULT);
    struct stat facts;
    const struct storage_key key = {.kind = FILEKEY_RESULT,
                                    .order_id = task->job.order_id,
                                    .number = task->job.file_id,
                                    .version = task->job.attempt,
                                    .part = task->job.copy};
    bool is_believable = file_freeze(task->picture.result_file) && answer->output_bytes > 0 &&
                         answer->width_px > 0 && answer->height_px > 0 &&
                         fstat(task->picture.result_file, &facts) == 0 &&
                         (uint64_t)facts.st_size == answer->output_bytes;
    if (!is_believable)
        return context_fail(&task->context, IW_IO_FAILED, "The image process produced an unsound result.");
    outcome->result.format = FORMAT_NONE;
    outcome->result.width_px = answer->width_px;
    outcome->result.height_px = answer->height_px;
    outcome->result.protection_percent = (int)answer->protection_percent;
    outcome->view = answer->view.width > 0 ? &answer->view : NULL;
    outcome->view_bytes = WATERMARK_VIEW_BYTES(&answer->view);
    enum iw_error error = bytes_store(shared, task, task->picture.result_file, &key, &outcome->result);
    if (error != IW_OK)
        return error;
    task->result_key = key;
    if (fault_fails(FAULT_RESULT_STORED, ""))
        return context_fail(&task->context, IW_IO_FAILED, NULL);
    if (!format_is_picture(outcome->result.format))
        return context_fail(&task->context, IW_IO_FAILED, "The image process produced an invalid file.");
    outcome->result.store_key = storage_key_text(task->arena, &key);
    return IW_OK;
}

static enum iw_error thumbnail_store(const struct shared *shared, struct task *task)
{
    struct result written = {.format = FORMAT_NONE};
    const struct storage_key key = {.kind = FILEKEY_THUMBNAIL,
                                    .order_id = task->job.order_id,
                                    .number = task->job.position,
                                    .version = storage_version_new()};
    if (!file_freeze(task->picture.thumbnail_file))
        return context_fail(&task->context, IW_IO_FAILED, "The image process did not release a thumbnail.");
    enum iw_error error = bytes_store(shared, task, task->picture.thumbnail_file, &key, &written);
    if (error != IW_OK)
        return error;
    task->thumbnail_key = key;
    if (written.format != FORMAT_WEBP)
        return context_fail(&task->context, IW_IO_FAILED, "The image process produced an invalid thumbnail.");
    task->outcome.thumbnail_store_key = storage_key_text(task->arena, &key);
    memcpy(task->outcome.thumbnail_digest, written.digest, sizeof written.digest);
    return IW_OK;
}

/* ---- outcomes ---- */

/* Returns a sentence for the client; NULL if it is malformed: a picture may have taken over the process. */
static const char *sentence_of(const struct task *task, const char *sentence)
{
    size_t length = strlen(sentence);
    if (length == 0 || !text_is_utf8(sentence, length) || text_has_control(sentence, length))
        return NULL;
    return arena_text(task->arena, sentence);
}

/* Adds the note of a complete result. */
static struct outcome *outcome_note(struct task *task, const struct image_answer *answer)
{
    const char *sentence = sentence_of(task, answer->note);
    if (answer->note_code[0] == '\0' || sentence == NULL)
        return &task->outcome;
    task->outcome.note_code = arena_text(task->arena, answer->note_code);
    task->outcome.note = sentence;
    log_event(LOG_INFO, &task->context, "image_noted", LOG_TEXT("code", task->outcome.note_code),
              LOG_TEXT("message", sentence));
    return &task->outcome;
}

/* Compares the picture with those to which the marks were added. */
static enum iw_error pictures_compare(const struct shared *shared, struct task *task,
                                      const struct watermark_numbers *found, enum same_picture *same)
{
    static const enum same_picture same_of[] = {[WATERMARK_MATCH_OTHER] = SAME_PICTURE_NO,
                                                [WATERMARK_MATCH_UNKNOWN] = SAME_PICTURE_UNKNOWN,
                                                [WATERMARK_MATCH_SAME] = SAME_PICTURE_YES};
    const struct db db = {&task->context, shared->domain.db.connection};
    enum iw_error error = IW_OK;
    for (unsigned i = 0; i < WATERMARK_NUMBERS_MOST; i++)
        same[i] = SAME_PICTURE_UNKNOWN;
    for (unsigned i = 0; error == IW_OK && i < found->count; i++) {
        struct watermark_view marked;
        const void *bytes = NULL;
        size_t length = 0;
        unsigned before = 0;
        while (found->numbers[before] != found->numbers[i])
            before++;
        if (before < i) {
            same[i] = same[before];
            continue;
        }
        error = texts_view(&db, task->job.account_id, found->numbers[i], &bytes, &length);
        likeness_view_read(bytes, length, &marked);
        same[i] = same_of[likeness_match(&marked, &found->views[i], NULL)];
    }
    if (error == IW_OK || error == IW_SERVICE_UNAVAILABLE)
        return error;
    /* The reading is worth more than the comparison. */
    log_failure(&task->context, "pictures_not_compared");
    context_clear(&task->context);
    return IW_OK;
}

static struct outcome *reading_outcome(const struct shared *shared, struct task *task,
                                       const struct image_answer *answer)
{
    enum same_picture *same = arena_array(task->arena, WATERMARK_NUMBERS_MOST, sizeof *same);
    if (answer->error == IW_OK && pictures_compare(shared, task, &answer->watermarks, same) != IW_OK)
        return task_failure(task, "pictures_not_compared", "not_compared");
    struct outcome *outcome = task_outcome(task, OUTCOME_READING);
    uint64_t *numbers = arena_array(task->arena, WATERMARK_NUMBERS_MOST, sizeof *numbers);
    int64_t *certainties = arena_array(task->arena, WATERMARK_NUMBERS_MOST, sizeof *certainties);
    memcpy(numbers, answer->watermarks.numbers, WATERMARK_NUMBERS_MOST * sizeof *numbers);
    memcpy(certainties, answer->watermarks.certainties, WATERMARK_NUMBERS_MOST * sizeof *certainties);
    outcome->watermark_count = answer->error == IW_OK ? answer->watermarks.count : 0;
    outcome->watermark_numbers = numbers;
    outcome->watermark_certainties = certainties;
    outcome->watermark_same = same;
    return outcome_note(task, answer);
}

/* Out of memory.  In a fresh process the picture is the cause, and another attempt would end the same way. */
static struct outcome *memory_outcome(struct task *task)
{
    if (!task->picture.is_process_fresh)
        return task_trouble(task, JOB_TROUBLE_DEATH, IW_PROCESSING_CRASHED, NULL, "memory");
    return task_trouble(task, JOB_TROUBLE_FINAL, IW_IMAGE_TOO_LARGE,
                        "The picture needs more memory than is allowed. Reduce its size, or its metadata.",
                        "memory");
}

static struct outcome *refusal_outcome(struct task *task, const struct image_answer *answer)
{
    enum iw_error error = (enum iw_error)answer->error;
    const char *reason = answer->reason[0] != '\0' ? arena_text(task->arena, answer->reason) : "refused";
    log_event(LOG_WARN, &task->context, "image_refused", LOG_TEXT("code", iw_error_code(error)),
              LOG_TEXT("reason", reason), LOG_TEXT("message", answer->sentence),
              LOG_TEXT("cause", answer->cause));
    if (is_final(error))
        return task_trouble(task, JOB_TROUBLE_FINAL, error, sentence_of(task, answer->sentence), reason);
    if (error == IW_CONFIG_INVALID)
        return task_trouble(task, JOB_TROUBLE_FINAL, IW_PROCESSING_CRASHED,
                            "The service is not set up for this kind of work.", "image_process_not_set_up");
    if (error == IW_NO_MEMORY)
        return memory_outcome(task);
    return task_trouble(task, JOB_TROUBLE_TRANSIENT, IW_PROCESSING_CRASHED, NULL, reason);
}

/* The process died while it had the picture.  The death counts, even if an operator killed the process. */
static struct outcome *death_outcome(const struct shared *shared, struct task *task)
{
    int wait_status = task->picture.wait_status;
    log_event(LOG_ERROR, &task->context, "image_process_died",
              LOG_TEXT("reason", task->is_overdue ? "timeout" : "crash"),
              LOG_NUMBER("signal", WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0),
              LOG_NUMBER("status", WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0),
              LOG_NUMBER("attempt", task->job.attempt), LOG_NUMBER("deaths", task->job.deaths + 1));
    bool is_timeout = task->is_overdue || (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGXCPU);
    metrics_add(shared->metrics, METRIC_IMAGE_DEATHS, is_timeout ? METRIC_DEATH_TIMEOUT : METRIC_DEATH_CRASH,
                0, 1);
    if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == image_exit_no_memory)
        return memory_outcome(task);
    return task_trouble(task, JOB_TROUBLE_DEATH, is_timeout ? IW_PROCESSING_TIMEOUT : IW_PROCESSING_CRASHED,
                        NULL, is_timeout ? "timeout" : "crash");
}

/* Stores result and thumbnail in separate steps: each takes milliseconds, and the loop may not wait. */
static struct outcome *picture_store(const struct shared *shared, struct task *task,
                                     const struct image_answer *answer)
{
    bool has_thumbnail = answer->thumbnail_bytes > 0 && task->picture.thumbnail_file >= 0;
    enum iw_error error =
        task->picture.is_stored ? thumbnail_store(shared, task) : result_store(shared, task, answer);
    if (error == IW_OK && has_thumbnail && !task->picture.is_stored) {
        task->picture.is_stored = true;
        return NULL;
    }
    picture_close(task);
    if (error == IW_OK)
        return outcome_note(task, answer);
    task_discard(task, shared->domain.storage);
    return task_failure(task, "result_not_stored", "result_unsound");
}

/* Returns an outcome if the result is out of proportion to the source; NULL if it is not. */
static struct outcome *excess_outcome(const struct shared *shared, struct task *task,
                                      const struct image_answer *answer)
{
    const struct config *config = shared->domain.config;
    if (answer->output_bytes <= (uint64_t)config->image_result_floor_bytes ||
        answer->output_bytes / (uint64_t)config->image_result_times_max < (uint64_t)task->picture.input_bytes)
        return NULL;
    const char *sentence =
        arena_printf(task->arena, message_result_bytes, (unsigned long long)answer->output_bytes,
                     (long long)config->image_result_times_max, (long long)task->picture.input_bytes);
    picture_close(task);
    return task_trouble(task, JOB_TROUBLE_FINAL, IW_IMAGE_TOO_LARGE, sentence, "result_too_large");
}

static struct outcome *picture_finish(void *jobs, struct task *task)
{
    const struct shared *shared = ((const struct picture_jobs *)jobs)->shared;
    const struct image_answer *answer = task->picture.answer;
    if (answer != NULL && answer->error == IW_OK && task->picture.is_stored)
        return picture_store(shared, task, answer);
    for (unsigned stage = 0; answer != NULL && stage < image_stage_count; stage++)
        metrics_add(shared->metrics, METRIC_STAGE_MS, stage, 0, answer->stage_ms[stage]);
    if (answer != NULL && answer->error == IW_OK && task->job.kind != JOB_EXTRACT) {
        struct outcome *excess = excess_outcome(shared, task, answer);
        return excess != NULL ? excess : picture_store(shared, task, answer);
    }
    picture_close(task);
    if (answer == NULL)
        return death_outcome(shared, task);
    bool is_reading = answer->error == IW_OK || answer->error == IW_WATERMARK_NOT_FOUND;
    return task->job.kind == JOB_EXTRACT && is_reading ? reading_outcome(shared, task, answer)
                                                       : refusal_outcome(task, answer);
}

const struct kind picture_kind = {.prepare = picture_prepare,
                                  .begin = picture_begin,
                                  .finish = picture_finish,
                                  .kill = picture_kill,
                                  .close = picture_close};
