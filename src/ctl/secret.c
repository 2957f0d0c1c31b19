/* imgwardctl secret: makes the files of secrets that the other programs read. */
#include "ctl/ctl.h"

#include <stdio.h>

#include "service/presign.h"
#include "service/sealing.h"

static enum ctl_exit signing_run(struct ctl *ctl)
{
    const char *id;
    bool is_rotation = ctl_option(ctl, "--rotate") != NULL;
    enum iw_error error = presign_keys_generate(ctl->context, ctl->arguments[0], is_rotation, &id);
    if (error == IW_TWIN_EXISTS) {
        fprintf(stderr, "imgwardctl: %s is there already; --rotate adds a key to it.\n", ctl->arguments[0]);
        return CTL_FAILED;
    }
    if (error != IW_OK)
        return ctl_failed(ctl);
    printf("%s: key %s signs from the next start or reload on%s\n", ctl->arguments[0], id,
           is_rotation ? "; the one before it is still accepted" : "");
    return CTL_DONE;
}

static enum ctl_exit sealing_run(struct ctl *ctl)
{
    enum iw_error error = sealing_key_generate(ctl->context, ctl->arguments[0]);
    if (error == IW_TWIN_EXISTS) {
        fprintf(stderr, "imgwardctl: %s is there already; without it no webhook could be signed any more.\n",
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
     .options = {{"--rotate", NULL,
                  "Adds a new first key to the file and keeps the one that signed so far."}},
     .help = "Makes the file of the keys that sign upload and download URLs (store.signing_keys_file).",
     .run = signing_run},
    {.words = {"secret", "sealing"},
     .arguments = "FILE",
     .arguments_least = 1,
     .arguments_most = 1,
     .help = "Makes the file of the key that the secrets of webhooks are encrypted with "
             "(webhooks.secret_key_file).",
     .run = sealing_run},
    {.words = {NULL}},
};
