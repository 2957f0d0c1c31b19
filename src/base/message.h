/*
 * Messages that clients show to people, as one list of templates.
 *
 * The code that fails prints its template, so an answer has the sentence in English. The edge finds the
 * template of a sentence and adds its name and values as "reason" and "params", so that a client can say
 * the same in another language. A sentence needs no second form on its way through image processes, jobs
 * and the database. A sentence without a template here has no reason; its error code says enough.
 */
#ifndef BASE_MESSAGE_H
#define BASE_MESSAGE_H

#include <inttypes.h>
#include <stddef.h>

#include "base/render.h"

/*
 * X(reason, parameters, template): parameters are the names of the values in their order; "-" is a value
 * without a name; "label" is the text before a sentence, such as a file's name and ": ". Web texts have the
 * same reasons (tests/web_files.py). The first template that fits is used.
 */
#define MESSAGES(X)                                                                                          \
    /* A field: */                                                                                           \
    X(required, "", "is required")                                                                           \
    X(length, "actual least most", "has %zu characters; %zu to %zu are allowed")                             \
    X(too_long, "actual most", "has %zu characters; at most %zu are allowed")                                \
    X(control_characters, "", "has control characters, such as line breaks or tabs; leave them out")         \
    X(null_character, "", "contains the character U+0000; remove it")                                        \
    X(item_count, "actual least most", "has %zu items; %zu to %zu are allowed")                              \
    X(word_count, "actual most", "has %zu different words; at most %zu are allowed")                         \
    X(no_email, "", "is not an email address such as name@example.com")                                      \
    X(email_in_use, "", "is in use; sign in, or use another address")                                        \
    X(already_member, "", "is already a member of the account")                                              \
    X(name_in_use, "", "is in use; choose another name")                                                     \
    X(password_is_email, "", "is the email address; choose another password")                                \
    X(password_common, "",                                                                                   \
      "consists of passwords that guessing programs try first; choose a few words that do not belong "       \
      "together")                                                                                            \
    X(password_wrong, "", "is not your password")                                                            \
    X(code_wrong, "", "is not the code that the authenticator shows now")                                    \
    X(no_time, "", "is not a time such as 2026-03-12T10:00:00Z")                                             \
    X(time_past, "", "must lie in the future")                                                               \
    X(number_range, "most", "must be an integer from 0 to %lld, or null for the limit of the plan")          \
    X(own_user, "", "cannot be changed for your own user")                                                   \
    X(url_bytes, "", "must be at most 2048 bytes long")                                                      \
    X(url_characters, "", "must not contain blanks, backslashes or control characters")                      \
    X(url_ascii, "", "must be ASCII; percent-encode other characters, and write a host name in Punycode")    \
    X(url_absolute, "",                                                                                      \
      "must be an absolute URL, which starts with https:// and the name or address of a host")               \
    X(url_https, "", "must be an https URL")                                                                 \
    X(url_scheme, "", "must be an http or https URL")                                                        \
    X(url_host, "", "must name a host")                                                                      \
    X(url_user, "", "must not contain a user name or password")                                              \
    X(url_port, "", "must not have this port; without a port, the standard port of the scheme is used")      \
    X(url_in_use, "",                                                                                        \
      "is the URL of another webhook of the account, which receives each event; change that one")            \
    X(webhook_inactive, "",                                                                                  \
      "is false, and nothing is sent to a webhook that is not active; set it to true with PUT")              \
    X(file_name_bytes, "actual most", "has %zu bytes; 1 to %d are allowed")                                  \
    X(file_name_folder, "", "has a slash or a backslash; send the name without folders")                     \
    X(file_name_plain, "formats", "has no extension; it must end in %s")                                     \
    X(file_name_ending, "actual formats", "ends in %.20s; it must end in %s")                                \
    X(file_name_stem, "", "has no name before the extension")                                                \
    X(not_uploaded, "file", "%s has not been uploaded; PUT it to its uploadUrl")                             \
    X(quota_exceeded, "amount - most limit", "would make %lld %s; at most %lld are allowed (%s)")            \
    X(wrong_value, "actual expected", "is %s; it must be %s")                                                \
    /* A request: */                                                                                         \
    X(factor_on, "", "The second factor is on; disable it first.")                                           \
    X(factor_off, "", "The second factor is off; recovery codes come with it.")                              \
    X(user_elsewhere, "email", "%s has a user in another account; a user belongs to one account.")           \
    X(quota_reached, "limit used - most - seconds",                                                          \
      "The limit %s is reached: the account has %lld %s, and %lld are allowed; %s. Try again in %u s.")      \
    X(invitations_open, "count",                                                                             \
      "The account has %lld open invitations, the maximum; delete an invitation that is not needed.")        \
    /* A file: */                                                                                            \
    X(file_empty, "", "The file is empty: it has 0 bytes. Send the whole file.")                             \
    X(file_bytes, "bytes mostBytes", "The file has %lld bytes; at most %lld are allowed.")                   \
    X(file_bytes_least, "bytes mostBytes", "The file has at least %lld bytes; at most %lld are allowed.")    \
    X(result_bytes, "bytes - inputBytes",                                                                    \
      "The result has %llu bytes, more than %lld times the file's %lld; scale the picture down.")            \
    X(source_status, "status", "The source URL: the server answered with status %ld")                        \
    X(target_status, "status", "The output target: the server answered with status %ld")                     \
    X(file_cut, "bytes", "The file is cut off after %zu bytes; upload it again.")                            \
    X(picture_damaged, "format",                                                                             \
      "The %s picture is damaged and cannot be decoded. Export it again and upload the new file.")           \
    X(picture_animated, "frames -",                                                                          \
      "The picture is an animation of %" PRIu32 " frame%s, which is not supported. Save each frame that you" \
      " need as a still picture and upload these.")                                                          \
    X(picture_side, "width height most",                                                                     \
      "The picture is %" PRIu32 " x %" PRIu32 " px; at most %" PRIu32 " px a side are allowed.")             \
    X(picture_small, "width height least",                                                                   \
      "The picture is %" PRIu32 " x %" PRIu32 " px; at least %" PRIu32 " px a side are needed.")             \
    X(picture_pixels, "pixels most", "The picture has %" PRIu64 " pixels; at most %" PRIu64 " are allowed.") \
    X(picture_memory, "width height - - mostWidth mostHeight",                                               \
      "The picture is %" PRIu32 " x %" PRIu32 " px and needs about %" PRIu64                                 \
      " MiB to be processed; %" PRIu64 " MiB are allowed. Scale it to %" PRIu32 " x %" PRIu32                \
      " px or less.")                                                                                        \
    X(webp_side, "width height most",                                                                        \
      "The WebP picture is %" PRIu32 " x %" PRIu32 " px; at most %d px a side can be written.")              \
    /* A result: */                                                                                          \
    X(credentials_removed, "",                                                                               \
      "The Content Credentials (C2PA) were removed, because their hash does not match the changed picture.") \
    X(credentials_place, "url", "Their location was %s.")                                                    \
    X(metadata_left_out, "things", "The result does not contain: %s.")                                       \
    X(palette_full, "before -",                                                                              \
      "The picture had %u colours; the result has more than %d, the limit of a palette, so the file is"      \
      " larger.")                                                                                            \
    X(palette_larger, "before after",                                                                        \
      "The picture had at most %u colours; the result has %u, so the file is larger.")                       \
    X(greys_more, "before",                                                                                  \
      "The picture had %u levels of grey; the result has more and 8 bits a sample, so the file is larger.")  \
    X(grey_coloured, "",                                                                                     \
      "The watermark could not be read from a grey picture, so the result is a colour picture with faint"    \
      " colours. The file may be larger.")                                                                   \
    X(encoded_finer, "bytes usualBytes",                                                                     \
      "The picture was encoded at a higher quality, because the watermark could not be read otherwise; the"  \
      " result has %zu bytes instead of %zu.")                                                               \
    X(protected_finer, "bytes uploadBytes",                                                                  \
      "The picture was encoded at a higher quality, because compression would remove more of its "           \
      "protection;"                                                                                          \
      " the result has %zu bytes, the upload %zu.")                                                          \
    X(rows_cut, "percent", "The file is cut short: %u %% of its rows could be read.")                        \
    X(rows_cut_part, "percent",                                                                              \
      "The file is cut short: %u %% of its rows could be read, some of them only in part.")                  \
    X(rows_part, "", "The file is cut short or damaged: some of its rows could be read only in part.")       \
    X(unchanged_compressed, "strength",                                                                      \
      "No pixel changed: the compression of this file removes a change of strength \"%s\". Export the"       \
      " picture with less compression and upload it again.")                                                 \
    X(unchanged_flat, "strength",                                                                            \
      "No pixel changed: the picture has no texture that masks a change of strength \"%s\".")                \
    X(protection_weaker, "strength percent",                                                                 \
      "The protection is weaker than strength \"%s\": about %u %% of its effect is in the result.")          \
    X(rest_compressed, "",                                                                                   \
      "The compression of this file removes the rest; the PNG or the original export of a photograph is"     \
      " protected better.")                                                                                  \
    X(rest_visible, "", "The rest would be visible, or lies beyond black and white.")                        \
    /* A check of the service: */                                                                            \
    X(database_well, "", "The database responds.")                                                           \
    X(database_silent, "cause", "The database does not respond (%s).")                                       \
    X(redis_well, "", "Redis responds.")                                                                     \
    X(redis_silent, "cause", "Redis does not respond (%s); requests are not rate limited.")                  \
    X(store_well, "", "The object store responds.")                                                          \
    X(store_silent, "cause", "The file store does not respond (%s).")                                        \
    X(store_room, "free size", "%.1f of %.1f GB are free.")                                                  \
    X(workers_well, "up count", "%u of %u workers respond.")                                                 \
    X(workers_silent, "", "No worker responds; systemctl status imgward-worker shows the reason.")           \
    X(images_failing, "ready count at cause",                                                                \
      "%" PRId64 " of %" PRId64 " image processes ready, starts fail since %s: %s")                          \
    X(images_store, "ready count at cause",                                                                  \
      "%" PRId64 " of %" PRId64 " image processes ready, its file store failed at %s: %s")                   \
    X(images_well, "ready count", "%" PRId64 " of %" PRId64 " image processes ready")                        \
    X(mail_well, "", "No mail has failed since the last mail was sent.")                                     \
    X(mail_failed, "at cause", "The last mail failed at %s (%s).")                                           \
    X(queue_paused, "", "The queue is paused; imgwardctl queue resume resumes it.")                          \
    X(queue_oldest, "seconds", "The oldest job has waited for %lld s.")                                      \
    X(quotas_near, "count", "%lld accounts use 80 %% or more of a limit.")

/* message_length and so on, for printf. */
#define MESSAGE_TEMPLATE(reason, parameters, template) static const char message_##reason[] = template;
MESSAGES(MESSAGE_TEMPLATE)
#undef MESSAGE_TEMPLATE

/* Adds "reason" and "params" of a message to the open object, if the message has a template. */
void message_render(struct render *render, const char *text);

/* Adds the array "parts": reason and params of each sentence, as far as they have templates. */
void message_parts_render(struct render *render, const char *text);

#endif
