/* imgwardctl image embed, extract, key: runs the watermark engine on files. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "ctl/batch.h"
#include "ctl/ctl.h"
#include "db/accounts.h"
#include "db/db.h"
#include "db/texts.h"
#include "engine/watermark/likeness.h"
#include "engine/watermark/watermark.h"
#include "image/mark_picture.h"

/* Larger than the service's limits, so that an operator can examine a refused picture. */
static const struct codec_limits limits = {.pixels_max = 200000000, .side_max_px = 32768};

enum { number_bytes = 8, file_bytes_max = 512 * 1024 * 1024, progress_ms = 5000 };

/*
 * Reads the key from --key-file, otherwise from the configured file. After an error, prints a line on stderr
 * and returns false.
 */
static bool key_read(struct ctl *ctl, uint8_t key[WATERMARK_KEY_BYTES])
{
    const char *path = ctl_option(ctl, "--key-file");
    struct config config;
    unsigned char *bytes;
    size_t size;
    if (path == NULL && ctl_config_or_defaults(ctl, &config))
        path = config.image_watermark_key_file;
    if (path == NULL)
        return false;
    if (ctl_file_read(ctl->context, path, 4096, &bytes, &size) != IW_OK) {
        ctl_failed(ctl);
        if (ctl_option(ctl, "--key-file") == NULL && access(path, F_OK) != 0)
            fprintf(stderr,
                    "imgwardctl: \"imgwardctl image key FILE\" creates a key; name it with --key-file.\n");
        return false;
    }
    bool is_key = size == WATERMARK_KEY_BYTES;
    for (unsigned i = 0; is_key && i < WATERMARK_KEY_BYTES; i++)
        key[i] = bytes[i];
    if (!is_key)
        fprintf(stderr, "imgwardctl: %s: a watermark key must have exactly %d bytes; this file has %zu.\n",
                path, WATERMARK_KEY_BYTES, size);
    crypto_wipe(bytes, size);
    free(bytes);
    return is_key;
}

static uint64_t number_of_bytes(const uint8_t *bytes)
{
    uint64_t number = 0;
    for (unsigned i = 0; i < number_bytes; i++)
        number = number << 8 | bytes[i];
    return number;
}

/* The number of a text without a database: the first bytes of its HMAC-SHA256 (RFC 2104) with an account's
 * key. */
static uint64_t number_of_text(const uint8_t key[WATERMARK_KEY_BYTES], const char *text)
{
    uint8_t digest[sha256_bytes];
    struct crypto_mac *mac = crypto_mac_new(key, WATERMARK_KEY_BYTES);
    crypto_mac_sign(mac, text, strlen(text), digest);
    crypto_mac_free(mac);
    return number_of_bytes(digest);
}

/* Reads the number of --id, or computes that of --text. False, with a line on stderr, on errors. */
static bool number_read(const struct ctl *ctl, const uint8_t key[WATERMARK_KEY_BYTES], uint64_t *number)
{
    const char *given = ctl_option(ctl, "--id"), *text = ctl_option(ctl, "--text");
    uint8_t bytes[number_bytes];
    bool is_good = (given == NULL) != (text == NULL) && (text == NULL || text[0] != '\0') &&
                   (given == NULL || crypto_hex_read(given, bytes, number_bytes));
    if (!is_good)
        fprintf(stderr, "imgwardctl: give --text with a text, or --id with exactly 16 hexadecimal digits.\n");
    else
        *number = text != NULL ? number_of_text(key, text) : number_of_bytes(bytes);
    return is_good;
}

/*
 * Reads the account of --account; 0 without the option. If the value is not a number, prints a line on stderr
 * and returns false.
 */
static bool account_read(const struct ctl *ctl, int64_t *id)
{
    const char *given = ctl_option(ctl, "--account");
    char *end;
    *id = 0;
    if (given == NULL)
        return true;
    *id = strtoll(given, &end, 10);
    if (end != given && *end == '\0' && *id > 0)
        return true;
    fprintf(stderr,
            "imgwardctl: --account %s: it must be the number of an account (imgwardctl account list).\n",
            given);
    return false;
}

static enum iw_error picture_read(struct ctl *ctl, const char *path, const struct config *config,
                                  bool is_partial_allowed, struct codec_picture *picture)
{
    unsigned char *bytes;
    size_t size;
    enum iw_error error = ctl_file_read(ctl->context, path, file_bytes_max, &bytes, &size);
    if (error != IW_OK)
        return error;
    struct codec_limits read_only = limits;
    read_only.engine.is_read_only = true;
    read_only.is_partial_allowed = is_partial_allowed;
    read_only.formats_more = formats_taken(config, ORDER_WATERMARK_EXTRACT);
    error = codec_decode(ctl->context, bytes, size, &read_only, picture);
    free(bytes);
    return error;
}

