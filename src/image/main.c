/*
 * imgward-image, which the worker starts. Loads weights and key, seals itself and serves pictures on
 * descriptor
 * 3. Exits with 0 at the end, and with 2 if it could not start: the first answer says why. Exits with 3 if a
 * picture needs more memory than it has, and with 4 if the worker is of another build.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/log.h"
#include "image/image_loop.h"
#include "image/protect_picture.h"
#include "image/seal.h"

enum { exit_not_started = 2 };

struct image_options {
    const char *build;
    const char *weights_path;
    const char *weights_name; /* in messages, if the path is that of a descriptor */
    const char *watermark_key_path;
    uint64_t memory_bytes;
    uint64_t cpu_seconds;
    uint64_t pixels_max;
    uint64_t side_max_px;
    uint64_t images_max;
    uint64_t formats_more;
    uint64_t growth_max_percent;
    bool is_unsealed_allowed;
};

static const struct image_options defaults = {
    .memory_bytes = (uint64_t)1 << 30,
    .cpu_seconds = 300,
    .pixels_max = 100000000,
    .side_max_px = 16384,
    .images_max = 100,
    .growth_max_percent = 100,
};

/* OPTION_SWITCH takes no value. */
enum option_kind { OPTION_TEXT, OPTION_NUMBER, OPTION_SWITCH };

static const struct image_option {
    const char *name;
    enum option_kind kind;
    size_t offset;
    uint64_t least;
    uint64_t most;
} option_table[] = {
    {"--build", OPTION_TEXT, offsetof(struct image_options, build), 0, 0},
    {"--weights", OPTION_TEXT, offsetof(struct image_options, weights_path), 0, 0},
    {"--weights-name", OPTION_TEXT, offsetof(struct image_options, weights_name), 0, 0},
    {"--watermark-key", OPTION_TEXT, offsetof(struct image_options, watermark_key_path), 0, 0},
    {"--memory-bytes", OPTION_NUMBER, offsetof(struct image_options, memory_bytes), 64 << 20,
     (uint64_t)1 << 40},
    {"--cpu-seconds", OPTION_NUMBER, offsetof(struct image_options, cpu_seconds), 1, 86400},
    {"--pixels-max", OPTION_NUMBER, offsetof(struct image_options, pixels_max), 1, (uint64_t)1 << 32},
    {"--side-max", OPTION_NUMBER, offsetof(struct image_options, side_max_px), 1, 65535},
    {"--images-max", OPTION_NUMBER, offsetof(struct image_options, images_max), 1, 1000000},
    {"--formats-more", OPTION_NUMBER, offsetof(struct image_options, formats_more), 0, UINT32_MAX},
    {"--growth-max", OPTION_NUMBER, offsetof(struct image_options, growth_max_percent), 100, 1000},
    {"--allow-unsealed", OPTION_SWITCH, offsetof(struct image_options, is_unsealed_allowed), 0, 0},
};

static bool number_read(const struct image_option *option, const char *text, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *number >= option->least && *number <= option->most;
}

/* Parses one option and its value. Returns the number of arguments used, or 0 if it is invalid. */
static int option_read(struct image_options *options, char **arguments)
{
    const struct image_option *option = option_table;
    const struct image_option *end = option_table + sizeof option_table / sizeof option_table[0];
    while (option < end && strcmp(option->name, arguments[0]) != 0)
        option++;
    if (option == end || (option->kind != OPTION_SWITCH && arguments[1] == NULL))
        return 0;
    char *value = (char *)options + option->offset;
    switch (option->kind) {
    case OPTION_TEXT:
        memcpy(value, &arguments[1], sizeof arguments[1]);
        return 2;
    case OPTION_NUMBER:
        return number_read(option, arguments[1], (uint64_t *)(void *)value) ? 2 : 0;
    case OPTION_SWITCH:
        *(bool *)value = true;
        return 1;
    }
    return 0;
}

static enum iw_error options_read(struct context *context, struct image_options *options, char **arguments)
{
    *options = defaults;
    while (*arguments != NULL) {
        int taken = option_read(options, arguments);
        if (taken == 0)
            return context_fail(context, IW_CONFIG_INVALID,
                                "%s is not an option, or its value is missing or out of range.", *arguments);
        arguments += taken;
    }
    return IW_OK;
}

