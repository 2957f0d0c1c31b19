#include "image/image_client.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "model/format.h"

enum { arguments_max = 24, number_bytes = 24, program_descriptor = image_weights + 1 };

static const char weights_held[] = "/proc/self/fd/4";
_Static_assert(image_weights == 4, "weights_held has the number");

struct image_client_options image_client_options_of(const struct config *config)
{
    const char *key_path = config->image_watermark_key_file;
    return (struct image_client_options){
        .program = config->worker_image_program,
        .weights_path = config->image_weights_file,
        .watermark_key_path = access(key_path, R_OK) == 0 ? key_path : NULL,
        .memory_bytes = (uint64_t)config->image_memory_max_bytes,
        .cpu_seconds = (unsigned)config->image_timeout_s,
        .pixels_max = (uint64_t)config->image_pixels_max,
        .side_max_px = (uint32_t)config->image_side_max_px,
        .images_max = (unsigned)config->worker_images_per_process,
        .formats_more = formats_taken(config, ORDER_WATERMARK_EXTRACT),
        .growth_max_percent = (unsigned)config->image_protect_growth_max_percent,
        .is_unsealed_allowed = config->worker_allow_unsealed,
    };
}

enum iw_error image_client_files_open(struct context *context, const struct image_client_options *options,
                                      struct image_client_files *files)
{
    files->program = open(options->program, O_PATH | O_CLOEXEC);
    files->weights = open(options->weights_path, O_RDONLY | O_CLOEXEC);
    if (files->program >= 0 && files->weights >= 0)
        return IW_OK;
    return context_fail(context, IW_CONFIG_INVALID, "%s cannot be opened: %s.",
                        files->program < 0 ? options->program : options->weights_path, strerror(errno));
}

void image_client_files_close(struct image_client_files *files)
{
    if (files->program >= 0)
        close(files->program);
    if (files->weights >= 0)
        close(files->weights);
    *files = (struct image_client_files){-1, -1};
}

/* Program and arguments of the process. Built before the fork, because nothing may allocate after it. */
struct spawn_plan {
    const char *program;
    const struct image_client_files *files;
    const char *arguments[arguments_max + 1];
    size_t argument_count;
    char numbers[arguments_max][number_bytes];
};

static void plan_text(struct spawn_plan *plan, const char *name, const char *value)
{
    if (value == NULL)
        return;
    plan->arguments[plan->argument_count++] = name;
    plan->arguments[plan->argument_count++] = value;
}

static void plan_number(struct spawn_plan *plan, const char *name, uint64_t value)
{
    char *text = plan->numbers[plan->argument_count];
    if (value == 0)
        return;
    snprintf(text, number_bytes, "%" PRIu64, value);
    plan_text(plan, name, text);
}

static void plan_make(struct spawn_plan *plan, const struct image_client_options *options)
{
    memset(plan, 0, sizeof *plan);
    plan->program = options->program != NULL ? options->program : IW_LIBEXECDIR "/imgward-image";
    plan->files = options->files;
    plan->arguments[plan->argument_count++] = "imgward-image";
    plan_text(plan, "--build", IMAGE_BUILD);
    plan_text(plan, "--weights", options->files != NULL ? weights_held : options->weights_path);
    plan_text(plan, "--weights-name", options->files != NULL ? options->weights_path : NULL);
    plan_text(plan, "--watermark-key", options->watermark_key_path);
    plan_number(plan, "--memory-bytes", options->memory_bytes);
    plan_number(plan, "--cpu-seconds", options->cpu_seconds);
    plan_number(plan, "--pixels-max", options->pixels_max);
    plan_number(plan, "--side-max", options->side_max_px);
    plan_number(plan, "--images-max", options->images_max);
    plan_number(plan, "--formats-more", options->formats_more);
    plan_number(plan, "--growth-max", options->growth_max_percent);
    if (options->is_unsealed_allowed)
        plan->arguments[plan->argument_count++] = "--allow-unsealed";
}

/* Out of memory, the kernel must kill an image process, and not the worker or the database. */
static void oom_first(void)
{
    static const char score[] = "500";
    int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    /* Only a preference: without /proc the kernel chooses by size. */
    if (file >= 0 && write(file, score, sizeof score - 1) >= 0)
        close(file);
}

/*
 * Gives the socket and the held files their numbers and closes all other descriptors. First moves
 * each away, so that no dup2 overwrites the source of a later one.
 */
static bool descriptors_place(int socket, const struct image_client_files *files)
{
    const int sources[] = {socket, files != NULL ? files->weights : -1, files != NULL ? files->program : -1};
    static const int places[] = {image_socket, image_weights, program_descriptor};
    int kept[3], null = open("/dev/null", O_RDWR);
    bool is_placed = null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(null, STDOUT_FILENO) >= 0;
    for (int i = 0; i < 3 && is_placed; i++)
        kept[i] = sources[i] < 0 ? -1 : fcntl(sources[i], F_DUPFD, program_descriptor + 1);
    for (int i = 0; i < 3 && is_placed; i++)
        is_placed = sources[i] < 0 ? close(places[i]) == 0 || errno == EBADF
                                   : kept[i] >= 0 && dup2(kept[i], places[i]) >= 0;
    close_range(program_descriptor + 1, ~0U, 0);
    fcntl(program_descriptor, F_SETFD, FD_CLOEXEC);
    return is_placed;
}

