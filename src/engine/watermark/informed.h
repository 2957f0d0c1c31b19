/*
 * Reads a mark with the unmarked original at hand: what the suspect has beyond
 * the original is the mark and the damage, and no longer the picture.
 */
#ifndef ENGINE_WATERMARK_INFORMED_H
#define ENGINE_WATERMARK_INFORMED_H

#include <imgward/error.h>
#include <imgward/watermark.h>

#include "engine/watermark/reader.h"

/* WATERMARK_NOT_FOUND when the pictures do not match or nothing is read. */
enum iw_error informed_read(struct reader *reader, const struct plane *suspect, const struct image *original,
                            struct watermark_report *report) IW_MUST_USE;

#endif
