/*
 * JPEG through libjpeg-turbo.  The library leaves by its error exit; setjmp and
 * longjmp stay within this file: every library call is made by a step that
 * jpeg_guarded runs, and all that a step changes lives in the job.
 */
#include <stddef.h>
#include <stdio.h>

#include <jpeglib.h>
#include <jerror.h>

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "worker/codec_keep.h"

enum {
    marker_app0 = 0xE0,
    marker_app2 = 0xE2,
    marker_app15 = 0xEF,
    marker_comment = 0xFE,
    strip_rows = 16,
    buffer_bytes = 64 * 1024
};

/* Above this much coefficient memory the Huffman tables are not optimised, which needs all coefficients at
 * once. */
static const uint64_t coefficients_optimised_bytes = (uint64_t)256 << 20;

/* Above this much the scans are not progressive: the engine's memory and the coefficients would pass a GiB.
 */
static const uint64_t coefficients_progressive_bytes = (uint64_t)400 << 20;

struct jpeg_job {
    struct jpeg_error_mgr manager;
    jmp_buf exit;
    struct context *context;
    enum iw_error error;

    struct jpeg_decompress_struct in;
    struct jpeg_progress_mgr progress;
    const unsigned char *data;
    size_t size;
    const struct codec_limits *limits;
    struct codec_header *header;
    struct codec_keep *keep; /* NULL: keep nothing */
    struct image *image;
    codec_rows_taker *taker;
    void *user;
    bool is_cut; /* the bytes ended before the end-of-image marker came */

    struct jpeg_compress_struct out;
    struct jpeg_destination_mgr destination;
    const struct codec_picture *picture;
    struct codec_bytes *bytes;
    size_t capacity;
    unsigned char buffer[buffer_bytes];
};

/* ---- errors ---- */

/* What libjpeg's messages mean to us; all others are IMAGE_CORRUPT. */
static const struct {
    int code;
    enum iw_error error;
} meanings[] = {
    {JERR_OUT_OF_MEMORY, IW_NO_MEMORY},
    {JERR_NO_BACKING_STORE, IW_IMAGE_TOO_LARGE},
    {JERR_IMAGE_TOO_BIG, IW_IMAGE_TOO_LARGE},
    {JERR_BAD_PRECISION, IW_IMAGE_FORMAT_UNSUPPORTED},
    {JERR_SOF_UNSUPPORTED, IW_IMAGE_FORMAT_UNSUPPORTED},
    {JERR_ARITH_NOTIMPL, IW_IMAGE_FORMAT_UNSUPPORTED},
    {JERR_CONVERSION_NOTIMPL, IW_IMAGE_FORMAT_UNSUPPORTED},
    {JERR_FRACT_SAMPLE_NOTIMPL, IW_IMAGE_FORMAT_UNSUPPORTED},
    {JERR_CCIR601_NOTIMPL, IW_IMAGE_FORMAT_UNSUPPORTED},
};

static enum iw_error jpeg_meaning(int code)
{
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (meanings[i].code == code)
            return meanings[i].error;
    return IW_IMAGE_CORRUPT;
}

static void jpeg_exit(j_common_ptr common)
{
    struct jpeg_job *job = (struct jpeg_job *)common->err;
    char message[JMSG_LENGTH_MAX];
    common->err->format_message(common, message);
    job->error = jpeg_meaning(common->err->msg_code);
    context_cause(job->context, "libjpeg: %s", message);
    switch (job->error) {
    case IW_IMAGE_CORRUPT:
        job->error = context_fail(job->context, job->error, "The JPEG image is broken: %s.", message);
        break;
    case IW_IMAGE_FORMAT_UNSUPPORTED:
        job->error = context_fail(job->context, job->error, "This JPEG image is not supported: %s.", message);
        break;
    default:
        job->error = context_fail(job->context, job->error, NULL);
    }
    longjmp(job->exit, 1);
}

/*
 * Warnings that mean lost pixels end the decoding: a half-grey picture is not
 * delivered.  That the bytes end early is none yet: cut_check looks at what was lost.
 */
