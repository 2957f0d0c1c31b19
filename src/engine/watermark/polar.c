#include "engine/watermark/polar.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/clones.h"

enum {
    layers = polar_depth + 1,
    table_steps = 1024,
    check_factor = 0x864cfb /* CRC-24 of RFC 4880 */
};
static const float table_reach = 16.0f;
static const double rounding_most = 0.1; /* of a penalty; the table's steps add up to 0.001 */

/* Kinds of nodes of the decoding tree (Sarkis et al.). */
enum node_kind {
    NODE_FROZEN,   /* all bits are 0 */
    NODE_REPEATED, /* only the last bit is free */
    NODE_MIXED
};

struct path {
    double penalty;
    uint64_t message[2];        /* bit i of the message is bit i % 64 of message[i / 64] */
    uint8_t ratio_slot[layers]; /* path whose ratios of a layer this path shares */
    uint8_t left_slot[layers];  /* path whose left decisions of a layer this path shares */
};

struct polar {
    bool is_message[polar_length];
    uint8_t kind[2 * polar_length]; /* a binary heap; node 1 is the root */
    float penalty_table[table_steps + 2];
    struct path paths[polar_list];
    struct path heirs[polar_list];
    unsigned path_count;
    double penalty_most;   /* of a word that is accepted; paths beyond it are dropped */
    unsigned message_next; /* message bits decided so far */
    /* A layer of node length n holds n values per slot. */
    float *ratios[layers];
    int8_t *left[layers];  /* decisions (+1, -1) of the left child of the layer's node */
    int8_t *right[layers]; /* of the right child */
    float ratio_store[polar_list * 2 * polar_length];
    int8_t left_store[polar_list * polar_length];
    int8_t right_store[polar_list * polar_length];
    int8_t words[polar_list * polar_length]; /* the root's decisions */
};

/*
 * Returns the polarization weight of a bit: the sum of 2^(j/4) over the set binary digits j of the index (He
 * et al.).
 */
static double weight_of(unsigned index)
{
    double weight = 0;

    for (unsigned j = 0; j < polar_depth; j++)
        if (index >> j & 1)
            weight += pow(2, j / 4.0);
    return weight;
}

/* Chooses the bits of the message, which have the greatest weights. */
static void message_bits_choose(struct polar *polar)
{
    double weights[polar_length];

    for (unsigned i = 0; i < polar_length; i++)
        weights[i] = weight_of(i);
    for (unsigned taken = 0; taken < polar_message_bits; taken++) {
        unsigned best = 0;

        for (unsigned i = 1; i < polar_length; i++)
            if (weights[i] >= weights[best])
                best = i;
        polar->is_message[best] = true;
        weights[best] = -1;
    }
}

static void kinds_choose(struct polar *polar)
{
    for (unsigned node = 2 * polar_length - 1; node >= 1; node--) {
        /* A leaf has no children to point at. */
        const uint8_t *child = node >= polar_length ? NULL : polar->kind + 2 * node;

        if (child == NULL)
            polar->kind[node] = polar->is_message[node - polar_length] ? NODE_REPEATED : NODE_FROZEN;
        else if (child[0] == NODE_FROZEN && child[1] != NODE_MIXED)
            polar->kind[node] = child[1];
        else
            polar->kind[node] = NODE_MIXED;
    }
}

/* Returns the number of bits below a node of the layer. */
static unsigned node_length(unsigned layer)
{
    return (unsigned)polar_length >> layer;
}

struct polar *polar_new(void)
{
    struct polar *polar = calloc(1, sizeof *polar);
    unsigned layer;
    unsigned i;

    if (polar == NULL)
        return NULL;
    message_bits_choose(polar);
    kinds_choose(polar);
    for (i = 0; i < table_steps + 2; i++)
        polar->penalty_table[i] = (float)log1p(exp(-(double)i * (double)table_reach / table_steps));
    for (layer = 0, i = 0; layer < layers; layer++) {
        polar->ratios[layer] = polar->ratio_store + i;
        i += polar_list * node_length(layer);
    }
    for (layer = 0, i = 0; layer < polar_depth; layer++) {
        polar->left[layer] = polar->left_store + i;
        polar->right[layer] = polar->right_store + i;
        i += polar_list * node_length(layer + 1);
    }
    return polar;
}

void polar_free(struct polar *polar)
{
    free(polar);
}

static uint32_t check_of(uint64_t number)
{
    uint32_t check = 0xb704ce;

    for (int i = (int)polar_number_bits - 1; i >= 0; i--) {
        check ^= (uint32_t)(number >> i & 1) << 23;
        check = check & 0x800000 ? (check << 1 ^ check_factor) & 0xffffff : check << 1;
    }
    return check;
}

ENGINE_CLONES
static void signs_multiply(int8_t *restrict to, const int8_t *restrict by, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        to[i] = (int8_t)(to[i] * by[i]);
}

