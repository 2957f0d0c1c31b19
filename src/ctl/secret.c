/* imgwardctl secret: creates the secret files that the other programs read. */
#include "ctl/ctl.h"

#include <stdio.h>

#include "base/clock.h"
#include "service/presign.h"
#include "service/secret_box.h"

enum { after_usual_s = 60, after_most_s = 86400 };

static enum ctl_exit signing_made(struct ctl *ctl)
{
    const char *id;
    enum iw_error error = presign_keys_generate(ctl->context, ctl->arguments[0], &id);
    if (error == IW_TWIN_EXISTS) {
        fprintf(stderr, "imgwardctl: %s exists already; --rotate adds a key to it.\n", ctl->arguments[0]);
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
    fprintf(stderr, "imgwardctl: --after needs --rotate: a first key signs immediately.\n");
    return CTL_FAILED;
}

static enum ctl_exit sealing_run(struct ctl *ctl)
{
    enum iw_error error = secret_box_generate(ctl->context, ctl->arguments[0]);
    if (error == IW_TWIN_EXISTS) {
        fprintf(stderr,
                "imgwardctl: %s exists already; replacing it would make all webhook secrets unreadable.\n",
                ctl->arguments[0]);
        return CTL_FAILED;
    }
    if (error != IW_OK)
        return ctl_failed(ctl);
    printf("%s: made\n", ctl->arguments[0]);
    return CTL_DONE;
}

const struct ctl_command ctl_commands_secret[] = {
    {.words = {"secret", "signing"},
     .arguments = "FILE",
     .arguments_least = 1,
     .arguments_most = 1,
     .options =
         {{"--rotate", NULL, "add a key that will sign, and keep the current one"},
          {"--after", "SECONDS",
           "seconds until the new key signs (60); reload every process on every host within this time, "
           "otherwise it refuses the new signatures"}},
     .help = "Make the file of the keys that sign upload and download URLs (store.signing_keys_file).",
     .run = signing_run},
    {.words = {"secret", "sealing"},
     .arguments = "FILE",
     .arguments_least = 1,
     .arguments_most = 1,
     .help = "Make the file of the key that encrypts the secrets of webhooks (webhooks.secret_key_file).",
     .run = sealing_run},
    {.words = {NULL}},
};