static void jpeg_warning(j_common_ptr common, int level)
{
    static const int fatal[] = {JWRN_HIT_MARKER,     JWRN_HUFF_BAD_CODE,     JWRN_MUST_RESYNC,
                                JWRN_ARITH_BAD_CODE, JWRN_BOGUS_PROGRESSION, JWRN_NOT_SEQUENTIAL};
    struct jpeg_job *job = (struct jpeg_job *)common->err;
    if (level >= 0)
        return;
    if (common->err->msg_code == JWRN_JPEG_EOF)
        job->is_cut = true;
    for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; i++)
        if (common->err->msg_code == fatal[i])
            jpeg_exit(common);
}

static void jpeg_scan_bound(j_common_ptr common)
{
    struct jpeg_job *job = (struct jpeg_job *)common->err;
    if (!common->is_decompressor || job->in.input_scan_number <= codec_scans_max)
        return;
    job->error = context_fail(job->context, IW_IMAGE_TOO_LARGE,
                              "The JPEG image has more than %d scans, which is the most that is allowed.",
                              (int)codec_scans_max);
    longjmp(job->exit, 1);
}

static bool jpeg_guarded(struct jpeg_job *job, void (*step)(struct jpeg_job *job))
{
    if (setjmp(job->exit) != 0)
        return false;
    step(job);
    return job->error == IW_OK;
}

static void jpeg_errors_init(struct jpeg_job *job, struct context *context)
{
    job->context = context;
    jpeg_std_error(&job->manager);
    job->manager.error_exit = jpeg_exit;
    job->manager.emit_message = jpeg_warning;
    job->in.err = job->out.err = &job->manager;
}

/* ---- header ---- */

/* Bytes of all DCT coefficients, which multi-scan files hold at once. */
static uint64_t coefficient_bytes(const struct jpeg_decompress_struct *in)
{
    uint64_t bytes = 0;
    for (int c = 0; c < in->num_components; c++) {
        const jpeg_component_info *component = &in->comp_info[c];
        uint64_t width =
            (uint64_t)in->image_width * (unsigned)component->h_samp_factor / (unsigned)in->max_h_samp_factor +
            2 * DCTSIZE;
        uint64_t height = (uint64_t)in->image_height * (unsigned)component->v_samp_factor /
                              (unsigned)in->max_v_samp_factor +
                          2 * DCTSIZE;
        bytes += width * height * sizeof(JCOEF);
    }
    return bytes;
}

/* How an encoder may go about it, for all its coefficients at once take memory. */
static bool is_progressive_kept(uint64_t coefficients)
{
    return coefficients <= coefficients_progressive_bytes;
}

static bool is_optimised(uint64_t coefficients)
{
    return coefficients <= coefficients_optimised_bytes;
}

static void jpeg_memory(struct jpeg_decompress_struct *in, struct codec_header *header)
{
    uint64_t pixel_bytes = (uint64_t)header->width_px * header->height_px * header->channels;
    uint64_t coefficients = coefficient_bytes(in);
    bool is_whole_in = in->progressive_mode || jpeg_has_multiple_scans(in);
    bool is_whole_out = in->progressive_mode ? is_progressive_kept(coefficients) : is_optimised(coefficients);
    header->decode_memory_bytes = pixel_bytes + (is_whole_in ? coefficients : 0);
    header->encode_memory_bytes = pixel_bytes + (is_whole_out ? coefficients : 0);
}

static enum iw_error jpeg_check_kind(struct context *context, const struct jpeg_decompress_struct *in)
{
    if (in->num_components == 4)
        return context_fail(context, IW_IMAGE_FORMAT_UNSUPPORTED,
                            "CMYK JPEG images are not supported; convert the image to RGB.");
    if (in->num_components != 1 && in->num_components != 3)
        return context_fail(context, IW_IMAGE_FORMAT_UNSUPPORTED,
                            "The JPEG image has %d components; 1 or 3 are supported.", in->num_components);
    return IW_OK;
}

