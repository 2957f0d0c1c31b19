/* The protocol of the image process, and the effect of a container on the seal. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/protect/protect.h"
#include "image/image_client.h"
#include "picture_maker.h"
#include "runner.h"
#include "seal_child.h"

static struct context context;
static bool is_seal_refused;

static void fresh(void)
{
    arena_reset(context.arena);
    context_clear(&context);
}

static char key_path[] = "image-key-XXXXXX";

static struct image_client_options options_usual(void)
{
    struct image_client_options options = {
        .program = "./imgward-image", .watermark_key_path = key_path, .is_unsealed_allowed = is_seal_refused};
    return options;
}

/* Returns an unnamed file with the bytes. */
static int file_of(const void *data, size_t size)
{
    int file = memfd_create("picture", MFD_CLOEXEC);
    CU_ASSERT_EQUAL_FATAL(write(file, data, size), (ssize_t)size);
    lseek(file, 0, SEEK_SET);
    return file;
}

static struct codec_bytes bytes_of(int file)
{
    struct codec_bytes bytes = {NULL, (size_t)lseek(file, 0, SEEK_END)};
    bytes.data = malloc(bytes.size + 1);
    CU_ASSERT_EQUAL(pread(file, bytes.data, bytes.size, 0), (ssize_t)bytes.size);
    return bytes;
}

/* Waits up to wait_ms for an answer or the end. */
static enum image_client_event wait_for(const struct image_client *client, struct image_answer *answer,
                                        int wait_ms)
{
    struct pollfd one = {client->socket, POLLIN, 0};
    if (poll(&one, 1, wait_ms) <= 0)
        return IMAGE_CLIENT_NOTHING;
    return image_client_receive(client, answer);
}

static struct image_client start(const struct image_client_options *options)
{
    struct image_client client;
    struct image_answer answer;
    fresh();
    CU_ASSERT_EQUAL_FATAL(image_client_spawn(&context, options, &client), IW_OK);
    CU_ASSERT_EQUAL_FATAL(wait_for(&client, &answer, 120000), IMAGE_CLIENT_ANSWER);
    CU_ASSERT_EQUAL(answer.kind, IMAGE_READY);
    CU_ASSERT_EQUAL((answer.seal_missing & SEAL_SECCOMP) != 0, is_seal_refused);
    return client;
}

static int end(struct image_client *client)
{
    int status = -1;
    image_client_close(client);
    waitpid(client->pid, &status, 0);
    return status;
}

static struct image_answer ask(const struct image_client *client, const struct image_request *request,
                               const int files[image_file_count])
{
    struct image_answer answer;
    memset(&answer, 0, sizeof answer);
    fresh();
    CU_ASSERT_EQUAL_FATAL(image_client_send(&context, client, request, files), IW_OK);
    CU_ASSERT_EQUAL_FATAL(wait_for(client, &answer, 240000), IMAGE_CLIENT_ANSWER);
    CU_ASSERT_EQUAL(answer.ticket, request->ticket);
    CU_ASSERT_EQUAL(answer.kind, request->kind);
    return answer;
}

static struct image_request request_of(enum image_kind kind, uint32_t flags)
{
    static uint64_t ticket = 7000;
    struct image_request request = {
        .version = image_protocol_version, .kind = kind, .flags = flags, .ticket = ticket++};
    return request;
}

static const struct made_spec marked_spec = {"JPEG", FORMAT_JPEG,    400,          320, 3,
                                             true,   .sampling = 22, .quality = 90};

