/*
 * All error codes in one list.
 *
 * Every function that can fail returns an enum iw_error, and callers must use it. The names
 * are those of the contract: grep ORDER_NOT_PENDING finds the contract, this list, the code
 * that returns it, its test and the manual. Only src/http maps errors to HTTP statuses.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#define IW_MUST_USE __attribute__((warn_unused_result))

/*
 * X(name, sentence): the client gets this sentence when the code that fails gives no better one.
 * Add a code at the end: struct image_answer carries the number, also between two builds in an upgrade.
 */
#define IW_ERRORS(X)                                                                                         \
    X(VALIDATION_FAILED, "The request is not valid: correct the fields that details names.")                 \
    X(ORDER_NOT_PENDING, "The order is no longer pending; make a new order for other files.")                \
    X(ORDER_EXPIRED, "The order has expired and its files are deleted; make a new order.")                   \
    X(ORDER_NOT_COMPLETED, "The order is not complete; ask again when its status is complete.")              \
    X(ORDER_FILE_NOT_UPLOADED, "A file of the order has not been uploaded; upload it, then confirm again.")  \
    X(ORDER_TYPE_CANT_DOWNLOAD, "Orders of this type have no file to download.")                             \
    X(AUTH_NOT_AUTHENTICATED, "The request has no API key.")                                                 \
    X(AUTH_TOKEN_INVALID_FORMAT, "The Authorization header does not hold an API key.")                       \
    X(AUTH_TOKEN_INVALID, "No account has this API key; use another key or ask the operator for one.")       \
    X(AUTH_TOKEN_EXPIRED, "The API key has expired; use another key or ask the operator for one.")           \
    X(AUTH_FORBIDDEN, "The account is suspended; ask the operator of the service.")                          \
    X(ORDER_NOT_FOUND,                                                                                       \
      "Your account has no order with this id; use the orderId that its creation returned.")                 \
    X(WEBHOOK_NOT_FOUND, "Your account has no webhook with this id; the list of webhooks has the ids.")      \
    X(WEBHOOK_EVENT_NOT_FOUND, "The webhook has no event with this id; the list of events has the ids.")     \
    X(RESOURCE_NOT_FOUND, "There is nothing at this path; /api/v2/docs lists every path.")                   \
    X(PROCESSED_FILE_NOT_FOUND, "The file no longer exists; look at the status of its order.")               \
    X(METHOD_NOT_ALLOWED, "This path does not accept the method; the Allow header lists those it accepts.")  \
    X(IDEMPOTENCY_KEY_REUSED, "The idempotencyKey was used with another body; send a new one.")              \
    X(ORDER_ALREADY_STARTED, "The order has started and its files cannot be replaced; make a new order.")    \
    X(URL_EXPIRED, "The URL has expired; request a new URL.")                                                \
    X(URL_SIGNATURE_INVALID, "The signature of the URL is not valid; use the URL exactly as it was given.")  \
    X(PAYLOAD_TOO_LARGE, "The body is too large.")                                                           \
    X(UNSUPPORTED_MEDIA_TYPE, "The content type is not accepted.")                                           \
    X(RATE_LIMIT_EXCEEDED, "Too many requests; wait for the seconds in Retry-After.")                        \
    X(USAGE_LIMIT_EXCEEDED, "The account has reached a limit of its plan; wait, or ask the operator.")       \
    X(SERVER_INTERNAL_ERROR, "The service failed; repeat the request or tell the operator its requestId.")   \
    X(SERVICE_UNAVAILABLE, "The service is not available now; repeat the request later.")                    \
    X(SESSION_REQUIRED, "There is no session, or it has ended; sign in.")                                    \
    X(SIGN_IN_FAILED, "The email address, the password or the code is wrong.")                               \
    X(SIGN_IN_LIMITED, "Too many attempts; wait for the seconds in Retry-After.")                            \
    X(SIGN_UP_CLOSED, "This service does not let you create users; ask its operator.")                       \
    X(CSRF_TOKEN_INVALID, "The request does not come from the console's page; load the page again.")         \
    X(ROLE_REQUIRED, "Your role does not allow this; ask an owner of the account.")                          \
    X(TOKEN_INVALID, "The link or code is invalid, used or expired; ask for a new one.")                     \
    X(EMAIL_UNVERIFIED, "Your email address is not verified; open the link in the mail.")                    \
    X(LAST_OWNER, "The account would have no owner; make another member an owner first.")                    \
    X(IMAGE_CORRUPT, "The picture is damaged and cannot be decoded; export it again.")                       \
    X(IMAGE_FORMAT_UNSUPPORTED, "The picture has a format that is not supported; convert it to a JPEG.")     \
    X(IMAGE_TOO_LARGE, "The picture is too large; scale it down.")                                           \
    X(IMAGE_TOO_SMALL, "The picture is too small; use a larger picture.")                                    \
    X(SOURCE_UNREACHABLE, "The source URL did not answer in several attempts; check it and order again.")    \
    X(SOURCE_REFUSED, "The source URL was refused; check it and order again.")                               \
    X(SOURCE_TOO_LARGE, "The file at the source URL is too large; make it smaller and order again.")         \
    X(OUTPUT_TARGET_REFUSED, "The output target refused the result; check its URL and order again.")         \
    X(WATERMARK_NOT_EMBEDDABLE, "The watermark cannot be read back; use a larger picture or a PNG.")         \
    X(PROCESSING_TIMEOUT, "Processing took too long in every attempt; order again with a smaller picture.")  \
    X(PROCESSING_CRASHED,                                                                                    \
      "Processing failed in every attempt; order again or tell the operator the orderId.")                   \
    X(UPLOAD_EXPIRED, "The files were not uploaded and confirmed in time; make a new order.")                \
    X(ORDER_CANCELLED, "The operator cancelled the order; ask the operator why.")                            \
    X(WATERMARK_NOT_FOUND, "The picture carries no readable watermark.")                                     \
    X(NO_MEMORY, "There is not enough memory.")                                                              \
    X(CONFIG_INVALID, "The configuration is not valid.")                                                     \
    X(WEIGHTS_INVALID, "The weights file is not valid.")                                                     \
    X(TWIN_EXISTS, "The object already exists.")                                                             \
    X(NOT_FOUND, "The object does not exist.")                                                               \
    X(IO_FAILED, "Reading or writing failed.")                                                               \
    X(AUTH_SCOPE_MISSING, "The API key is limited and may not do this; use a key without limits.")

enum iw_error {
    IW_OK = 0,
#define IW_ERROR_MEMBER(name, sentence) IW_##name,
    IW_ERRORS(IW_ERROR_MEMBER)
#undef IW_ERROR_MEMBER
        IW_ERROR_COUNT
};

/* "ORDER_NOT_FOUND"; "OK" for IW_OK. Static text. */
const char *iw_error_code(enum iw_error error);

/* The default sentence of the list. Static text. */
const char *iw_error_sentence(enum iw_error error);

/* IW_ORDER_NOT_FOUND for "ORDER_NOT_FOUND"; IW_OK for an unknown code. */
enum iw_error iw_error_by_code(const char *code);

#endif
