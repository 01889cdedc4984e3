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
 * umrddt_tune: what its parts share. Two processes run it; all of them call the same functions in
 * the same order, and the first one's results count.
 *
 * What a message costs by a scheme is measured as users meet it: messages that are made to go by
 * that scheme (the info key pml_umrddt_scheme), there and back, whose sums the figures of the model
 * then make up. What a GPU does by itself is measured with umrddt's own engine.
 */

#ifndef TUNE_H
#define TUNE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <mpi.h>

#include "bench_pvars.h"
#include "opal/mca/common/umrddt_select/umrddt_select_file.h"
#include "opal/datatype/iov_cache/iov_cache.h"
#include "tune_file.h"

/**
 * Curves of the pictures: name, picture, and what its legend calls it. tune_plot.c has the
 * pictures, and for each curve what the figures make of it.
 */
#define TUNE_CURVES(X)                                         \
    X(HOST, SIZE, "base PML, one piece")                       \
    X(DIRECT, SIZE, "direct, 16 pieces")                       \
    X(UMR, SIZE, "umr, 16 pieces")                             \
    X(GPU_UMR, SIZE, "umr, 16 pieces, GPU to GPU")             \
    X(GPU_IPC, SIZE, "ipc, 16 pieces, GPU to GPU")             \
    X(GPU_OUT, SIZE, "copy, GPU to host")                      \
    X(GPU_IN, SIZE, "copy, host to GPU")                       \
    X(CPU_COPY, BLOCK, "the CPU packs, by Open MPI")           \
    X(CPU_PACK, BLOCK, "the CPU packs, by umrddt")             \
    X(GPU_PACK, BLOCK, "a GPU packs in its memory")            \
    X(GPU_UNPACK, BLOCK, "a GPU unpacks in its memory")        \
    X(GPU_PACK_HOST, BLOCK, "a GPU packs to the host")         \
    X(GPU_UNPACK_HOST, BLOCK, "a GPU unpacks from the host")   \
    X(IPC_COPY, BLOCK, "a GPU copies from a peer's")           \
    X(GPU_LIST, BLOCK, "a GPU packs, blocks of a list")        \
    X(COUNT_PACK, COUNT, "a GPU packs in its memory")          \
    X(COUNT_UNPACK, COUNT, "a GPU unpacks in its memory")      \
    X(COUNT_PACK_HOST, COUNT, "a GPU packs to the host")       \
    X(COUNT_UNPACK_HOST, COUNT, "a GPU unpacks from the host") \
    X(PIECES_DIRECT, PIECES, "direct")                         \
    X(PIECES_UMR, PIECES, "umr")                               \
    X(FIRST_DIRECT, FIRST, "direct: registration")             \
    X(FIRST_UMR, FIRST, "umr: registration and keys")

#define TUNE_CURVE_NAME(name, ...) TUNE_CURVE_##name,
typedef enum tune_curve_t {
    TUNE_CURVES(TUNE_CURVE_NAME) TUNE_CURVE_COUNT
} tune_curve_t;

/** Most points of a curve; bytes of a block, or of a piece, where a picture is of their number. */
#define TUNE_POINTS      12
#define TUNE_BLOCK       64
#define TUNE_FIRST_BLOCK 16

/** Pieces of the messages in the picture by size. */
#define TUNE_PIECES 16

/** What was measured: a size, a length or a number, and us, or bytes a us. */
typedef struct tune_points_t {
    int count;
    double x[TUNE_POINTS], y[TUNE_POINTS];
} tune_points_t;

/** Figures, and which of them were measured. */
typedef struct tune_t {
    int rank; /**< 0 or 1 */
    bool near;
    bool gpu;       /**< both have one */
    bool umrddt;    /**< it is the PML */
    bool plot;      /**< points are wanted that only pictures need */
    double begin;   /**< seconds of bench_now */
    double seconds; /**< after which nothing more is begun */
    int steps, of;  /**< begun, and of how many, for the line of progress */
    tune_points_t points[TUNE_CURVE_COUNT];
    bench_pvars_t pvars;
    MPI_Comm comms[MCA_PML_UMRDDT_SCHEMES]; /**< whose messages go by a scheme */
    opal_umrddt_tuning_t figures;
    opal_umrddt_tuning_measured_t measured;
    int entered[OPAL_UMRDDT_TUNING_VALUE_COUNT + OPAL_UMRDDT_TUNING_CURVE_COUNT]; /**< how often */
} tune_t;