static void test_embed_and_extract(void)
{
    struct image_client_options options = options_usual();
    struct image_client client = start(&options);
    struct codec_bytes file = make_picture(&marked_spec);
    int files[] = {file_of(file.data, file.size), -1, -1, file_of("", 0), file_of("", 0)};
    struct image_request request = request_of(IMAGE_WATERMARK_EMBED, IMAGE_WANTS_THUMBNAIL);
    request.watermark_number = 0x0123456789abcdefU;
    request.account_id = 7;
    struct image_answer answer = ask(&client, &request, files);
    CU_ASSERT_EQUAL_FATAL(answer.error, IW_OK);
    CU_ASSERT_EQUAL(answer.format, FORMAT_JPEG);
    CU_ASSERT(answer.width_px == 400 && answer.height_px == 320);
    CU_ASSERT(answer.psnr_hundredths > 3000 && answer.psnr_hundredths < 6000);
    struct codec_bytes marked = bytes_of(files[IMAGE_OUTPUT]);
    struct codec_bytes thumbnail = bytes_of(files[IMAGE_THUMBNAIL]);
    CU_ASSERT_EQUAL(answer.output_bytes, marked.size);
    CU_ASSERT_EQUAL(answer.thumbnail_bytes, thumbnail.size);
    CU_ASSERT_PTR_NOT_NULL(memmem(marked.data, marked.size, made_xmp, strlen(made_xmp)));

    int suspect[] = {files[IMAGE_OUTPUT], -1, -1, -1, -1};
    request = request_of(IMAGE_WATERMARK_EXTRACT, 0);
    request.account_id = 8; /* another account has another key */
    CU_ASSERT_EQUAL(ask(&client, &request, suspect).error, IW_WATERMARK_NOT_FOUND);
    request.account_id = 7;
    answer = ask(&client, &request, suspect);
    CU_ASSERT_EQUAL(answer.error, IW_OK);
    CU_ASSERT(answer.watermarks.count == 1 && answer.watermarks.numbers[0] == 0x0123456789abcdefU);

    int informed[] = {files[IMAGE_OUTPUT], files[IMAGE_INPUT], -1, -1, -1};
    request = request_of(IMAGE_WATERMARK_EXTRACT, IMAGE_HAS_ORIGINAL);
    request.account_id = 7;
    answer = ask(&client, &request, informed);
    CU_ASSERT_EQUAL(answer.error, IW_OK);
    CU_ASSERT(answer.watermarks.count == 1 && answer.watermarks.numbers[0] == 0x0123456789abcdefU);

    int unmarked[] = {files[IMAGE_INPUT], -1, -1, -1, files[IMAGE_THUMBNAIL]};
    request = request_of(IMAGE_WATERMARK_EXTRACT, IMAGE_WANTS_THUMBNAIL);
    request.account_id = 7;
    answer = ask(&client, &request, unmarked);
    CU_ASSERT_EQUAL(answer.error, IW_WATERMARK_NOT_FOUND);
    CU_ASSERT_EQUAL(answer.watermarks.count, 0);
    CU_ASSERT(answer.thumbnail_bytes > 0);

    CU_ASSERT_EQUAL(end(&client), 0);
    for (int i = 0; i < image_file_count; i++)
        close(files[i]);
    bytes_free(&file);
    bytes_free(&marked);
    bytes_free(&thumbnail);
}

/* make check sets srcdir. */
static const char *weights_path(void)
{
    static char path[4096];
    const char *sources = getenv("srcdir");
    snprintf(path, sizeof path, "%s/data/protect.weights", sources != NULL ? sources : "..");
    return path;
}

/* Each file of the fuzz target's corpus, good or damaged, gets an answer, so no decoder makes a forbidden
 * call. */
static void test_reading(void)
{
    struct image_client_options options = options_usual();
    char path[512];
    unsigned known = 0, good = 0;
    options.formats_more = ~0U;
    struct image_client client = start(&options);
    DIR *inputs = opendir("fuzz-corpus/fuzz_reading");
    CU_ASSERT_PTR_NOT_NULL_FATAL(inputs);
    for (const struct dirent *entry; (entry = readdir(inputs)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "fuzz-corpus/fuzz_reading/%s", entry->d_name);
        const int files[] = {open(path, O_RDONLY | O_CLOEXEC), -1, -1, -1, -1};
        const struct image_request request = request_of(IMAGE_WATERMARK_EXTRACT, 0);
        struct image_answer answer = ask(&client, &request, files);
        CU_ASSERT(answer.error != IW_OK);
        known += answer.error != IW_SERVER_INTERNAL_ERROR;
        good += answer.error == IW_WATERMARK_NOT_FOUND && answer.format > FORMAT_ZIP;
        close(files[IMAGE_INPUT]);
    }
    closedir(inputs);
    CU_ASSERT(known >= 50 && good >= 40);
    CU_ASSERT(end(&client) == 0);
}

