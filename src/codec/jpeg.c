/*
 * JPEG by libjpeg-turbo. The library reports errors with longjmp, which stays within this file.
 * Every library call is in a step that jpeg_guarded runs, and all state that a step changes is
 * in the job.
 */
#include <stddef.h>
#include <stdio.h>

#include <jpeglib.h>
#include <jerror.h>

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "codec/carry.h"
#include "codec/cmyk.h"
#include "codec/codec.h"
#include "codec/driver.h"
#include "codec/metadata/clean.h"
#include "codec/metadata/packets.h"

enum {
    marker_comment = 0xFE,
    strip_rows = 16,
    buffer_bytes = 64 * 1024,
    scans_written_max = 64,
    quantiser_largest = 255,
    color_components = 3
};

/*
 * Above this size of coefficients the Huffman tables are not optimised, because that needs all
 * coefficients in memory.
 */
static const uint64_t coefficients_optimised_bytes = (uint64_t)256 << 20;

/* Above this size the scans are not progressive: engine memory and coefficients would exceed 1 GiB. */
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
    bool is_unoptimised; /* set with the header's memory */
    struct codec_header *header;
    struct codec_keep *keep; /* NULL: keep nothing */
    struct image *image;
    codec_rows_taker *taker;
    void *user;
    bool is_cut;             /* no end-of-image marker before the end of the bytes */
    bool is_scan_whole;      /* the bytes end with a scan, not in one */
    unsigned scanned;        /* bit n: component n has a scan */
    size_t stray_bytes;      /* after entropy-coded data, see is_stray */
    struct cmyk_grid *grid;  /* CMYK; owned by keep, if not NULL */
    unsigned char *inks_row; /* CMYK: one row */

    struct jpeg_compress_struct out;
    struct jpeg_destination_mgr destination;
    const struct codec_picture *picture;
    struct codec_bytes *bytes;
    size_t capacity;
    jpeg_scan_info scans[scans_written_max];
    unsigned char buffer[buffer_bytes];

    /* Of a change of coefficients: */
    const struct codec_change *change;
    struct carry carry;
    struct keep_jpeg changed; /* the settings of the result */
    struct carry_table tables[color_components];
    jvirt_barray_ptr *blocks;                   /* of the file */
    jvirt_barray_ptr results[color_components]; /* the same, except resampled components */
    struct carry_band bands[2];                 /* of the change and of the picture; owned */
    float *levels;                              /* a row of the picture; owned */

    /* Of stripes: */
    const struct image_stripes *stripes;
    double part; /* of the coefficients that are not 0 */
};

/* ---- errors ---- */

/* libjpeg errors that do not mean a damaged file, with the client's sentence. */
static const struct {
    int code;
    enum iw_error error;
    const char *sentence;
} meanings[] = {
    {JERR_OUT_OF_MEMORY, IW_NO_MEMORY, NULL},
    {JERR_NO_BACKING_STORE, IW_IMAGE_TOO_LARGE, NULL},
    {JERR_IMAGE_TOO_BIG, IW_IMAGE_TOO_LARGE, NULL},
    {JERR_EMPTY_IMAGE, IW_IMAGE_CORRUPT, "The JPEG header says that the picture has no rows or no columns."},
    {JERR_BAD_PRECISION, IW_IMAGE_FORMAT_UNSUPPORTED,
     "The JPEG picture does not have 8 bits a sample. Export it with 8 bits and upload it again."},
    {JERR_SOF_UNSUPPORTED, IW_IMAGE_FORMAT_UNSUPPORTED,
     "The JPEG picture is lossless or hierarchical. Export it as baseline or progressive JPEG and upload it "
     "again."},
    {JERR_UNKNOWN_MARKER, IW_IMAGE_FORMAT_UNSUPPORTED,
     "The JPEG picture uses an extension that is not supported, such as JPEG-LS. Export it as baseline or "
     "progressive JPEG and upload it again."},
    {JERR_ARITH_NOTIMPL, IW_IMAGE_FORMAT_UNSUPPORTED, NULL},
    {JERR_CONVERSION_NOTIMPL, IW_IMAGE_FORMAT_UNSUPPORTED, NULL},
    {JERR_BAD_MCU_SIZE, IW_IMAGE_FORMAT_UNSUPPORTED,
     "The JPEG picture has more than 10 blocks in an interleaved unit, which the standard forbids. Export it "
     "with 4:2:0 or 4:4:4 chroma sampling and upload it again."},
    {JERR_FRACT_SAMPLE_NOTIMPL, IW_IMAGE_FORMAT_UNSUPPORTED,
     "The sampling factors of the JPEG picture are no whole multiples of each other. Export it with 4:2:0 or "
     "4:4:4 chroma sampling and upload it again."},
    {JERR_CCIR601_NOTIMPL, IW_IMAGE_FORMAT_UNSUPPORTED, NULL},
};

/* Maps an error by the table. Other errors mean a damaged file, or a truncated file if the bytes have ended.
 */
static void reading_fail(struct jpeg_job *job, int code)
{
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (meanings[i].code == code && (!job->is_cut || meanings[i].error != IW_IMAGE_FORMAT_UNSUPPORTED)) {
            job->error = context_fail(job->context, meanings[i].error,
                                      meanings[i].sentence == NULL ? NULL : "%s", meanings[i].sentence);
            return;
        }
    job->error =
        job->is_cut ? driver_cut(job->context, job->size) : driver_damaged(job->context, FORMAT_JPEG);
}

static void jpeg_exit(j_common_ptr common)
{
    struct jpeg_job *job = (struct jpeg_job *)common->err;
    char message[JMSG_LENGTH_MAX];
    common->err->format_message(common, message);
    context_cause(job->context, "libjpeg: %s", message);
    /* An encoder's error is a fault of the service, not of the file. */
    bool is_memory = common->err->msg_code == JERR_OUT_OF_MEMORY;
    if (common->is_decompressor)
        reading_fail(job, common->err->msg_code);
    else
        job->error = context_fail(job->context, is_memory ? IW_NO_MEMORY : IW_SERVER_INTERNAL_ERROR, NULL);
    longjmp(job->exit, 1);
}