/* Runs in the child with async-signal-safe calls only. Does not return. */
static void spawn_child(const struct spawn_plan *plan, int socket)
{
    /* Numeric libraries use one thread; buffers of a picture's size use huge pages. */
    const char *const environment[] = {
        "LC_ALL=C",           "OMP_NUM_THREADS=1", "GLIBC_TUNABLES=glibc.malloc.hugetlb=1",
        "PATH=/usr/bin:/bin", fault_environment(), NULL,
    };
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    oom_first();
    if (!descriptors_place(socket, plan->files))
        _exit(126);
    char *const *arguments = (char *const *)(uintptr_t)plan->arguments;
    char *const *variables = (char *const *)(uintptr_t)environment;
    if (plan->files != NULL)
        execveat(program_descriptor, "", arguments, variables, AT_EMPTY_PATH);
    /* A script cannot run from a descriptor that is closed on exec (ENOENT); tests use a script. */
    if (plan->files == NULL || errno == ENOENT)
        execve(plan->program, arguments, variables);
    _exit(image_exit_not_run);
}

enum iw_error image_client_spawn(struct context *context, const struct image_client_options *options,
                                 struct image_client *client)
{
    struct spawn_plan plan;
    int ends[2];
    client->pid = 0;
    client->socket = -1;
    plan_make(&plan, options);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        context_cause(context, "socketpair: %s", strerror(errno));
        return context_fail(context, IW_IO_FAILED, NULL);
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    pid_t pid = fault_fails(FAULT_PROCESS_SPAWN, "image") ? -1 : fork();
    if (pid == 0)
        spawn_child(&plan, ends[1]);
    close(ends[1]);
    if (pid < 0) {
        context_cause(context, "fork: %s", strerror(errno));
        close(ends[0]);
        return context_fail(context, IW_IO_FAILED, NULL);
    }
    client->pid = pid;
    client->socket = ends[0];
    return IW_OK;
}

enum iw_error image_client_send(struct context *context, const struct image_client *client,
                                const struct image_request *request, const int files[image_file_count])
{
    int packed[image_file_count];
    size_t count = 0;
    for (int i = 0; i < image_file_count; i++)
        if (files[i] >= 0)
            packed[count++] = files[i];
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof packed)];
    } control;
    struct iovec part = {(void *)(uintptr_t)request, sizeof *request};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    memset(&control, 0, sizeof control);
    if (count > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(&control.head), packed, count * sizeof(int));
    }
    if (sendmsg(client->socket, &message, MSG_NOSIGNAL) == (ssize_t)sizeof *request)
        return fault_fails(FAULT_MESSAGE_SENT, "image request") ? context_fail(context, IW_IO_FAILED, NULL)
                                                                : IW_OK;
    context_cause(context, "sendmsg to the image process: %s", strerror(errno));
    return context_fail(context, errno == EAGAIN ? IW_SERVICE_UNAVAILABLE : IW_PROCESSING_CRASHED, NULL);
}

/*
 * Terminates the texts, clears malformed words and validates the numbers. A picture may have
 * compromised the process. A reason is a lower-case word for log, metric and database; a note's
 * code is an upper-case word for client and database.
 */
static bool answer_is_sound(struct image_answer *answer)
{
    static const char lower[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    static const char upper[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    answer->reason[sizeof answer->reason - 1] = '\0';
    answer->sentence[sizeof answer->sentence - 1] = '\0';
    answer->cause[sizeof answer->cause - 1] = '\0';
    answer->note_code[sizeof answer->note_code - 1] = '\0';
    answer->note[sizeof answer->note - 1] = '\0';
    answer->watermark_key_id[sizeof answer->watermark_key_id - 1] = '\0';
    if (answer->reason[strspn(answer->reason, lower)] != '\0')
        answer->reason[0] = '\0';
    if (answer->note_code[strspn(answer->note_code, upper)] != '\0')
        answer->note_code[0] = '\0';
    return answer->version == image_protocol_version && answer->kind < image_kind_count &&
           answer->error < IW_ERROR_COUNT && answer->watermarks.count <= WATERMARK_NUMBERS_MOST &&
           answer->view.width * answer->view.height <= WATERMARK_VIEW_PX_MOST &&
           answer->protection_percent <= 100;
}

enum image_client_event image_client_receive(const struct image_client *client, struct image_answer *answer)
{
    ssize_t got = recv(client->socket, answer, sizeof *answer, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return IMAGE_CLIENT_NOTHING;
    if (got != (ssize_t)sizeof *answer || !answer_is_sound(answer))
        return IMAGE_CLIENT_ENDED;
    fault_point(FAULT_MESSAGE_TAKEN, answer->kind == IMAGE_READY ? "image ready" : "image answer");
    return IMAGE_CLIENT_ANSWER;
}

void image_client_kill(const struct image_client *client)
{
    if (client->pid > 0)
        kill(client->pid, SIGKILL);
}

void image_client_close(struct image_client *client)
{
    if (client->socket >= 0)
        close(client->socket);
    client->socket = -1;
}
