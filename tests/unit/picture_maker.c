#include "picture_maker.h"

#include <stdio.h>
#include <jpeglib.h>
#include <lcms2.h>
#include <math.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>
#include <webp/encode.h>
#include <webp/mux.h>
#include <zlib.h>

const char made_xmp[] =
    "<?xpacket begin=\"\xEF\xBB\xBF\" id=\"W5M0MpCehiHzreSzNTczkc9d\"?>"
    "<x:xmpmeta xmlns:x=\"adobe:ns:meta/\"><rdf:RDF "
    "xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">"
    "<rdf:Description rdf:about=\"\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\">"
    "<dc:creator><rdf:Seq><rdf:li>Some One</rdf:li></rdf:Seq></dc:creator></rdf:Description>"
    "</rdf:RDF></x:xmpmeta><?xpacket end=\"w\"?>";
const char made_exif[] = "II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
const size_t made_exif_bytes = sizeof made_exif - 1;
const char made_comment[] = "a comment of the maker";
const char made_photoshop[] = "Photoshop 3.0\0"
                              "8BIM\x04\x04\0\0\0\0\0\x0b\x1c\x02\x78\0\x06status\0";
const char made_extended_xmp[] = "http://ns.adobe.com/xmp/extension/\0"
                                 "0123456789ABCDEF0123456789ABCDEF\0\0\0\x0a\0\0\0\0<extended/>";
const char made_private[] = "private and safe to copy";
const char made_unsafe[] = "private and tied to the pixels";
const char made_after[] = "Comment\0behind the pixels";
const size_t made_after_bytes = sizeof made_after - 1;
const size_t made_photoshop_bytes = sizeof made_photoshop - 1;

static void made_check(int is_good, const char *what)
{
    if (is_good)
        return;
    fprintf(stderr, "picture maker: %s failed\n", what);
    abort();
}

unsigned made_sample(uint32_t x, uint32_t y, uint32_t channel)
{
    unsigned slow = (x * (2 + channel) + y * 3) / 2;
    unsigned texture = ((x * 7 + y * 13 + channel * 29) ^ (x * y / 5)) & 15;
    unsigned wave = slow & 255;
    return ((slow & 256) ? 255 - wave : wave) * 15 / 16 + texture;
}

unsigned char *made_icc(size_t *size)
{
    cmsUInt32Number bytes = 0;
    cmsHPROFILE profile = cmsCreate_sRGBProfile();
    made_check(profile != NULL && cmsSaveProfileToMem(profile, NULL, &bytes), "the ICC profile");
    unsigned char *icc = malloc(bytes);
    made_check(icc != NULL && cmsSaveProfileToMem(profile, icc, &bytes), "the ICC profile");
    cmsCloseProfile(profile);
    memset(icc + 24, 0, 12); /* clear the creation time, so that the profile is constant */
    *size = bytes;
    return icc;
}

/* Computes the Lab colour of four inks, for the table of the profile. */
static cmsInt32Number ink_sample(const cmsUInt16Number in[], cmsUInt16Number out[], void *to_lab)
{
    cmsFloat32Number rgb[3];
    cmsFloat64Number lab[3];
    for (int c = 0; c < 3; c++)
        rgb[c] = (cmsFloat32Number)((1 - pow(in[c] / 65535.0, 0.7)) * (1 - pow(in[3] / 65535.0, 0.7)));
    cmsDoTransform(to_lab, rgb, lab, 1);
    cmsFloat2LabEncoded(out, (const cmsCIELab *)lab);
    return TRUE;
}

static void ink_table(cmsHPROFILE profile, cmsHTRANSFORM to_lab)
{
    cmsPipeline *pipeline = cmsPipelineAlloc(NULL, 4, 3);
    cmsStage *table = cmsStageAllocCLut16bit(NULL, 9, 4, 3, NULL);
    made_check(pipeline != NULL && table != NULL && cmsStageSampleCLut16bit(table, ink_sample, to_lab, 0),
               "the CMYK table");
    cmsPipelineInsertStage(pipeline, cmsAT_BEGIN, cmsStageAllocToneCurves(NULL, 4, NULL));
    cmsPipelineInsertStage(pipeline, cmsAT_END, table);
    cmsPipelineInsertStage(pipeline, cmsAT_END, cmsStageAllocToneCurves(NULL, 3, NULL));
    made_check(cmsWriteTag(profile, cmsSigAToB0Tag, pipeline), "the CMYK table");
    cmsPipelineFree(pipeline);
}

