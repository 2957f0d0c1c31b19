#include "service/net/smtp.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <curl/curl.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/mailbox.h"
#include "base/text.h"

enum {
    connect_timeout_s = 60, /* to the end of AUTH */
    try_timeout_s = 30,
    line_bytes = 57, /* 76 letters of base 64 (RFC 2045, 6.8) */
    word_bytes = 42  /* an encoded word has at most 75 letters (RFC 2047, 2) */
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

/* Writes encoded words of whole characters, each between a blank and a line end. */
static void words_add(struct text *text, const char *phrase)
{
    for (size_t length = strlen(phrase), size; length > 0; phrase += size, length -= size) {
        size_t next;
        size = 0;
        while (size < length && (next = text_sequence(phrase + size, length - size)) > 0 &&
               size + next <= word_bytes)
            size += next;
        size = size > 0 ? size : length;
        text_printf(text, " =?UTF-8?B?%s?=\r\n", crypto_base64(text->arena, phrase, size));
    }
}

/*
 * Writes an ASCII name as a quoted string, unless it consists of atoms (RFC 5322, 3.2.3), as encoded words
 * do.
 */
static void from_add(struct text *text, const struct mailbox *from)
{
    bool is_ascii = text_is_ascii(from->name, strlen(from->name));
    bool is_quoted = is_ascii && strpbrk(from->name, "()<>[]:;@\\,.\"") != NULL;
    text_add_string(text, "From:");
    if (!is_ascii)
        words_add(text, from->name);
    else if (from->name[0] != '\0')
        text_add_string(text, is_quoted ? " \"" : " ");
    for (const char *at = from->name; is_ascii && *at != '\0'; at++)
        text_printf(text, "%s%c", *at == '"' || *at == '\\' ? "\\" : "", *at);
    text_printf(text, "%s <%s>\r\n", is_quoted ? "\"" : "", from->address);
}

static void body_add(struct text *text, const char *body)
{
    size_t left = strlen(body);
    for (size_t size; left > 0; body += size, left -= size) {
        size = left < line_bytes ? left : line_bytes;
        text_printf(text, "%s\r\n", crypto_base64(text->arena, body, size));
    }
}

/* Writes the date of RFC 5322, 3.3. strftime is not used, because it would use the names of the locale. */
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

static void message_build(struct text *text, const struct mailbox *from, const struct smtp_mail *mail)
{
    text_printf(text, "Date: %s\r\n", date_of(text->arena, clock_now_ms()));
    from_add(text, from);
    text_printf(text, "To: <%s>\r\nMessage-ID: <%s%s>\r\n", mail->recipient, mail->id,
                strrchr(from->address, '@'));
    text_add_string(text, "Subject:");
    if (text_is_ascii(mail->subject, strlen(mail->subject)))
        text_printf(text, " %s\r\n", mail->subject);
    else
        words_add(text, mail->subject);
    text_add_string(text,
                    "Auto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n"
                    "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n");
    body_add(text, mail->text);
}

/* The settings of each connection; the caller frees the handle. */
static CURL *handle_new(const struct config *config, const char *password)
{
    CURL *curl = curl_easy_init();
    if (curl == NULL)
        abort();
    curl_easy_setopt(curl, CURLOPT_URL, config->mail_url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
    curl_easy_setopt(curl, CURLOPT_USE_SSL, config->mail_tls ? (long)CURLUSESSL_ALL : (long)CURLUSESSL_NONE);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)smtp_timeout_s);
    curl_easy_setopt(curl, CURLOPT_SERVER_RESPONSE_TIMEOUT, (long)smtp_timeout_s);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)connect_timeout_s);
    if (config->mail_user[0] != '\0') {
        curl_easy_setopt(curl, CURLOPT_USERNAME, config->mail_user);
        curl_easy_setopt(curl, CURLOPT_PASSWORD, password);
    }
    return curl;
}

/* A 5xx is retried, too, because it may be caused by a configuration that an operator repairs. */
static enum iw_error perform(struct context *context, CURL *curl, const char *sentence)
{
    long status = 0;
    char message[CURL_ERROR_SIZE] = "";
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, message);
    CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_cleanup(curl);
    if (code == CURLE_OK)
        return IW_OK;
    context_cause(context, "%s (%ld)", message[0] != '\0' ? message : curl_easy_strerror(code), status);
    return context_fail(context, IW_SERVICE_UNAVAILABLE, "%s", sentence);
}

enum iw_error smtp_send(struct context *context, const struct config *config, const struct smtp_mail *mail)
{
    struct text text;
    struct mailbox from;
    const char *password;
    enum iw_error error = config_secret(context, config->mail_password_file, &password);
    if (error == IW_OK && !mailbox_read(config->mail_from, &from))
        error = context_fail(context, IW_CONFIG_INVALID, "mail.from is not an address.");
    if (error != IW_OK)
        return error;
    text_init(&text, context->arena);
    message_build(&text, &from, mail);
    struct message message = {text.data, text.length};
    struct curl_slist *recipients = curl_slist_append(NULL, mail->recipient);
    CURL *curl = handle_new(config, password);
    if (recipients == NULL)
        abort();
    curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(curl, CURLOPT_MAIL_FROM, from.address);
    curl_easy_setopt(curl, CURLOPT_MAIL_RCPT, recipients);
    curl_easy_setopt(curl, CURLOPT_READFUNCTION, message_read);
    curl_easy_setopt(curl, CURLOPT_READDATA, &message);
    error = perform(context, curl, "The mail server rejected the message.");
    curl_slist_free_all(recipients);
    return error;
}

static size_t answer_drop(char *bytes, size_t size, size_t count, void *user)
{
    (void)bytes;
    (void)user;
    return size * count;
}

enum iw_error smtp_try(struct context *context, const struct config *config)
{
    const char *password;
    enum iw_error error = config_secret(context, config->mail_password_file, &password);
    if (error != IW_OK)
        return error;
    CURL *curl = handle_new(config, password);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, "NOOP");
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, answer_drop);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)try_timeout_s);
    return perform(context, curl, "The mail server rejected the connection.");
}