void polar_encode(const struct polar *polar, uint64_t number, int8_t word[polar_length])
{
    const uint64_t message[2] = {number, check_of(number)};
    unsigned next = 0;

    for (unsigned i = 0; i < polar_length; i++) {
        word[i] = 1;
        if (polar->is_message[i]) {
            word[i] = message[next / 64] >> (next % 64) & 1 ? -1 : 1;
            next++;
        }
    }
    for (unsigned half = 1; half < polar_length; half *= 2)
        for (unsigned first = 0; first < polar_length; first += 2 * half)
            signs_multiply(word + first, word + first + half, half);
}

/* Returns the lesser of two numbers >= 0, also if a is not a number. Loops with integers become vectors. */
ENGINE_INLINE float least_of(float a, float b)
{
    union {
        float real;
        int32_t bits;
    } one = {a}, other = {b};

    one.bits = one.bits < other.bits ? one.bits : other.bits;
    return one.real;
}

/* Returns log(1 + exp(-x)) for x >= 0, from the table. */
ENGINE_INLINE float tail(const float *table, float x)
{
    float place = least_of(x * (table_steps / table_reach), table_steps);
    int step = (int)place;

    return table[step] + (place - (float)step) * (table[step + 1] - table[step]);
}

/* Computes the log-likelihood ratios of the XOR of two bits. */
ENGINE_CLONES
static void boxplus(const float *restrict table, const float *restrict a, const float *restrict b,
                    unsigned count, float *restrict to)
{
    for (unsigned i = 0; i < count; i++) {
        float one = fabsf(a[i]);
        float other = fabsf(b[i]);
        float magnitude = least_of(one, other) + tail(table, one + other) - tail(table, fabsf(one - other));

        to[i] = magnitude * copysignf(1, a[i]) * copysignf(1, b[i]);
    }
}

static float *ratios_of(struct polar *polar, const struct path *path, unsigned layer)
{
    return polar->ratios[layer] + (size_t)path->ratio_slot[layer] * node_length(layer);
}

static void descend_left(struct polar *polar, unsigned layer)
{
    unsigned half = node_length(layer + 1);

    for (unsigned p = 0; p < polar->path_count; p++) {
        const float *from = ratios_of(polar, &polar->paths[p], layer);

        polar->paths[p].ratio_slot[layer + 1] = (uint8_t)p;
        float *to = ratios_of(polar, &polar->paths[p], layer + 1);
        boxplus(polar->penalty_table, from, from + half, half, to);
    }
}

static void descend_right(struct polar *polar, unsigned layer)
{
    unsigned half = node_length(layer + 1);

    for (unsigned p = 0; p < polar->path_count; p++) {
        const float *from = ratios_of(polar, &polar->paths[p], layer);
        const int8_t *left = polar->left[layer] + (size_t)polar->paths[p].left_slot[layer] * half;

        polar->paths[p].ratio_slot[layer + 1] = (uint8_t)p;
        float *to = ratios_of(polar, &polar->paths[p], layer + 1);
        for (unsigned i = 0; i < half; i++)
            to[i] = from[i + half] + (float)left[i] * from[i];
    }
}

/*
 * Drops the paths that no decision of a node keeps below the greatest penalty: every ratio costs at least
 * the penalty of the sign it has.
 */
static void paths_prune(struct polar *polar, unsigned layer)
{
    unsigned kept = 0;

    for (unsigned p = 0; p < polar->path_count; p++) {
        const float *ratios = ratios_of(polar, &polar->paths[p], layer);
        float least = 0;

        for (unsigned i = 0; i < node_length(layer); i++)
            least += tail(polar->penalty_table, fabsf(ratios[i]));
        if (polar->paths[p].penalty + (double)least <= polar->penalty_most)
            polar->paths[kept++] = polar->paths[p];
    }
    polar->path_count = kept;
}

/* Combines the children's decisions of every path into the node's decisions. */
static void ascend(struct polar *polar, unsigned layer, int8_t *result)
{
    unsigned half = node_length(layer + 1);

    for (unsigned p = 0; p < polar->path_count; p++) {
        const int8_t *left = polar->left[layer] + (size_t)polar->paths[p].left_slot[layer] * half;
        const int8_t *right = polar->right[layer] + (size_t)p * half;
        int8_t *to = result + (size_t)p * 2 * half;

        for (unsigned i = 0; i < half; i++) {
            to[i] = (int8_t)(left[i] * right[i]);
            to[i + half] = right[i];
        }
    }
}

/* Decides frozen bits, which are 0. Every path pays the cost of that decision. */
static void frozen_decide(struct polar *polar, unsigned layer, int8_t *result)
{
    unsigned length = node_length(layer);

    for (unsigned p = 0; p < polar->path_count; p++) {
        const float *ratios = ratios_of(polar, &polar->paths[p], layer);
        float sum = 0;

        for (unsigned i = 0; i < length; i++)
            sum += tail(polar->penalty_table, fabsf(ratios[i])) - (ratios[i] < 0 ? ratios[i] : 0);
        polar->paths[p].penalty += (double)sum;
    }
    memset(result, 1, (size_t)polar->path_count * length);
}

