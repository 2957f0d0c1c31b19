/*
 * The layers of the anti-AI network and the file that holds their weights
 * (format: tools/README.md; tools/generator.py defines the same layers).
 */
#ifndef ENGINE_PROTECT_PROTECT_WEIGHTS_H
#define ENGINE_PROTECT_PROTECT_WEIGHTS_H

#include <stddef.h>
#include <stdint.h>

#include <imgward/error.h>

#include "engine/protect/protect_conv.h"
#include "engine/protect/protect_grain.h"
#include "engine/protect/protect_spectra.h"

/* What draws, with layers of the same shapes: one at half of the picture's size, one at all of it. */
enum net_drawer { DRAWER_COARSE, DRAWER_FINE, net_drawer_count };

/*
 * Layers are named by what they are for and the resolution that they write, of the one their drawer looks
 * at: 2 a half, 4 a quarter, 8 an eighth.
 */
enum net_layer {
    LAYER_DOWN2, /* down the picture: what is there */
    LAYER_LOOK2,
    LAYER_DOWN4,
    LAYER_LOOK4,
    LAYER_DOWN8,
    LAYER_ANSWER8, /* what an encoder makes of it */
    LAYER_SEED8,   /* from the noise, or from a change of the answer: what to draw */
    LAYER_UP4,     /* and up again, through the gates of what is there */
    LAYER_DRAW4,
    LAYER_UP2,
    LAYER_DRAW2,
    LAYER_DRAW1, /* four pixels of RGB */
    net_layer_count
};

/* Channels of the features, down and up again. */
enum {
    net_color_channels = 3,
    net_down2_channels = 16,
    net_look2_channels = 16,
    net_down4_channels = 32,
    net_look4_channels = 32,
    net_down8_channels = 64,
    net_answer_channels = 32,
    net_noise_channels = net_answer_channels,
    net_raw_channels = 16, /* two rows of two pixels of RGB and two values of nothing */
    net_raw_row = net_raw_channels / 2
};

/* The networks of the file, layer by layer of the same shapes, each trained for what may be seen of it. */
enum net_network {
    NETWORK_FAINT,  /* nothing, as far as it can be helped */
    NETWORK_STRONG, /* strokes, where little hides them */
    net_network_count
};

/* A network. */
struct net_weights {
    struct conv layers[net_drawer_count][net_layer_count]; /* an answer is multiplied by its change's gain */
    float noise_gain;
    float shown;   /* how much of what was drawn before the fine drawer looks at */
    float *memory; /* of all layers */
};

/*
 * Reads all networks of a weights file, its grain and its tables of gains; WEIGHTS_INVALID with a sentence in
 * *why, or NO_MEMORY.  Networks are freed by weights_fini.
 */
enum iw_error weights_init(struct net_weights networks[net_network_count], struct grain *grain,
                           struct spectra_table tables[spectra_tables], const uint8_t *bytes, size_t size,
                           const char **why) IW_MUST_USE;
void weights_fini(struct net_weights networks[net_network_count]);

#endif
