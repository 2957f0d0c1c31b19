#include "worker/mailer.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "db/workers.h"
#include "domain/people/mail.h"
#include "service/net/smtp.h"
#include "worker/shared.h"

enum {
    look_pause_ms = 1000,
    off_pause_ms = 10000,
    child_takes_ms = smtp_timeout_s * 1000, /* then the child takes no further mail */
    child_life_ms = 2 * child_takes_ms + 60000,
    close_ms = 5000, /* a mail usually takes less than a second */
    close_look_ms = 20,
    mails_max = 50, /* of one child */
    child_arena_bytes = 16 << 20
};

/* Sends one mail and records the outcome. */
static enum iw_error mail_send(const struct domain *domain, const char *owner, const struct mail_lease *lease)
{
    bool is_last = false;
    struct context *context = domain->context;
    const struct smtp_mail mail = {.recipient = lease->recipient,
                                   .subject = lease->subject,
                                   .text = lease->text,
                                   .id = arena_printf(context->arena, "imgward-%" PRId64, lease->id)};
    enum iw_error error = smtp_send(context, domain->config, &mail);
    const char *cause = context->cause != NULL ? context->cause : context->sentence;
    context_clear(context);
    /* The row of the worker has the result of the last mail for monitoring only: ignore a failure. */
    if (workers_mail_note(&domain->db, owner, error == IW_OK ? NULL : cause) != IW_OK)
        context_clear(context);
    if (error == IW_OK) {
        log_event(LOG_INFO, NULL, "mail_sent", LOG_NUMBER("mail_id", lease->id),
                  LOG_NUMBER("attempt", lease->attempt));
        return mail_done(domain, lease);
    }
    error = mail_failed(domain, lease, cause, &is_last);
    log_event(LOG_WARN, NULL, is_last ? "mail_dropped" : "mail_retried", LOG_NUMBER("mail_id", lease->id),
              LOG_NUMBER("attempt", lease->attempt), LOG_TEXT("cause", cause));
    return error;
}

/* Leases and sends one mail.  A worker that stops waits for it: a lost lease delays the mail by minutes. */
static enum iw_error mail_take(const struct domain *domain, const char *owner, bool *is_found)
{
    sigset_t stop;
    struct mail_lease lease;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigprocmask(SIG_BLOCK, &stop, NULL);
    enum iw_error error = mail_next(domain, &lease, is_found);
    if (error == IW_OK && *is_found)
        error = mail_send(domain, owner, &lease);
    sigprocmask(SIG_UNBLOCK, &stop, NULL);
    return error;
}

/* The child.  It must not touch the connections that it inherits. */
static _Noreturn void mailer_child_run(const struct mailer *mailer, pid_t supervisor)
{
    struct shared *shared = mailer->shared;
    struct context context;
    const char *password;
    struct arena *arena = arena_new(child_arena_bytes);
    process_signals_reset();
    signal(SIGPIPE, SIG_IGN);
    context_init(&context, arena, NULL);
    if (!process_die_with_parent(supervisor) ||
        config_secret(&context, shared->start->database_password_file, &password) != IW_OK)
        _exit(EXIT_FAILURE);
    struct domain domain = {.context = &context,
                            .config = shared->domain.config,
                            .db = {&context, db_new(shared->start, password)},
                            .secret_box = mailer->secret_box};
    enum iw_error error = IW_OK;
    int64_t last_ms = clock_monotonic_ms() + child_takes_ms;
    bool is_found = true;
    for (int i = 0; i < mails_max && error == IW_OK && is_found && clock_monotonic_ms() < last_ms; i++)
        error = mail_take(&domain, shared->owner, &is_found);
    if (error != IW_OK)
        log_failure(&context, "mails_not_sent");
    _exit(error == IW_OK ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* Blocks signals during the fork, because the child starts with the handlers of the worker. */
static void child_fork(struct mailer *mailer)
{
    sigset_t all, before;
    pid_t supervisor = getpid();
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        mailer_child_run(mailer, supervisor);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    mailer->child = pid > 0 ? pid : 0;
    mailer->killed_at_ms = clock_monotonic_ms() + child_life_ms;
}

/* True while the child runs. */
static bool child_is_running(struct mailer *mailer)
{
    if (mailer->child == 0)
        return false;
    if (clock_monotonic_ms() > mailer->killed_at_ms)
        kill(mailer->child, SIGKILL);
    if (waitpid(mailer->child, NULL, WNOHANG) == 0)
        return true;
    mailer->child = 0;
    return false;
}

int64_t mailer_step(struct mailer *mailer)
{
    struct shared *shared = mailer->shared;
    bool is_due = false;
    if (child_is_running(mailer) || !mail_is_on(shared->domain.config))
        return mailer->child != 0 ? look_pause_ms : off_pause_ms;
    enum iw_error error = mail_is_due(&shared->domain, &is_due);
    if (shared_database_report(shared, error, "mails_not_read") && is_due)
        child_fork(mailer);
    return look_pause_ms;
}

void mailer_close(struct mailer *mailer)
{
    if (mailer->child == 0)
        return;
    kill(mailer->child, SIGTERM);
    mailer->killed_at_ms = clock_monotonic_ms() + close_ms;
    while (child_is_running(mailer)) {
        if (process_stop_count > 1)
            mailer->killed_at_ms = 0;
        poll(NULL, 0, close_look_ms);
    }
}