static enum iw_error key_load(struct context *context, const char *path, struct image_config *config)
{
    if (path == NULL)
        return IW_OK;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    /* One byte more than the key, to detect a longer file. */
    uint8_t bytes[WATERMARK_KEY_BYTES + 1];
    ssize_t got = file < 0 ? -1 : read(file, bytes, sizeof bytes);
    if (file >= 0)
        close(file);
    if (got != WATERMARK_KEY_BYTES)
        return context_fail(context, IW_CONFIG_INVALID, "%s must be a watermark key of %d bytes.", path,
                            WATERMARK_KEY_BYTES);
    memcpy(config->watermark_key, bytes, WATERMARK_KEY_BYTES);
    config->has_watermark_key = true;
    crypto_key_id(bytes, WATERMARK_KEY_BYTES, config->watermark_key_id);
    return IW_OK;
}

static enum iw_error config_prepare(struct context *context, const struct image_options *options,
                                    struct image_config *config)
{
    memset(config, 0, sizeof *config);
    config->limits.pixels_max = options->pixels_max;
    config->limits.side_max_px = (uint32_t)options->side_max_px;
    config->limits.memory_max_bytes = picture_allowed_bytes(options->memory_bytes);
    config->cpu_seconds = (unsigned)options->cpu_seconds;
    config->images_max = (unsigned)options->images_max;
    config->formats_more = (unsigned)options->formats_more;
    config->growth_max_percent = (unsigned)options->growth_max_percent;
    codec_open(config->formats_more);
    enum iw_error error = key_load(context, options->watermark_key_path, config);
    if (error == IW_OK && options->weights_path != NULL)
        error = protect_picture_open(context, options->weights_path, options->weights_name, &config->protect);
    return error;
}

/* Seal the process. Without seccomp it continues if the operator allows that; the worker reports it. */
enum { mapped_least_bytes = 256 << 10 };

static enum iw_error process_seal(struct context *context, const struct image_options *options,
                                  unsigned *missing)
{
    /* A result stands in the process's memory, next to the picture, before it is written. */
    struct seal_limits limits = {options->memory_bytes, options->memory_bytes / 2,
                                 (unsigned)options->cpu_seconds};
    seal_close_from(image_socket + 1);
    fault_open();
    /* The C library's allocator reads random bytes when it is first used, and the seal forbids that.  With
       AddressSanitizer, image_loop.c is its first user. */
    (void)mallinfo2();
    /* A fixed threshold: by default it follows the largest freed block, and blocks below it stay in the heap.
     */
    mallopt(M_MMAP_THRESHOLD, mapped_least_bytes);
    enum iw_error error = seal_process(context, &limits, image_socket, missing);
    return options->is_unsealed_allowed ? IW_OK : error;
}

static void memory_end(void)
{
    _exit(image_exit_no_memory);
}

int main(int count, char **arguments)
{
    struct context context;
    struct image_options options;
    struct image_config config;
    unsigned missing = 0;
    struct arena *arena = arena_new(0);
    context_init(&context, arena, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* A program that is started by its descriptor has the number as its name. */
    prctl(PR_SET_NAME, "imgward-image");
    enum iw_error error = options_read(&context, &options, arguments + (count > 0));
    /* Both ends of the socket must have the same structs. */
    bool is_same_build = options.build != NULL && strcmp(options.build, IMAGE_BUILD) == 0;
    if (error == IW_OK && !is_same_build) {
        context_fail(&context, IW_CONFIG_INVALID,
                     "This is imgward-image " IMAGE_BUILD
                     ", but the worker needs %s; restart imgward-worker.",
                     options.build != NULL ? options.build : "an older one");
        log_failure(&context, "image_process_not_started");
        _exit(image_exit_other_build);
    }
    if (error == IW_OK)
        error = config_prepare(&context, &options, &config);
    if (error == IW_OK)
        error = process_seal(&context, &options, &missing);
    if (error != IW_OK) {
        if (!image_loop_refuse(image_socket, &context, missing))
            log_failure(&context, "image_process_not_started");
        _exit(exit_not_started);
    }
    /* A sanitizer's report must reach the log. */
#ifndef __SANITIZE_ADDRESS__
    seal_mute();
#endif
    arena_end_set(memory_end);
    image_loop_run(&config, image_socket, missing, context.error == IW_OK ? "" : context.sentence);
    /* Exit handlers of libraries make system calls that the seal forbids. */
    _exit(0);
}