static void test_anti_ai(void)
{
    struct image_client_options options = options_usual();
    options.weights_path = weights_path();
    struct image_client client = start(&options);
    struct codec_bytes file = make_picture(&marked_spec);
    int files[] = {file_of(file.data, file.size), -1, -1, file_of("", 0), file_of("", 0)};
    struct image_request request = request_of(IMAGE_ANTI_AI, IMAGE_WANTS_THUMBNAIL);
    request.strength = PROTECT_STANDARD;
    request.seed = 42;
    struct image_answer answer = ask(&client, &request, files);
    CU_ASSERT_EQUAL_FATAL(answer.error, IW_OK);
    CU_ASSERT(answer.psnr_hundredths > 3000 && answer.psnr_hundredths < 5500);
    struct codec_bytes result = bytes_of(files[IMAGE_OUTPUT]);
    CU_ASSERT_EQUAL(answer.output_bytes, result.size);
    CU_ASSERT(answer.thumbnail_bytes > 0);
    CU_ASSERT_PTR_NOT_NULL(memmem(result.data, result.size, "DMI-PROHIBITED-AIMLTRAINING", 27));
    CU_ASSERT_PTR_NOT_NULL(memmem(result.data, result.size, made_exif, made_exif_bytes));
    request.strength = protect_strength_count;
    CU_ASSERT_EQUAL(ask(&client, &request, files).error, IW_SERVER_INTERNAL_ERROR);
    CU_ASSERT_EQUAL(end(&client), 0);
    for (int i = 0; i < image_file_count; i++)
        if (files[i] >= 0)
            close(files[i]);
    bytes_free(&file);
    bytes_free(&result);
}

static void test_probe_and_refusals(void)
{
    struct image_client_options options = options_usual();
    options.pixels_max = 400 * 320;
    struct image_client client = start(&options);
    struct made_spec larger_spec = marked_spec;
    larger_spec.width_px++;
    struct codec_bytes file = make_picture(&marked_spec);
    struct codec_bytes larger = make_picture(&larger_spec);
    struct image_request request = request_of(IMAGE_PROBE, 0);
    int files[] = {file_of(file.data, file.size), -1, -1, -1, -1};
    int cut[] = {file_of(file.data, file.size / 2), -1, -1, file_of("", 0), -1};
    int large[] = {file_of(larger.data, larger.size), -1, -1, -1, -1};
    int empty[] = {file_of("", 0), -1, -1, -1, -1};
    CU_ASSERT_EQUAL(ask(&client, &request, files).error, IW_OK);
    CU_ASSERT_EQUAL(ask(&client, &request, large).error, IW_IMAGE_TOO_LARGE);
    CU_ASSERT_EQUAL(ask(&client, &request, empty).error, IW_IMAGE_FORMAT_UNSUPPORTED);
    request = request_of(IMAGE_WATERMARK_EMBED, 0);
    struct image_answer answer = ask(&client, &request, cut);
    CU_ASSERT_EQUAL(answer.error, IW_IMAGE_CORRUPT);
    CU_ASSERT(strlen(answer.sentence) > 0);
    CU_ASSERT_EQUAL(lseek(cut[IMAGE_OUTPUT], 0, SEEK_END), 0);
    request = request_of(IMAGE_ANTI_AI, 0);
    CU_ASSERT_EQUAL(ask(&client, &request, cut).error, IW_CONFIG_INVALID); /* no weights */
    /* Without an output file the request is invalid; the process reports this and continues. */
    CU_ASSERT_EQUAL(ask(&client, &request, files).error, IW_SERVER_INTERNAL_ERROR);
    CU_ASSERT_EQUAL(end(&client), 0);
    bytes_free(&file);
    bytes_free(&larger);
    close(files[0]);
    close(cut[0]);
    close(cut[IMAGE_OUTPUT]);
    close(large[0]);
    close(empty[0]);
}

/*
 * From one megapixel on, an extraction needs some 82 MiB besides the picture. A picture that does not fit is
 * refused by its header, before the memory is exhausted.
 */
static void test_extraction_estimate(void)
{
    static const struct {
        uint64_t memory_bytes;
        enum iw_error error;
    } cases[] = {{80 << 20, IW_IMAGE_TOO_LARGE}, {160 << 20, IW_WATERMARK_NOT_FOUND}};
    struct made_spec spec = {"PNG", FORMAT_PNG, 1200, 1100, 4, true, .depth_bits = 16};
    struct codec_bytes file = make_picture(&spec);
    int files[] = {file_of(file.data, file.size), -1, -1, -1, -1};
    int informed[] = {files[0], files[0], -1, -1, -1};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct image_client_options options = options_usual();
        options.memory_bytes = cases[i].memory_bytes;
        struct image_client client = start(&options);
        struct image_request request = request_of(IMAGE_WATERMARK_EXTRACT, 0);
        CU_ASSERT_EQUAL(ask(&client, &request, files).error, cases[i].error);
        request = request_of(IMAGE_WATERMARK_EXTRACT, IMAGE_HAS_ORIGINAL);
        struct image_answer answer = ask(&client, &request, informed);
        CU_ASSERT(answer.error == cases[i].error || answer.error == IW_WATERMARK_NOT_FOUND);
        CU_ASSERT_EQUAL(end(&client), 0);
    }
    close(files[0]);
    bytes_free(&file);
}

