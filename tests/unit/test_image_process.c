/* The seal, and the image process behind it, by its own protocol. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <CUnit/Basic.h>

#include <imgward/protect.h>

#include "picture_maker.h"
#include "worker/image_client.h"
#include "worker/seal.h"

static struct context context;
static bool is_seal_refused;

static void fresh(void)
{
    arena_reset(context.arena);
    context_clear(&context);
}

/* ---- the seal ---- */

static void try_open(void)
{
    open("/etc/passwd", O_RDONLY);
}

static void try_create(void)
{
    open("/tmp/imgward-sealed", O_WRONLY | O_CREAT, 0600);
}

static void try_socket(void)
{
    socket(AF_INET, SOCK_STREAM, 0);
}

static void try_unix_socket(void)
{
    int ends[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
}

static void try_fork(void)
{
    if (fork() == 0)
        _exit(0);
}

static void try_thread(void)
{
    syscall(SYS_clone, 0x10f00, NULL, NULL, NULL, NULL);
}

static void try_execute(void)
{
    execl("/bin/true", "true", (char *)NULL);
}

static void try_executable_mapping(void)
{
    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void try_executable_protection(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
}

static void try_kill_parent(void)
{
    kill(getppid(), 0);
}

static void try_other_limits(void)
{
    struct rlimit limit = {0, 0};
    getrlimit(RLIMIT_NOFILE, &limit);
}

static void try_stat(void)
{
    access("/etc", F_OK);
}

static void try_message_elsewhere(void)
{
    char byte = 0;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    sendmsg(1, &message, 0);
}

static const struct seal_limits test_limits = {(uint64_t)256 << 20, 1 << 20, 10};

/* What a child that seals itself and then does this ends with; its wait status. */
static int sealed_status(void (*action)(void), const struct seal_limits *limits)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct context own;
        context_init(&own, arena_new(0), NULL);
        if (seal_process(&own, limits, image_socket) != IW_OK)
            _exit(77);
        action();
        _exit(0);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    return status;
}

static void test_seal_kills(void)
{
    static const struct {
        const char *name;
        void (*action)(void);
    } attempts[] = {
        {"opening a file", try_open},
        {"creating a file", try_create},
        {"a network socket", try_socket},
        {"a unix socket", try_unix_socket},
        {"a process", try_fork},
        {"a thread", try_thread},
        {"another program", try_execute},
        {"an executable mapping", try_executable_mapping},
        {"executable protection", try_executable_protection},
        {"a signal to the parent", try_kill_parent},
        {"another limit", try_other_limits},
        {"looking for a file", try_stat},
        {"a message elsewhere", try_message_elsewhere},
    };
    for (size_t i = 0; i < sizeof attempts / sizeof attempts[0]; i++) {
        int status = sealed_status(attempts[i].action, &test_limits);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
            is_seal_refused = true;
            printf("skipped: this machine refuses seccomp ");
            return;
        }
        CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
        if (!WIFSIGNALED(status))
            printf("%s was allowed\n", attempts[i].name);
    }
}

static void work_plainly(void)
{
    unsigned char *memory = malloc(20 << 20);
    memset(memory, 1, 20 << 20);
    struct made_spec spec = {"PNG", CODEC_PNG, 97, 71, 3, true, .depth_bits = 8};
    struct codec_bytes file = make_picture(&spec);
    if (memory[12345] != 1 || file.size == 0)
        _exit(1);
    free(memory);
}

static void pass_memory(void)
{
    if (malloc((size_t)1 << 30) == NULL)
        _exit(5);
}

static void pass_cpu_time(void)
{
    seal_cpu_seconds(1);
    for (volatile unsigned turns = 0;; turns++)
        continue;
}

static void abort_plainly(void)
{
    abort();
}

static void test_seal_leaves_work(void)
{
    if (is_seal_refused)
        return;
    CU_ASSERT_EQUAL(sealed_status(work_plainly, &test_limits), 0);
    int status = sealed_status(abort_plainly, &test_limits);
    CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void test_seal_bounds(void)
{
    if (is_seal_refused)
        return;
    int status = sealed_status(pass_cpu_time, &test_limits);
    CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU);
#ifndef __SANITIZE_ADDRESS__
    status = sealed_status(pass_memory, &test_limits);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 5);
#else
    (void)pass_memory;
#endif
}

/* ---- the process ---- */

static char key_path[] = "image-key-XXXXXX";

static struct image_client_options options_usual(void)
{
    struct image_client_options options = {
        .program = "./imgward-image", .watermark_key_path = key_path, .is_unsealed_allowed = is_seal_refused};
    return options;
}

/* A nameless file holding the bytes. */
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
    CU_ASSERT_EQUAL_FATAL(wait_for(&client, &answer, 10000), IMAGE_CLIENT_ANSWER);
    CU_ASSERT_EQUAL(answer.kind, IMAGE_READY);
    CU_ASSERT_EQUAL(answer.is_unsealed, is_seal_refused);
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
    CU_ASSERT_EQUAL_FATAL(wait_for(client, &answer, 60000), IMAGE_CLIENT_ANSWER);
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