static void jpeg_step_header(struct jpeg_job *job)
{
    struct jpeg_decompress_struct *in = &job->in;
    jpeg_create_decompress(in);
    if (job->limits->memory_max_bytes != 0)
        in->mem->max_memory_to_use = (long)job->limits->memory_max_bytes;
    in->progress = &job->progress;
    job->progress.progress_monitor = jpeg_scan_bound;
    for (int marker = marker_app0; job->keep != NULL && marker <= marker_app15; marker++)
        jpeg_save_markers(in, marker, 0xFFFF);
    if (job->keep != NULL)
        jpeg_save_markers(in, marker_comment, 0xFFFF);
    jpeg_mem_src(in, job->data, (unsigned long)job->size);
    jpeg_read_header(in, TRUE);
    job->error = jpeg_check_kind(job->context, in);
    if (job->error != IW_OK)
        return;
    struct codec_header *header = job->header;
    header->format = CODEC_JPEG;
    header->width_px = in->image_width;
    header->height_px = in->image_height;
    header->channels = in->num_components == 1 ? 1 : 3;
    header->depth_bits = 8;
    header->is_lossy = true;
    jpeg_memory(in, header);
    job->error = codec_check(job->context, job->limits, header);
}

/* ---- decoding ---- */

/* Encoding divides by the quantisers, and some files hold zeros, which the standard forbids. */
static void quantisers_check(struct jpeg_job *job, const uint16_t *quant)
{
    for (int i = 0; i < keep_quant_entries; i++)
        if (quant[i] == 0 && job->error == IW_OK)
            job->error = context_fail(job->context, IW_IMAGE_CORRUPT,
                                      "The JPEG image is broken: a quantiser is zero.");
}

static void keep_components(struct jpeg_job *job, struct keep_jpeg *keep, struct jpeg_decompress_struct *in)
{
    keep->color_space = (int)in->jpeg_color_space;
    keep->component_count = in->num_components;
    keep->is_progressive = in->progressive_mode;
    keep->is_arithmetic = in->arith_code;
    keep->restart_interval = in->restart_interval;
    keep->coefficient_bytes = coefficient_bytes(in);
    for (int c = 0; c < in->num_components; c++) {
        const jpeg_component_info *component = &in->comp_info[c];
        const JQUANT_TBL *table = component->quant_table;
        keep->h_sampling[c] = component->h_samp_factor;
        keep->v_sampling[c] = component->v_samp_factor;
        if (table == NULL)
            ERREXIT1(in, JERR_NO_QUANT_TABLE, component->quant_tbl_no);
        memcpy(keep->quant[c], table->quantval, sizeof keep->quant[c]);
        quantisers_check(job, keep->quant[c]);
    }
}

/* The MPF segment points at pictures behind the end of this one, which do not come along. */
static bool is_kept(const struct jpeg_marker_struct *marker)
{
    return !(marker->marker == marker_app2 && marker->data_length >= 4 &&
             memcmp(marker->data, "MPF", 4) == 0);
}

static void keep_markers(struct jpeg_job *job)
{
    const struct jpeg_marker_struct *marker = job->in.marker_list;
    for (; marker != NULL && job->error == IW_OK; marker = marker->next)
        if (is_kept(marker))
            job->error =
                keep_add(job->context, job->keep, marker->marker, false, marker->data, marker->data_length);
}

/* True when every coefficient of a progressive picture has come to its last bit. */
static bool is_refined(const struct jpeg_decompress_struct *in)
{
    for (int c = 0; c < in->num_components && in->coef_bits != NULL; c++)
        for (int i = 0; i < DCTSIZE2; i++)
            if (in->coef_bits[c][i] != 0)
                return false;
    return in->coef_bits != NULL;
}

/*
 * Called when all rows are there.  A Huffman decoder that runs out of bits says
 * so, so a picture of one scan that came this far lacks nothing but its end
 * marker, and some writers leave that out.  Scans that never came and arithmetic
 * codes, which read zeros behind the end, have to be ruled out.
 */
static void cut_check(struct jpeg_job *job)
{
    struct jpeg_decompress_struct *in = &job->in;
    bool is_one_scan = !in->progressive_mode && !jpeg_has_multiple_scans(in);
    bool is_whole = !in->arith_code && (is_one_scan || is_refined(in));
    if (job->is_cut && !is_whole && job->error == IW_OK)
        job->error = context_fail(job->context, IW_IMAGE_CORRUPT,
                                  "The JPEG image is broken: the file ends before the picture does.");
}

static void jpeg_start(struct jpeg_job *job)
{
    struct jpeg_decompress_struct *in = &job->in;
    in->out_color_space = job->header->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(in);
}