static void test_serves_its_share(void)
{
    struct image_client_options options = options_usual();
    options.images_max = 2;
    struct image_client client = start(&options);
    struct codec_bytes file = make_picture(&marked_spec);
    int files[] = {file_of(file.data, file.size), -1, -1, -1, -1};
    struct image_request request = request_of(IMAGE_PROBE, 0);
    struct image_answer answer = ask(&client, &request, files);
    CU_ASSERT_EQUAL(answer.is_last, 0);
    answer = ask(&client, &request, files);
    CU_ASSERT_EQUAL(answer.is_last, 1);
    CU_ASSERT_EQUAL(wait_for(&client, &answer, 120000), IMAGE_CLIENT_ENDED);
    fresh();
    CU_ASSERT_EQUAL(image_client_send(&context, &client, &request, files), IW_PROCESSING_CRASHED);
    CU_ASSERT_EQUAL(end(&client), 0);
    close(files[0]);
    bytes_free(&file);
}

enum { large_metadata_bytes = 15 << 20 };

/*
 * Large blocks return to the kernel after each picture. A process that still holds much more memory than at
 * its start answers that it is the last, and exits. The test makes it grow: a tunable of the C library keeps
 * all blocks in the heap.
 */
static void test_grown_process_ends(void)
{
#ifndef __SANITIZE_ADDRESS__ /* ASan has another allocator */
    struct image_client_options options = options_usual();
    options.memory_bytes = 256 << 20;
    struct image_client client = start(&options);
    struct made_spec spec = {"PNG", FORMAT_PNG, 300, 300, 3, true, .depth_bits = 8};
    struct codec_bytes plain = make_picture(&spec);
    spec.text_bytes = large_metadata_bytes;
    struct codec_bytes large = make_picture(&spec);
    int plain_files[] = {file_of(plain.data, plain.size), -1, -1, file_of("", 0), -1};
    int large_files[] = {file_of(large.data, large.size), -1, -1, file_of("", 0), -1};
    struct image_request request = request_of(IMAGE_WATERMARK_EMBED, 0);
    struct image_answer answer;
    for (int i = 0; i < 8; i++) {
        answer = ask(&client, &request, i % 2 == 0 ? plain_files : large_files);
        CU_ASSERT(answer.error == IW_OK && answer.is_last == 0);
    }
    CU_ASSERT_EQUAL(end(&client), 0);
    static const char script[] =
        "#!/bin/sh\nGLIBC_TUNABLES=glibc.malloc.mmap_max=0 exec ./imgward-image \"$@\"\n";
    options.program = "./image-in-heap";
    int file = open(options.program, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    CU_ASSERT_EQUAL_FATAL(write(file, script, sizeof script - 1), (ssize_t)sizeof script - 1);
    close(file);
    client = start(&options);
    unlink(options.program);
    answer.is_last = 0;
    for (int i = 0; i < 8 && answer.is_last == 0; i++) {
        answer = ask(&client, &request, i % 2 == 0 ? plain_files : large_files);
        CU_ASSERT_EQUAL(answer.error, IW_OK);
    }
    CU_ASSERT_EQUAL_FATAL(answer.is_last, 1);
    CU_ASSERT_EQUAL(wait_for(&client, &answer, 120000), IMAGE_CLIENT_ENDED);
    CU_ASSERT_EQUAL(end(&client), 0);
    close(plain_files[IMAGE_INPUT]);
    close(plain_files[IMAGE_OUTPUT]);
    close(large_files[IMAGE_INPUT]);
    close(large_files[IMAGE_OUTPUT]);
    bytes_free(&plain);
    bytes_free(&large);
#endif
}

#ifndef __SANITIZE_ADDRESS__ /* ASan reserves terabytes of addresses */
/* Limits the process to so many more bytes. */
static void room_leave(pid_t pid, size_t bytes)
{
    char path[64];
    size_t pages = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE *file = fopen(path, "r");
    CU_ASSERT_EQUAL_FATAL(fscanf(file, "%zu", &pages), 1);
    fclose(file);
    size_t most = pages * (size_t)sysconf(_SC_PAGESIZE) + bytes;
    const struct rlimit limit = {most, most};
    CU_ASSERT_EQUAL_FATAL(prlimit(pid, RLIMIT_AS, &limit, NULL), 0);
}
#endif

/* If the copy of the metadata does not fit, the process exits with a separate status. */
static void test_exit_without_memory(void)
{
#ifndef __SANITIZE_ADDRESS__ /* ASan reserves terabytes of addresses */
    struct image_client_options options = options_usual();
    struct image_client client = start(&options);
    char *xmp = malloc(large_metadata_bytes + 1);
    memset(xmp, ' ', large_metadata_bytes);
    xmp[large_metadata_bytes] = '\0';
    struct made_spec spec = {"PNG", FORMAT_PNG, 300, 300, 3, true, .xmp = xmp, .depth_bits = 8};
    struct codec_bytes file = make_picture(&spec);
    int files[] = {file_of(file.data, file.size), -1, -1, file_of("", 0), -1};
    struct image_request request = request_of(IMAGE_WATERMARK_EMBED, 0);
    struct image_answer answer;
    room_leave(client.pid, large_metadata_bytes / 4 * 7);
    fresh();
    CU_ASSERT_EQUAL(image_client_send(&context, &client, &request, files), IW_OK);
    CU_ASSERT_EQUAL(wait_for(&client, &answer, 120000), IMAGE_CLIENT_ENDED);
    int status = end(&client);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == image_exit_no_memory);
    close(files[IMAGE_INPUT]);
    close(files[IMAGE_OUTPUT]);
    bytes_free(&file);
    free(xmp);
#endif
}