static const struct made_spec marked_spec = {"JPEG", CODEC_JPEG,     400,          320, 3,
                                             true,   .sampling = 22, .quality = 90};

static void test_embed_and_extract(void)
{
    struct image_client_options options = options_usual();
    struct image_client client = start(&options);
    struct codec_bytes file = make_picture(&marked_spec);
    int files[] = {file_of(file.data, file.size), -1, file_of("", 0), file_of("", 0)};
    struct image_request request = request_of(IMAGE_WATERMARK_EMBED, IMAGE_WANTS_THUMBNAIL);
    request.watermark_number = 0x0123456789abcdefU;
    struct image_answer answer = ask(&client, &request, files);
    CU_ASSERT_EQUAL_FATAL(answer.error, IW_OK);
    CU_ASSERT_EQUAL(answer.format, CODEC_JPEG);
    CU_ASSERT(answer.width_px == 400 && answer.height_px == 320);
    CU_ASSERT(answer.psnr_hundredths > 3800 && answer.psnr_hundredths < 6000);
    struct codec_bytes marked = bytes_of(files[IMAGE_OUTPUT]);
    struct codec_bytes thumbnail = bytes_of(files[IMAGE_THUMBNAIL]);
    CU_ASSERT_EQUAL(answer.output_bytes, marked.size);
    CU_ASSERT_EQUAL(answer.thumbnail_bytes, thumbnail.size);
    CU_ASSERT_PTR_NOT_NULL(memmem(marked.data, marked.size, made_xmp, strlen(made_xmp)));

    int suspect[] = {files[IMAGE_OUTPUT], -1, -1, -1};
    request = request_of(IMAGE_WATERMARK_EXTRACT, 0);
    answer = ask(&client, &request, suspect);
    CU_ASSERT_EQUAL(answer.error, IW_OK);
    CU_ASSERT_EQUAL(answer.watermark_number, 0x0123456789abcdefU);

    int informed[] = {files[IMAGE_OUTPUT], files[IMAGE_INPUT], -1, -1};
    request = request_of(IMAGE_WATERMARK_EXTRACT, IMAGE_HAS_ORIGINAL);
    answer = ask(&client, &request, informed);
    CU_ASSERT_EQUAL(answer.error, IW_OK);
    CU_ASSERT_EQUAL(answer.watermark_number, 0x0123456789abcdefU);

    int unmarked[] = {files[IMAGE_INPUT], -1, -1, files[IMAGE_THUMBNAIL]};
    request = request_of(IMAGE_WATERMARK_EXTRACT, IMAGE_WANTS_THUMBNAIL);
    answer = ask(&client, &request, unmarked);
    CU_ASSERT_EQUAL(answer.error, IW_WATERMARK_NOT_FOUND);
    CU_ASSERT_EQUAL(answer.watermark_number, 0);
    CU_ASSERT(answer.thumbnail_bytes > 0);

    CU_ASSERT_EQUAL(end(&client), 0);
    for (int i = 0; i < image_file_count; i++)
        close(files[i]);
    codec_bytes_free(&file);
    codec_bytes_free(&marked);
    codec_bytes_free(&thumbnail);
}

/* make check tells where the sources are. */
static const char *weights_path(void)
{
    static char path[4096];
    const char *sources = getenv("srcdir");
    snprintf(path, sizeof path, "%s/data/protect.weights", sources != NULL ? sources : "..");
    return path;
}

static void test_anti_ai(void)
{
    struct image_client_options options = options_usual();
    options.weights_path = weights_path();
    struct image_client client = start(&options);
    struct codec_bytes file = make_picture(&marked_spec);
    int files[] = {file_of(file.data, file.size), -1, file_of("", 0), file_of("", 0)};
    struct image_request request = request_of(IMAGE_ANTI_AI, IMAGE_WANTS_THUMBNAIL);
    request.strength = PROTECT_STANDARD;
    request.seed = 42;
    struct image_answer answer = ask(&client, &request, files);
    CU_ASSERT_EQUAL_FATAL(answer.error, IW_OK);
    CU_ASSERT(answer.psnr_hundredths >= 3660 && answer.psnr_hundredths <= 3750);
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
    codec_bytes_free(&file);
    codec_bytes_free(&result);
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
    int files[] = {file_of(file.data, file.size), -1, -1, -1};
    int cut[] = {file_of(file.data, file.size / 2), -1, file_of("", 0), -1};
    int large[] = {file_of(larger.data, larger.size), -1, -1, -1};
    int empty[] = {file_of("", 0), -1, -1, -1};
    CU_ASSERT_EQUAL(ask(&client, &request, files).error, IW_OK);
    CU_ASSERT_EQUAL(ask(&client, &request, large).error, IW_IMAGE_TOO_LARGE);
    CU_ASSERT_EQUAL(ask(&client, &request, empty).error, IW_IMAGE_FORMAT_UNSUPPORTED);
    request = request_of(IMAGE_WATERMARK_EMBED, 0);
    struct image_answer answer = ask(&client, &request, cut);
    CU_ASSERT_EQUAL(answer.error, IW_IMAGE_CORRUPT);
    CU_ASSERT(strlen(answer.sentence) > 0);
    CU_ASSERT_EQUAL(lseek(cut[IMAGE_OUTPUT], 0, SEEK_END), 0);
    request = request_of(IMAGE_ANTI_AI, 0);
    CU_ASSERT_EQUAL(ask(&client, &request, cut).error, IW_CONFIG_INVALID); /* no weights were given */
    /* Without its output the request makes no sense; the process says so and lives. */
    CU_ASSERT_EQUAL(ask(&client, &request, files).error, IW_SERVER_INTERNAL_ERROR);
    CU_ASSERT_EQUAL(end(&client), 0);
    codec_bytes_free(&file);
    codec_bytes_free(&larger);
    close(files[0]);
    close(cut[0]);
    close(cut[IMAGE_OUTPUT]);
    close(large[0]);
    close(empty[0]);
}

