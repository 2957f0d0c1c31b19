/*
 * The layers of the anti-AI network, the parameters of the visibility model, and the file with both
 * (format: tools/train/README.md; tools/train/perceptual.py defines the same layers).
 */
#ifndef ENGINE_PROTECT_WEIGHTS_H
#define ENGINE_PROTECT_WEIGHTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/protect/conv.h"
#include "engine/protect/protect.h"

/* The two drawers, with layers of the same shapes: one at half of the picture's size, one at full size. */
enum net_drawer { DRAWER_COARSE, DRAWER_FINE, net_drawer_count };

/*
 * The name of a layer states its purpose and the resolution of the output relative to the drawer's input: 2
 * for a half, 4 for a quarter, 8 for an eighth.
 */
enum net_layer {
    LAYER_DOWN2, /* encoder: features of the picture */
    LAYER_LOOK2,
    LAYER_DOWN4,
    LAYER_LOOK4,
    LAYER_DOWN8,
    LAYER_ANSWER8, /* prediction of an encoder's features */
    LAYER_SEED8,   /* start of the decoder, from the noise or from a change of the answer */
    LAYER_UP4,     /* decoder, gated by the features of the picture */
    LAYER_DRAW4,
    LAYER_UP2,
    LAYER_DRAW2,
    LAYER_DRAW1, /* four pixels of RGB */
    net_layer_count,
    net_gate_count = LAYER_DOWN8 + 1 /* the encoder's features are gates */
};

/* Channels of the features of the encoder and the decoder. */
enum {
    net_color_channels = 3,
    net_down2_channels = 16,
    net_look2_channels = 16,
    net_down4_channels = 32,
    net_look4_channels = 32,
    net_down8_channels = 64,
    net_answer_channels = 32,
    net_noise_channels = net_answer_channels,
    net_raw_channels = 16, /* two rows of two pixels of RGB and two padding values */
    net_raw_row = net_raw_channels / 2
};

enum { model_levels = 4, model_planes = 3 /* luma, blue and red difference */ };

/*
 * The numbers in the order of the file. tools/train/visibility.py names the sources of those of the
 * visibility model.
 */
struct net_model {
    float slopes[net_drawer_count][net_gate_count];   /* of the gates */
    float change_gains[net_drawer_count];             /* of the change of an answer */
    float coarse_gains[2];                            /* of the first and the second coarse gradient */
    float shares[model_levels][model_planes];         /* of a step's bands, times a scale of all steps */
    float shown;                                      /* largest perturbation in the input of the next pass */
    float thresholds[model_levels + 1][model_planes]; /* of a picture's mean light, 0..1 */
    float adaptation;                      /* power of the luminance in a threshold, of either sign */
    float light, dark;                     /* mean luminance, and a constant offset of luminance */
    float masking, calm;                   /* (calm + activity^4)^masking is the rise by masking */
    float line;                            /* factor of the means along lines */
    float budgets[protect_strength_count]; /* of visibility */
    float slack; /* distance beyond a sample's headroom that a perturbation may have, 0..1 */
};

/* Everything in the file. */
struct net_weights {
    struct conv layers[net_drawer_count][net_layer_count]; /* answers have the gain of their change */
    struct net_model model;
    float *memory; /* of all layers */
};

/* Reads a weights file.  Errors: WEIGHTS_INVALID with a sentence in *why, or NO_MEMORY.  Freed by
 * weights_fini. */
enum iw_error weights_init(struct net_weights *weights, const uint8_t *bytes, size_t size,
                           const char **why) IW_MUST_USE;
void weights_fini(struct net_weights *weights);

#endif
