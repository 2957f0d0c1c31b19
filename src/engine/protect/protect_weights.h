/*
 * The layers of the anti-AI network and the file with their weights (format: tools/README.md;
 * tools/generator.py defines the same layers).
 */
#ifndef ENGINE_PROTECT_PROTECT_WEIGHTS_H
#define ENGINE_PROTECT_PROTECT_WEIGHTS_H

#include <stddef.h>
#include <stdint.h>

#include <imgward/error.h>

#include "engine/protect/protect_conv.h"
#include "engine/protect/protect_grain.h"
#include "engine/protect/protect_spectra.h"

/* The two drawers, with layers of the same shapes: one at half of the picture's size, one at full size. */
enum net_drawer { DRAWER_COARSE, DRAWER_FINE, net_drawer_count };

/*
 * A layer's name gives its purpose and the resolution of its output relative to its drawer's input: 2 a half,
 * 4 a quarter, 8 an eighth.
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
    net_layer_count
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

/* The networks of the file.  Their layers have the same shapes; each is trained for a different permitted
 * visibility. */
enum net_network {
    NETWORK_FAINT,  /* as invisible as possible */
    NETWORK_STRONG, /* visible strokes where the masking is low */
    net_network_count
};

/* A network. */
struct net_weights {
    struct conv layers[net_drawer_count]
                      [net_layer_count]; /* an answer is multiplied by the gain of its change */
    float noise_gain;
    float shown;   /* amplitude of the earlier drawing in the fine drawer's input */
    float *memory; /* of all layers */
};

/*
 * Reads all networks of a weights file, its grain and its tables of gains.  Errors: WEIGHTS_INVALID with a
 * sentence in *why, or NO_MEMORY.  weights_fini frees the networks.
 */
enum iw_error weights_init(struct net_weights networks[net_network_count], struct grain *grain,
                           struct spectra_table tables[spectra_tables], const uint8_t *bytes, size_t size,
                           const char **why) IW_MUST_USE;
void weights_fini(struct net_weights networks[net_network_count]);

#endif
