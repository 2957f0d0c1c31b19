/*
 * The colour space that a file declares. A PNG may declare it in several chunks; the order is that of the
 * PNG specification, third edition, 4.3: cICP, iCCP, sRGB, gAMA with cHRM.
 */
#include "codec/space.h"

#include <math.h>
#include <string.h>

#include "codec/driver.h"

/* Chromaticities of white, red, green and blue (ITU-T H.273, table 2). */
static const struct primaries {
    unsigned code;
    double xy[4][2];
} primaries[] = {
    {1, {{.3127, .3290}, {.640, .330}, {.300, .600}, {.150, .060}}},  /* BT.709, sRGB */
    {5, {{.3127, .3290}, {.640, .330}, {.290, .600}, {.150, .060}}},  /* BT.470 BG */
    {6, {{.3127, .3290}, {.630, .340}, {.310, .595}, {.155, .070}}},  /* SMPTE 170M */
    {9, {{.3127, .3290}, {.708, .292}, {.170, .797}, {.131, .046}}},  /* BT.2020 */
    {11, {{.3140, .3510}, {.680, .320}, {.265, .690}, {.150, .060}}}, /* DCI P3 */
    {12, {{.3127, .3290}, {.680, .320}, {.265, .690}, {.150, .060}}}, /* Display P3 */
};

/* Light of a signal; 1 is white. HDR: white has 203 cd/m2 (ITU-R BT.2408), and more is clipped. */
static const double white_nits = 203;

/* SMPTE ST 2084 */
static double light_of_pq(double signal)
{
    const double m1 = 2610 / 16384.0, m2 = 2523 / 32.0, c1 = 3424 / 4096.0, c2 = 2413 / 128.0,
                 c3 = 2392 / 128.0;
    double power = pow(signal, 1 / m2);
    return 10000 / white_nits * pow(fmax(power - c1, 0) / (c2 - c3 * power), 1 / m1);
}

/* ITU-R BT.2100, on a display of 1000 cd/m2 */
static double light_of_hlg(double signal)
{
    const double a = 0.17883277, b = 1 - 4 * a, c = 0.5 - a * log(4 * a);
    double scene = signal <= 0.5 ? signal * signal / 3 : (exp((signal - c) / a) + b) / 12;
    return 1000 / white_nits * pow(scene, 1.2);
}

/* Transfer functions (ITU-T H.273, table 3): a formula of two parts as in lcms2, type 4, or a function. */
static const struct transfer {
    unsigned code;
    double parameters[5];
    double (*light)(double signal);
} transfers[] = {
    {13, {2.4, 1 / 1.055, .055 / 1.055, 1 / 12.92, .04045}, NULL}, /* sRGB; first, see space_of_gamma */
    {1, {1 / .45, 1 / 1.099, .099 / 1.099, 1 / 4.5, .081}, NULL},  /* BT.709 */
    {6, {1 / .45, 1 / 1.099, .099 / 1.099, 1 / 4.5, .081}, NULL},
    {14, {1 / .45, 1 / 1.099, .099 / 1.099, 1 / 4.5, .081}, NULL},
    {15, {1 / .45, 1 / 1.099, .099 / 1.099, 1 / 4.5, .081}, NULL},
    {4, {2.2, 1, 0, 0, 0}, NULL},
    {5, {2.8, 1, 0, 0, 0}, NULL},
    {8, {1, 1, 0, 0, 0}, NULL},
    {16, {0}, light_of_pq},
    {18, {0}, light_of_hlg},
};

static cmsToneCurve *curve_new(cmsContext lcms, const struct transfer *transfer)
{
    enum { points = 4096, formula_of_two_parts = 4 };
    float table[points];
    if (transfer->light == NULL)
        return cmsBuildParametricToneCurve(lcms, formula_of_two_parts, transfer->parameters);
    for (int i = 0; i < points; i++)
        table[i] = (float)fmin(transfer->light(i / (points - 1.0)), 1);
    return cmsBuildTabulatedToneCurveFloat(lcms, points, table);
}

