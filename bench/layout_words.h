/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/**
 * @file
 *
 * Layouts in words, as users name them in the options of umrddt's tools:
 *
 *     contiguous BYTES
 *     vector COUNT x BYTES [stride BYTES]
 *     subarray N x N ... of N x N ... [at N x N ...] [element BYTES]
 *     indexed FILE [block BYTES]
 *
 * A number may have a unit: K, M, G, or KiB, MiB, GiB. The stride of a vector, from the beginning
 * of a block to that of the next one, is twice a block unless given. The last number of a subarray
 * is of the direction that is contiguous in memory; it begins at 0 and its elements have 8 bytes
 * unless given. A file has a piece in each line, its offset and its length in bytes, or with
 * 'block' its offset alone; what follows a # is a comment. FILE is put in "quotes" if it has blanks
 * or commas.
 *
 * This file and its .c are independent of MPI.
 */

#ifndef LAYOUT_WORDS_H
#define LAYOUT_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Directions of a subarray, at most. */
#define LAYOUT_DIRECTIONS 8

/** Bounds: of a layout from its first to its last byte, and of its pieces. */
#define LAYOUT_MOST_BYTES  ((uint64_t) 1 << 40)
#define LAYOUT_MOST_PIECES ((uint64_t) 1 << 24)

/** Maximum bytes of an error text, and of the name of a layout. */
#define LAYOUT_ERROR 512
#define LAYOUT_NAME  256

typedef enum layout_kind_t {
    LAYOUT_CONTIGUOUS,
    LAYOUT_VECTOR,
    LAYOUT_SUBARRAY,
    LAYOUT_INDEXED
} layout_kind_t;

/** A piece of a file. */
typedef struct layout_piece_t {
    uint64_t offset;
    uint64_t length; /**< not 0 */
} layout_piece_t;

/** A parsed description. */
typedef struct layout_words_t {
    layout_kind_t kind;
    char name[LAYOUT_NAME]; /**< the words, with one blank between them */
    uint64_t count;         /**< of a vector's blocks; of a file's pieces; not 0 */
    uint64_t bytes;         /**< of a block, of the one piece, or of an element; not 0 */
    uint64_t stride;        /**< of a vector; no less than bytes */
    unsigned directions;    /**< of a subarray */
    uint64_t part[LAYOUT_DIRECTIONS], whole[LAYOUT_DIRECTIONS], at[LAYOUT_DIRECTIONS];
    layout_piece_t *pieces; /**< of a file, in its order; none overlap */
} layout_words_t;

/** True if a text begins as a layout in words does: one of the four words, and something behind it.
 * Else it may be a name. */
bool layout_words_begin(const char *text);

/**
 * Read a layout, up to a comma or the end.
 *
 * @param[in]  text   begins a list, or is its rest
 * @param[in]  whole  the whole list, for positions in error messages; @p text lies in it
 * @param[out] words  to be freed by layout_words_free; untouched after an error
 * @param[out] error  the error, its position, and the expected input
 *
 * @return the end of the layout: at a comma or the end. NULL: there is an error
 */
const char *layout_words_read(const char *text, const char *whole, layout_words_t *words,
                              char error[LAYOUT_ERROR]);

/** Free its memory. */
void layout_words_free(layout_words_t *words);

#endif /* LAYOUT_WORDS_H */