unsigned char *made_ink_icc(size_t *size)
{
    cmsUInt32Number bytes = 0;
    cmsHPROFILE profile = cmsCreateProfilePlaceholder(NULL), from = cmsCreate_sRGBProfile(),
                lab = cmsCreateLab4Profile(NULL);
    cmsHTRANSFORM to_lab =
        cmsCreateTransform(from, TYPE_RGB_FLT, lab, TYPE_Lab_DBL, INTENT_RELATIVE_COLORIMETRIC, 0);
    made_check(profile != NULL && to_lab != NULL, "the CMYK profile");
    cmsSetProfileVersion(profile, 4.2);
    cmsSetDeviceClass(profile, cmsSigOutputClass);
    cmsSetColorSpace(profile, cmsSigCmykData);
    cmsSetPCS(profile, cmsSigLabData);
    ink_table(profile, to_lab);
    made_check(cmsSaveProfileToMem(profile, NULL, &bytes), "the CMYK profile");
    unsigned char *icc = malloc(bytes);
    made_check(icc != NULL && cmsSaveProfileToMem(profile, icc, &bytes), "the CMYK profile");
    cmsDeleteTransform(to_lab);
    cmsCloseProfile(profile);
    cmsCloseProfile(from);
    cmsCloseProfile(lab);
    memset(icc + 24, 0, 12);
    *size = bytes;
    return icc;
}

static void bytes_add(struct codec_bytes *bytes, const void *data, size_t size)
{
    bytes->data = realloc(bytes->data, bytes->size + size + 1);
    made_check(bytes->data != NULL, "realloc");
    memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
}

static unsigned char *samples_8(const struct made_spec *spec, uint32_t channels)
{
    unsigned char *samples = malloc((size_t)spec->width_px * spec->height_px * channels);
    made_check(samples != NULL, "malloc");
    unsigned char *at = samples;
    for (uint32_t y = 0; y < spec->height_px; y++)
        for (uint32_t x = 0; x < spec->width_px; x++)
            for (uint32_t c = 0; c < channels; c++)
                *at++ = (unsigned char)made_sample(x, y, c);
    return samples;
}

static const char *spec_xmp(const struct made_spec *spec)
{
    return spec->xmp != NULL ? spec->xmp : made_xmp;
}

/* ---- JPEG ---- */

static void jpeg_metadata(struct jpeg_compress_struct *out, const struct made_spec *spec)
{
    size_t size = 0;
    const char *xmp = spec_xmp(spec);
    unsigned char *icc = spec->has_ink_icc ? made_ink_icc(&size) : made_icc(&size);
    static unsigned char segment[65536];
    size_t half = size / 2;
    memcpy(segment, "Exif\0", 6);
    memcpy(segment + 6, made_exif, made_exif_bytes);
    jpeg_write_marker(out, JPEG_APP0 + 1, segment, (unsigned)(6 + made_exif_bytes));
    size_t head = sizeof "http://ns.adobe.com/xap/1.0/";
    memcpy(segment, "http://ns.adobe.com/xap/1.0/", head);
    memcpy(segment + head, xmp, strlen(xmp));
    jpeg_write_marker(out, JPEG_APP0 + 1, segment, (unsigned)(head + strlen(xmp)));
    /* 80 bytes: signature, digest, lengths and the text. */
    jpeg_write_marker(out, JPEG_APP0 + 1, (const JOCTET *)made_extended_xmp, 35 + 32 + 8 + 11);
    for (unsigned part = 1; part <= 2; part++) {
        size_t from = part == 1 ? 0 : half;
        size_t count = part == 1 ? half : size - half;
        memcpy(segment, "ICC_PROFILE", 12);
        segment[12] = (unsigned char)part;
        segment[13] = 2;
        memcpy(segment + 14, icc + from, count);
        jpeg_write_marker(out, JPEG_APP0 + 2, segment, (unsigned)(14 + count));
    }
    jpeg_write_marker(out, JPEG_APP0 + 13, (const JOCTET *)made_photoshop, sizeof made_photoshop - 1);
    jpeg_write_marker(out, JPEG_COM, (const JOCTET *)made_comment, (unsigned)strlen(made_comment));
    free(icc);
}

