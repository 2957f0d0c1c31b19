/*
 * Sends damaged pictures to the sealed process, one after another, for protection and thumbnails.
 * Each picture is answered in time, or ends that process only.
 * `test_image_mutations N [FIRST]` runs N of them (default 650, at most 40 s).
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/protect/protect.h"
#include "image/image_client.h"
#include "mutation.h"
#include "picture_maker.h"

static const struct made_spec corpus[] = {
    {"JPEG grey", FORMAT_JPEG, 72, 64, 1, true, .quality = 85},
    {"JPEG 4:2:0", FORMAT_JPEG, 72, 64, 3, true, .sampling = 22, .quality = 75},
    {"JPEG 4:4:4 bare", FORMAT_JPEG, 72, 64, 3, false, .sampling = 11, .quality = 75},
    {"JPEG progressive", FORMAT_JPEG, 72, 64, 3, false, .sampling = 22, .quality = 85,
     .is_progressive = true},
    {"JPEG arithmetic", FORMAT_JPEG, 72, 64, 3, false, .sampling = 21, .quality = 85, .is_arithmetic = true},
    {"PNG grey 2", FORMAT_PNG, 72, 64, 1, false, .depth_bits = 2},
    {"PNG palette", FORMAT_PNG, 72, 64, 1, true, .depth_bits = 4, .is_palette = true,
     .has_transparency = true},
    {"PNG RGB interlaced", FORMAT_PNG, 72, 64, 3, true, .depth_bits = 8, .is_progressive = true},
    {"PNG RGBA 16", FORMAT_PNG, 72, 64, 4, false, .depth_bits = 16},
    {"PNG RGB key", FORMAT_PNG, 72, 64, 3, true, .depth_bits = 8, .has_transparency = true},
    {"WebP lossy", FORMAT_WEBP, 72, 64, 3, true, .quality = 75},
    {"WebP lossy alpha", FORMAT_WEBP, 72, 64, 4, false, .quality = 75},
    {"WebP lossless", FORMAT_WEBP, 72, 64, 4, true, .is_lossless = true, .quality = 50},
};

enum {
    corpus_count = sizeof corpus / sizeof corpus[0],
    seconds_max = 40,
    cpu_seconds = 20,
    answer_limit_ms = 120000 /* wall clock, on a shared machine */
};

/* Counts of all outcomes. */
struct tally {
    unsigned answers[IW_ERROR_COUNT];
    unsigned unfair; /* an answer that is not about the picture */
    unsigned deaths;
    unsigned hangs;
    uint32_t slowest_ms; /* CPU time of one picture */
};

static struct context context;
static struct image_client client;

/* make check sets srcdir. */
static const char *weights_path(void)
{
    static char path[4096];
    const char *sources = getenv("srcdir");
    snprintf(path, sizeof path, "%s/data/protect.weights", sources != NULL ? sources : "..");
    return path;
}

static enum image_client_event wait_for(struct image_answer *answer, int wait_ms)
{
    struct pollfd one = {client.socket, POLLIN, 0};
    return poll(&one, 1, wait_ms) <= 0 ? IMAGE_CLIENT_NOTHING : image_client_receive(&client, answer);
}

static void client_end(void)
{
    image_client_kill(&client);
    image_client_close(&client);
    waitpid(client.pid, NULL, 0);
    client.pid = 0;
}

/* Without seccomp the process runs unsealed; the decoders are the same. */
static void client_start(void)
{
    struct image_answer answer;
    const struct image_client_options options = {.program = "./imgward-image",
                                                 .weights_path = weights_path(),
                                                 .memory_bytes = (uint64_t)512 << 20,
                                                 .cpu_seconds = cpu_seconds,
                                                 .pixels_max = 1 << 20,
                                                 .side_max_px = 4096,
                                                 .images_max = 1000000,
                                                 .is_unsealed_allowed = true};
    if (image_client_spawn(&context, &options, &client) != IW_OK ||
        wait_for(&answer, answer_limit_ms) != IMAGE_CLIENT_ANSWER || answer.kind != IMAGE_READY) {
        printf("the process does not start\n");
        exit(2);
    }
}