/* A hanging process sends nothing; a dead one closes the socket. */
static void test_hangs_and_deaths(void)
{
    struct image_client_options options = options_usual();
    struct image_client client = start(&options);
    struct codec_bytes file = make_picture(&marked_spec);
    int files[] = {file_of(file.data, file.size), -1, -1, -1, -1};
    struct image_request request = request_of(IMAGE_PROBE, 0);
    struct image_answer answer;
    kill(client.pid, SIGSTOP);
    fresh();
    CU_ASSERT_EQUAL(image_client_send(&context, &client, &request, files), IW_OK);
    CU_ASSERT_EQUAL(wait_for(&client, &answer, 300), IMAGE_CLIENT_NOTHING);
    CU_ASSERT_EQUAL(image_client_receive(&client, &answer), IMAGE_CLIENT_NOTHING);
    image_client_kill(&client);
    CU_ASSERT_EQUAL(wait_for(&client, &answer, 120000), IMAGE_CLIENT_ENDED);
    int status = end(&client);
    CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    close(files[0]);
    bytes_free(&file);
}

/* Returns the event after one message of this size from a compromised process. */
static enum image_client_event told(const struct image_answer *message, size_t size,
                                    struct image_answer *answer)
{
    int ends[2];
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    const struct image_client client = {.pid = 0, .socket = ends[0]};
    CU_ASSERT_EQUAL(send(ends[1], message, size, 0), (ssize_t)size);
    enum image_client_event event = image_client_receive(&client, answer);
    close(ends[0]);
    close(ends[1]);
    return event;
}