static enum iw_error embed(struct ctl *ctl, const uint8_t key[WATERMARK_KEY_BYTES], uint64_t number,
                           const char *in, const char *out)
{
    struct watermark_report report = {0};
    struct codec_picture picture;
    struct codec_bytes bytes;
    struct mark_order order = {.limits = &limits, .key = key, .number = number};
    unsigned char *data;
    enum iw_error error = ctl_file_read(ctl->context, in, file_bytes_max, &data, &order.size);
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
    error = ctl_file_write(ctl->context, out, in, bytes.data, bytes.size);
    bytes_free(&bytes);
    if (error == IW_OK)
        ctl_notes_print(ctl);
    if (error == IW_OK && ctl_option(ctl, "--verbose") != NULL)
        fprintf(stderr, "psnr %.2f dB, read back with a correlation of %.1f\n", report.psnr_db,
                report.correlation);
    return error;
}

static enum ctl_exit embed_run(struct ctl *ctl)
{
    uint8_t key[WATERMARK_KEY_BYTES];
    uint64_t number;
    int64_t account_id;
    struct batch batch;
    if (!account_read(ctl, &account_id) || !key_read(ctl, key))
        return CTL_FAILED;
    crypto_key_derive(key, WATERMARK_KEY_PURPOSE, (uint64_t)account_id, key);
    if (!number_read(ctl, key, &number)) {
        crypto_wipe(key, sizeof key);
        return CTL_FAILED;
    }
    for (bool goes_on = batch_begin(&batch, ctl, true); goes_on && batch_next(&batch);)
        batch_done(&batch, embed(ctl, key, number, batch.in, batch.out));
    crypto_wipe(key, sizeof key);
    return batch_end(&batch);
}

/* The pictures, the accounts whose keys are tried, and what was found. */
struct extraction {
    const char *path;
    bool is_of_several; /* each line names its file */
    struct codec_picture suspect;
    struct codec_picture original;
    const struct image *original_image; /* NULL if there is no original */
    uint8_t key[WATERMARK_KEY_BYTES];   /* the master key */
    struct config config;
    const char *text;     /* of --text; may be NULL */
    uint64_t text_number; /* of the text with the key of the account */
    const struct db *db;  /* NULL without a database */
    int64_t *account_ids;
    size_t account_count;
    struct watermark_numbers numbers;
    struct watermark_report report;
};

static enum iw_error pictures_read(struct ctl *ctl, struct extraction *work)
{
    const char *original_path = ctl_option(ctl, "--original");
    enum iw_error error = picture_read(ctl, work->path, &work->config, true, &work->suspect);
    if (error == IW_OK)
        ctl_notes_print(ctl);
    if (error != IW_OK || original_path == NULL)
        return error;
    work->original_image = &work->original.image;
    return picture_read(ctl, original_path, &work->config, false, &work->original);
}

/* Account 0 has the marks that were embedded without --account. --key-file is the key of another host. */
static enum iw_error accounts_choose(struct ctl *ctl, struct extraction *work, int64_t account_id)
{
    struct account_row *listed = NULL;
    size_t count = 0;
    if (ctl_option(ctl, "--key-file") == NULL) {
        work->db = ctl_db_open(ctl, &work->config);
        if (work->db == NULL)
            return IW_CONFIG_INVALID;
        if (account_id == 0 && accounts_list(work->db, &listed, &count) != IW_OK)
            return ctl->context->error;
    }
    work->account_count = count + 1;
    work->account_ids = arena_array(ctl->context->arena, count + 1, sizeof *work->account_ids);
    work->account_ids[0] = account_id;
    for (size_t i = 0; i < count; i++)
        work->account_ids[i + 1] = listed[i].id;
    return IW_OK;
}

/*
 * Reads with the key of one account, and compares the result with the numbers of that account. In a search
 * of all accounts without a text, those without a watermark are skipped.
 */
static enum iw_error account_extract(struct ctl *ctl, struct extraction *work, int64_t account_id)
{
    struct watermark_candidates candidates = {0, NULL};
    uint8_t key[WATERMARK_KEY_BYTES];
    uint64_t *numbers = NULL;
    if (work->db != NULL && texts_candidates(work->db, account_id, WATERMARK_CANDIDATES_MOST, &numbers,
                                             &candidates.count) != IW_OK)
        return ctl->context->error;
    if (candidates.count == 0 && work->text == NULL && account_id != 0 && work->account_count > 1)
        return IW_WATERMARK_NOT_FOUND;
    crypto_key_derive(work->key, WATERMARK_KEY_PURPOSE, (uint64_t)account_id, key);
    if (work->text != NULL) {
        uint64_t *more = arena_array(ctl->context->arena, candidates.count + 1, sizeof *more);
        if (candidates.count > 0)
            memcpy(more, numbers, candidates.count * sizeof *more);
        more[candidates.count++] = work->text_number = number_of_text(key, work->text);
        numbers = more;
    }
    candidates.list = numbers;
    enum iw_error error = watermark_extract(&work->suspect.image, work->original_image, key, &candidates,
                                            &work->numbers, &work->report);
    crypto_wipe(key, sizeof key);
    return error == IW_OK || error == IW_WATERMARK_NOT_FOUND ? error
                                                             : context_fail(ctl->context, error, NULL);
}

