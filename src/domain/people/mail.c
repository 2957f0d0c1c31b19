#include "domain/people/mail.h"

#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/log.h"
#include "base/text.h"
#include "db/mails.h"
#include "domain/people/throttle.h"
#include "service/net/smtp.h"
#include "service/secret/secret_box.h"

enum {
    lease_ms = (smtp_timeout_s + 60) * 1000,
    retry_first_ms = 30000,
    attempts_max = 12,
    plain_bytes_max = 7900,
    day_s = 24 * 60 * 60
};

/* "{1}" and "{2}" are the values of the mail.  No subject has a text that a client chose. */
static const struct {
    const char *subject;
    const char *text;
} texts[MAIL_KIND_COUNT][USER_LANGUAGE_COUNT] = {
    [MAIL_VERIFY] = {{"Verify your email address", "Open this link to verify your email address:\n\n{1}\n\n"
                                                   "If you did not sign up, ignore this mail.\n"},
                     {"이메일 주소를 확인해 주세요", "아래 링크를 열면 이메일 주소가 확인됩니다.\n\n{1}\n\n"
                                                     "가입하지 않으셨다면 이 메일을 무시하세요.\n"}},
    [MAIL_RESET] = {{"Set a new password",
                     "Open this link to set a new password:\n\n{1}\n\n"
                     "If you did not ask for it, ignore this mail: your password stays as it is.\n"},
                    {"새 비밀번호를 설정해 주세요",
                     "아래 링크를 열면 새 비밀번호를 설정할 수 있습니다.\n\n{1}\n\n"
                     "요청하지 않으셨다면 이 메일을 무시하세요. 비밀번호는 바뀌지 않습니다.\n"}},
    [MAIL_INVITATION] =
        {{"Invitation to an account",
          "You are invited to the account \"{2}\". Open this link to accept:\n\n{1}\n\n"
          "The owner of the account chose its name. If you do not know who invites you, ignore "
          "this mail.\n"},
         {"계정 초대",
          "\"{2}\" 계정에 초대되었습니다. 아래 링크를 열면 초대를 수락할 수 있습니다.\n\n{1}\n\n"
          "계정 이름은 계정 소유자가 정한 것입니다. 누가 초대했는지 모르시면 이 메일을 무시하세요.\n"}},
    [MAIL_ADDRESS_KNOWN] = {{"You already have a user",
                             "Your email address was used to sign up, but it already has a user. "
                             "Sign in here:\n\n{1}\n\nIf it was not you, ignore this mail.\n"},
                            {"이미 가입된 이메일 주소입니다",
                             "이 이메일 주소로 가입 요청이 있었지만 이미 가입되어 있습니다. "
                             "아래에서 로그인하세요.\n\n{1}\n\n본인이 아니라면 이 메일을 무시하세요.\n"}},
    [MAIL_NEW_PLACE] = {{"Sign-in from a new place",
                         "Your user signed in from an address that it did not use before:\n\n"
                         "Address: {1}\nBrowser: {2}\n\n"
                         "If it was not you, change your password and end the other sessions.\n"},
                        {"새로운 위치에서 로그인",
                         "이전에 사용하지 않은 주소에서 로그인했습니다.\n\n"
                         "주소: {1}\n브라우저: {2}\n\n"
                         "본인이 아니라면 비밀번호를 바꾸고 다른 세션을 종료하세요.\n"}},
    [MAIL_WEBHOOK_INACTIVE] = {{"Your webhook was deactivated",
                                "This webhook gets no more events:\n\n{1}\nReason: {2}\n\n"
                                "Repair the receiver, then activate the webhook in the console.\n"},
                               {"웹훅이 비활성화되었습니다",
                                "아래 웹훅에는 더 이상 이벤트가 전송되지 않습니다.\n\n{1}\n이유: {2}\n\n"
                                "수신 서버를 고친 뒤 콘솔에서 웹훅을 다시 활성화하세요.\n"}},
};

static const char *fill(struct arena *arena, const char *format, const struct mail *mail)
{
    struct text text;
    text_init(&text, arena);
    for (; *format != '\0'; format++) {
        bool is_place = format[0] == '{' && (format[1] == '1' || format[1] == '2') && format[2] == '}';
        const char *value = is_place ? mail->values[format[1] - '1'] : NULL;
        if (is_place)
            text_add_string(&text, value != NULL ? value : "");
        else
            text_add(&text, format, 1);
        format += is_place ? 2 : 0;
    }
    return text.data;
}

void mail_text(struct arena *arena, const struct mail *mail, const char **subject, const char **text)
{
    *subject = fill(arena, texts[mail->kind][mail->language].subject, mail);
    *text = fill(arena, texts[mail->kind][mail->language].text, mail);
}

bool mail_is_on(const struct config *config)
{
    return config->mail_url[0] != '\0' && config->mail_from[0] != '\0';
}

/*
 * The associated data of the seal, so that a mail that was moved to another row, with another recipient,
 * cannot be opened.
 */
