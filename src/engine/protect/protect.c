#include <imgward/protect.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/image.h"
#include "engine/protect/protect_measure.h"
#include "engine/protect/protect_plan.h"

enum { scale_halvings = 40 /* iterations of the bisection */ };

/* The strength low for pictures without texture. */
static const double bare_psnr_db = 40;

/* The permitted share of the perturbation at its peak grows with the mean mask m (0..1): by
 * m + peak_share_busy * m². */
static const double peak_share_busy = 8;

/* ---- strengths */

/*
 * Weaker perturbations hide better: flat parts get less.  The peak is the largest change of a sample, in
 * levels of 255.  It is about 4.5 times the root mean square error.  tools/generator.py has the same
 * parameters.
 */
static const struct {
    const char *name;
    double psnr_db;
    /*
     * The largest share of the perturbation, as roots of its size, in samples at their peak, where a picture
     * has no masking.  Photographs stay below it.  In flat art only outlines mask; a larger share would draw
     * teeth along them.
     */
    double peak_share;
    struct unit_way way;
} strengths[protect_strength_count] =
    {
        [PROTECT_LOW] = {.name = "low",
                         .psnr_db = 40,
                         .peak_share = 0.05,
                         .way =
                             {
                                 .network = NETWORK_FAINT,
                                 .hiding = {.floor = 0.00015f,
                                            .knee = 0.118f,
                                            .grain = 0.0012f,
                                            .smooth = 0.0022f,
                                            .calm = 0.985f,
                                            .mild = 0.0022f,
                                            .eased = 0.83f,
                                            .calm_from = 0,
                                            .skin = 0.8f,
                                            .plain = 0.0085f,
                                            .light_plain = 0.02f,
                                            .light_eased = 0.97f},
                                 .peaks = {6, 1.5f, 11},
                                 .amplitude = 0.0185f,
                                 .blue = 1.75f,
                                 .pale = 0.96f,
                                 .level = 0.41f,
                                 .table = PROTECT_LOW,
                                 .dither = 0.0093f,
                             }},
        [PROTECT_STANDARD] = {.name = "standard",
                              .psnr_db = 37,
                              .peak_share = 0.04,
                              .way =
                                  {
                                      .network = NETWORK_FAINT,
                                      .hiding = {.floor = 0.00009f,
                                                 .knee = 0.0895f,
                                                 .grain = 0.001f,
                                                 .smooth = 0.00101f,
                                                 .calm = 0.975f,
                                                 .mild = 0.004f,
                                                 .eased = 0.8f,
                                                 .calm_from = 0.25f,
                                                 .skin = 0.8f,
                                                 .plain = 0.0046f,
                                                 .light_plain = 0.0113f,
                                                 .light_eased = 0.97f},
                                      .peaks = {9.5f, 2.33f, 16},
                                      .amplitude = 0.0132f,
                                      .blue = 2.8f,
                                      .pale = 0.95f,
                                      .level = 0.79f,
                                      .table = PROTECT_STANDARD,
                                      .dither = 0.0109f,
                                  }},
        [PROTECT_HIGH] = {.name = "high",
                          .psnr_db = 34,
                          .peak_share = 0.1,
                          .way =
                              {
                                  .network = NETWORK_STRONG,
                                  .hiding = {.floor = 0.00008f,
                                             .knee = 0.1796f,
                                             .grain = 0.0014f,
                                             .smooth = 0.00085f,
                                             .calm = 0.97f,
                                             .mild = 0.002f,
                                             .eased = 0.15f,
                                             .calm_from = 0,
                                             .skin = 0.6f,
                                             .plain = 0.006f,
                                             .light_plain = 0.012f,
                                             .light_eased = 0.85f},
                                  .peaks = {22, 0, 22},
                                  .amplitude = 0.055f,
                                  .blue = 1.5f,
                                  .pale = 0.85f,
                                  .level = 0.66f,
                                  .table = PROTECT_HIGH,
                                  .dither = 0.0108f,
                              }},
};

double protect_strength_db(enum protect_strength strength)
{
    return strengths[strength].psnr_db;
}

const char *protect_strength_name(enum protect_strength strength)
{
    return strengths[strength].name;
}

bool protect_strength_by_name(const char *name, enum protect_strength *strength)
{
    for (unsigned i = 0; i < protect_strength_count; i++) {
        if (strcmp(name, strengths[i].name) == 0) {
            *strength = (enum protect_strength)i;
            return true;
        }
    }
    return false;
}

