/* imgwardctl image embed, extract, key: runs the watermark engine on files. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <imgward/watermark.h>

#include "base/crypto.h"
#include "ctl/ctl_store.h"
#include "codec/mark_picture.h"
#include "store/texts.h"

/* Larger than the service's limits, so that an operator can examine a refused picture. */
static const struct codec_limits limits = {.pixels_max = 200000000, .side_max_px = 32768};

enum { number_bytes = 8, file_bytes_max = 512 * 1024 * 1024 };

/* Reads the key from --key-file, else from the configured file. False, with a line on stderr, on errors. */
static bool key_read(struct ctl *ctl, uint8_t key[WATERMARK_KEY_BYTES])
{
    const char *path = ctl_option(ctl, "--key-file");
    struct config config;
    unsigned char *bytes;
    size_t size;
    if (path == NULL && ctl_config(ctl, &config))
        path = config.image_watermark_key_file;
    if (path == NULL)
        return false;
    if (ctl_file_read(ctl->context, path, 4096, &bytes, &size) != IW_OK) {
        ctl_failed(ctl);
        return false;
    }
    bool is_key = size == WATERMARK_KEY_BYTES;
    for (unsigned i = 0; is_key && i < WATERMARK_KEY_BYTES; i++)
        key[i] = bytes[i];
    if (!is_key)
        fprintf(stderr, "imgwardctl: %s: a watermark key has exactly %d bytes, this file has %zu.\n", path,
                WATERMARK_KEY_BYTES, size);
    crypto_wipe(bytes, size);
    free(bytes);
    return is_key;
}

static bool number_read(const struct ctl *ctl, uint64_t *number)
{
    const char *given = ctl_option(ctl, "--id");
    uint8_t bytes[number_bytes];
    if (given == NULL || !crypto_hex_read(given, bytes, number_bytes)) {
        fprintf(stderr, "imgwardctl: --id needs exactly 16 hexadecimal digits.\n");
        return false;
    }
    *number = 0;
    for (unsigned i = 0; i < number_bytes; i++)
        *number = *number << 8 | bytes[i];
    return true;
}

static enum iw_error picture_read(struct ctl *ctl, const char *path, bool is_partial_allowed,
                                  struct codec_picture *picture)
{
    unsigned char *bytes;
    size_t size;
    enum iw_error error = ctl_file_read(ctl->context, path, file_bytes_max, &bytes, &size);
    if (error != IW_OK)
        return error;
    struct codec_limits read_only = limits;
    read_only.engine.is_read_only = true;
    read_only.is_partial_allowed = is_partial_allowed;
    error = codec_decode(ctl->context, bytes, size, &read_only, picture);
    free(bytes);
    return error;
}

static enum iw_error embed(struct ctl *ctl, const uint8_t key[WATERMARK_KEY_BYTES], uint64_t number)
{
    struct watermark_report report = {0};
    struct codec_picture picture;
    struct codec_bytes bytes;
    struct mark_order order = {.limits = &limits, .key = key, .number = number};
    unsigned char *data;
    enum iw_error error = ctl_file_read(ctl->context, ctl->arguments[0], file_bytes_max, &data, &order.size);
    if (error != IW_OK)
        return error;
    order.data = data;
    error = codec_decode(ctl->context, data, order.size, &limits, &picture);
    if (error == IW_OK) {
        error = mark_picture(ctl->context, &order, &picture, &bytes, &report);
        codec_picture_free(&picture);
    }
    free(data);
    if (error != IW_OK)
        return error;
    error = ctl_file_write(ctl->context, ctl->arguments[1], ctl->arguments[0], bytes.data, bytes.size);
    codec_bytes_free(&bytes);
    if (error == IW_OK && ctl->context->notes != NULL)
        fprintf(stderr, "imgwardctl: note: %s\n", context_notes_text(ctl->context));
    if (error == IW_OK && ctl_option(ctl, "--verbose") != NULL)
        fprintf(stderr, "psnr %.2f dB, read back with a correlation of %.1f\n", report.psnr_db,
                report.correlation);
    return error;
}

static enum ctl_exit embed_run(struct ctl *ctl)
{
    uint8_t key[WATERMARK_KEY_BYTES];
    uint64_t number;
    if (!number_read(ctl, &number))
        return CTL_FAILED;
    if (!key_read(ctl, key))
        return CTL_FAILED;
    enum iw_error error = embed(ctl, key, number);
    crypto_wipe(key, sizeof key);
    return error == IW_OK ? CTL_DONE : ctl_failed(ctl);
}