static void report_print(const struct watermark_report *report)
{
    fprintf(stderr, "correlation %.1f attempts %u rotation %.2f scale %.4f aspect %.4f%s%s\n",
            report->correlation, report->attempts, report->rotation_degree, report->scale, report->aspect,
            report->is_mirrored ? " mirrored" : "", report->is_untouched ? " untouched" : "");
}

/* Compare the picture with the one to which a mark of an account was added. */
static void match_print(const struct extraction *work, int64_t account_id, unsigned index)
{
    struct watermark_view marked;
    const void *bytes;
    size_t length;
    if (texts_view(work->db, account_id, work->numbers.numbers[index], &bytes, &length) != IW_OK)
        return;
    likeness_view_read(bytes, length, &marked);
    enum watermark_match match = likeness_match(&marked, &work->numbers.views[index], NULL);
    fprintf(stderr, "picture: %s\n",
            match == WATERMARK_MATCH_SAME    ? "the one to which the watermark was added"
            : match == WATERMARK_MATCH_OTHER ? "not the one to which the watermark was added"
                                             : "too little is left to compare it with the marked one");
}

/* Prints on stderr to which account a number belongs. The API reports a mark only to that account. */
static void owner_print(struct ctl *ctl, const struct extraction *work, unsigned index)
{
    struct text_owner owner;
    uint64_t number = work->numbers.numbers[index];
    bool is_found = false;
    bool is_asked = work->db != NULL && texts_owner(work->db, number, &owner, &is_found) == IW_OK;
    fprintf(stderr, "number %016" PRIx64 ": ", number);
    if (is_found)
        fprintf(stderr, "account %" PRId64 " (%s), order %" PRId64 ", file %" PRId64 ", since %s, text: %s\n",
                owner.account_id, owner.account_name, owner.order_id, owner.file_position,
                ctl_time(ctl, owner.created_at_ms), owner.text);
    else if (is_asked)
        fprintf(stderr,
                "no account has a text with this number; the mark comes from another service or database\n");
    else
        fprintf(stderr, "the account is unknown, because the database was not queried\n");
    fprintf(stderr, "certainty: at most one of %" PRId64 " pictures without a mark gives this answer\n",
            work->numbers.certainties[index]);
    if (is_found)
        match_print(work, owner.account_id, index);
}

/* Prints the numbers that were read with the key of one account. */
static void numbers_print(struct ctl *ctl, const struct extraction *work)
{
    bool is_verbose = ctl_option(ctl, "--verbose") != NULL;
    if (is_verbose && work->is_of_several)
        fprintf(stderr, "%s:\n", work->path);
    if (is_verbose)
        report_print(&work->report);
    for (unsigned i = 0; i < work->numbers.count; i++) {
        bool is_text = work->text != NULL && work->numbers.numbers[i] == work->text_number;
        printf("%s%s%016" PRIx64 "%s%s\n", work->is_of_several ? work->path : "",
               work->is_of_several ? ": " : "", work->numbers.numbers[i], is_text ? " " : "",
               is_text ? work->text : "");
        if (is_verbose)
            owner_print(ctl, work, i);
    }
}

/* Tries all accounts in turn, because a collage may contain marks of several accounts. */
static enum iw_error extract(struct ctl *ctl, struct extraction *work, unsigned *found)
{
    int64_t told_ms = clock_monotonic_ms();
    enum iw_error error = IW_OK;
    for (size_t i = 0; error == IW_OK && i < work->account_count; i++) {
        if (clock_monotonic_ms() - told_ms >= progress_ms) {
            told_ms = clock_monotonic_ms();
            fprintf(stderr, "imgwardctl: %zu of %zu accounts tried\n", i, work->account_count);
        }
        error = account_extract(ctl, work, work->account_ids[i]);
        if (error == IW_OK)
            numbers_print(ctl, work);
        *found += error == IW_OK ? work->numbers.count : 0;
        error = error == IW_WATERMARK_NOT_FOUND ? IW_OK : error;
    }
    return error;
}

