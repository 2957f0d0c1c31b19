#include "service/smtp.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <curl/curl.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/text.h"

enum {
    timeout_s = 60,
    connect_timeout_s = 15,
    line_bytes = 57,   /* 76 letters of base 64 (RFC 2045, 6.8) */
    subject_bytes = 42 /* an encoded word has at most 75 letters (RFC 2047, 2) */
};

/* The message while libcurl reads it. */
struct message {
    const char *data;
    size_t left;
};

static size_t message_read(char *buffer, size_t size, size_t count, void *user)
{
    struct message *message = user;
    size_t length = size * count < message->left ? size * count : message->left;
    memcpy(buffer, message->data, length);
    message->data += length;
    message->left -= length;
    return length;
}

/* Encoded words of whole characters, one a line. */
static void subject_add(struct text *text, const char *subject)
{
    size_t length = strlen(subject);
    text_add_string(text, "Subject:");
    if (text_is_ascii(subject, length)) {
        text_printf(text, " %s\r\n", subject);
        return;
    }
    while (length > 0) {
        size_t size = 0, next;
        while (size < length && (next = text_sequence(subject + size, length - size)) > 0 &&
               size + next <= subject_bytes)
            size += next;
        size = size > 0 ? size : length;
        text_printf(text, " =?UTF-8?B?%s?=\r\n", crypto_base64(text->arena, subject, size));
        subject += size;
        length -= size;
    }
}

static void body_add(struct text *text, const char *body)
{
    size_t left = strlen(body);
    for (size_t size; left > 0; body += size, left -= size) {
        size = left < line_bytes ? left : line_bytes;
        text_printf(text, "%s\r\n", crypto_base64(text->arena, body, size));
    }
}

/* The date of RFC 5322, 3.3.  strftime would use the locale's names. */
static const char *date_of(struct arena *arena, int64_t now_ms)
{
    static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    struct tm parts;
    time_t now_s = (time_t)(now_ms / 1000);
    gmtime_r(&now_s, &parts);
    return arena_printf(arena, "%s, %d %s %d %02d:%02d:%02d +0000", days[parts.tm_wday], parts.tm_mday,
                        months[parts.tm_mon], parts.tm_year + 1900, parts.tm_hour, parts.tm_min,
                        parts.tm_sec);
}

static void message_build(struct text *text, const struct config *config, const struct smtp_mail *mail)
{
    const char *domain = strrchr(config->mail_from, '@');
    text_printf(text, "Date: %s\r\nFrom: <%s>\r\nTo: <%s>\r\nMessage-ID: <%s@%s>\r\n",
                date_of(text->arena, clock_now_ms()), config->mail_from, mail->recipient, mail->id,
                domain != NULL ? domain + 1 : "localhost");
    subject_add(text, mail->subject);
    text_add_string(text,
                    "Auto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n"
                    "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n");
    body_add(text, mail->text);
}

static void options_set(CURL *curl, const struct config *config, const char *password)
{
    curl_easy_setopt(curl, CURLOPT_URL, config->mail_url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
    curl_easy_setopt(curl, CURLOPT_USE_SSL, config->mail_tls ? (long)CURLUSESSL_ALL : (long)CURLUSESSL_NONE);
    curl_easy_setopt(curl, CURLOPT_MAIL_FROM, config->mail_from);
    curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)timeout_s);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)connect_timeout_s);
    if (config->mail_user[0] == '\0')
        return;
    curl_easy_setopt(curl, CURLOPT_USERNAME, config->mail_user);
    curl_easy_setopt(curl, CURLOPT_PASSWORD, password);
}

/* A 5xx is retried, too: it may be a fault of the configuration that an operator repairs. */
static enum iw_error outcome(struct context *context, CURL *curl, CURLcode code)
{
    long status = 0;
    if (code == CURLE_OK)
        return IW_OK;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    context_cause(context, "%s (%ld)", curl_easy_strerror(code), status);
    return context_fail(context, IW_SERVICE_UNAVAILABLE, "The mail server did not accept a mail.");
}

enum iw_error smtp_send(struct context *context, const struct config *config, const struct smtp_mail *mail)
{
    struct text text;
    const char *password;
    enum iw_error error = config_secret(context, config->mail_password_file, &password);
    if (error != IW_OK)
        return error;
    text_init(&text, context->arena);
    message_build(&text, config, mail);
    struct message message = {text.data, text.length};
    struct curl_slist *recipients = curl_slist_append(NULL, mail->recipient);
    CURL *curl = curl_easy_init();
    if (curl == NULL || recipients == NULL)
        abort();
    options_set(curl, config, password);
    curl_easy_setopt(curl, CURLOPT_MAIL_RCPT, recipients);
    curl_easy_setopt(curl, CURLOPT_READFUNCTION, message_read);
    curl_easy_setopt(curl, CURLOPT_READDATA, &message);
    error = outcome(context, curl, curl_easy_perform(curl));
    curl_slist_free_all(recipients);
    curl_easy_cleanup(curl);
    return error;
}
