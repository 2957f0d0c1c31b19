#include "engine/watermark/cover.h"

#include <math.h>
#include <string.h>

#include "engine/watermark/texture.h"

enum {
    cell_px = 16,
    left_px_least = 120 * 120 /* smaller pieces are not read */
};

/*
 * Correlation in a window, in standard deviations. The window is so large that a mark all over the picture
 * gives 6. A window without the mark exceeds 3 with a probability of 0.001.
 */
static const double inside_wanted = 6.0;
static const double inside_least = 3.0;

/* Sums over each cell, later over all cells above and to the left. */
struct cover {
    const struct plane *plane;
    const struct pose *pose;
    const float *tile;
    int columns;
    int rows;
    double *sums;
    double *squares;
    unsigned char *is_inside;
};

static size_t cell_at(const struct cover *cover, int column, int row)
{
    return (size_t)row * (size_t)(cover->columns + 1) + (size_t)column;
}

static int chip_at(double chips)
{
    int at = (int)lround(chips) % lattice_period;

    return at < 0 ? at + lattice_period : at;
}

/* Correlates a whitened row with the pattern of the word in the pose that was read. */
static void row_add(void *closure, int y, float *detail, const float *activity)
{
    const struct cover *cover = closure;
    const struct plane *plane = cover->plane;
    const double *matrix = cover->pose->matrix;
    size_t first = (size_t)y * (size_t)plane->width;
    double down = y - plane->height / 2;

    texture_whiten_row(detail, activity, plane->luma + first,
                       plane->weight == NULL ? NULL : plane->weight + first, plane->width, false);
    for (int x = 0; x < plane->width; x++) {
        double across = x - plane->width / 2;
        int column = chip_at(matrix[0] * across + matrix[1] * down + cover->pose->offset[0]);
        int line = chip_at(matrix[2] * across + matrix[3] * down + cover->pose->offset[1]);
        double product = (double)(detail[x] * cover->tile[line * lattice_period + column]);
        size_t cell = cell_at(cover, x / cell_px + 1, y / cell_px + 1);

        cover->sums[cell] += product;
        cover->squares[cell] += product * product;
    }
}

/* Compares only the word, because every mark of the key has the same tones. */
static bool cells_fill(struct cover *cover, struct reader *reader)
{
    struct workspace *workspace = reader->workspace;
    int8_t word[polar_length];
    struct lattice_content content = {.band = &reader->lattice->luma, .word = word, .band_weight = 1};
    size_t count = (size_t)(cover->columns + 1) * (size_t)(cover->rows + 1);

    polar_encode(reader->polar, reader->number ^ reader->lattice->number_mask, word);
    cover->tile = lattice_tile(reader->lattice, &content, lattice_period, workspace);
    cover->sums = workspace_take(workspace, count, sizeof(double));
    cover->squares = workspace_take(workspace, count, sizeof(double));
    cover->is_inside = workspace_take(workspace, count, 1);
    return !workspace->failed && texture_rows(cover->plane->luma, cover->plane->width, cover->plane->height,
                                              texture_luma_radius, workspace, row_add, cover);
}

static void cells_accumulate(const struct cover *cover, double *cells)
{
    for (int row = 1; row <= cover->rows; row++)
        for (int column = 1; column <= cover->columns; column++)
            cells[cell_at(cover, column, row)] += cells[cell_at(cover, column - 1, row)] +
                                                  cells[cell_at(cover, column, row - 1)] -
                                                  cells[cell_at(cover, column - 1, row - 1)];
}

static double window_of(const struct cover *cover, const double *cells, const int from[2], const int to[2])
{
    return cells[cell_at(cover, to[0], to[1])] - cells[cell_at(cover, from[0], to[1])] -
           cells[cell_at(cover, to[0], from[1])] + cells[cell_at(cover, from[0], from[1])];
}

static double deviations(const struct cover *cover, const int from[2], const int to[2])
{
    double squares = window_of(cover, cover->squares, from, to);

    return squares > 0 ? window_of(cover, cover->sums, from, to) / sqrt(squares) : 0;
}

/* Returns half a window's side in cells, or -1 if the mark is too weak to be located. */
static int reach_of(const struct cover *cover)
{
    const int from[] = {0, 0}, to[] = {cover->columns, cover->rows};
    double whole = deviations(cover, from, to);

    if (whole <= inside_wanted)
        return -1;
    return (int)ceil((sqrt((double)cover->columns * cover->rows) * inside_wanted / whole - 1) / 2);
}

static int limited(int value, int most)
{
    return value < 0 ? 0 : value > most ? most : value;
}

/*
 * Finds the cells whose window holds the mark. Returns the number of pixels with detail in the other cells.
 */
static size_t cells_decide(struct cover *cover, int reach, size_t *inside_px)
{
    size_t left_px = 0;

    for (int row = 0; row < cover->rows; row++)
        for (int column = 0; column < cover->columns; column++) {
            const int cell[] = {column, row}, next[] = {column + 1, row + 1};
            const int from[] = {limited(column - reach, cover->columns), limited(row - reach, cover->rows)};
            const int to[] = {limited(column + reach + 1, cover->columns),
                              limited(row + reach + 1, cover->rows)};
            bool is_inside = deviations(cover, from, to) > inside_least;
            size_t seen_px = window_of(cover, cover->squares, cell, next) > 1e-6 ? cell_px * cell_px : 0;

            cover->is_inside[cell_at(cover, column, row)] = is_inside;
            *(is_inside ? inside_px : &left_px) += seen_px;
        }
    return left_px;
}

static void plane_exclude(const struct cover *cover, struct plane *plane, struct workspace *workspace)
{
    size_t count = (size_t)plane->width * (size_t)plane->height;

    if (plane->weight == NULL) {
        plane->weight = workspace_take_unset(workspace, count, sizeof(float));
        for (size_t i = 0; plane->weight != NULL && i < count; i++)
            plane->weight[i] = 1;
    }
    for (int y = 0; plane->weight != NULL && y < plane->height; y++)
        for (int x = 0; x < plane->width; x++) {
            int column = (int)((int64_t)x * cover->plane->width / plane->width) / cell_px;
            int row = (int)((int64_t)y * cover->plane->height / plane->height) / cell_px;

            if (cover->is_inside[cell_at(cover, column, row)])
                plane->weight[(size_t)y * (size_t)plane->width + (size_t)x] = 0;
        }
}

bool cover_exclude(struct reader *reader, struct plane *plane, struct plane *other)
{
    struct cover cover = {.plane = plane,
                          .pose = &reader->pose,
                          .columns = (plane->width + cell_px - 1) / cell_px,
                          .rows = (plane->height + cell_px - 1) / cell_px};
    size_t inside_px = 0;

    if (!reader->has_pose || !cells_fill(&cover, reader))
        return false;
    cells_accumulate(&cover, cover.sums);
    cells_accumulate(&cover, cover.squares);
    int reach = reach_of(&cover);
    if (reach < 0 || cells_decide(&cover, reach, &inside_px) < left_px_least || inside_px == 0)
        return false;
    plane_exclude(&cover, plane, reader->workspace);
    if (other != NULL)
        plane_exclude(&cover, other, reader->workspace);
    return !reader->workspace->failed;
}