static void test_serves_its_share(void)
{
    struct image_client_options options = options_usual();
    options.images_max = 2;
    struct image_client client = start(&options);
    struct codec_bytes file = make_picture(&marked_spec);
    int files[] = {file_of(file.data, file.size), -1, -1, -1};
    struct image_request request = request_of(IMAGE_PROBE, 0);
    struct image_answer answer = ask(&client, &request, files);
    CU_ASSERT_EQUAL(answer.is_last, 0);
    answer = ask(&client, &request, files);
    CU_ASSERT_EQUAL(answer.is_last, 1);
    CU_ASSERT_EQUAL(wait_for(&client, &answer, 10000), IMAGE_CLIENT_ENDED);
    fresh();
    CU_ASSERT_EQUAL(image_client_send(&context, &client, &request, files), IW_PROCESSING_CRASHED);
    CU_ASSERT_EQUAL(end(&client), 0);
    close(files[0]);
    codec_bytes_free(&file);
}

/* A process that hangs says nothing; one that dies ends the socket. */
static void test_hangs_and_deaths(void)
{
    struct image_client_options options = options_usual();
    struct image_client client = start(&options);
    struct codec_bytes file = make_picture(&marked_spec);
    int files[] = {file_of(file.data, file.size), -1, -1, -1};
    struct image_request request = request_of(IMAGE_PROBE, 0);
    struct image_answer answer;
    kill(client.pid, SIGSTOP);
    fresh();
    CU_ASSERT_EQUAL(image_client_send(&context, &client, &request, files), IW_OK);
    CU_ASSERT_EQUAL(wait_for(&client, &answer, 300), IMAGE_CLIENT_NOTHING);
    CU_ASSERT_EQUAL(image_client_receive(&client, &answer), IMAGE_CLIENT_NOTHING);
    image_client_kill(&client);
    CU_ASSERT_EQUAL(wait_for(&client, &answer, 10000), IMAGE_CLIENT_ENDED);
    int status = end(&client);
    CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    close(files[0]);
    codec_bytes_free(&file);
}

static void test_bad_start(void)
{
    struct image_client_options options = options_usual();
    struct image_client client;
    struct image_answer answer;
    fresh();
    options.program = "./no-such-program";
    CU_ASSERT_EQUAL_FATAL(image_client_spawn(&context, &options, &client), IW_OK);
    CU_ASSERT_EQUAL(wait_for(&client, &answer, 10000), IMAGE_CLIENT_ENDED);
    CU_ASSERT_EQUAL(WEXITSTATUS(end(&client)), 127);
    options = options_usual();
    options.watermark_key_path = "/dev/null";
    CU_ASSERT_EQUAL_FATAL(image_client_spawn(&context, &options, &client), IW_OK);
    CU_ASSERT_EQUAL(wait_for(&client, &answer, 10000), IMAGE_CLIENT_ENDED);
    CU_ASSERT_EQUAL(WEXITSTATUS(end(&client)), 2);
}

static void key_make(void)
{
    int file = mkstemp(key_path);
    if (file < 0 || write(file, "0123456789abcdef0123456789abcdef", 32) != 32)
        abort();
    close(file);
}

int main(void)
{
    static const CU_TestInfo tests[] = {
        {"what is sealed off kills", test_seal_kills},
        {"plain work goes on sealed", test_seal_leaves_work},
        {"memory and CPU time are bounded", test_seal_bounds},
        {"embed and extract", test_embed_and_extract},
        {"anti-AI protection", test_anti_ai},
        {"probe and refusals", test_probe_and_refusals},
        {"a process serves its share", test_serves_its_share},
        {"hangs and deaths are seen", test_hangs_and_deaths},
        {"a bad start is seen", test_bad_start},
        CU_TEST_INFO_NULL,
    };
    CU_SuiteInfo suites[] = {{"image process", NULL, NULL, NULL, NULL, (CU_TestInfo *)(uintptr_t)tests},
                             CU_SUITE_INFO_NULL};
    context_init(&context, arena_new(0), NULL);
    key_make();
    if (CU_initialize_registry() != CUE_SUCCESS || CU_register_suites(suites) != CUE_SUCCESS)
        return 2;
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    unlink(key_path);
    arena_free(context.arena);
    return failures != 0;
}