static void jpeg_step_decode(struct jpeg_job *job)
{
    struct jpeg_decompress_struct *in = &job->in;
    jpeg_start(job);
    keep_components(job, &job->keep->jpeg, in);
    if (job->error != IW_OK)
        return;
    while (in->output_scanline < in->output_height) {
        JSAMPROW row = (JSAMPROW)job->image->pixels + in->output_scanline * job->image->stride_bytes;
        jpeg_read_scanlines(in, &row, 1);
    }
    cut_check(job);
    /* Finishing forgets the markers. */
    if (job->error == IW_OK)
        keep_markers(job);
    if (job->error == IW_OK)
        jpeg_finish_decompress(in);
}

static void jpeg_step_rows(struct jpeg_job *job)
{
    struct jpeg_decompress_struct *in = &job->in;
    jpeg_start(job);
    struct image strip = *job->image;
    while (in->output_scanline < in->output_height && job->error == IW_OK) {
        uint32_t first_row_px = in->output_scanline;
        for (strip.height_px = 0; strip.height_px < strip_rows && in->output_scanline < in->output_height;) {
            JSAMPROW row = (JSAMPROW)strip.pixels + strip.height_px * strip.stride_bytes;
            strip.height_px += jpeg_read_scanlines(in, &row, 1);
        }
        job->error = job->taker(job->user, first_row_px, &strip);
    }
    cut_check(job);
    if (job->error == IW_OK)
        jpeg_finish_decompress(in);
}

static struct jpeg_job *jpeg_job_new(struct context *context)
{
    struct jpeg_job *job = calloc(1, sizeof *job);
    if (job == NULL)
        context_fail(context, IW_NO_MEMORY, NULL);
    else
        jpeg_errors_init(job, context);
    return job;
}

/* Reads the header, then takes the step (NULL: none).  job is freed. */
static enum iw_error jpeg_read(struct jpeg_job *job, void (*step)(struct jpeg_job *job))
{
    if (jpeg_guarded(job, jpeg_step_header) && step != NULL)
        jpeg_guarded(job, step);
    enum iw_error error = job->error;
    jpeg_destroy_decompress(&job->in);
    free(job);
    return error;
}

static enum iw_error codec_jpeg_probe(struct context *context, const unsigned char *data, size_t size,
                                      const struct codec_limits *limits, struct codec_header *header)
{
    struct jpeg_job *job = jpeg_job_new(context);
    if (job == NULL)
        return IW_NO_MEMORY;
    job->data = data;
    job->size = size;
    job->limits = limits;
    job->header = header;
    return jpeg_read(job, NULL);
}

static enum iw_error codec_jpeg_decode(struct context *context, const unsigned char *data, size_t size,
                                       const struct codec_limits *limits, struct codec_picture *picture)
{
    struct jpeg_job *job = jpeg_job_new(context);
    if (job == NULL)
        return IW_NO_MEMORY;
    job->data = data;
    job->size = size;
    job->limits = limits;
    job->header = &picture->header;
    job->keep = picture->keep;
    job->image = &picture->image;
    return jpeg_read(job, jpeg_step_decode);
}

static enum iw_error codec_jpeg_decode_rows(struct context *context, const unsigned char *data, size_t size,
                                            const struct codec_limits *limits, codec_rows_taker *taker,
                                            void *user)
{
    struct codec_header header;
    memset(&header, 0, sizeof header);
    enum iw_error error = codec_jpeg_probe(context, data, size, limits, &header);
    struct jpeg_job *job = error == IW_OK ? jpeg_job_new(context) : NULL;
    if (job == NULL)
        return context->error;
    size_t stride_bytes = (size_t)header.width_px * header.channels;
    struct image strip = {
        header.width_px, 0, header.channels, 8, stride_bytes, calloc(strip_rows, stride_bytes)};
    job->data = data;
    job->size = size;
    job->limits = limits;
    job->header = &header;
    job->image = &strip;
    job->taker = taker;
    job->user = user;
    if (strip.pixels == NULL)
        job->error = context_fail(context, IW_NO_MEMORY, NULL);
    error = jpeg_read(job, jpeg_step_rows);
    free(strip.pixels);
    return error;
}

/* ---- encoding ---- */

static void destination_init(j_compress_ptr out)
{
    struct jpeg_job *job = (struct jpeg_job *)out->err;
    out->dest->next_output_byte = job->buffer;
    out->dest->free_in_buffer = sizeof job->buffer;
}

