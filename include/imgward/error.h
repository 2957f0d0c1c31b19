/*
 * What can go wrong, as one list.
 *
 * Every function that can fail returns an enum iw_error and its answer must be
 * used.  The names are those of the contract: grep ORDER_NOT_PENDING finds the
 * contract, this list, the code that raises it, its test and the manual.  What
 * HTTP status an error becomes is known to src/http alone.
 */
#ifndef IMGWARD_ERROR_H
#define IMGWARD_ERROR_H

#define IW_MUST_USE __attribute__((warn_unused_result))

/*
 * X(name, sentence): the sentence is what a client reads when the place that
 * raised the error said nothing better.
 */
#define IW_ERRORS(X)                                                                                         \
    X(VALIDATION_FAILED, "The request is not valid.")                                                        \
    X(ORDER_NOT_PENDING, "The order is no longer pending.")                                                  \
    X(ORDER_EXPIRED, "The order has expired and its files are deleted.")                                     \
    X(ORDER_NOT_COMPLETED, "The order is not complete.")                                                     \
    X(ORDER_FILE_NOT_UPLOADED, "Not every file of the order has been uploaded.")                             \
    X(ORDER_TYPE_CANT_DOWNLOAD, "Orders of this kind have nothing to download.")                             \
    X(AUTH_NOT_AUTHENTICATED, "An API key is required.")                                                     \
    X(AUTH_TOKEN_INVALID_FORMAT, "The Authorization header does not hold an API key.")                       \
    X(AUTH_TOKEN_INVALID, "The API key is unknown or revoked.")                                              \
    X(AUTH_TOKEN_EXPIRED, "The API key has expired.")                                                        \
    X(AUTH_FORBIDDEN, "The account is suspended.")                                                           \
    X(ORDER_NOT_FOUND, "There is no such order.")                                                            \
    X(WEBHOOK_NOT_FOUND, "There is no such webhook.")                                                        \
    X(WEBHOOK_EVENT_NOT_FOUND, "There is no such webhook event.")                                            \
    X(RESOURCE_NOT_FOUND, "There is nothing at this address.")                                               \
    X(PROCESSED_FILE_NOT_FOUND, "The file is not there.")                                                    \
    X(METHOD_NOT_ALLOWED, "This address does not take that method.")                                         \
    X(IDEMPOTENCY_KEY_REUSED, "The idempotency key was used before with another body.")                      \
    X(ORDER_ALREADY_STARTED, "The order has started; its files can no longer be replaced.")                  \
    X(URL_EXPIRED, "The URL has expired.")                                                                   \
    X(URL_SIGNATURE_INVALID, "The signature of the URL is not valid.")                                       \
    X(PAYLOAD_TOO_LARGE, "The body is too large.")                                                           \
    X(UNSUPPORTED_MEDIA_TYPE, "The content is of a type that is not accepted.")                              \
    X(RATE_LIMIT_EXCEEDED, "Too many requests.")                                                             \
    X(SERVER_INTERNAL_ERROR, "Something went wrong on our side.")                                            \
    X(SERVICE_UNAVAILABLE, "The service is not available for the moment.")                                   \
    X(IMAGE_CORRUPT, "The image is broken and cannot be decoded.")                                           \
    X(IMAGE_FORMAT_UNSUPPORTED, "The file is not a JPEG, PNG or WebP image.")                                \
    X(IMAGE_TOO_LARGE, "The image is too large.")                                                            \
    X(IMAGE_TOO_SMALL, "The image is too small.")                                                            \
    X(SOURCE_UNREACHABLE, "The source URL could not be reached.")                                            \
    X(SOURCE_REFUSED, "The source URL was refused.")                                                         \
    X(SOURCE_TOO_LARGE, "The file behind the source URL is too large.")                                      \
    X(OUTPUT_TARGET_REFUSED, "The output target refused the result.")                                        \
    X(PROCESSING_TIMEOUT, "Processing took too long.")                                                       \
    X(PROCESSING_CRASHED, "Processing failed.")                                                              \
    X(UPLOAD_EXPIRED, "The files were not uploaded and confirmed in time.")                                  \
    X(ORDER_CANCELLED, "The operator cancelled the order.")                                                  \
    X(WATERMARK_NOT_FOUND, "The image carries no readable watermark.")                                       \
    X(WATERMARK_NOT_EMBEDDED, "The watermark could not be embedded so that it can be read back.")            \
    X(NO_MEMORY, "There is not enough memory.")                                                              \
    X(CONFIG_INVALID, "The configuration is not valid.")                                                     \
    X(WEIGHTS_INVALID, "The weights file is not valid.")                                                     \
    X(TWIN_EXISTS, "The thing exists already.")                                                              \
    X(NOT_FOUND, "The thing does not exist.")                                                                \
    X(IO_FAILED, "Reading or writing failed.")

enum iw_error {
    IW_OK = 0,
#define IW_ERROR_MEMBER(name, sentence) IW_##name,
    IW_ERRORS(IW_ERROR_MEMBER)
#undef IW_ERROR_MEMBER
        IW_ERROR_COUNT
};

/* "ORDER_NOT_FOUND"; "OK" for IW_OK.  Static text. */
const char *iw_error_code(enum iw_error error);

/* The default sentence of the list above.  Static text. */
const char *iw_error_sentence(enum iw_error error);

/* IW_ORDER_NOT_FOUND for "ORDER_NOT_FOUND"; IW_OK when the code is unknown. */
enum iw_error iw_error_by_code(const char *code);

#endif