/** The command line. */
typedef struct tune_options_t {
    const char *output; /**< NULL: where pml/umrddt looks */
    const char *plot;   /**< NULL: none */
    const char *json;   /**< NULL: none; "-": stdout, and the table goes to stderr */
    bool system, dry, any, fresh, no_gpu;
    double seconds;
} tune_options_t;

/** For whom the figures are, and where. */
typedef struct tune_report_t {
    char hardware[OPAL_UMRDDT_TUNING_TEXT];
    char path[TUNE_PATH];
} tune_report_t;

/** Enters a figure, unless what was measured cannot be one. */
#define TUNE_FIGURE(tune, name, value) \
    tune_enter((tune), &(tune)->figures.name, tune_index(#name), (value))

/** The place of a figure or curve among all; the program ends if there is none of that name. */
int tune_index(const char *name);
void tune_enter(tune_t *tune, double *figure, int index, double value);

/** When all is measured: a curve of which a rate is missing is none, as those of some other machine
 * would stand beside measured ones. It is left at its default. */
void tune_complete(tune_t *tune);

/** Tell what is done now, and how far it is; at the first process, on stderr. */
void tune_progress(tune_t *tune, const char *what);

/** True if there is time for one more measurement; the same for both processes. */
bool tune_time_left(tune_t *tune);
/** The same for a process that measures by itself. */
bool tune_time_left_alone(const tune_t *tune);

/** Keep a point for the pictures, if it is one: both above 0. */
void tune_point(tune_t *tune, tune_curve_t curve, double x, double y);

/** A layout of @p pieces blocks of @p block bytes, as far apart as they are long. Free it. */
MPI_Datatype tune_vector(int pieces, int block);

/** The layout of a type, which is freed. Release it. */
opal_iov_cache_layout_t *tune_layout(MPI_Datatype type);

/** Bytes from the first to the last of it. */
size_t tune_span(int pieces, int block);

/**
 * One way of a message, from and into buffers of the same layout: the median, in us, of messages
 * there and back.
 *
 * @param[out] first  if not NULL: the first one's time, of buffers that nobody has used
 *
 * @return a negative number if the messages did not go by this scheme, or there is no more time
 */
double tune_message(tune_t *tune, mca_pml_umrddt_scheme_id_t way, void *send, void *recv,
                    MPI_Datatype type, double *first);

/** How many steps the first three below tell of, if all of it is there: for tune->of. */
#define TUNE_STEPS_HOST 2
#define TUNE_STEPS_HCA  2
#define TUNE_STEPS_GPU  1 /**< by itself */
#define TUNE_STEPS_GPUS 2 /**< messages between both */

/** The base PML and the CPU (tune_host.c); the HCA (tune_hca.c); GPUs (tune_gpu.c). */
void tune_host(tune_t *tune);
void tune_hca(tune_t *tune);
void tune_gpu(tune_t *tune);

/** Behind all figures, as these matter more: points that only pictures need. A step each. */
void tune_host_points(tune_t *tune);
void tune_hca_points(tune_t *tune);
void tune_gpu_points(tune_t *tune);

/**
 * Before anything is measured, at the first process: where the results are to be.
 *
 * @return false: they cannot be written there, which is told
 */
bool tune_report_open(const tune_options_t *options, tune_report_t *report);

/**
 * When all is measured: draw it, add what the file has of earlier runs, print the table, write the
 * file, as the options say (tune_report.c).
 *
 * @return the exit status; what is wrong is told
 */
int tune_report(tune_t *tune, const tune_options_t *options, const tune_report_t *report);

/**
 * Draw what was measured as SVG, on one page: a picture of each kind of measurement of which there
 * is a point, with points, and lines for what the figures make of the same (tune_plot.c).
 *
 * @param[in] heading  a line above, as text
 *
 * @return 0; 1: there is not a point; -1: it cannot be written
 */
int tune_plot(FILE *file, const tune_t *tune, const char *heading);

#endif /* TUNE_H */
