#include "engine/watermark/likeness.h"

#include <math.h>
#include <string.h>

#include "engine/clones.h"
#include "engine/watermark/lattice.h"

enum { contrast_reach = 3, contrast_most = 31, places_most = 2 * 255, pitch_most = 128 };

/*
 * Pictures are the same if they match by at least match_least deviations. Below that, a marked picture with
 * enough detail differs if a piece inside has less than share_most of the match that the same picture would
 * have. Measured by tests/bench/watermark_forging on training pictures.
 */
static const double match_least = 7.5;
static const double wanted_least = 6.0;
static const double share_most = 0.65;

/* In grey levels. Smaller deviations are noise of compression. */
static const float deviation_floor = 3.0f;

/* Contrasts of a view; 0 outside the picture. */
struct contrasts {
    int width;
    int height;
    int16_t at[WATERMARK_VIEW_PX_MOST];
};

/* Halves a view until it has the pitch. */
static void view_halve(struct watermark_view *view)
{
    int width = view->width / 2;
    int height = view->height / 2;

    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            const uint8_t *from = view->pixels + 2 * y * view->width + 2 * x;
            int sum = from[0] + from[1] + from[view->width] + from[view->width + 1];
            bool is_inside =
                from[0] != 0 && from[1] != 0 && from[view->width] != 0 && from[view->width + 1] != 0;

            view->pixels[y * width + x] = (uint8_t)(is_inside ? sum / 4 : 0);
        }
    view->width = (uint8_t)width;
    view->height = (uint8_t)height;
    view->pitch_chips = (uint8_t)(2 * view->pitch_chips);
}

static int16_t contrast_at(const struct watermark_view *view, int x, int y)
{
    int centre = view->pixels[y * view->width + x];
    float count = 0, sum = 0, squares = 0;

    for (int j = -contrast_reach; centre != 0 && j <= contrast_reach; j++)
        for (int i = -contrast_reach; i <= contrast_reach; i++) {
            bool is_inside = x + i >= 0 && x + i < view->width && y + j >= 0 && y + j < view->height;
            float value = is_inside ? (float)view->pixels[(y + j) * view->width + x + i] : 0;

            count += value > 0;
            sum += value;
            squares += value * value;
        }
    if (centre == 0)
        return 0;
    float mean = sum / count;
    float deviation = sqrtf(fmaxf(squares / count - mean * mean, 0)) + deviation_floor;
    float contrast = ((float)centre - mean) / deviation * (contrast_most / 1.5f);
    return (int16_t)lrintf(fminf(fmaxf(contrast, -contrast_most), contrast_most));
}

static void contrasts_fill(const struct watermark_view *view, struct contrasts *contrasts)
{
    contrasts->width = view->width;
    contrasts->height = view->height;
    for (int y = 0; y < view->height; y++)
        for (int x = 0; x < view->width; x++)
            contrasts->at[y * view->width + x] = contrast_at(view, x, y);
}

/* Adds a row's products and their squares. */
ENGINE_CLONES
static void row_match(const int16_t *restrict a, const int16_t *restrict b, int count, int64_t sums[2])
{
    int32_t sum = 0;
    int32_t squares = 0;

    for (int i = 0; i < count; i++) {
        int32_t product = a[i] * b[i];

        sum += product;
        squares += product * product / 64; /* a row of 2,048 pixels does not overflow */
    }
    sums[0] += sum;
    sums[1] += squares;
}

static int greater(int a, int b)
{
    return a > b ? a : b;
}

static int lesser(int a, int b)
{
    return a < b ? a : b;
}

/* A rectangle of a, and a rectangle of the same size that begins elsewhere in b. */
struct pair {
    const struct contrasts *a;
    const struct contrasts *b;
    int width;
    int height;
    int at[2];    /* of the rectangle in a */
    int moved[2]; /* b's origin in a */
};

/* Returns the part that a and the moved b have in common. */
static struct pair pair_of(const struct contrasts *a, const struct contrasts *b, int x, int y)
{
    struct pair pair = {.a = a, .b = b, .at = {greater(0, x), greater(0, y)}, .moved = {x, y}};

    pair.width = lesser(a->width, x + b->width) - pair.at[0];
    pair.height = lesser(a->height, y + b->height) - pair.at[1];
    return pair;
}