/*
 * Warnings that mean lost pixels. All others concern the form only:
 *
 * JWRN_JPEG_EOF: the bytes end without an end marker; cut_check decides.
 * JWRN_EXTRANEOUS_DATA: few bytes between the entropy-coded data and the next marker, or padding; see
 * is_stray.
 * JWRN_NOT_SEQUENTIAL: spectral selection of 0,0 in a sequential scan, where it has no meaning.
 * JWRN_ADOBE_XFORM: an unknown colour transform; taken for YCbCr or YCCK, as by all decoders.
 * JWRN_JFIF_MAJOR: an unknown version of JFIF.
 * JWRN_BOGUS_ICC: a profile with a missing segment.
 */
static const int warnings_of_loss[] = {
    JWRN_HIT_MARKER,        /* entropy-coded data end early */
    JWRN_HUFF_BAD_CODE,     /* invalid Huffman code */
    JWRN_ARITH_BAD_CODE,    /* invalid arithmetic code */
    JWRN_MUST_RESYNC,       /* restart marker out of order: data are missing */
    JWRN_BOGUS_PROGRESSION, /* refined bits missing or sent twice; see jpeg_warning */
};

/*
 * Bytes between two markers. In a header they belong to a segment of a wrong length. After
 * entropy-coded data, padding of one value and up to stray_bytes_most others are form: they align
 * the next marker. If there are more, the decoder has lost the place in the data before them.
 */
static bool is_stray(struct jpeg_job *job)
{
    enum { stray_bytes_most = 16 };
    const unsigned char *end = job->in.src->next_input_byte;
    size_t count = (size_t)job->manager.msg_parm.i[0];
    if (job->in.input_scan_number == 0 || count > (size_t)(end - job->data) ||
        memcmp(end - count, end - count + 1, count - 1) == 0)
        return false;
    job->stray_bytes += count;
    return job->stray_bytes > stray_bytes_most;
}

static bool is_loss(struct jpeg_job *job)
{
    if (job->manager.msg_code == JWRN_EXTRANEOUS_DATA)
        return is_stray(job);
    /* AC coefficients before the DC coefficients are an unusual order, but no loss. */
    bool is_lossless_order =
        job->manager.msg_code == JWRN_BOGUS_PROGRESSION && job->in.Ss > 0 && job->manager.msg_parm.i[1] == 0;
    for (size_t i = 0; i < sizeof warnings_of_loss / sizeof warnings_of_loss[0]; i++)
        if (job->manager.msg_code == warnings_of_loss[i])
            return !is_lossless_order;
    return false;
}

/*
 * Records the last complete row when the data end in the first scan. Elsewhere a loss only makes
 * pixels coarse. libjpeg inserts an end marker at the end of the bytes. An arithmetic decoder reads
 * zeros from there without a warning.
 */
static void loss_record(struct jpeg_job *job, int code)
{
    const struct jpeg_decompress_struct *in = &job->in;
    struct keep_loss *loss = &job->keep->loss;
    bool is_end = in->arith_code ? code == JWRN_JPEG_EOF && !job->is_scan_whole
                                 : code == JWRN_HIT_MARKER && in->unread_marker == JPEG_EOI;
    uint32_t rows_px = in->input_iMCU_row * (uint32_t)(in->max_v_samp_factor * DCTSIZE);
    /* The means of the first component's blocks are the least of a picture. */
    bool is_first_scan =
        in->comps_in_scan > 0 && in->cur_comp_info[0]->component_index == 0 && in->Ss == 0 && in->Ah == 0;
    if (!is_end || !is_first_scan)
        loss->is_coarse |= code != JWRN_JPEG_EOF;
    else if (rows_px < loss->rows_px)
        loss->rows_px = rows_px;
}

/* Warnings of lost pixels end the decoding, because incomplete pictures are not delivered. */
static void jpeg_warning(j_common_ptr common, int level)
{
    struct jpeg_job *job = (struct jpeg_job *)common->err;
    if (level >= 0)
        return;
    bool is_end = common->err->msg_code == JWRN_JPEG_EOF;
    job->is_cut |= is_end;
    if (job->keep != NULL && job->limits != NULL && job->limits->is_partial_allowed) {
        if (is_end || is_loss(job))
            loss_record(job, common->err->msg_code);
    } else if (is_loss(job)) {
        jpeg_exit(common);
    }
}