static void destination_take(j_compress_ptr out, size_t size)
{
    struct jpeg_job *job = (struct jpeg_job *)out->err;
    if (!codec_bytes_append(job->bytes, &job->capacity, job->buffer, size))
        ERREXIT1(out, JERR_OUT_OF_MEMORY, 0);
    destination_init(out);
}

static boolean destination_full(j_compress_ptr out)
{
    destination_take(out, buffer_bytes);
    return TRUE;
}

static void destination_end(j_compress_ptr out)
{
    destination_take(out, buffer_bytes - out->dest->free_in_buffer);
}

/* The slot of component c's table: that of an earlier component with the same table, or its own. */
static int quant_slot(const struct keep_jpeg *keep, int c)
{
    for (int earlier = 0; earlier < c; earlier++)
        if (memcmp(keep->quant[earlier], keep->quant[c], sizeof keep->quant[c]) == 0)
            return earlier;
    return c;
}

static void components_set(struct jpeg_compress_struct *out, const struct keep_jpeg *keep)
{
    for (int c = 0; c < keep->component_count; c++) {
        jpeg_component_info *component = &out->comp_info[c];
        component->h_samp_factor = keep->h_sampling[c];
        component->v_samp_factor = keep->v_sampling[c];
        component->quant_tbl_no = quant_slot(keep, c);
        if (out->quant_tbl_ptrs[c] == NULL)
            out->quant_tbl_ptrs[c] = jpeg_alloc_quant_table((j_common_ptr)out);
        memcpy(out->quant_tbl_ptrs[c]->quantval, keep->quant[c], sizeof keep->quant[c]);
        out->quant_tbl_ptrs[c]->sent_table = FALSE;
    }
}

static void scans_set(struct jpeg_compress_struct *out, const struct keep_jpeg *keep)
{
    out->arith_code = keep->is_arithmetic;
    out->optimize_coding = !keep->is_arithmetic && is_optimised(keep->coefficient_bytes);
    out->restart_interval = keep->restart_interval;
    if (keep->is_progressive && is_progressive_kept(keep->coefficient_bytes))
        jpeg_simple_progression(out);
}

/* JFIF and Adobe markers are among the kept ones and go back as they were. */
static void markers_write(struct jpeg_job *job)
{
    job->out.write_JFIF_header = FALSE;
    job->out.write_Adobe_marker = FALSE;
    jpeg_start_compress(&job->out, TRUE);
    for (const struct keep_chunk *chunk = job->picture->keep->first; chunk != NULL; chunk = chunk->next)
        jpeg_write_marker(&job->out, (int)chunk->tag, chunk->data, (unsigned)chunk->size);
}

static void jpeg_step_encode(struct jpeg_job *job)
{
    struct jpeg_compress_struct *out = &job->out;
    const struct image *image = &job->picture->image;
    jpeg_create_compress(out);
    job->destination.init_destination = destination_init;
    job->destination.empty_output_buffer = destination_full;
    job->destination.term_destination = destination_end;
    out->dest = &job->destination;
    out->image_width = image->width_px;
    out->image_height = image->height_px;
    out->input_components = (int)image->channels;
    out->in_color_space = image->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(out);
    jpeg_set_colorspace(out, (J_COLOR_SPACE)job->picture->keep->jpeg.color_space);
    components_set(out, &job->picture->keep->jpeg);
    scans_set(out, &job->picture->keep->jpeg);
    markers_write(job);
    while (out->next_scanline < out->image_height) {
        JSAMPROW row = (JSAMPROW)image->pixels + out->next_scanline * image->stride_bytes;
        jpeg_write_scanlines(out, &row, 1);
    }
    jpeg_finish_compress(out);
}

static enum iw_error codec_jpeg_encode(struct context *context, const struct codec_picture *picture,
                                       struct codec_bytes *bytes)
{
    struct jpeg_job *job = jpeg_job_new(context);
    if (job == NULL)
        return IW_NO_MEMORY;
    job->picture = picture;
    job->bytes = bytes;
    jpeg_guarded(job, jpeg_step_encode);
    enum iw_error error = job->error;
    jpeg_destroy_compress(&job->out);
    free(job);
    return error;
}

const struct codec_driver codec_jpeg_driver = {codec_jpeg_probe, codec_jpeg_decode, codec_jpeg_decode_rows,
                                               codec_jpeg_encode};