static const char *about_of(struct arena *arena, const char *recipient)
{
    return arena_printf(arena, "imgward-mail-1:%s", recipient);
}

/*
 * Mails of a kind to one recipient in a day. Any client can cause the first four kinds; a person needs one or
 * two of them, and a stranger must not be flooded.
 */
static const struct {
    const char *name;
    int64_t day_max;
} kinds[MAIL_KIND_COUNT] = {
    [MAIL_VERIFY] = {"verify", 5},         [MAIL_RESET] = {"reset", 10},
    [MAIL_INVITATION] = {"invitation", 3}, [MAIL_ADDRESS_KNOWN] = {"address_known", 3},
    [MAIL_NEW_PLACE] = {"new_place", 10},  [MAIL_WEBHOOK_INACTIVE] = {"webhook_inactive", 10},
};

/* Takes one mail of the recipient's budget. *is_left is false if the budget is used up. */
static enum iw_error budget_take(const struct domain *domain, const struct mail *mail, bool *is_left)
{
    unsigned wait_s = 0;
    const char *name = arena_printf(domain->context->arena, "mail:%s:%s%s", kinds[mail->kind].name,
                                    mail->is_known ? "known:" : "", mail->recipient);
    enum iw_error error = throttle_spend(domain, name, kinds[mail->kind].day_max, day_s, &wait_s);
    *is_left = wait_s == 0;
    if (error != IW_OK || *is_left)
        return error;
    log_event(LOG_INFO, domain->context, "mail_dropped", LOG_TEXT("kind", kinds[mail->kind].name),
              LOG_TEXT("reason", "recipient_limit"));
    if (mail->kind != MAIL_INVITATION)
        return IW_OK;
    domain->context->retry_after_s = wait_s;
    domain->context->reason = "mails_recipient";
    return context_fail(domain->context, IW_USAGE_LIMIT_EXCEEDED,
                        "This address got %lld invitations today; try again in %u s.",
                        (long long)kinds[mail->kind].day_max, wait_s);
}

enum iw_error mail_queue(const struct domain *domain, const struct mail *mail)
{
    const char *subject, *text;
    struct arena *arena = domain->context->arena;
    bool is_left = false;
    if (!mail_is_on(domain->config))
        return IW_OK;
    enum iw_error error = budget_take(domain, mail, &is_left);
    if (error != IW_OK || !is_left)
        return error;
    mail_text(arena, mail, &subject, &text);
    /* Subject, line feed, text. */
    char *plain = arena_printf(arena, "%s\n%s", subject, text);
    size_t size = strnlen(plain, plain_bytes_max);
    uint8_t *sealed = arena_alloc(arena, size + crypto_seal_bytes);
    crypto_seal(domain->secret_box->key, about_of(arena, mail->recipient), plain, size, sealed);
    return mails_insert(&domain->db, mail->recipient, sealed, size + crypto_seal_bytes, clock_now_ms());
}

enum iw_error mail_is_due(const struct domain *domain, bool *is_due)
{
    return mails_are_due(&domain->db, clock_now_ms(), is_due);
}

/* Leases again after a seal that does not open: that mail is deleted. */
enum iw_error mail_next(const struct domain *domain, struct mail_lease *lease, bool *is_found)
{
    struct mails_row row;
    struct arena *arena = domain->context->arena;
    for (;;) {
        int64_t now_ms = clock_now_ms();
        enum iw_error error = mails_lease(&domain->db, now_ms, now_ms + lease_ms, &row, is_found);
        if (error != IW_OK || !*is_found)
            return error;
        *lease = (struct mail_lease){.id = row.id, .attempt = row.attempt, .recipient = row.recipient};
        size_t size = row.sealed_size > crypto_seal_bytes ? row.sealed_size - crypto_seal_bytes : 0;
        char *plain = arena_alloc(arena, size + 1);
        if (size > 0 && crypto_open(domain->secret_box->key, about_of(arena, row.recipient), row.sealed,
                                    row.sealed_size, plain)) {
            size_t length = strcspn(plain, "\n");
            lease->subject = arena_text_n(arena, plain, length);
            lease->text = plain + length + (plain[length] == '\n');
            return IW_OK;
        }
        error = mail_done(domain, lease);
        if (error != IW_OK)
            return error;
    }
}

enum iw_error mail_done(const struct domain *domain, const struct mail_lease *lease)
{
    return mails_delete(&domain->db, lease->id, lease->attempt);
}

enum iw_error mail_failed(const struct domain *domain, const struct mail_lease *lease, const char *reason,
                          bool *is_last)
{
    *is_last = lease->attempt >= attempts_max;
    if (*is_last)
        return mail_done(domain, lease);
    int64_t wait_ms = (int64_t)retry_first_ms << (lease->attempt < 10 ? lease->attempt - 1 : 9);
    const struct mails_row row = {.id = lease->id, .attempt = lease->attempt};
    return mails_postpone(&domain->db, &row, clock_now_ms() + wait_ms, reason);
}