/* Sums the products, and their squares in 64ths. */
static void pair_sums(const struct pair *pair, int64_t sums[2])
{
    sums[0] = sums[1] = 0;
    for (int y = pair->at[1]; y < pair->at[1] + pair->height; y++)
        row_match(pair->a->at + y * pair->a->width + pair->at[0],
                  pair->b->at + (y - pair->moved[1]) * pair->b->width + pair->at[0] - pair->moved[0],
                  pair->width, sums);
}

static double deviations(const int64_t sums[2])
{
    return sums[1] > 0 ? (double)sums[0] / sqrt(64.0 * (double)sums[1]) : 0;
}

/*
 * Finds the best match of a quarter of the pair, moved by up to a pixel, because a pose may not fit
 * everywhere.
 */
static void quarter_sums(const struct pair *whole, int quarter, int64_t best[2])
{
    double most = 0;

    best[0] = best[1] = 0;
    for (int j = -1; j <= 1; j++)
        for (int i = -1; i <= 1; i++) {
            struct pair part = pair_of(whole->a, whole->b, whole->moved[0] + i, whole->moved[1] + j);
            int64_t sums[2];
            int middle[2] = {whole->at[0] + whole->width / 2, whole->at[1] + whole->height / 2};
            int end[2] = {lesser(part.at[0] + part.width, quarter & 1 ? 1 << 30 : middle[0]),
                          lesser(part.at[1] + part.height, quarter & 2 ? 1 << 30 : middle[1])};

            part.at[0] = greater(part.at[0], quarter & 1 ? middle[0] : 0);
            part.at[1] = greater(part.at[1], quarter & 2 ? middle[1] : 0);
            part.width = end[0] - part.at[0];
            part.height = end[1] - part.at[1];
            pair_sums(&part, sums);
            if (deviations(sums) > most) {
                most = deviations(sums);
                memcpy(best, sums, sizeof sums);
            }
        }
}

static double match_quarters(const struct contrasts *a, const struct contrasts *b, int x, int y)
{
    const struct pair whole = pair_of(a, b, x, y);
    int64_t sums[2] = {0, 0};

    for (int quarter = 0; quarter < 4; quarter++) {
        int64_t best[2];

        quarter_sums(&whole, quarter, best);
        sums[0] += best[0];
        sums[1] += best[1];
    }
    return deviations(sums);
}

/* Returns the correlation of contrasts with the contrasts at a distance of x and y. */
static double neighbours(const struct contrasts *contrasts, int x, int y)
{
    int64_t near[2];
    int64_t same[2];

    const struct pair at[2] = {pair_of(contrasts, contrasts, x, y), pair_of(contrasts, contrasts, 0, 0)};

    pair_sums(&at[0], near);
    pair_sums(&at[1], same);
    return same[0] > 0 ? (double)near[0] / (double)same[0] : 0;
}

/*
 * Neighbours in smooth pictures are alike, so there are fewer independent products than pixels. The variance
 * grows by the sum over all distances of the products of both pictures' correlations (Bartlett 1935,
 * Clifford and Richardson 1989).
 */
static double scatter_of(const struct contrasts *a, const struct contrasts *b)
{
    double variance = 1;

    for (int y = 0; y <= contrast_reach; y++)
        for (int x = y > 0 ? -contrast_reach : 1; x <= contrast_reach; x++)
            variance += 2 * neighbours(a, x, y) * neighbours(b, x, y);
    return sqrt(fmax(variance, 1));
}

/* The places of a row or column, in pixels, at which a view may lie in another view. */
struct places {
    int count;
    int at[places_most];
};

/*
 * The mark gives the place modulo the period. A pose may be wrong by a pixel, so each period has three
 * places. Half of the smaller view must be inside.
 */
static void places_fill(const struct watermark_view views[2], int axis, int a, int b, struct places *places)
{
    int common = (lesser(a, b) + 1) / 2;
    int pitch = views[0].pitch_chips;
    int periods = greater(a, b) * pitch / lattice_period + 1;
    int last = -common - b;

    places->count = 0;
    for (int period = -periods; period <= periods; period++) {
        int chips = views[1].origin_chips[axis] - views[0].origin_chips[axis] + period * lattice_period;
        int middle = (int)lrint((double)chips / pitch);

        for (int at = greater(middle - 1, last + 1); at <= middle + 1; at++)
            if (at >= common - b && at <= a - common && places->count < places_most)
                places->at[places->count++] = last = at;
    }
}