static int file_of(const void *data, size_t size)
{
    int file = memfd_create("picture", MFD_CLOEXEC);
    if (file < 0 || write(file, data, size) != (ssize_t)size)
        exit(2);
    return file;
}

static void answer_count(const struct image_answer *answer, unsigned seed, struct tally *tally)
{
    enum iw_error error = (enum iw_error)answer->error;
    uint32_t ms = 0;
    for (int stage = 0; stage < image_stage_count; stage++)
        ms += answer->stage_ms[stage];
    tally->slowest_ms = ms > tally->slowest_ms ? ms : tally->slowest_ms;
    tally->answers[error]++;
    bool is_fair = answer->ticket == seed &&
                   (error == IW_OK || error == IW_IMAGE_CORRUPT || error == IW_IMAGE_FORMAT_UNSUPPORTED ||
                    error == IW_IMAGE_TOO_LARGE || error == IW_IMAGE_TOO_SMALL);
    tally->unfair += !is_fair;
    if (!is_fair)
        printf("mutation %u: %s: %s\n", seed, iw_error_code(error), answer->sentence);
}

/* Sends one damaged picture, and replaces the process if it died. */
static void run_one(const struct codec_bytes *file, enum format format, unsigned seed, struct tally *tally)
{
    struct codec_bytes damaged = mutation_make(file, format, seed);
    struct image_answer answer;
    const struct image_request request = {.version = image_protocol_version,
                                          .kind = IMAGE_ANTI_AI,
                                          .flags = IMAGE_WANTS_THUMBNAIL,
                                          .strength = PROTECT_STANDARD,
                                          .ticket = seed,
                                          .seed = seed};
    int files[] = {file_of(damaged.data, damaged.size), -1, -1, file_of("", 0), file_of("", 0)};
    arena_reset(context.arena);
    context_clear(&context);
    bool is_sent = image_client_send(&context, &client, &request, files) == IW_OK;
    enum image_client_event event = is_sent ? wait_for(&answer, answer_limit_ms) : IMAGE_CLIENT_ENDED;
    if (event == IMAGE_CLIENT_ANSWER) {
        answer_count(&answer, seed, tally);
    } else {
        printf("mutation %u: %s\n", seed,
               event == IMAGE_CLIENT_NOTHING ? "no answer in time" : "the process died");
        tally->hangs += event == IMAGE_CLIENT_NOTHING;
        tally->deaths += event != IMAGE_CLIENT_NOTHING;
        client_end();
        client_start();
    }
    for (int i = 0; i < image_file_count; i++)
        if (files[i] >= 0)
            close(files[i]);
    bytes_free(&damaged);
}

static bool tally_print(const struct tally *tally, unsigned done)
{
    printf("%u mutations through the sealed process:", done);
    for (int error = 0; error < IW_ERROR_COUNT; error++)
        if (tally->answers[error] > 0)
            printf(" %s %u", iw_error_code((enum iw_error)error), tally->answers[error]);
    printf("; %u deaths, %u hangs, slowest %u ms\n", tally->deaths, tally->hangs, tally->slowest_ms);
    return tally->unfair + tally->deaths + tally->hangs == 0;
}

int main(int argc, char **argv)
{
    unsigned count = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 650;
    unsigned first = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    time_t seconds = argc > 1 ? 36000 : seconds_max, start = time(NULL);
    struct codec_bytes files[corpus_count];
    struct tally tally = {.unfair = 0};
    unsigned done = 0;
    context_init(&context, arena_new(0), NULL);
    for (size_t i = 0; i < corpus_count; i++)
        files[i] = make_picture(&corpus[i]);
    client_start();
    for (; done < count && time(NULL) - start < seconds; done++) {
        unsigned which = (first + done) % corpus_count;
        run_one(&files[which], corpus[which].format, first + done, &tally);
    }
    client_end();
    for (size_t i = 0; i < corpus_count; i++)
        bytes_free(&files[i]);
    arena_free(context.arena);
    return tally_print(&tally, done) ? 0 : 1;
}