static void test_answers_are_not_believed(void)
{
    const struct image_answer sound = {.version = image_protocol_version, .kind = IMAGE_ANTI_AI};
    struct image_answer message = sound, answer;
    CU_ASSERT_EQUAL(told(&message, sizeof message, &answer), IMAGE_CLIENT_ANSWER);
    CU_ASSERT_EQUAL(told(&message, sizeof message - 1, &answer), IMAGE_CLIENT_ENDED);
    CU_ASSERT_EQUAL(told(&message, 1, &answer), IMAGE_CLIENT_ENDED);
    message.version++;
    CU_ASSERT_EQUAL(told(&message, sizeof message, &answer), IMAGE_CLIENT_ENDED);
    message = sound;
    message.kind = image_kind_count;
    CU_ASSERT_EQUAL(told(&message, sizeof message, &answer), IMAGE_CLIENT_ENDED);
    message = sound;
    message.error = IW_ERROR_COUNT;
    CU_ASSERT_EQUAL(told(&message, sizeof message, &answer), IMAGE_CLIENT_ENDED);
    message.error = UINT32_MAX;
    CU_ASSERT_EQUAL(told(&message, sizeof message, &answer), IMAGE_CLIENT_ENDED);
    message = sound;
    message.watermarks.count = WATERMARK_NUMBERS_MOST + 1;
    CU_ASSERT_EQUAL(told(&message, sizeof message, &answer), IMAGE_CLIENT_ENDED);
    message = sound;
    message.protection_percent = 101;
    CU_ASSERT_EQUAL(told(&message, sizeof message, &answer), IMAGE_CLIENT_ENDED);
    message = sound;
    message.view.width = 255;
    message.view.height = 255;
    CU_ASSERT_EQUAL(told(&message, sizeof message, &answer), IMAGE_CLIENT_ENDED);
    memset(&message, 'x', sizeof message);
    message.view.width = 0;
    message.watermarks.count = WATERMARK_NUMBERS_MOST;
    message.protection_percent = 0;
    message.version = image_protocol_version;
    message.kind = IMAGE_PROBE;
    message.error = IW_IMAGE_CORRUPT;
    CU_ASSERT_EQUAL(told(&message, sizeof message, &answer), IMAGE_CLIENT_ANSWER);
    CU_ASSERT_EQUAL(strlen(answer.reason), sizeof answer.reason - 1);
    CU_ASSERT_EQUAL(strlen(answer.sentence), sizeof answer.sentence - 1);
    CU_ASSERT_EQUAL(strlen(answer.cause), sizeof answer.cause - 1);
    CU_ASSERT_EQUAL(strlen(answer.note), sizeof answer.note - 1);
    CU_ASSERT_STRING_EQUAL(answer.note_code, ""); /* codes are upper case */
    strcpy(message.note_code, "PROTECTION_REDUCED");
    CU_ASSERT_EQUAL(told(&message, sizeof message, &answer), IMAGE_CLIENT_ANSWER);
    CU_ASSERT_STRING_EQUAL(answer.note_code, "PROTECTION_REDUCED");
    strcpy(message.reason, "\xff\n' OR 1");
    CU_ASSERT_EQUAL(told(&message, sizeof message, &answer), IMAGE_CLIENT_ANSWER);
    CU_ASSERT_STRING_EQUAL(answer.reason, "");
}

static void test_bad_start(void)
{
    struct image_client_options options = options_usual();
    struct image_client client;
    struct image_answer answer;
    fresh();
    options.program = "./no-such-program";
    CU_ASSERT_EQUAL_FATAL(image_client_spawn(&context, &options, &client), IW_OK);
    CU_ASSERT_EQUAL(wait_for(&client, &answer, 120000), IMAGE_CLIENT_ENDED);
    CU_ASSERT_EQUAL(WEXITSTATUS(end(&client)), 127);
    options = options_usual();
    options.watermark_key_path = "/dev/null";
    CU_ASSERT_EQUAL_FATAL(image_client_spawn(&context, &options, &client), IW_OK);
    CU_ASSERT_EQUAL(wait_for(&client, &answer, 120000), IMAGE_CLIENT_ANSWER);
    CU_ASSERT_EQUAL(answer.kind, IMAGE_READY);
    CU_ASSERT_EQUAL(answer.error, IW_CONFIG_INVALID);
    CU_ASSERT_STRING_EQUAL(answer.sentence, "/dev/null must be a watermark key of 32 bytes.");
    CU_ASSERT_EQUAL(WEXITSTATUS(end(&client)), 2);
}

/* Makes a copy of the program; an upgrade replaces the copy. */
static void test_replaced_program(void)
{
    char program[] = "image-program-XXXXXX";
    struct image_client_options options = options_usual();
    struct image_client_files held;
    struct image_client client;
    struct image_answer answer;
    fresh();
    int copy = mkstemp(program), real = open("./imgward-image", O_RDONLY | O_CLOEXEC);
    struct stat facts;
    CU_ASSERT_FATAL(copy >= 0 && real >= 0 && fstat(real, &facts) == 0);
    for (off_t at = 0; at < facts.st_size;)
        CU_ASSERT_FATAL(sendfile(copy, real, &at, (size_t)(facts.st_size - at)) > 0);
    CU_ASSERT_EQUAL_FATAL(fchmod(copy, 0700), 0);
    close(copy);
    close(real);
    options.program = program;
    options.weights_path = key_path;
    CU_ASSERT_EQUAL_FATAL(image_client_files_open(&context, &options, &held), IW_OK);
    options.weights_path = NULL;
    CU_ASSERT_EQUAL(unlink(program), 0);
    CU_ASSERT_EQUAL(symlink("/bin/false", program), 0);
    CU_ASSERT_EQUAL_FATAL(image_client_spawn(&context, &options, &client), IW_OK);
    CU_ASSERT_EQUAL(wait_for(&client, &answer, 120000), IMAGE_CLIENT_ENDED);
    CU_ASSERT_EQUAL(WEXITSTATUS(end(&client)), 1);
    /* The held file contains no weights. Only this program reports that; /bin/false would not. */
    options.files = &held;
    options.weights_path = key_path;
    CU_ASSERT_EQUAL_FATAL(image_client_spawn(&context, &options, &client), IW_OK);
    CU_ASSERT_EQUAL(wait_for(&client, &answer, 120000), IMAGE_CLIENT_ANSWER);
    CU_ASSERT_EQUAL(answer.error, IW_WEIGHTS_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(answer.sentence, key_path));
    CU_ASSERT_EQUAL(WEXITSTATUS(end(&client)), 2);
    close(held.weights);
    held.weights = open(weights_path(), O_RDONLY | O_CLOEXEC);
    CU_ASSERT_FATAL(held.weights >= 0);
    client = start(&options);
    CU_ASSERT_EQUAL(end(&client), 0);
    image_client_files_close(&held);
    CU_ASSERT_EQUAL(unlink(program), 0);
    options.program = "./no-such-program";
    options.weights_path = weights_path();
    CU_ASSERT_EQUAL(image_client_files_open(&context, &options, &held), IW_CONFIG_INVALID);
}