/*
 * Returns the match that b would have if it were a piece of a, or HUGE_VAL unless the smaller view lies
 * almost inside the other view.
 */
static double match_self(const struct contrasts *a, const struct contrasts *b, int x, int y)
{
    struct pair pair = pair_of(a, b, x, y);
    int64_t sums[2];

    if (10 * pair.width < 9 * lesser(a->width, b->width) ||
        10 * pair.height < 9 * lesser(a->height, b->height))
        return HUGE_VAL;
    pair.b = a;
    pair.moved[0] = pair.moved[1] = 0;
    pair_sums(&pair, sums);
    return deviations(sums);
}

/* Compares two views of the same pitch until they match, and keeps the best match. */
static void views_compare(const struct watermark_view views[2], struct watermark_likeness *likeness)
{
    struct contrasts a;
    struct contrasts b;
    struct places across;
    struct places down;

    contrasts_fill(&views[0], &a);
    contrasts_fill(&views[1], &b);
    places_fill(views, 0, a.width, b.width, &across);
    places_fill(views, 1, a.height, b.height, &down);
    double scatter = scatter_of(&a, &b);
    double self = scatter_of(&a, &a);
    /* Most suspects are whole pictures. */
    if (a.width == b.width && a.height == b.height)
        likeness->match = fmax(likeness->match, match_quarters(&a, &b, 0, 0) / scatter);
    for (int j = 0; j < down.count && likeness->match < match_least; j++)
        for (int i = 0; i < across.count; i++) {
            double wanted = match_self(&a, &b, across.at[i], down.at[j]) / self;
            double match = match_quarters(&a, &b, across.at[i], down.at[j]) / scatter;

            likeness->wanted = fmin(likeness->wanted, wanted);
            likeness->match = fmax(likeness->match, match);
            if (isfinite(wanted))
                likeness->inside = fmax(likeness->inside, match);
        }
}

/* Checks a view, which comes from a database or from a process that a picture may have taken over. */
static bool is_valid(const struct watermark_view *view)
{
    bool is_power = (view->pitch_chips & (view->pitch_chips - 1)) == 0;

    return view->width > 0 && view->height > 0 && view->width * view->height <= WATERMARK_VIEW_PX_MOST &&
           view->pitch_chips > 0 && is_power;
}

void likeness_view_read(const void *bytes, size_t length, struct watermark_view *view)
{
    memset(view, 0, sizeof *view);
    if (length == 0 || length > sizeof *view)
        return;
    memcpy(view, bytes, length);
    if (!is_valid(view) || WATERMARK_VIEW_BYTES(view) != length)
        view->width = 0;
}

/* Bending matters less in coarse views, so the better of two pitches counts. */
static struct watermark_likeness likeness_find(const struct watermark_view *marked,
                                               const struct watermark_view *seen)
{
    struct watermark_view views[2] = {*marked, *seen};
    struct watermark_likeness likeness = {.wanted = HUGE_VAL};

    if (!is_valid(marked) || !is_valid(seen))
        return (struct watermark_likeness){.match = 0};
    while (views[0].pitch_chips < views[1].pitch_chips)
        view_halve(&views[0]);
    while (views[1].pitch_chips < views[0].pitch_chips)
        view_halve(&views[1]);
    views_compare(views, &likeness);
    double wanted = isfinite(likeness.wanted) ? likeness.wanted : 0;
    if (likeness.match < match_least && views[0].pitch_chips < pitch_most) {
        view_halve(&views[0]);
        view_halve(&views[1]);
        views_compare(views, &likeness);
    }
    likeness.wanted = wanted;
    return likeness;
}

enum watermark_match likeness_match(const struct watermark_view *marked, const struct watermark_view *seen,
                                    struct watermark_likeness *report)
{
    struct watermark_likeness likeness = likeness_find(marked, seen);

    if (report != NULL)
        *report = likeness;
    if (likeness.match >= match_least)
        return WATERMARK_MATCH_SAME;
    bool is_other = likeness.wanted >= wanted_least && likeness.inside < share_most * likeness.wanted;
    return is_other ? WATERMARK_MATCH_OTHER : WATERMARK_MATCH_UNKNOWN;
}