/* Writes each coefficient of a grey picture in two separate scans, which is valid but unusual. */
static void scans_many(struct jpeg_compress_struct *out)
{
    static jpeg_scan_info scans[127];
    scans[0] = (jpeg_scan_info){1, {0}, 0, 0, 0, 0};
    for (int k = 1; k < 64; k++) {
        scans[2 * k - 1] = (jpeg_scan_info){1, {0}, k, k, 0, 1};
        scans[2 * k] = (jpeg_scan_info){1, {0}, k, k, 1, 0};
    }
    out->scan_info = scans;
    out->num_scans = 127;
}

/* Writes a scan for each component. */
static void scans_split(struct jpeg_compress_struct *out)
{
    static jpeg_scan_info scans[4];
    for (int c = 0; c < out->num_components; c++)
        scans[c] = (jpeg_scan_info){1, {c}, 0, 63, 0, 0};
    out->scan_info = scans;
    out->num_scans = out->num_components;
}

/* Sets colours, sampling and scans. */
static void jpeg_shape(struct jpeg_compress_struct *out, const struct made_spec *spec)
{
    if (spec->is_rgb)
        jpeg_set_colorspace(out, JCS_RGB);
    if (spec->is_ycck)
        jpeg_set_colorspace(out, JCS_YCCK);
    if (spec->is_unmarked)
        out->write_Adobe_marker = FALSE;
    out->comp_info[0].h_samp_factor = spec->sampling == 0 ? 1 : spec->sampling / 10;
    out->comp_info[0].v_samp_factor = spec->sampling == 0 ? 1 : spec->sampling % 10;
    for (int c = 0; c < out->num_components && spec->factors[c] != 0; c++) {
        out->comp_info[c].h_samp_factor = spec->factors[c] / 10;
        out->comp_info[c].v_samp_factor = spec->factors[c] % 10;
    }
    out->restart_interval = spec->restart;
    if (spec->is_progressive)
        jpeg_simple_progression(out);
    if (spec->has_many_scans)
        scans_many(out);
    if (spec->is_split)
        scans_split(out);
}

static struct codec_bytes make_jpeg(const struct made_spec *spec)
{
    struct jpeg_compress_struct out;
    struct jpeg_error_mgr errors;
    struct codec_bytes bytes = {NULL, 0};
    unsigned long size = 0;
    out.err = jpeg_std_error(&errors);
    jpeg_create_compress(&out);
    jpeg_mem_dest(&out, &bytes.data, &size);
    out.image_width = spec->width_px;
    out.image_height = spec->height_px;
    out.input_components = (int)spec->channels;
    out.in_color_space = spec->channels == 1 ? JCS_GRAYSCALE : spec->channels == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&out);
    jpeg_set_quality(&out, spec->quality, TRUE);
    jpeg_shape(&out, spec);
    out.arith_code = spec->is_arithmetic;
    out.X_density = out.Y_density = 300;
    out.density_unit = 1;
    jpeg_start_compress(&out, TRUE);
    if (spec->has_metadata)
        jpeg_metadata(&out, spec);
    unsigned char *samples = samples_8(spec, spec->channels);
    while (out.next_scanline < out.image_height) {
        JSAMPROW row = samples + (size_t)out.next_scanline * spec->width_px * spec->channels;
        jpeg_write_scanlines(&out, &row, 1);
    }
    jpeg_finish_compress(&out);
    jpeg_destroy_compress(&out);
    free(samples);
    bytes.size = size;
    return bytes;
}

/* ---- PNG ---- */

static void png_take(png_structp png, png_bytep data, size_t size)
{
    bytes_add(png_get_io_ptr(png), data, size);
}

static void png_flush_nothing(png_structp png)
{
    (void)png;
}

static void png_chunk_add(png_structp png, const char *name, const void *data, size_t size)
{
    png_write_chunk(png, (png_const_bytep)name, data, size);
}

/* iTXt: keyword, whether compressed, method, no language, no translated keyword, text. */
static void png_xmp(png_structp png, const struct made_spec *spec)
{
    const char *xmp = spec_xmp(spec);
    uLongf size = compressBound((uLong)strlen(xmp));
    unsigned char *itxt = calloc(1, 22 + size + strlen(xmp));
    memcpy(itxt, "XML:com.adobe.xmp", 17);
    if (spec->is_xmp_compressed) {
        itxt[18] = 1;
        made_check(compress(itxt + 22, &size, (const Bytef *)xmp, (uLong)strlen(xmp)) == Z_OK, "compress");
    } else {
        size = (uLongf)strlen(xmp);
        memcpy(itxt + 22, xmp, size);
    }
    png_chunk_add(png, "iTXt", itxt, 22 + size);
    free(itxt);
}

