#include "domain/people/mail_text.h"

#include <string.h>

#include "base/text.h"

/* "{1}" and "{2}" are the values of the mail.  No subject has a text that a client chose. */
static const struct {
    const char *subject;
    const char *text;
} texts[MAIL_KIND_COUNT][USER_LANGUAGE_COUNT] = {
    [MAIL_VERIFY] = {{"Verify your e-mail address", "Open this link to verify your e-mail address:\n\n{1}\n\n"
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
                             "Your e-mail address was used to sign up, but it already has a user. "
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