static void jpeg_scan_bound(j_common_ptr common)
{
    struct jpeg_job *job = (struct jpeg_job *)common->err;
    if (!common->is_decompressor)
        return;
    for (int i = 0; i < job->in.comps_in_scan; i++)
        job->scanned |= 1U << job->in.cur_comp_info[i]->component_index;
    if (job->in.input_scan_number <= codec_scans_max)
        return;
    job->error = context_fail(job->context, IW_IMAGE_TOO_LARGE,
                              "The JPEG picture has more than %d scans, which is the most that is allowed.",
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

/* ---- header ---- */

/* Size of all DCT coefficients, which multi-scan files hold at once. */
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

/* Encoder settings by the size of the coefficients. */
static bool is_progressive_kept(uint64_t coefficients)
{
    return coefficients <= coefficients_progressive_bytes;
}

static bool is_optimised(uint64_t coefficients)
{
    return coefficients <= coefficients_optimised_bytes;
}

/* Limit on blocks of an interleaved MCU (ITU-T T.81, B.2.3). */
enum { unit_blocks_max = 10 };

static int divisor(int a, int b)
{
    return b == 0 ? a : divisor(b, a % b);
}

/*
 * Sampling factors as written. A file with one scan per component may have factors of any
 * product. If they are too large for an interleaved scan, they are divided by a common divisor.
 */
struct sampling {
    int h[keep_components_max];
    int v[keep_components_max];
};

/* True if the factors are too large for an interleaved scan. Each component then gets a separate scan. */
static bool is_split(const int *h, const int *v, int count)
{
    int blocks = 0;
    for (int c = 0; c < count; c++)
        blocks += h[c] * v[c];
    return blocks > unit_blocks_max && count > 1;
}

static struct sampling sampling_of(const struct jpeg_decompress_struct *in)
{
    struct sampling sampling = {{0}, {0}};
    int h = 0, v = 0;
    for (int c = 0; c < in->num_components; c++) {
        sampling.h[c] = in->comp_info[c].h_samp_factor;
        sampling.v[c] = in->comp_info[c].v_samp_factor;
        h = divisor(h, sampling.h[c]);
        v = divisor(v, sampling.v[c]);
    }
    bool is_too_large = is_split(sampling.h, sampling.v, in->num_components);
    for (int c = 0; is_too_large && c < in->num_components; c++) {
        sampling.h[c] /= h;
        sampling.v[c] /= v;
    }
    return sampling;
}

/* Where the coefficients of a sequential picture do not fit, the Huffman tables are not optimised. */
static void jpeg_memory(struct jpeg_job *job)
{
    struct jpeg_decompress_struct *in = &job->in;
    struct codec_header *header = job->header;
    unsigned inks = header->is_cmyk ? 4 : 0;
    uint64_t pixel_bytes = (uint64_t)header->width_px * header->height_px * (header->channels + inks);
    uint64_t coefficients = coefficient_bytes(in);
    bool is_whole_in = in->progressive_mode || jpeg_has_multiple_scans(in);
    struct sampling sampling = sampling_of(in);
    bool is_whole_out = is_split(sampling.h, sampling.v, in->num_components) ||
                        (in->progressive_mode && is_progressive_kept(coefficients));
    header->decode_memory_bytes = pixel_bytes + (is_whole_in ? coefficients : 0);
    header->encode_memory_bytes = pixel_bytes + coefficients;
    job->is_unoptimised = !is_optimised(coefficients) || !limits_fit(job->limits, header);
    if (!is_whole_out && (in->progressive_mode || job->is_unoptimised))
        header->encode_memory_bytes = pixel_bytes;
}

static enum iw_error jpeg_check_kind(struct context *context, const struct jpeg_decompress_struct *in)
{
    if (in->num_components != 1 && in->num_components != 3 && in->num_components != 4)
        return context_fail(context, IW_IMAGE_FORMAT_UNSUPPORTED,
                            "The JPEG picture has %d components; 1 (grey), 3 (colour) or 4 (CMYK) are "
                            "supported. Export it as RGB and upload it again.",
                            in->num_components);
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
    /* The conversion of a CMYK picture's rows needs the profile. */
    for (int marker = keep_app0; marker <= keep_app0 + 15; marker++)
        if (job->keep != NULL || (marker == keep_app0 + 2 && job->taker != NULL))
            jpeg_save_markers(in, marker, 0xFFFF);
    if (job->keep != NULL)
        jpeg_save_markers(in, marker_comment, 0xFFFF);
    jpeg_mem_src(in, job->data, (unsigned long)job->size);
    jpeg_read_header(in, TRUE);
    job->error = jpeg_check_kind(job->context, in);
    if (job->error != IW_OK)
        return;
    struct codec_header *header = job->header;
    header->format = FORMAT_JPEG;
    header->width_px = in->image_width;
    header->height_px = in->image_height;
    header->channels = in->num_components == 1 ? 1 : 3;
    header->depth_bits = 8;
    header->is_lossy = true;
    header->is_cmyk = in->num_components == 4;
    jpeg_memory(job);
    job->error = limits_check(job->context, job->limits, header);
}

/* ---- decoding ---- */

static void keep_components(struct keep_jpeg *keep, struct jpeg_decompress_struct *in,
                            bool is_partial_allowed)
{
    keep->color_space = (int)in->jpeg_color_space;
    keep->component_count = in->num_components;
    keep->is_progressive = in->progressive_mode;
    keep->is_arithmetic = in->arith_code;
    keep->restart_interval = in->restart_interval;
    keep->coefficient_bytes = coefficient_bytes(in);
    keep->is_inverted = in->saw_Adobe_marker;
    struct sampling sampling = sampling_of(in);
    for (int c = 0; c < in->num_components; c++) {
        const jpeg_component_info *component = &in->comp_info[c];
        const JQUANT_TBL *table = component->quant_table;
        keep->h_sampling[c] = sampling.h[c];
        keep->v_sampling[c] = sampling.v[c];
        if (table == NULL && is_partial_allowed)
            continue; /* the scan of the component is missing */
        if (table == NULL)
            ERREXIT1(in, JERR_NO_QUANT_TABLE, component->quant_tbl_no);
        /* Quantisers of zero are invalid and decode to zeros; the largest quantiser reproduces these. */
        for (int i = 0; i < keep_quant_entries; i++)
            keep->quant[c][i] = table->quantval[i] == 0 ? quantiser_largest : table->quantval[i];
    }
}

/* True if every coefficient of a progressive picture is complete. */
static bool is_refined(const struct jpeg_decompress_struct *in)
{
    for (int c = 0; c < in->num_components && in->coef_bits != NULL; c++)
        for (int i = 0; i < DCTSIZE2; i++)
            if (in->coef_bits[c][i] != 0)
                return false;
    return in->coef_bits != NULL;
}

/*
 * Decides whether a picture without an end marker is complete, after all rows. A Huffman decoder
 * reports missing bits, so a single-scan picture lacks only the end marker, which some writers
 * omit. Missing scans, and arithmetic codes that read zeros past the end, must be excluded.
 */
static void cut_check(struct jpeg_job *job)
{
    struct jpeg_decompress_struct *in = &job->in;
    bool is_whole = true;
    if (in->progressive_mode)
        is_whole = is_refined(in);
    else if (jpeg_has_multiple_scans(in))
        is_whole = job->scanned == (1U << in->num_components) - 1;
    if (!job->is_cut || !(in->arith_code || !is_whole) || job->error != IW_OK)
        return;
    if (job->keep == NULL || !job->limits->is_partial_allowed)
        job->error = driver_cut(job->context, job->size);
    else if (!(job->scanned & 1))
        job->keep->loss.rows_px = 0;
    else
        job->keep->loss.is_coarse |= !is_whole;
}

/* Prepares the grid from the profile and the memory of the inks. */
static void cmyk_start(struct jpeg_job *job)
{
    struct jpeg_decompress_struct *in = &job->in;
    JOCTET *icc = NULL;
    unsigned size = 0;
    in->out_color_space = JCS_CMYK;
    bool has_profile = jpeg_read_icc_profile(in, &icc, &size);
    job->grid = cmyk_grid_new(has_profile ? icc : NULL, size);
    free(icc);
    job->inks_row = malloc((size_t)in->image_width * 4);
    bool has_room = job->grid != NULL && job->inks_row != NULL;
    if (job->keep != NULL) {
        struct keep_jpeg *keep = &job->keep->jpeg;
        keep->inks = malloc((size_t)in->image_width * in->image_height * 4);
        has_room = has_room && keep->inks != NULL;
        keep->grid = job->grid;
    }
    if (!has_room)
        job->error = context_fail(job->context, IW_NO_MEMORY, NULL);
}

static void jpeg_start(struct jpeg_job *job)
{
    struct jpeg_decompress_struct *in = &job->in;
    in->out_color_space = job->header->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    if (job->header->is_cmyk)
        cmyk_start(job);
    if (job->error == IW_OK)
        jpeg_start_decompress(in);
}

/* Adobe's programs write inverted inks and an APP14 marker. */
static void inks_invert(unsigned char *inks, uint32_t width_px)
{
    for (size_t i = 0; i < (size_t)width_px * 4; i++)
        inks[i] = (unsigned char)~inks[i];
}

static void row_read(struct jpeg_job *job, unsigned char *row)
{
    struct jpeg_decompress_struct *in = &job->in;
    JSAMPROW at = row;
    size_t row_px = in->output_scanline;
    if (job->header->is_cmyk)
        at = job->keep == NULL ? job->inks_row : job->keep->jpeg.inks + row_px * in->image_width * 4;
    jpeg_read_scanlines(in, &at, 1);
    if (!job->header->is_cmyk)
        return;
    if (in->saw_Adobe_marker)
        inks_invert(at, in->image_width);
    cmyk_to_rgb(job->grid, at, in->image_width, row);
}

static void jpeg_step_decode(struct jpeg_job *job)
{
    struct jpeg_decompress_struct *in = &job->in;
    jpeg_start(job);
    if (job->error != IW_OK)
        return;
    keep_components(&job->keep->jpeg, in, job->limits->is_partial_allowed);
    job->keep->jpeg.is_unoptimised = job->is_unoptimised;
    while (in->output_scanline < in->output_height)
        row_read(job, (unsigned char *)job->image->pixels + in->output_scanline * job->image->stride_bytes);
    job->keep->jpeg.is_smoothed = in->progressive_mode && !is_refined(in);
    cut_check(job);
    /* jpeg_finish_decompress frees the markers. */
    const struct jpeg_marker_struct *marker = in->marker_list;
    for (; marker != NULL && job->error == IW_OK; marker = marker->next)
        job->error =
            keep_add(job->context, job->keep, marker->marker, false, marker->data, marker->data_length);
    if (job->error == IW_OK)
        jpeg_finish_decompress(in);
}

static void jpeg_step_rows(struct jpeg_job *job)
{
    struct jpeg_decompress_struct *in = &job->in;
    jpeg_start(job);
    struct image strip = *job->image;
    while (job->error == IW_OK && in->output_scanline < in->output_height) {
        uint32_t first_row_px = in->output_scanline;
        for (strip.height_px = 0; strip.height_px < strip_rows && in->output_scanline < in->output_height;
             strip.height_px++)
            row_read(job, (unsigned char *)strip.pixels + strip.height_px * strip.stride_bytes);
        job->error = job->taker(job->user, first_row_px, &strip);
    }
    cut_check(job);
    if (job->error == IW_OK)
        jpeg_finish_decompress(in);
}

static struct jpeg_job *jpeg_job_new(struct context *context)
{
    struct jpeg_job *job = calloc(1, sizeof *job);
    if (job == NULL) {
        context_fail(context, IW_NO_MEMORY, NULL);
        return NULL;
    }
    job->context = context;
    jpeg_std_error(&job->manager);
    job->manager.error_exit = jpeg_exit;
    job->manager.emit_message = jpeg_warning;
    job->in.err = job->out.err = &job->manager;
    return job;
}

/* Reads the header, then runs the step, if there is one. Frees the job. */
static enum iw_error jpeg_read(struct jpeg_job *job, void (*step)(struct jpeg_job *job))
{
    if (jpeg_guarded(job, jpeg_step_header) && step != NULL)
        jpeg_guarded(job, step);
    enum iw_error error = job->error;
    jpeg_destroy_decompress(&job->in);
    if (job->keep == NULL)
        free(job->grid);
    free(job->inks_row);
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

/* Offset of the next marker with a length from `at` on, or size. */
static size_t marker_find(const unsigned char *data, size_t size, size_t at)
{
    /* Stuffed bytes, fill bytes, and markers without a length: restarts and TEM. */
    enum { code_tem = 0x01, restart_first = 0xD0, restart_last = 0xD7, code_fill = 0xFF };
    for (; at + 1 < size; at++) {
        unsigned code = data[at + 1];
        bool is_restart = code >= restart_first && code <= restart_last;
        if (data[at] == 0xFF && code > code_tem && code != code_fill && !is_restart)
            return at;
    }
    return at < size && data[at] == 0xFF ? at : size;
}

/*
 * Size of the file without a marker segment that the end of the file cuts. On such a segment
 * libjpeg would fail, and lose the scans before it.
 */
static size_t whole_segments(const unsigned char *data, size_t size)
{
    enum { start_bytes = 2, marker_bytes = 2, length_bytes = 2 };
    size_t at = marker_find(data, size, start_bytes);
    while (at < size && (at + 1 == size || data[at + 1] != JPEG_EOI)) {
        if (size - at < marker_bytes + length_bytes)
            return at;
        size_t next = at + marker_bytes + ((size_t)data[at + 2] << 8 | data[at + 3]);
        if (next > size)
            return at;
        at = marker_find(data, size, next);
    }
    return size;
}

static enum iw_error codec_jpeg_decode(struct context *context, const unsigned char *data, size_t size,
                                       const struct codec_limits *limits, struct codec_picture *picture)
{
    struct jpeg_job *job = jpeg_job_new(context);
    if (job == NULL)
        return IW_NO_MEMORY;
    job->data = data;
    job->size = limits->is_partial_allowed ? whole_segments(data, size) : size;
    job->is_scan_whole = job->size < size;
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
    if (!bytes_append(job->bytes, &job->capacity, job->buffer, size))
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

/* Slot of component c's table, shared by components with equal tables. */
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

/* Splits each scan into one per component, with the same spectral selection and bit positions. */
static void scans_split(struct jpeg_job *job, const jpeg_scan_info *scans, int count)
{
    struct jpeg_compress_struct *out = &job->out;
    out->num_scans = 0;
    for (int i = 0; i < count; i++)
        for (int c = 0; c < scans[i].comps_in_scan && out->num_scans < scans_written_max; c++) {
            jpeg_scan_info *scan = &job->scans[out->num_scans++];
            *scan = scans[i];
            scan->comps_in_scan = 1;
            scan->component_index[0] = scans[i].component_index[c];
        }
    out->scan_info = job->scans;
}

static void scans_set(struct jpeg_job *job, const struct keep_jpeg *keep)
{
    static const jpeg_scan_info sequential = {4, {0, 1, 2, 3}, 0, DCTSIZE2 - 1, 0, 0};
    struct jpeg_compress_struct *out = &job->out;
    jpeg_scan_info whole = sequential;
    whole.comps_in_scan = keep->component_count;
    out->arith_code = keep->is_arithmetic;
    out->optimize_coding =
        !keep->is_arithmetic && !keep->is_unoptimised && is_optimised(keep->coefficient_bytes);
    out->restart_interval = keep->restart_interval;
    bool is_progressive = keep->is_progressive && is_progressive_kept(keep->coefficient_bytes);
    if (is_progressive)
        jpeg_simple_progression(out);
    if (is_split(keep->h_sampling, keep->v_sampling, keep->component_count))
        scans_split(job, is_progressive ? out->scan_info : &whole, is_progressive ? out->num_scans : 1);
}

static void row_write(struct jpeg_job *job)
{
    struct jpeg_compress_struct *out = &job->out;
    const struct image *image = &job->picture->image;
    const struct keep_jpeg *keep = &job->picture->keep->jpeg;
    size_t row_px = out->next_scanline;
    JSAMPROW row = (JSAMPROW)image->pixels + row_px * image->stride_bytes;
    if (keep->inks != NULL) {
        cmyk_carry(keep->grid, keep->inks + row_px * image->width_px * 4, row, image->width_px,
                   job->inks_row);
        if (keep->is_inverted)
            inks_invert(job->inks_row, image->width_px);
        row = job->inks_row;
    }
    jpeg_write_scanlines(out, &row, 1);
}

/* Everything before the pixels or coefficients, except the metadata. */
static void encoder_prepare(struct jpeg_job *job, const struct keep_jpeg *keep)
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
    out->input_components = keep->component_count;
    out->in_color_space = image->channels == 1 ? JCS_GRAYSCALE : keep->inks != NULL ? JCS_CMYK : JCS_RGB;
    jpeg_set_defaults(out);
    jpeg_set_colorspace(out, (J_COLOR_SPACE)keep->color_space);
    components_set(out, keep);
    scans_set(job, keep);
    /* JFIF and Adobe markers are among the kept markers and are written unchanged. */
    out->write_JFIF_header = FALSE;
    out->write_Adobe_marker = FALSE;
}

static void markers_write(struct jpeg_job *job)
{
    for (const struct keep_chunk *chunk = job->picture->keep->first; chunk != NULL; chunk = chunk->next)
        jpeg_write_marker(&job->out, (int)chunk->tag, chunk->data, (unsigned)chunk->size);
}

static void jpeg_step_encode(struct jpeg_job *job)
{
    struct jpeg_compress_struct *out = &job->out;
    encoder_prepare(job, &job->picture->keep->jpeg);
    jpeg_start_compress(out, TRUE);
    markers_write(job);
    while (out->next_scanline < out->image_height)
        row_write(job);
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
    job->inks_row = malloc((size_t)picture->image.width_px * 4);
    if (job->inks_row == NULL)
        job->error = context_fail(context, IW_NO_MEMORY, NULL);
    else
        jpeg_guarded(job, jpeg_step_encode);
    enum iw_error error = job->error;
    jpeg_destroy_compress(&job->out);
    free(job->inks_row);
    free(job);
    return error;
}

/* ---- a change of the coefficients ---- */

/* True if a component has the resolution of the first one in the result, but not in the file. */
static bool is_resampled(const struct keep_jpeg *keep, int c, bool is_finer)
{
    return is_finer &&
           (keep->h_sampling[c] != keep->h_sampling[0] || keep->v_sampling[c] != keep->v_sampling[0]);
}

/* Grey and YCbCr, whose first component has the full resolution, and whose pixels are those of its
 * coefficients. */
static bool is_carrier(const struct keep_jpeg *keep)
{
    bool is_whole = true;
    for (int c = 0; c < keep->component_count; c++)
        is_whole = is_whole && keep->h_sampling[0] % keep->h_sampling[c] == 0 &&
                   keep->v_sampling[0] % keep->v_sampling[c] == 0;
    return is_whole && !keep->is_smoothed && !keep->is_unoptimised && is_optimised(keep->coefficient_bytes) &&
           (keep->color_space == JCS_GRAYSCALE || keep->color_space == JCS_YCbCr);
}

/* Sets the steps of a level. Returns false if no step and no resolution is finer than in the file. */
static bool tables_set(const struct keep_jpeg *file, unsigned finer, struct carry_table *tables)
{
    bool is_changed = false;
    for (int c = 0; c < file->component_count; c++) {
        struct carry_table *table = &tables[c];
        const bool is_new = is_resampled(file, c, finer > 0);
        *table = (struct carry_table){.is_luma = c == 0, .low_share = 1};
        memcpy(table->from, file->quant[c], sizeof table->from);
        memcpy(table->to, file->quant[c], sizeof table->to);
        if (is_new)
            carry_resampled(table, (unsigned)(file->h_sampling[0] / file->h_sampling[c]),
                            (unsigned)(file->v_sampling[0] / file->v_sampling[c]));
        else if (finer > 0)
            carry_finer(table, finer, file->component_count > 1);
        is_changed = is_changed || is_new || memcmp(table->from, table->to, sizeof table->to) != 0;
    }
    return is_changed;
}

/* Coefficients of the file and those of resampled components, and a band of the change and of the picture. */
static uint64_t jpeg_change_bytes(const struct codec_picture *picture, unsigned finer)
{
    const struct keep_jpeg *keep = &picture->keep->jpeg;
    struct carry_table tables[color_components];
    uint64_t band_bytes = (uint64_t)(2 * color_components * DCTSIZE * sizeof(float)) *
                          (unsigned)keep->v_sampling[0] * (picture->header.width_px + 4 * DCTSIZE);
    uint64_t plane_bytes = (uint64_t)(picture->header.width_px + 2 * DCTSIZE) *
                           (picture->header.height_px + 2 * DCTSIZE) * sizeof(JCOEF);
    uint64_t bytes =
        (uint64_t)picture->header.width_px * picture->header.height_px * picture->header.channels +
        keep->coefficient_bytes + band_bytes;
    for (int c = 0; c < keep->component_count; c++)
        bytes += is_resampled(keep, c, finer > 0) ? plane_bytes : 0;
    return is_carrier(keep) && (finer == 0 || tables_set(keep, finer, tables)) ? bytes : 0;
}

/* As many restarts as in the file, whose units have more blocks of luma. */
static unsigned restart_finer(const struct keep_jpeg *file)
{
    const bool is_interleaved = file->component_count > 1;
    const unsigned blocks = is_interleaved ? (unsigned)(file->h_sampling[0] * file->v_sampling[0]) : 1;
    const unsigned interval = file->restart_interval * blocks;
    return interval < UINT16_MAX ? interval : UINT16_MAX;
}

/* Steps and sampling of the result. */
static void change_settings(struct jpeg_job *job)
{
    struct keep_jpeg *keep = &job->changed;
    *keep = job->picture->keep->jpeg;
    const struct keep_jpeg file = *keep;
    if (job->change->finer > 0)
        keep->restart_interval = restart_finer(&file);
    tables_set(&file, job->change->finer, job->tables);
    for (int c = 0; c < keep->component_count; c++) {
        memcpy(keep->quant[c], job->tables[c].to, sizeof job->tables[c].to);
        keep->h_sampling[c] = job->change->finer > 0 ? 1 : job->in.comp_info[c].h_samp_factor;
        keep->v_sampling[c] = job->change->finer > 0 ? 1 : job->in.comp_info[c].v_samp_factor;
    }
}

/* Reads the coefficients of the file, and adds arrays for those of resampled components. */
static void coefficients_read(struct jpeg_job *job)
{
    struct jpeg_decompress_struct *in = &job->in;
    const jpeg_component_info *luma = &in->comp_info[0];
    bool is_new[color_components] = {false};
    for (int c = 0; c < in->num_components; c++) {
        is_new[c] = is_resampled(&job->picture->keep->jpeg, c, job->change->finer > 0);
        if (is_new[c])
            job->results[c] = in->mem->request_virt_barray((j_common_ptr)in, JPOOL_IMAGE, TRUE,
                                                           luma->width_in_blocks, luma->height_in_blocks, 1);
    }
    job->blocks = jpeg_read_coefficients(in);
    for (int c = 0; c < in->num_components; c++)
        if (!is_new[c])
            job->results[c] = job->blocks[c];
}

/* Reads the rows of a band: the change, which is 0 below the picture, and the picture, whose last row
 * repeats. */
static void band_read(struct jpeg_job *job, uint32_t first_px)
{
    const struct image *image = &job->picture->image;
    const struct codec_change *change = job->change;
    const unsigned colors = image->channels;
    const size_t samples = (size_t)image->width_px * colors;
    for (size_t row = 0; row < job->bands[0].rows; row++) {
        const uint32_t y = first_px + (uint32_t)row, last = image->height_px - 1;
        const unsigned char *pixels = image_row(image, y < last ? y : last);
        if (y <= last)
            carry_band_put(&job->bands[0], row, change->row(change->user, y), image->width_px, colors);
        for (size_t i = 0; i < samples; i++)
            job->levels[i] = y <= last ? pixels[i] : 0;
        if (y > last)
            carry_band_put(&job->bands[0], row, job->levels, image->width_px, colors);
        for (size_t i = 0; i < samples && y > last; i++)
            job->levels[i] = pixels[i];
        carry_band_put(&job->bands[1], row, job->levels, image->width_px, colors);
    }
}

/* Sets a row of blocks of a component, from the row of a band on. */
static void block_row_set(struct jpeg_job *job, int c, JDIMENSION block_row, size_t band_row)
{
    j_common_ptr in = (j_common_ptr)&job->in;
    const struct keep_jpeg *file = &job->picture->keep->jpeg;
    const jpeg_component_info *component = &job->in.comp_info[c];
    const bool is_new = is_resampled(file, c, job->change->finer > 0);
    const unsigned h = is_new ? 1 : (unsigned)(file->h_sampling[0] / file->h_sampling[c]);
    const unsigned v = is_new ? 1 : (unsigned)(file->v_sampling[0] / file->v_sampling[c]);
    const JDIMENSION count = is_new ? job->in.comp_info[0].width_in_blocks : component->width_in_blocks;
    JBLOCKROW blocks = job->in.mem->access_virt_barray(in, job->results[c], block_row, 1, TRUE)[0];
    float source[carry_entries], change[carry_entries];
    struct carry_rule rule;
    carry_rule(&job->carry, &job->tables[c], &rule);
    for (JDIMENSION i = 0; i < count; i++) {
        const size_t x = (size_t)i * h * DCTSIZE;
        carry_transform(&job->bands[0], (unsigned)c, x, band_row, h, v, change);
        if (is_new)
            carry_transform(&job->bands[1], (unsigned)c, x, band_row, 1, 1, source);
        for (int k = 0; k < DCTSIZE2 && !is_new; k++)
            source[k] = (float)blocks[i][k] * component->quant_table->quantval[k];
        carry_block(&job->carry, &rule, source, change, blocks[i]);
    }
}

static void coefficients_change(struct jpeg_job *job)
{
    const struct keep_jpeg *file = &job->picture->keep->jpeg;
    const JDIMENSION height = job->in.comp_info[0].height_in_blocks;
    const size_t band_blocks = job->bands[0].rows / DCTSIZE;
    for (JDIMENSION first = 0; first < height; first += (JDIMENSION)band_blocks) {
        band_read(job, first * DCTSIZE);
        for (int c = 0; c < job->in.num_components; c++) {
            const bool is_new = is_resampled(file, c, job->change->finer > 0);
            const size_t v = is_new ? 1 : (size_t)(file->v_sampling[0] / file->v_sampling[c]);
            const JDIMENSION rows = is_new ? height : job->in.comp_info[c].height_in_blocks;
            for (size_t row = 0; row < band_blocks && (first + row) / v < rows; row += v)
                block_row_set(job, c, (JDIMENSION)((first + row) / v), row * DCTSIZE);
        }
    }
}

static void jpeg_step_change(struct jpeg_job *job)
{
    struct jpeg_compress_struct *out = &job->out;
    change_settings(job);
    coefficients_read(job);
    coefficients_change(job);
    encoder_prepare(job, &job->changed);
    jpeg_write_coefficients(out, job->results);
    markers_write(job);
    jpeg_finish_compress(out);
    jpeg_finish_decompress(&job->in);
}

/* Whole units of the file's sampling, so that every block has its samples. */
static bool bands_new(struct jpeg_job *job)
{
    const struct keep_jpeg *file = &job->picture->keep->jpeg;
    const size_t width = job->picture->image.width_px, unit = (size_t)file->h_sampling[0] * DCTSIZE;
    for (int i = 0; i < 2; i++) {
        struct carry_band *band = &job->bands[i];
        band->width = (width + unit - 1) / unit * unit;
        band->rows = (size_t)file->v_sampling[0] * DCTSIZE;
        band->planes[0] = calloc(color_components * band->rows * band->width, sizeof(float));
        for (int plane = 1; plane < color_components && band->planes[0] != NULL; plane++)
            band->planes[plane] = band->planes[0] + (size_t)plane * band->rows * band->width;
    }
    job->levels = malloc(color_components * width * sizeof(float));
    return job->bands[0].planes[0] != NULL && job->bands[1].planes[0] != NULL && job->levels != NULL;
}

/* Frees the job of a change. */
static enum iw_error change_end(struct jpeg_job *job)
{
    enum iw_error error = job->error;
    jpeg_destroy_compress(&job->out);
    jpeg_destroy_decompress(&job->in);
    free(job->bands[0].planes[0]);
    free(job->bands[1].planes[0]);
    free(job->levels);
    free(job);
    return error;
}

static struct jpeg_job *change_new(struct context *context, const struct codec_picture *picture,
                                   const struct codec_change *change, struct codec_header *header,
                                   struct codec_bytes *bytes)
{
    static const struct codec_limits limits = {0};
    struct jpeg_job *job = jpeg_job_new(context);
    if (job == NULL)
        return NULL;
    job->data = change->data;
    job->size = change->size;
    job->limits = &limits;
    job->header = header;
    job->picture = picture;
    job->change = change;
    job->bytes = bytes;
    return job;
}

/* Encodes once. The rule of the carry is for the next attempt. */
static enum iw_error jpeg_change_once(struct context *context, const struct codec_picture *picture,
                                      const struct codec_change *change, struct carry *carry,
                                      struct codec_bytes *bytes)
{
    struct codec_header header = {0};
    struct jpeg_job *job = change_new(context, picture, change, &header, bytes);
    if (job == NULL)
        return IW_NO_MEMORY;
    job->carry = (struct carry){.scale = (float)change->scale, .dead = carry->dead};
    if (!bands_new(job))
        job->error = context_fail(context, IW_NO_MEMORY, NULL);
    else if (jpeg_guarded(job, jpeg_step_header))
        jpeg_guarded(job, jpeg_step_change);
    *carry = job->carry;
    return change_end(job);
}

/*
 * Bits of a coefficient that is not 0 (tools/train/coding.py). The aim is a little below the limit, because
 * the estimate of the saved bits errs by a few per cent.
 */
static const double coefficient_bits = 5.06, size_aim = 0.985;

/* Returns the dead zone for the limit, from an encoded size. */
static double dead_for(const struct carry *carry, size_t size, size_t bytes_max)
{
    return (double)carry_dead(carry, 8 * ((double)size - size_aim * (double)bytes_max) / coefficient_bits);
}

static enum iw_error codec_jpeg_encode_change(struct context *context, const struct codec_picture *picture,
                                              struct codec_change *change, struct codec_bytes *bytes)
{
    struct carry carry = {.dead = (float)change->dead};
    enum iw_error error = jpeg_change_once(context, picture, change, &carry, bytes);
    if (error != IW_OK || change->bytes_max == 0)
        return error;
    change->dead = dead_for(&carry, bytes->size, change->bytes_max);
    if (bytes->size > change->bytes_max)
        bytes_free(bytes);
    return IW_OK;
}

/* ---- stripes ---- */

static size_t nonzero_count(const JCOEF *coefficients, size_t count)
{
    size_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += coefficients[i] != 0;
    return sum;
}

/* Returns a component's rows of pixels in a row of blocks. */
static uint32_t block_px(const struct keep_jpeg *keep, int c)
{
    return (uint32_t)(DCTSIZE * keep->v_sampling[0] / keep->v_sampling[c]);
}

/* Moves the stripes' rows of blocks to the top, where they overwrite rows that are above them. */
static void component_stripes(struct jpeg_job *job, int c, size_t *taken, size_t *all)
{
    j_common_ptr in = (j_common_ptr)&job->in;
    const jpeg_component_info *component = &job->in.comp_info[c];
    const size_t count = (size_t)component->width_in_blocks * DCTSIZE2;
    const uint32_t px = block_px(&job->picture->keep->jpeg, c);
    const uint32_t stripe_rows = job->stripes->height_px / px;
    for (JDIMENSION row = 0; row < component->height_in_blocks; row++)
        *all += nonzero_count(*job->in.mem->access_virt_barray(in, job->blocks[c], row, 1, FALSE)[0], count);
    for (JDIMENSION row = 0; row < stripe_rows; row++) {
        const JDIMENSION from = image_stripes_row(job->stripes, row * px) / px;
        JBLOCKROW source = job->in.mem->access_virt_barray(in, job->blocks[c], from, 1, FALSE)[0];
        JBLOCKROW block_row = job->in.mem->access_virt_barray(in, job->blocks[c], row, 1, TRUE)[0];
        memmove(block_row, source, count * sizeof(JCOEF));
        *taken += nonzero_count(*block_row, count);
    }
}

static void jpeg_step_stripes(struct jpeg_job *job)
{
    struct jpeg_compress_struct *out = &job->out;
    size_t taken = 0, all = 0;
    job->blocks = jpeg_read_coefficients(&job->in);
    for (int c = 0; c < job->in.num_components; c++)
        component_stripes(job, c, &taken, &all);
    job->part = all > 0 ? (double)taken / (double)all : 0;
    encoder_prepare(job, &job->picture->keep->jpeg);
    out->image_height = job->stripes->height_px;
    jpeg_write_coefficients(out, job->blocks);
    jpeg_finish_compress(out);
    jpeg_finish_decompress(&job->in);
}

static enum iw_error codec_jpeg_encode_stripes(struct context *context, const struct codec_picture *picture,
                                               const struct image_stripes *stripes,
                                               const struct codec_change *change, struct codec_bytes *bytes,
                                               double *part)
{
    const struct keep_jpeg *keep = &picture->keep->jpeg;
    struct codec_header header = {0};
    for (int c = 0; c < keep->component_count; c++)
        if (image_stripe_px % block_px(keep, c) != 0)
            return IW_OK;
    struct jpeg_job *job = change_new(context, picture, change, &header, bytes);
    if (job == NULL)
        return IW_NO_MEMORY;
    job->stripes = stripes;
    if (jpeg_guarded(job, jpeg_step_header))
        jpeg_guarded(job, jpeg_step_stripes);
    *part = job->part;
    return change_end(job);
}

/* ---- metadata ---- */

/* Segments have a number from 1 and a total; they are joined in that order. */
static const unsigned char *jpeg_icc(struct arena *arena, const struct codec_keep *keep, size_t *size)
{
    static const char icc_name[] = "ICC_PROFILE";
    enum { head_bytes = sizeof icc_name + 2 };
    const struct keep_chunk *parts[256] = {NULL};
    *size = 0;
    for (const struct keep_chunk *chunk = keep->first; chunk != NULL; chunk = chunk->next)
        if (chunk->tag == keep_app0 + 2 && chunk->size > head_bytes &&
            keep_starts_with(chunk, icc_name, sizeof icc_name) &&
            parts[chunk->data[sizeof icc_name]] == NULL) {
            parts[chunk->data[sizeof icc_name]] = chunk;
            *size += chunk->size - head_bytes;
        }
    if (*size == 0 || *size > driver_icc_max_bytes)
        return NULL;
    unsigned char *profile = arena_alloc(arena, *size);
    size_t used = 0;
    for (int i = 0; i < 256; i++)
        if (parts[i] != NULL) {
            memcpy(profile + used, parts[i]->data + head_bytes, parts[i]->size - head_bytes);
            used += parts[i]->size - head_bytes;
        }
    return profile;
}

/* ---- other settings of the encoder ---- */

/* Divisors of the quantisers per level; the last level has steps of 1. */
static const unsigned jpeg_divisors[] = {2, 4, UINT16_MAX};

static bool jpeg_finer(struct codec_picture *picture, unsigned level)
{
    struct keep_jpeg *keep = &picture->keep->jpeg;
    uint64_t width = picture->header.width_px + 16, height = picture->header.height_px + 16;
    if (level > sizeof jpeg_divisors / sizeof jpeg_divisors[0])
        return false;
    for (int c = 0; c < keep->component_count; c++) {
        keep->h_sampling[c] = keep->v_sampling[c] = 1;
        for (int i = 0; i < keep_quant_entries; i++) {
            unsigned finer = keep->quant[c][i] / jpeg_divisors[level - 1];
            keep->quant[c][i] = (uint16_t)(finer < 1 ? 1 : finer);
        }
    }
    keep->coefficient_bytes = width * height * (unsigned)keep->component_count * sizeof(int16_t);
    keep->is_unoptimised = false;
    unsigned inks = picture->header.is_cmyk ? 4 : 0;
    picture->header.encode_memory_bytes =
        (uint64_t)picture->header.width_px * picture->header.height_px * (picture->header.channels + inks) +
        keep->coefficient_bytes;
    return true;
}

/* The colours have the quantisers of grey, and no subsampling. */
static void jpeg_color(struct codec_keep *keep)
{
    enum { transform_at = 11, transform_ycc = 1 };
    struct keep_jpeg *jpeg = &keep->jpeg;
    jpeg->color_space = JCS_YCbCr;
    jpeg->component_count = 3;
    jpeg->coefficient_bytes *= 3;
    for (int c = 0; c < 3; c++) {
        jpeg->h_sampling[c] = jpeg->v_sampling[c] = 1;
        memcpy(jpeg->quant[c], jpeg->quant[0], sizeof jpeg->quant[c]);
    }
    /* Adobe's marker says how three components are stored. */
    for (struct keep_chunk *chunk = keep->first; chunk != NULL; chunk = chunk->next)
        if (chunk->tag == JPEG_APP0 + 14 && chunk->size > transform_at &&
            memcmp(chunk->data, "Adobe", 5) == 0)
            chunk->data[transform_at] = transform_ycc;
}

/* From the first scan on. */
static struct transfer_bytes jpeg_compressed(const unsigned char *data, size_t size)
{
    enum { scan_head_bytes = 8 };
    const unsigned char *at = memmem(data, size, "\xff\xda", 2);
    size_t left = at == NULL ? 0 : size - (size_t)(at - data);
    return left <= scan_head_bytes ? (struct transfer_bytes){data, 0}
                                   : (struct transfer_bytes){at + scan_head_bytes, left - scan_head_bytes};
}

const struct codec_driver jpeg_driver = {
    .probe = codec_jpeg_probe,
    .decode = codec_jpeg_decode,
    .decode_rows = codec_jpeg_decode_rows,
    .encode = codec_jpeg_encode,
    .compressed = jpeg_compressed,
    .icc = jpeg_icc,
    .exif = {keep_app0 + 1, exif_prefix_bytes},
    .clean = clean_jpeg,
    .xmp = &packets_jpeg,
    .finer = jpeg_finer,
    .color = jpeg_color,
    .change_bytes = jpeg_change_bytes,
    .encode_change = codec_jpeg_encode_change,
    .encode_stripes = codec_jpeg_encode_stripes,
};