static cmsHPROFILE space_new(cmsContext lcms, const double xy[4][2], const struct transfer *transfer)
{
    const cmsCIExyY white = {xy[0][0], xy[0][1], 1};
    const cmsCIExyYTRIPLE colors = {
        {xy[1][0], xy[1][1], 1}, {xy[2][0], xy[2][1], 1}, {xy[3][0], xy[3][1], 1}};
    cmsToneCurve *curve = curve_new(lcms, transfer);
    cmsToneCurve *const curves[] = {curve, curve, curve};
    cmsHPROFILE profile = curve == NULL ? NULL : cmsCreateRGBProfileTHR(lcms, &white, &colors, curves);
    if (curve != NULL)
        cmsFreeToneCurve(curve);
    return profile;
}

static const struct keep_chunk *chunk_of(const struct codec_picture *picture, uint32_t tag, size_t size)
{
    for (const struct keep_chunk *chunk = picture->keep->first; chunk != NULL; chunk = chunk->next)
        if (picture->driver->has_color_chunks && chunk->tag == tag && chunk->size == size)
            return chunk;
    return NULL;
}

/* NULL means no cICP, or codes that are not in the tables. */
static cmsHPROFILE space_of_codes(cmsContext lcms, const struct codec_picture *picture)
{
    const struct keep_chunk *chunk = chunk_of(picture, KEEP_TAG('c', 'I', 'C', 'P'), 4);
    for (size_t p = 0; chunk != NULL && p < sizeof primaries / sizeof primaries[0]; p++)
        for (size_t t = 0; t < sizeof transfers / sizeof transfers[0]; t++)
            if (primaries[p].code == chunk->data[0] && transfers[t].code == chunk->data[1])
                return space_new(lcms, primaries[p].xy, &transfers[t]);
    return NULL;
}

/* A grey profile describes a grey picture only. NULL if there is none that fits. */
static cmsHPROFILE space_of_icc(cmsContext lcms, const struct codec_picture *picture, struct arena *arena)
{
    size_t size = 0;
    const unsigned char *icc = driver_icc(arena, picture, &size);
    cmsHPROFILE profile = icc == NULL ? NULL : cmsOpenProfileFromMemTHR(lcms, icc, (cmsUInt32Number)size);
    cmsColorSpaceSignature space = profile == NULL ? cmsSigXYZData : cmsGetColorSpace(profile);
    if (space == cmsSigRgbData || (space == cmsSigGrayData && !image_has_color(&picture->image)))
        return profile;
    if (profile != NULL)
        cmsCloseProfile(profile);
    return NULL;
}

static double chunk_number(const struct keep_chunk *chunk, size_t index)
{
    const unsigned char *at = chunk->data + 4 * index;
    return keep_number(at) / 100000.0;
}

/* What is missing is that of sRGB. NULL: neither gAMA nor cHRM, or an sRGB chunk. */
static cmsHPROFILE space_of_gamma(cmsContext lcms, const struct codec_picture *picture)
{
    const struct keep_chunk *gamma = chunk_of(picture, KEEP_TAG('g', 'A', 'M', 'A'), 4);
    const struct keep_chunk *colors = chunk_of(picture, KEEP_TAG('c', 'H', 'R', 'M'), 32);
    struct primaries declared = primaries[0];
    struct transfer transfer = transfers[0];
    if (chunk_of(picture, KEEP_TAG('s', 'R', 'G', 'B'), 1) != NULL || (gamma == NULL && colors == NULL))
        return NULL;
    if (gamma != NULL && chunk_number(gamma, 0) > 0)
        transfer = (struct transfer){0, {1 / chunk_number(gamma, 0), 1, 0, 0, 0}, NULL};
    for (size_t i = 0; colors != NULL && i < 8; i++)
        declared.xy[i / 2][i % 2] = chunk_number(colors, i);
    return space_new(lcms, declared.xy, &transfer);
}

cmsHPROFILE space_open(cmsContext lcms, const struct codec_picture *picture, struct arena *arena)
{
    /* A CMYK picture is decoded to sRGB already. */
    if (picture->header.is_cmyk)
        return NULL;
    cmsHPROFILE space = space_of_codes(lcms, picture);
    if (space == NULL)
        space = space_of_icc(lcms, picture, arena);
    return space == NULL ? space_of_gamma(lcms, picture) : space;
}