static void test_other_build(void)
{
    char *const builds[][4] = {{"imgward-image", "--build", "0.0.1/1", NULL}, {"imgward-image", NULL}};
    for (int i = 0; i < 2; i++) {
        int status = 0;
        pid_t pid = fork();
        if (pid == 0) {
            execv("./imgward-image", builds[i]);
            _exit(127);
        }
        CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
        CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == image_exit_other_build);
    }
}

static void key_make(void)
{
    int file = mkstemp(key_path);
    if (file < 0 || write(file, "0123456789abcdef0123456789abcdef", 32) != 32)
        abort();
    close(file);
}

/* ---- a plain container: no capabilities, no new privileges, the container's seccomp rules ---- */

/* Calls that the rules of a container refuse with EPERM, as Docker's do. */
struct container {
    bool has_landlock;
    bool has_seccomp;
};

static void capabilities_drop(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2];
    memset(none, 0, sizeof none);
    for (int capability = 0; capability <= 63; capability++)
        prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
    if (syscall(SYS_capset, &head, none) != 0)
        _exit(70);
}

static void rules_load(const struct container *container)
{
    static const int refused[] = {
        SCMP_SYS(unshare), SCMP_SYS(setns),  SCMP_SYS(mount),  SCMP_SYS(ptrace),
        SCMP_SYS(bpf),     SCMP_SYS(chroot), SCMP_SYS(keyctl), SCMP_SYS(perf_event_open)};
    static const int landlock[] = {SYS_landlock_create_ruleset, SYS_landlock_add_rule,
                                   SYS_landlock_restrict_self};
    struct scmp_arg_cmp filter = {0, SCMP_CMP_EQ, PR_SET_SECCOMP, 0};
    scmp_filter_ctx rules = seccomp_init(SCMP_ACT_ALLOW);
    int failed = rules == NULL;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        failed |= seccomp_rule_add(rules, SCMP_ACT_ERRNO(EPERM), refused[i], 0);
    for (size_t i = 0; i < 3 && !container->has_landlock; i++)
        failed |= seccomp_rule_add(rules, SCMP_ACT_ERRNO(EPERM), landlock[i], 0);
    if (!container->has_seccomp) {
        failed |= seccomp_rule_add(rules, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(seccomp), 0);
        failed |= seccomp_rule_add_array(rules, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(prctl), 1, &filter);
    }
    if (failed != 0 || seccomp_load(rules) != 0)
        _exit(71);
    seccomp_release(rules);
}

/* Returns the exit status of a child in such a container. */
static int contained(const struct container *container, int (*action)(void))
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        capabilities_drop();
        rules_load(container);
        _exit(action());
    }
    int status = -1;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Marks a picture in a process of this container. Returns 0, or the number of the failed step. */
static int mark_in(bool is_unsealed_allowed, unsigned missing)
{
    struct image_client_options options = options_usual();
    struct image_client client;
    struct image_answer answer;
    struct codec_bytes file = make_picture(&marked_spec);
    int files[] = {file_of(file.data, file.size), -1, -1, file_of("", 0), -1};
    struct image_request request = request_of(IMAGE_WATERMARK_EMBED, 0);
    options.is_unsealed_allowed = is_unsealed_allowed;
    fresh();
    if (image_client_spawn(&context, &options, &client) != IW_OK ||
        wait_for(&client, &answer, 120000) != IMAGE_CLIENT_ANSWER)
        return 1;
    if (answer.kind != IMAGE_READY || answer.seal_missing != missing)
        return 2;
    if (((missing & SEAL_SECCOMP) != 0) != (answer.cause[0] != '\0'))
        return 3;
    if (image_client_send(&context, &client, &request, files) != IW_OK ||
        wait_for(&client, &answer, 240000) != IMAGE_CLIENT_ANSWER || answer.error != IW_OK)
        return 4;
    return answer.output_bytes > 0 && end(&client) == 0 ? 0 : 5;
}