static void png_metadata(png_structp png, png_infop info, const struct made_spec *spec, bool is_color)
{
    size_t size = 0;
    unsigned char *icc = made_icc(&size);
    if (is_color)
        png_set_iCCP(png, info, "made", PNG_COMPRESSION_TYPE_BASE, icc, (png_uint_32)size);
    png_set_pHYs(png, info, 11811, 11811, PNG_RESOLUTION_METER);
    png_set_gAMA_fixed(png, info, 45455);
    png_write_info(png, info);
    png_xmp(png, spec);
    png_chunk_add(png, "eXIf", made_exif, made_exif_bytes);
    png_chunk_add(png, "tEXt", "Comment\0a comment of the maker", 8 + strlen(made_comment));
    png_chunk_add(png, "prVs", made_private, strlen(made_private));
    png_chunk_add(png, "prVS", made_unsafe, strlen(made_unsafe));
    free(icc);
}

static void png_text_add(png_structp png, size_t size)
{
    char *text = malloc(size);
    memset(text, 'x', size);
    memcpy(text, "Comment", 8);
    png_chunk_add(png, "tEXt", text, size);
    free(text);
}

static void png_colors(png_structp png, png_infop info, const struct made_spec *spec, int color_type)
{
    png_color palette[256];
    png_byte alphas[4] = {0, 80, 160, 240};
    png_color_16 key = {0, 1, 2, 3, 4};
    for (unsigned i = 0; i < 256; i++)
        palette[i] = (png_color){(png_byte)i, (png_byte)(255 - i), (png_byte)(i * 3)};
    if (spec->is_palette)
        png_set_PLTE(png, info, palette, 1 << spec->depth_bits);
    if (spec->has_transparency)
        png_set_tRNS(png, info, alphas,
                     color_type == PNG_COLOR_TYPE_PALETTE ? (spec->depth_bits == 1 ? 2 : 4) : 0, &key);
}

/* Draws row y of the file's samples, at any depth. */
static void png_row(const struct made_spec *spec, uint32_t y, unsigned char *row)
{
    uint32_t bit = 0;
    memset(row, 0, (size_t)spec->width_px * 8);
    for (uint32_t x = 0; x < spec->width_px; x++)
        for (uint32_t c = 0; c < spec->channels; c++, bit += (uint32_t)spec->depth_bits) {
            unsigned sample = made_sample(x, y, c);
            if (spec->depth_bits == 16) {
                row[bit / 8] = (unsigned char)sample;
                row[bit / 8 + 1] = (unsigned char)(x * 5 + y);
            } else {
                sample >>= 8 - spec->depth_bits;
                row[bit / 8] |= (unsigned char)(sample << (8 - (unsigned)spec->depth_bits - bit % 8));
            }
        }
}