static enum iw_error extract(struct ctl *ctl, const uint8_t key[WATERMARK_KEY_BYTES],
                             struct watermark_numbers *numbers, struct watermark_report *report)
{
    const char *original_path = ctl_option(ctl, "--original");
    struct codec_picture suspect, original;
    enum iw_error error = picture_read(ctl, ctl->arguments[0], true, &suspect);
    if (error != IW_OK)
        return error;
    if (ctl->context->notes != NULL)
        fprintf(stderr, "imgwardctl: note: %s\n", context_notes_text(ctl->context));
    if (original_path == NULL) {
        error = watermark_extract(&suspect.image, NULL, key, NULL, numbers, report);
    } else if ((error = picture_read(ctl, original_path, false, &original)) == IW_OK) {
        error = watermark_extract(&suspect.image, &original.image, key, NULL, numbers, report);
        codec_picture_free(&original);
    }
    codec_picture_free(&suspect);
    return error;
}

/*
 * Print on stderr the account and the text of a number. The API reports a mark to that account
 * only. A number without a text was embedded by another service or database with this key.
 */
static void owner_print(struct ctl *ctl, uint64_t number)
{
    struct config config;
    struct text_owner owner;
    const struct store *store = ctl_store_open(ctl, &config);
    enum iw_error error = store == NULL ? IW_CONFIG_INVALID : texts_owner(store, number, &owner);
    fprintf(stderr, "number %016" PRIx64 ": ", number);
    if (error == IW_OK)
        fprintf(stderr, "account %" PRId64 " (%s), since %s, text: %s\n", owner.account_id,
                owner.account_name, ctl_time(ctl, owner.created_at_ms), owner.text);
    else if (error == IW_NOT_FOUND)
        fprintf(stderr, "no account has a text with it; another service or database made this mark\n");
    else
        fprintf(stderr, "its account is unknown, because the database cannot be read\n");
    ctl_store_close(store);
}

static enum ctl_exit extract_run(struct ctl *ctl)
{
    struct watermark_report report = {0};
    uint8_t key[WATERMARK_KEY_BYTES];
    struct watermark_numbers numbers = {0};
    if (!key_read(ctl, key))
        return CTL_FAILED;
    enum iw_error error = extract(ctl, key, &numbers, &report);
    crypto_wipe(key, sizeof key);
    bool is_verbose = ctl_option(ctl, "--verbose") != NULL;
    if (is_verbose)
        fprintf(stderr, "correlation %.1f attempts %u rotation %.2f scale %.4f aspect %.4f%s%s\n",
                report.correlation, report.attempts, report.rotation_degree, report.scale, report.aspect,
                report.is_mirrored ? " mirrored" : "", report.is_untouched ? " untouched" : "");
    if (error == IW_WATERMARK_NOT_FOUND)
        return CTL_NEGATIVE;
    if (error != IW_OK) {
        context_fail(ctl->context, error, NULL); /* an engine's error is not in the context yet */
        return ctl_failed(ctl);
    }
    for (unsigned i = 0; i < numbers.count; i++) {
        printf("%016" PRIx64 "\n", numbers.numbers[i]);
        if (is_verbose)
            owner_print(ctl, numbers.numbers[i]);
    }
    return CTL_DONE;
}

static enum ctl_exit key_run(struct ctl *ctl)
{
    const char *path = ctl->arguments[0];
    uint8_t key[WATERMARK_KEY_BYTES];
    crypto_random(key, sizeof key);
    enum iw_error error = ctl_file_make(ctl->context, path, key, sizeof key, 0600);
    crypto_wipe(key, sizeof key);
    if (error == IW_TWIN_EXISTS) {
        fprintf(stderr,
                "imgwardctl: %s exists already; replacing it would make existing watermarks unreadable.\n",
                path);
        return CTL_FAILED;
    }
    return error == IW_OK ? CTL_DONE : ctl_failed(ctl);
}

#define KEY_FILE                                                                                             \
    {                                                                                                        \
        "--key-file", "FILE", "file of the 32 secret bytes; image.watermark_key_file when omitted"           \
    }

const struct ctl_command ctl_commands_image_watermark[] = {
    {.words = {"image", "embed"},
     .arguments = "IN OUT",
     .arguments_least = 2,
     .arguments_most = 2,
     .options = {{"--id", "16HEX", "number to embed"},
                 KEY_FILE,
                 {"--verbose", NULL, "print the strength of the mark on stderr"}},
     .help = "Embed a number in a picture; OUT has the format of IN, whatever its name.",
     .run = embed_run},
    {.words = {"image", "extract"},
     .arguments = "IN",
     .arguments_least = 1,
     .arguments_most = 1,
     .options = {KEY_FILE,
                 {"--original", "FILE", "unmarked original, to read weaker marks"},
                 {"--verbose", NULL,
                  "print the pose, the certainty of the answer, and the account and text of the number on "
                  "stderr"}},
     .help = "Print the numbers of a picture's watermarks, one a line; exit code 1 and no output when it has "
             "none.",
     .run = extract_run},
    {.words = {"image", "key"},
     .arguments = "FILE",
     .arguments_least = 1,
     .arguments_most = 1,
     .help = "Make the secret key of the watermark: 32 random bytes, mode 0600.",
     .run = key_run},
    {.words = {NULL}},
};
