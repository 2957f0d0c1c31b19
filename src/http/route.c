#include "http/route.h"

#include <string.h>

#include "base/text.h"
#include "http/response.h"

/* One segment of a path or pattern, without the slashes. */
struct path_segment {
    const char *text;
    size_t length;
};

static struct path_segment segment_at(const char *path)
{
    return (struct path_segment){path + 1, (size_t)(strchrnul(path + 1, '/') - (path + 1))};
}

static bool segment_is_capture(struct path_segment segment)
{
    return segment.length > 2 && segment.text[0] == '{';
}

static bool segment_takes_rest(struct path_segment segment)
{
    return segment_is_capture(segment) && segment.text[segment.length - 2] == '*';
}

/* Adds a decoded capture. Returns false if the capture is empty or has an invalid percent code. */
static bool capture_add(struct request *request, struct path_segment name, const char *value, size_t length)
{
    size_t name_length = name.length - 2 - (size_t)segment_takes_rest(name);
    char *decoded = request_decode(request->arena, value, length, false);
    if (decoded == NULL || decoded[0] == '\0' || request->capture_count >= request_captures_max)
        return false;
    request->captures[request->capture_count++] = (struct request_pair){
        .name = arena_text_n(request->arena, name.text + 1, name_length), .value = decoded};
    return true;
}

/*
 * Returns 0 if the pattern does not match; otherwise a score that is higher the further left the literal
 * segments are.
 */
static unsigned match_score(const char *pattern, const char *path, size_t path_length)
{
    unsigned score = 1;
    const char *end = path + path_length;
    while (*pattern == '/' && path < end && *path == '/') {
        struct path_segment want = segment_at(pattern), have = segment_at(path);
        if (have.text + have.length > end)
            have.length = (size_t)(end - have.text);
        if (segment_takes_rest(want))
            return have.text < end ? score << 1 : 0;
        bool is_same = want.length == have.length && memcmp(want.text, have.text, want.length) == 0;
        if (!segment_is_capture(want) && !is_same)
            return 0;
        score = score << 1 | (segment_is_capture(want) ? 0 : 1);
        pattern = want.text + want.length;
        path = have.text + have.length;
    }
    return *pattern == '\0' && path == end ? score : 0;
}

static bool captures_add(struct request *request, const char *pattern, size_t path_length)
{
    const char *path = request->path, *end = path + path_length;
    request->capture_count = 0;
    while (*pattern == '/') {
        struct path_segment want = segment_at(pattern), have = segment_at(path);
        if (segment_takes_rest(want))
            return capture_add(request, want, have.text, (size_t)(end - have.text));
        if (segment_is_capture(want) && !capture_add(request, want, have.text, have.length))
            return false;
        pattern = want.text + want.length;
        path = have.text + have.length;
    }
    return true;
}

/* Returns the pattern with the highest score, or NULL. */
static const char *pattern_best(const struct request *request, const struct route *const *tables,
                                size_t path_length)
{
    const char *best = NULL;
    unsigned score_best = 0;
    for (; *tables != NULL; tables++)
        for (const struct route *route = *tables; route->pattern != NULL; route++) {
            unsigned score = match_score(route->pattern, request->path, path_length);
            if (score > score_best) {
                score_best = score;
                best = route->pattern;
            }
        }
    return best;
}

/*
 * Returns the route of a pattern for a method, or NULL. Sets allowed to the methods of the pattern, as bits.
 */
static const struct route *route_of(const struct route *const *tables, const char *pattern,
                                    enum method method, unsigned *allowed)
{
    const struct route *found = NULL;
    for (; *tables != NULL; tables++)
        for (const struct route *route = *tables; route->pattern != NULL; route++) {
            if (strcmp(route->pattern, pattern) != 0)
                continue;
            *allowed |= (unsigned)route->method;
            if (route->method == method)
                found = route;
        }
    return found;
}

/* Adds the header Allow and returns its value. */
static const char *allow_add(struct request *request, unsigned allowed)
{
    struct text list;
    text_init(&list, request->arena);
    for (unsigned method = METHOD_GET; method <= METHOD_PATCH; method <<= 1) {
        if ((allowed & method) == 0)
            continue;
        text_printf(&list, "%s%s%s", list.length > 0 ? ", " : "", request_method_text((enum method)method),
                    method == METHOD_GET ? ", HEAD" : "");
    }
    response_header(request, "Allow", list.data);
    return list.data;
}

/* Returns the length of the common prefix of two segments. */
static unsigned prefix_length(struct path_segment one, struct path_segment other)
{
    unsigned count = 0;
    while (count < one.length && count < other.length && one.text[count] == other.text[count])
        count++;
    return count;
}

/*
 * Returns the similarity of a path to a pattern that differs in exactly one segment: the length of the common
 * prefix of these segments. Returns 0 for any other path.
 */
static unsigned similarity(const char *pattern, const char *path)
{
    unsigned shared = 0, different = 0;
    while (*pattern == '/' && *path == '/') {
        struct path_segment want = segment_at(pattern), have = segment_at(path);
        bool is_same = want.length == have.length && prefix_length(want, have) == want.length;
        if (!segment_is_capture(want) && !is_same) {
            different++;
            shared = prefix_length(want, have);
        }
        pattern = want.text + want.length;
        path = have.text + have.length;
    }
    return *pattern == '\0' && *path == '\0' && different == 1 ? shared : 0;
}

/* Returns the documented path that is most similar to the path of the request, or NULL. */
static const char *pattern_similar(const struct request *request, const struct route *const *tables)
{
    const char *best = NULL;
    unsigned best_similarity = 0;
    for (; *tables != NULL; tables++)
        for (const struct route *route = *tables; route->pattern != NULL; route++) {
            unsigned candidate = similarity(route->pattern, request->path);
            if (candidate > best_similarity && strncmp(route->pattern, "/api/", 5) == 0) {
                best_similarity = candidate;
                best = route->pattern;
            }
        }
    return best;
}

static enum iw_error nothing_here(struct request *request, const struct route *const *tables)
{
    const char *similar = pattern_similar(request, tables);
    if (similar == NULL)
        return context_fail(request->context, IW_RESOURCE_NOT_FOUND, NULL);
    return context_fail(request->context, IW_RESOURCE_NOT_FOUND,
                        "There is nothing at this path; the most similar path is %s%s.",
                        request_prefix(request), similar);
}

/*
 * Returns false for a path such as /orders/antiai, in which a capture that should be an id is not a number.
 */
static bool ids_are_numbers(const struct request *request)
{
    int64_t id;
    for (unsigned i = 0; i < request->capture_count; i++) {
        size_t length = strlen(request->captures[i].name);
        if (length > 2 && strcmp(request->captures[i].name + length - 2, "Id") == 0 &&
            !text_integer(request->captures[i].value, 1, INT64_MAX, &id))
            return false;
    }
    return true;
}

enum iw_error route_find(struct request *request, const struct route *const *tables)
{
    size_t length = strlen(request->path);
    unsigned allowed = 0;
    if (length > 1 && request->path[length - 1] == '/')
        length--;
    const char *pattern = pattern_best(request, tables, length);
    if (pattern == NULL || !captures_add(request, pattern, length))
        return nothing_here(request, tables);
    request->route = route_of(tables, pattern, request->method, &allowed);
    if (request->route != NULL)
        return IW_OK;
    if (!ids_are_numbers(request))
        return nothing_here(request, tables);
    const char *accepted = allow_add(request, allowed);
    return context_fail(request->context, IW_METHOD_NOT_ALLOWED,
                        "This path accepts %s; the request used %.20s.", accepted, request->method_name);
}