_Static_assert((int)protect_strength_count == (int)spectra_tables,
               "the weights file has a table of gains for each");

/* ---- weights */

enum iw_error protect_new(struct protect **protect, const void *weights, size_t size, const char **why)
{
    *why = "there is no memory for the weights";
    *protect = calloc(1, sizeof **protect);
    if (*protect == NULL)
        return IW_NO_MEMORY;
    enum iw_error error = net_init(&(*protect)->net, weights, size, why);
    if (error != IW_OK) {
        free(*protect);
        *protect = NULL;
    }
    return error;
}

void protect_free(struct protect *protect)
{
    if (protect == NULL)
        return;
    net_fini(&protect->net);
    free(protect);
}

enum iw_error protect_plan_new(struct protect_plan **plan, const struct protect *protect,
                               const struct image *image, enum protect_strength strength, uint64_t seed)
{
    unsigned colors = image_has_color(image) ? 3 : 1;
    size_t units = ((size_t)image->height_px + 1) * image->width_px * colors;
    size_t columns = canvas_picture_blocks(image->width_px),
           blocks = columns * canvas_picture_blocks(image->height_px);
    struct protect_plan *new = calloc(1, sizeof *new + units + blocks + columns *canvas_block_px *colors);
    if (new == NULL)
        return IW_NO_MEMORY;
    new->units = (int8_t *)(new + 1);
    new->peaks = (uint8_t *)new->units + units;
    new->line = new->peaks + blocks;
    new->width_px = image->width_px;
    new->height_px = image->height_px;
    new->colors = colors;
    new->depth_bits = image->depth_bits;
    new->peak_share = strengths[strength].peak_share;
    enum iw_error error = unit_compute(&protect->net, image, &strengths[strength].way, seed, new->units,
                                       new->peaks, &new->hiding);
    if (error != IW_OK) {
        free(new);
        return error;
    }
    plan_count(new, image);
    *plan = new;
    return IW_OK;
}

void protect_plan_free(struct protect_plan *plan)
{
    free(plan);
}

/* ---- scale */

/* The number of samples, including those that cannot change. */
static double plan_samples(const struct protect_plan *plan)
{
    return (double)plan->width_px * plan->height_px * plan->colors;
}

/* Mean square error in levels of 255. */
static double plan_error(const struct protect_plan *plan, double scale)
{
    return plan_squares(plan, scale) / plan_samples(plan);
}

static bool scale_is_too_much(const struct protect_plan *plan, double scale, double wanted)
{
    const double hides = plan->hiding.mean;
    const double share_max = plan->peak_share + hides * (1 + peak_share_busy * hides);
    return plan_squares(plan, scale) > wanted * plan_samples(plan) ||
           (!plan->hiding.is_bare && plan_share_at_peak(plan, scale) > share_max);
}

double protect_plan_psnr(const struct protect_plan *plan, double scale)
{
    return measure_psnr(plan_error(plan, scale));
}

double protect_plan_scale(const struct protect_plan *plan, double psnr_db, bool *is_limited)
{
    double given_db = plan->hiding.is_bare ? fmax(psnr_db, bare_psnr_db) : psnr_db;
    double wanted = 255.0 * 255.0 / pow(10, given_db / 10);
    double low = 0, high = scale_peak;
    for (unsigned step = 0; step < scale_halvings; step++) {
        double middle = (low + high) / 2;
        if (scale_is_too_much(plan, middle, wanted))
            high = middle;
        else
            low = middle;
    }
    /* The error is a step function where few units differ: take the nearer side. */
    double below = plan_error(plan, low), above = plan_error(plan, high);
    double scale = below > 0 && above / wanted > wanted / below ? low : high;
    if (is_limited != NULL)
        *is_limited = protect_plan_psnr(plan, scale) > psnr_db + 0.3;
    return scale;
}

enum iw_error protect_apply(const struct protect *protect, struct image *image,
                            enum protect_strength strength, uint64_t seed, struct protect_report *report)
{
    struct protect_plan *plan = NULL;
    enum iw_error error = protect_plan_new(&plan, protect, image, strength, seed);
    if (error != IW_OK)
        return error;
    report->target_db = protect_strength_db(strength);
    report->scale = protect_plan_scale(plan, report->target_db, &report->is_limited);
    report->psnr_db = protect_plan_psnr(plan, report->scale);
    protect_render(plan, image, report->scale);
    protect_plan_free(plan);
    return IW_OK;
}
