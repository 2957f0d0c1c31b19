/* imgwardctl secret: creates the secret files that the other programs read. */
#include <stdio.h>

#include "base/clock.h"
#include "ctl/ctl.h"
#include "db/db.h"
#include "domain/keyring.h"
#include "service/files/presign.h"
#include "service/secret/secret_box.h"

enum { after_usual_s = 60, after_most_s = 86400 };

static enum ctl_exit signing_made(struct ctl *ctl)
{
    const char *id;
    enum iw_error error = presign_keys_generate(ctl->context, ctl->arguments[0], &id);
    if (error == IW_TWIN_EXISTS) {
        fprintf(stderr, "imgwardctl: %s already exists; --rotate adds a key to it.\n", ctl->arguments[0]);
        return CTL_FAILED;
    }
    if (error != IW_OK)
        return ctl_failed(ctl);
    printf("%s: key %s signs after the next start or reload\n", ctl->arguments[0], id);
    return CTL_DONE;
}

static enum ctl_exit signing_rotated(struct ctl *ctl, int64_t from_s)
{
    const char *id;
    char from[clock_iso_size];
    if (presign_keys_rotate(ctl->context, ctl->arguments[0], from_s, &id) != IW_OK)
        return ctl_failed(ctl);
    clock_iso(from_s * 1000, from);
    printf("%s: key %s is accepted after the next start or reload and signs from %s on; "
           "the current signing key is still accepted\n",
           ctl->arguments[0], id, from);
    return CTL_DONE;
}

static enum ctl_exit signing_run(struct ctl *ctl)
{
    int64_t after_s;
    bool is_rotation = ctl_option(ctl, "--rotate") != NULL;
    if (!ctl_option_integer(ctl, "--after", 0, after_most_s, after_usual_s, &after_s))
        return CTL_FAILED;
    if (is_rotation)
        return signing_rotated(ctl, clock_now_ms() / 1000 + after_s);
    if (ctl_option(ctl, "--after") == NULL)
        return signing_made(ctl);
    fprintf(stderr, "imgwardctl: --after needs --rotate, because a first key signs immediately.\n");
    return CTL_FAILED;
}

static enum ctl_exit sealing_run(struct ctl *ctl)
{
    enum iw_error error = secret_box_generate(ctl->context, ctl->arguments[0]);
    if (error == IW_TWIN_EXISTS) {
        fprintf(stderr,
                "imgwardctl: %s already exists; replacing it would make all webhook secrets unreadable.\n",
                ctl->arguments[0]);
        return CTL_FAILED;
    }
    if (error != IW_OK)
        return ctl_failed(ctl);
    printf("%s: made\n", ctl->arguments[0]);
    return CTL_DONE;
}

/* Reads the ids of one key. After an error, prints a line on stderr and returns false. */
static bool ids_read(struct ctl *ctl, const struct config *config, enum keyring_purpose purpose,
                     struct keyring *keyring)
{
    if (keyring_load(ctl->context, config, purpose, keyring) == IW_OK)
        return true;
    ctl_failed(ctl);
    context_clear(ctl->context);
    return false;
}

/* Prints a line for each key. A key that is not recorded in the database yet is not a fault. */
static enum ctl_exit keys_check(struct ctl *ctl, const struct db *db, const struct config *config)
{
    static const char *const words[] = {[KEYRING_FITS] = "fits the database",
                                        [KEYRING_UNKNOWN] = "not recorded yet",
                                        [KEYRING_OTHER] = "OTHER KEY: restore the file from the backup",
                                        [KEYRING_ABSENT] = "MISSING: restore the file from the backup"};
    struct keyring keyring;
    enum ctl_exit code = CTL_DONE;
    for (unsigned i = 0; i < keyring_purpose_count; i++) {
        enum keyring_purpose purpose = (enum keyring_purpose)i;
        enum keyring_fit fit = KEYRING_ABSENT;
        const char *known = "";
        if (!ids_read(ctl, config, purpose, &keyring))
            return CTL_FAILED;
        if (keyring_compare(db, &keyring, purpose, &fit, &known) != IW_OK)
            return ctl_failed(ctl);
        printf("%-10s %-34s %s: %s\n", keyring_name(purpose), keyring.ids[i], keyring_path(config, purpose),
               words[fit]);
        if (fit == KEYRING_OTHER || fit == KEYRING_ABSENT)
            code = CTL_NEGATIVE;
    }
    return code;
}

static enum ctl_exit check_run(struct ctl *ctl)
{
    struct config config;
    const struct db *db = ctl_db_open(ctl, &config);
    if (db == NULL)
        return CTL_FAILED;
    enum ctl_exit code = keys_check(ctl, db, &config);
    ctl_db_close(db);
    return code;
}

static enum ctl_exit key_accept(struct ctl *ctl, const struct db *db, const struct config *config,
                                enum keyring_purpose purpose)
{
    struct keyring keyring;
    enum keyring_fit fit;
    const char *known;
    if (!ids_read(ctl, config, purpose, &keyring))
        return CTL_FAILED;
    if (keyring_compare(db, &keyring, purpose, &fit, &known) != IW_OK)
        return ctl_failed(ctl);
    if (fit == KEYRING_ABSENT) {
        fprintf(stderr, "imgwardctl: %s does not exist.\n", keyring_path(config, purpose));
        return CTL_FAILED;
    }
    if (keyring_accept(db, &keyring, purpose) != IW_OK)
        return ctl_failed(ctl);
    printf("%s: %s is recorded, in place of %s; restart the service on every host\n", keyring_name(purpose),
           keyring.ids[purpose], known[0] != '\0' ? known : "none");
    return CTL_DONE;
}

static enum ctl_exit accept_run(struct ctl *ctl)
{
    struct config config;
    enum keyring_purpose purpose = keyring_purpose_of(ctl->arguments[0]);
    if (purpose == keyring_purpose_count) {
        fprintf(stderr, "imgwardctl: the key must be watermark, sealing or signing.\n");
        return CTL_FAILED;
    }
    const struct db *db = ctl_db_open(ctl, &config);
    if (db == NULL)
        return CTL_FAILED;
    enum ctl_exit code = key_accept(ctl, db, &config, purpose);
    ctl_db_close(db);
    return code;
}

const struct ctl_command secret_commands[] = {
    {.words = {"secret", "signing"},
     .arguments = "FILE",
     .arguments_least = 1,
     .arguments_most = 1,
     .options = {{"--rotate", NULL, "add a key that will sign, and keep the current key"},
                 {"--after", "SECONDS",
                  "seconds until the new key signs; 60 when omitted; reload every process on every host "
                  "within this time, because a process without the new key rejects its signatures"}},
     .help = "Create the file of the keys that sign upload and download URLs (store.signing_keys_file).",
     .run = signing_run},
    {.words = {"secret", "sealing"},
     .arguments = "FILE",
     .arguments_least = 1,
     .arguments_most = 1,
     .help = "Create the file of the key that encrypts the secrets of webhooks (webhooks.secret_key_file).",
     .run = sealing_run},
    {.words = {"secret", "check"},
     .arguments = "",
     .help = "Print the id of each key and whether it matches the database; exit code 1 if a key is missing "
             "or does not match.",
     .run = check_run},
    {.words = {"secret", "accept"},
     .arguments = "KEY",
     .arguments_least = 1,
     .arguments_most = 1,
     .help = "Record the key in the current file (watermark, sealing or signing) as the key of the database. "
             " Data made with the previous key becomes unreadable.",
     .run = accept_run},
    {.words = {NULL}},
};