static struct codec_bytes make_png(const struct made_spec *spec)
{
    static const int types[] = {[1] = PNG_COLOR_TYPE_GRAY,
                                [2] = PNG_COLOR_TYPE_GRAY_ALPHA,
                                [3] = PNG_COLOR_TYPE_RGB,
                                [4] = PNG_COLOR_TYPE_RGB_ALPHA};
    struct codec_bytes bytes = {NULL, 0};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    int color_type = spec->is_palette ? PNG_COLOR_TYPE_PALETTE : types[spec->channels];
    made_check(png != NULL && info != NULL && setjmp(png_jmpbuf(png)) == 0, "libpng");
    png_set_write_fn(png, &bytes, png_take, png_flush_nothing);
    png_set_IHDR(png, info, spec->width_px, spec->height_px, spec->depth_bits, color_type,
                 spec->is_progressive ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_colors(png, info, spec, color_type);
    if (spec->has_metadata)
        png_metadata(png, info, spec, color_type != PNG_COLOR_TYPE_GRAY);
    else
        png_write_info(png, info);
    if (spec->text_bytes > 8)
        png_text_add(png, spec->text_bytes);
    if (spec->is_animated) {
        static const char frame[26] = {0};
        png_chunk_add(png, "acTL", "\0\0\0\2\0\0\0", 8);
        png_chunk_add(png, "fcTL", frame, sizeof frame);
        png_chunk_add(png, "fcTL", frame, sizeof frame);
    }
    int passes = png_set_interlace_handling(png);
    unsigned char *row = malloc((size_t)spec->width_px * 8);
    for (int pass = 0; pass < passes; pass++)
        for (uint32_t y = 0; y < spec->height_px; y++) {
            png_row(spec, y, row);
            png_write_row(png, row);
        }
    if (spec->has_metadata)
        png_chunk_add(png, "tEXt", made_after, sizeof made_after - 1);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    free(row);
    return bytes;
}

/* ---- WebP ---- */

static struct codec_bytes webp_frame(const struct made_spec *spec)
{
    WebPConfig config;
    WebPPicture picture;
    WebPMemoryWriter writer;
    struct codec_bytes bytes = {NULL, 0};
    unsigned char *samples = samples_8(spec, spec->channels);
    int stride = (int)(spec->width_px * spec->channels);
    made_check(WebPConfigInit(&config) && WebPPictureInit(&picture), "libwebp");
    WebPMemoryWriterInit(&writer);
    config.lossless = spec->is_lossless;
    config.exact = 1;
    config.quality = (float)spec->quality;
    picture.use_argb = spec->is_lossless;
    picture.width = (int)spec->width_px;
    picture.height = (int)spec->height_px;
    picture.writer = WebPMemoryWrite;
    picture.custom_ptr = &writer;
    made_check(spec->channels == 4 ? WebPPictureImportRGBA(&picture, samples, stride)
                                   : WebPPictureImportRGB(&picture, samples, stride),
               "WebPPictureImport");
    made_check(WebPEncode(&config, &picture), "WebPEncode");
    bytes_add(&bytes, writer.mem, writer.size);
    WebPMemoryWriterClear(&writer);
    WebPPictureFree(&picture);
    free(samples);
    return bytes;
}

static void webp_metadata(WebPMux *mux)
{
    size_t size = 0;
    unsigned char *icc = made_icc(&size);
    WebPData pieces[] = {{icc, size},
                         {(const uint8_t *)made_exif, made_exif_bytes},
                         {(const uint8_t *)made_xmp, strlen(made_xmp)},
                         {(const uint8_t *)made_private, strlen(made_private)}};
    static const char *const names[] = {"ICCP", "EXIF", "XMP ", "priv"};
    for (size_t i = 0; i < 4; i++)
        made_check(WebPMuxSetChunk(mux, names[i], &pieces[i], 1) == WEBP_MUX_OK, names[i]);
    free(icc);
}

static void webp_animate(WebPMux *mux, const WebPData *frame)
{
    WebPMuxFrameInfo info;
    WebPMuxAnimParams params = {0, 0};
    made_check(WebPMuxSetAnimationParams(mux, &params) == WEBP_MUX_OK, "WebPMuxSetAnimationParams");
    memset(&info, 0, sizeof info);
    info.bitstream = *frame;
    info.id = WEBP_CHUNK_ANMF;
    info.duration = 100;
    made_check(WebPMuxPushFrame(mux, &info, 1) == WEBP_MUX_OK, "WebPMuxPushFrame");
    made_check(WebPMuxPushFrame(mux, &info, 1) == WEBP_MUX_OK, "WebPMuxPushFrame");
}

static struct codec_bytes make_webp(const struct made_spec *spec)
{
    struct codec_bytes frame = webp_frame(spec);
    if (!spec->has_metadata && !spec->is_animated)
        return frame;
    WebPData data = {frame.data, frame.size};
    WebPData file = {NULL, 0};
    struct codec_bytes bytes = {NULL, 0};
    WebPMux *mux = WebPMuxNew();
    if (spec->is_animated)
        webp_animate(mux, &data);
    else
        made_check(WebPMuxSetImage(mux, &data, 1) == WEBP_MUX_OK, "WebPMuxSetImage");
    if (spec->has_metadata)
        webp_metadata(mux);
    made_check(WebPMuxAssemble(mux, &file) == WEBP_MUX_OK, "WebPMuxAssemble");
    bytes_add(&bytes, file.bytes, file.size);
    WebPDataClear(&file);
    WebPMuxDelete(mux);
    free(frame.data);
    return bytes;
}

struct codec_bytes make_picture(const struct made_spec *spec)
{
    static struct codec_bytes (*const makers[])(const struct made_spec *) = {
        [FORMAT_JPEG] = make_jpeg, [FORMAT_PNG] = make_png, [FORMAT_WEBP] = make_webp};
    return makers[spec->format](spec);
}
