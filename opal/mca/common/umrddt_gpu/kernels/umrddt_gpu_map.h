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
 * Maps: the data that kernels need of a layout, created once from its form. A map is read-only, so
 * threads can share it. It contains no addresses, so its list can be cached on any device. Plain C;
 * no driver call.
 */

#ifndef UMRDDT_GPU_MAP_H
#define UMRDDT_GPU_MAP_H

#include "opal_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opal/datatype/iov_cache/iov_cache_form.h"

#include "umrddt_gpu_args.h"

BEGIN_C_DECLS

/** Packing methods; README.md has their sources. */
typedef enum {
    OPAL_UMRDDT_GPU_AUTO = 0,
    OPAL_UMRDDT_GPU_TARGETED = 1,   /**< vectors, subarrays, equal blocks: rows and columns */
    OPAL_UMRDDT_GPU_TRANSFORM = 2,  /**< irregular layouts as runs of vectors */
    OPAL_UMRDDT_GPU_SEQUENTIAL = 3, /**< IOVs: a warp searches once per tile, then continues */
    OPAL_UMRDDT_GPU_PARALLEL = 4,   /**< IOVs: each thread searches */
    OPAL_UMRDDT_GPU_TEAMS = 5,      /**< IOVs: one by one by a line of threads */
    OPAL_UMRDDT_GPU_TEMPI = 6,      /**< up to two strides: three-dimensional blocks of threads */
    OPAL_UMRDDT_GPU_YAKSA = 7,      /**< vectors, subarrays, equal blocks: by division */
    OPAL_UMRDDT_GPU_TREE = 8,       /**< the form itself, walked by each thread */
    OPAL_UMRDDT_GPU_SCHEMES = 9
} opal_umrddt_gpu_scheme_t;

/** Repetitions of the next level, or of the block. */
typedef struct opal_umrddt_gpu_map_level_t {
    uint64_t count; /**< at least 2 */
    int64_t stride; /**< bytes */
    uint64_t size;  /**< stream bytes of one repetition */
} opal_umrddt_gpu_map_level_t;

/** A layout, for kernels. */
typedef struct opal_umrddt_gpu_map_t {
    uint64_t size;   /**< bytes in the stream */
    uint32_t scheme; /**< opal_umrddt_gpu_scheme_t; never AUTO */
    bool chosen; /**< selected by AUTO: a plan may use the kernel of another method of this kind */
    uint32_t kind;  /**< umrddt_gpu_kind_t */
    uint32_t align; /**< common divisor of all values but the buffer's address: 1, 2, 4, 8 or 16 */
    uint32_t levels;
    opal_umrddt_gpu_map_level_t level[UMRDDT_GPU_LEVELS]; /**< the outermost first */
    int64_t offset;    /**< bytes from the buffer to the base of list offsets and levels */
    uint64_t block;    /**< STRIDED, INDEXED: bytes of a block; else 0 */
    uint64_t piece;    /**< mean bytes of a piece; 0 if empty */
    uint64_t n;        /**< elements of the list; 0 if there is none */
    void *list;        /**< input of kernels of this kind; NULL if there is none */
    size_t list_bytes; /**< a multiple of 8 */
} opal_umrddt_gpu_map_t;

/**
 * Create a map.
 *
 * @param[in]  form       not needed afterwards
 * @param[in]  scheme     AUTO, or the required one
 * @param[in]  max_list   maximum bytes of a list. Otherwise AUTO uses TREE, whose list is as long
 *                        as the form and has no limit
 * @param[out] map        the caller's, until opal_umrddt_gpu_map_free
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_NOT_SUPPORTED    this scheme cannot handle this layout, or its list is too long
 * @retval OPAL_ERR_BAD_PARAM        no such scheme
 * @retval OPAL_ERR_OUT_OF_RESOURCE  no memory
 */
int opal_umrddt_gpu_map_create(const opal_iov_cache_form_t *form, opal_umrddt_gpu_scheme_t scheme,
                               size_t max_list, opal_umrddt_gpu_map_t **map);

/**
 * True if AUTO's kernels use a list for the blocks of a form: for all forms except one piece,
 * vectors, and nests of those. Creates no map, and costs the depth of the form.
 */
bool opal_umrddt_gpu_map_listed(const opal_iov_cache_form_t *form);

/** Free a map. NULL is allowed. */
void opal_umrddt_gpu_map_free(opal_umrddt_gpu_map_t *map);

/** "targeted", "tempi", ...; NULL if there is no such scheme. */
const char *opal_umrddt_gpu_scheme_name(opal_umrddt_gpu_scheme_t scheme);

/**
 * A divisor in the form for kernels.
 *
 * @param[in] by     at least 1
 * @param[in] bound  all dividends are below it; from 2^31 on there is no magic number
 */
umrddt_gpu_div_t opal_umrddt_gpu_div(uint64_t by, uint64_t bound);

END_C_DECLS

#endif /* UMRDDT_GPU_MAP_H */