/*
 * Lists the places of the kept smallest penalties, in ascending order. Comparing all pairs is faster than
 * qsort.
 */
ENGINE_CLONES
static void penalties_rank(const double penalties[2 * polar_list], unsigned count, unsigned kept,
                           unsigned order[polar_list])
{
    for (unsigned i = 0; i < count; i++) {
        const double penalty = penalties[i];
        uint64_t rank = 0;

        for (unsigned j = 0; j < i; j++)
            rank += penalties[j] <= penalty;
        for (unsigned j = i + 1; j < count; j++)
            rank += penalties[j] < penalty;
        if (rank < kept)
            order[rank] = i;
    }
}

/* Decides the bit that is repeated over the node: every path forks, and the best polar_list paths survive. */
static void repeated_decide(struct polar *polar, unsigned layer, int8_t *result)
{
    double penalties[2 * polar_list] = {0}; /* at 2 * path + bit */
    unsigned order[polar_list] = {0};
    unsigned length = node_length(layer);
    unsigned kept = 2 * polar->path_count < polar_list ? 2 * polar->path_count : polar_list;

    for (unsigned p = 0; p < polar->path_count; p++) {
        const float *ratios = ratios_of(polar, &polar->paths[p], layer);
        float zero = 0;
        float one = 0;

        for (unsigned i = 0; i < length; i++) {
            float least = tail(polar->penalty_table, fabsf(ratios[i]));

            zero += ratios[i] >= 0 ? least : least - ratios[i];
            one += ratios[i] >= 0 ? least + ratios[i] : least;
        }
        penalties[2 * p] = polar->paths[p].penalty + (double)zero;
        penalties[2 * p + 1] = polar->paths[p].penalty + (double)one;
    }
    penalties_rank(penalties, 2 * polar->path_count, kept, order);
    while (kept > 0 && penalties[order[kept - 1]] > polar->penalty_most)
        kept--;
    for (unsigned p = 0; p < kept; p++) {
        uint64_t bit = order[p] & 1;

        polar->heirs[p] = polar->paths[order[p] / 2];
        polar->heirs[p].penalty = penalties[order[p]];
        polar->heirs[p].message[polar->message_next / 64] |= bit << (polar->message_next % 64);
        memset(result + (size_t)p * length, bit ? -1 : 1, length);
    }
    memcpy(polar->paths, polar->heirs, kept * sizeof *polar->paths);
    polar->path_count = kept;
    polar->message_next++;
}

/* Writes the node's decisions to result, one slot per path. */
static void node_decide(struct polar *polar, unsigned node, unsigned layer, int8_t *result)
{
    if (polar->kind[node] == NODE_FROZEN) {
        frozen_decide(polar, layer, result);
        return;
    }
    if (polar->kind[node] == NODE_REPEATED) {
        repeated_decide(polar, layer, result);
        return;
    }
    descend_left(polar, layer);
    node_decide(polar, 2 * node, layer + 1, polar->left[layer]);
    for (unsigned p = 0; p < polar->path_count; p++)
        polar->paths[p].left_slot[layer] = (uint8_t)p;
    descend_right(polar, layer);
    paths_prune(polar, layer + 1);
    node_decide(polar, 2 * node + 1, layer + 1, polar->right[layer]);
    ascend(polar, layer, result);
}

/*
 * The penalty of a word is the sum of log(1 + exp(-word * ratio)), which is the sum of log(2 cosh(ratio / 2))
 * minus half of the word's sum.  A path's penalty only grows.
 */
static double penalty_of(const struct polar *polar, const float ratios[polar_length], double sum)
{
    double penalty = -sum / 2;

    for (unsigned i = 0; i < polar_length; i++)
        penalty += (double)(fabsf(ratios[i]) / 2 + tail(polar->penalty_table, fabsf(ratios[i])));
    return penalty + rounding_most;
}

bool polar_decode(struct polar *polar, const float ratios[polar_length], double sum_least, uint64_t *number)
{
    double best = INFINITY;

    memset(polar->paths, 0, sizeof polar->paths);
    polar->path_count = 1;
    polar->message_next = 0;
    polar->penalty_most = penalty_of(polar, ratios, sum_least);
    memcpy(polar->ratios[0], ratios, polar_length * sizeof *ratios);
    node_decide(polar, 1, 0, polar->words);
    for (unsigned p = 0; p < polar->path_count; p++) {
        const struct path *path = &polar->paths[p];

        if (path->penalty < best && path->message[1] == check_of(path->message[0])) {
            best = path->penalty;
            *number = path->message[0];
        }
    }
    return best < INFINITY;
}