/* Reads the marks of one picture. */
static enum ctl_exit picture_extract(struct ctl *ctl, struct extraction *work, int64_t account_id)
{
    unsigned found = 0;
    /* The files are read first, because the service's user may not be able to read them. */
    enum iw_error error = pictures_read(ctl, work);
    if (error == IW_OK)
        error = accounts_choose(ctl, work, account_id);
    if (error == IW_OK)
        error = extract(ctl, work, &found);
    codec_picture_free(&work->suspect);
    codec_picture_free(&work->original);
    ctl_db_close(work->db);
    return error != IW_OK ? ctl_failed(ctl) : found > 0 ? CTL_DONE : CTL_NEGATIVE;
}

/* The same in a separate process, because with the database a process of root becomes the service's user.
 */
static enum ctl_exit picture_extract_apart(struct ctl *ctl, struct extraction *work, int64_t account_id)
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        enum ctl_exit code = picture_extract(ctl, work, account_id);
        _exit(fflush(stdout) == 0 ? (int)code : CTL_FAILED);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
        fprintf(stderr, "imgwardctl: %s: the process that reads it ended early.\n", work->path);
        return CTL_FAILED;
    }
    return (enum ctl_exit)WEXITSTATUS(status);
}

static enum ctl_exit extract_run(struct ctl *ctl)
{
    struct extraction work = {.text = ctl_option(ctl, "--text")};
    struct batch batch;
    int64_t account_id;
    enum ctl_exit answer = CTL_NEGATIVE;
    bool has_failed = false;
    config_init(&work.config);
    bool is_ready = account_read(ctl, &account_id) && key_read(ctl, work.key) &&
                    (ctl_option(ctl, "--key-file") != NULL || ctl_config(ctl, &work.config));
    if (!is_ready)
        return CTL_FAILED;
    for (bool goes_on = batch_begin(&batch, ctl, false); goes_on && batch_next(&batch);) {
        work.path = batch.in;
        work.is_of_several = !batch.is_one;
        enum ctl_exit code = batch.count > 1 ? picture_extract_apart(ctl, &work, account_id)
                                             : picture_extract(ctl, &work, account_id);
        has_failed |= code == CTL_FAILED;
        answer = code == CTL_DONE ? CTL_DONE : answer;
    }
    crypto_wipe(work.key, sizeof work.key);
    return batch_end(&batch) == CTL_FAILED || has_failed ? CTL_FAILED : answer;
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
                "imgwardctl: %s already exists; replacing it would make existing watermarks unreadable.\n",
                path);
        return CTL_FAILED;
    }
    return error == IW_OK ? CTL_DONE : ctl_failed(ctl);
}

#define KEY_FILE                                                                                             \
    {                                                                                                        \
        "--key-file", "FILE", "file with the 32 secret bytes; image.watermark_key_file when omitted"         \
    }

const struct ctl_command image_watermark_commands[] = {
    {.words = {"image", "embed"},
     .arguments = "IN... OUT",
     .arguments_least = 2,
     .arguments_most = ctl_arguments_any,
     .options = {{"--text", "TEXT", "text to embed, as a number that is computed with the key"},
                 {"--id", "16HEX", "number to embed, instead of a text"},
                 {"--account", "ID", "number of the account whose key is used; none when omitted"},
                 KEY_FILE,
                 {"--verbose", NULL, "print the strength of the mark on stderr"}},
     .help =
         "Embed a text or a number in pictures; OUT has the format of IN, regardless of its name.  OUT is a "
         "file for one picture, an existing folder for several pictures and for the pictures of a folder.",
     .example = "imgwardctl image embed --key-file my.key --text \"sent to Ada\" photo.png marked.png",
     .run = embed_run},
    {.words = {"image", "extract"},
     .arguments = "IN...",
     .arguments_least = 1,
     .arguments_most = ctl_arguments_any,
     .options =
         {{"--text", "TEXT", "a text that embed was given; it stands behind its number"},
          {"--account", "ID",
           "number of the account whose mark is looked for; all accounts with watermarks in turn when "
           "omitted"},
          KEY_FILE,
          {"--original", "FILE", "unmarked original; allows weaker marks to be read"},
          {"--verbose", NULL,
           "print on stderr the pose, the correlation, the account, order, file and text of the number, "
           "the certainty, and whether the picture is the marked one"}},
     .help = "Print the numbers of a picture's watermarks, one per line; exit code 1 and no output if there "
             "is no watermark.  The lines of several pictures, or of a folder, begin with the file.",
     .example = "imgwardctl image extract --key-file my.key --text \"sent to Ada\" leaked.jpg",
     .run = extract_run},
    {.words = {"image", "key"},
     .arguments = "FILE",
     .arguments_least = 1,
     .arguments_most = 1,
     .help = "Create the secret key of the watermark: 32 random bytes, mode 0600.",
     .run = key_run},
    {.words = {NULL}},
};