static int mark_sealed(void)
{
    return mark_in(false, 0);
}

static int mark_without_landlock(void)
{
    return mark_in(false, SEAL_LANDLOCK);
}

static int mark_without_seccomp(void)
{
    return mark_in(true, SEAL_SECCOMP);
}

static int mark_without_both(void)
{
    return mark_in(true, SEAL_SECCOMP | SEAL_LANDLOCK);
}

/* Without permission, the process does not start unsealed. */
static int refuse_to_start(void)
{
    struct image_client_options options = options_usual();
    struct image_client client;
    struct image_answer answer;
    options.is_unsealed_allowed = false;
    fresh();
    if (image_client_spawn(&context, &options, &client) != IW_OK)
        return 1;
    if (wait_for(&client, &answer, 120000) != IMAGE_CLIENT_ANSWER || answer.error != IW_SERVICE_UNAVAILABLE)
        return 2;
    if (strstr(answer.sentence, "refused seccomp (EPERM)") == NULL)
        return 3;
    return WEXITSTATUS(end(&client)) == 2 ? 0 : 4;
}

/* With Landlock only, files are blocked by name, and TCP if the kernel supports that rule. */
static int reach_out(void)
{
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons(9)};
    unsigned missing = 0;
    struct context own;
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, 1);
    context_init(&own, arena_new(0), NULL);
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (seal_process(&own, &test_limits, image_socket, &missing) == IW_OK || missing != SEAL_SECCOMP)
        return 1;
    if (open("/etc/passwd", O_RDONLY) >= 0 || errno != EACCES)
        return 2;
    if (open("/tmp/imgward-sealed", O_WRONLY | O_CREAT, 0600) >= 0 || errno != EACCES)
        return 3;
    if (execl("/bin/true", "true", (char *)NULL) == 0 || errno != EACCES)
        return 4;
    int one = socket(AF_INET, SOCK_STREAM, 0);
    if (abi >= 4 && (connect(one, (struct sockaddr *)&place, sizeof place) == 0 || errno != EACCES))
        return 5;
    return 0;
}

static void test_plain_container(void)
{
    static const struct container docker = {true, true}, old = {false, true}, odd = {true, false},
                                  bare = {false, false};
    bool has_landlock = syscall(SYS_landlock_create_ruleset, NULL, 0, 1) > 0;
    if (is_seal_refused)
        return;
    CU_ASSERT_EQUAL(contained(&old, mark_without_landlock), 0);
    CU_ASSERT_EQUAL(contained(&bare, mark_without_both), 0);
    CU_ASSERT_EQUAL(contained(&odd, refuse_to_start), 0);
    CU_ASSERT_EQUAL(contained(&bare, refuse_to_start), 0);
    if (!has_landlock) {
        printf("skipped: this machine has no Landlock ");
        return;
    }
    CU_ASSERT_EQUAL(contained(&docker, mark_sealed), 0);
    CU_ASSERT_EQUAL(contained(&odd, mark_without_seccomp), 0);
    CU_ASSERT_EQUAL(contained(&odd, reach_out), 0);
}

static void do_nothing(void)
{
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"embed and extract", test_embed_and_extract},
        {"formats that are only read", test_reading},
        {"anti-AI protection", test_anti_ai},
        {"probe and refusals", test_probe_and_refusals},
        {"a process serves its share", test_serves_its_share},
        {"a process that grew ends", test_grown_process_ends},
        {"the exit status without memory", test_exit_without_memory},
        {"the estimate of an extraction", test_extraction_estimate},
        {"hangs and deaths are seen", test_hangs_and_deaths},
        {"a bad start is seen", test_bad_start},
        {"processes are of the worker's build after the file was replaced", test_replaced_program},
        {"a process of another build does not start", test_other_build},
        {"answers are not believed", test_answers_are_not_believed},
        {"a plain container", test_plain_container},
        CU_TEST_INFO_NULL,
    };
    context_init(&context, arena_new(0), NULL);
    key_make();
    is_seal_refused = is_refused(sealed_status(do_nothing, &test_limits));
    int code = runner_run("image process", tests);
    unlink(key_path);
    arena_free(context.arena);
    return code;
}
