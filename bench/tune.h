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
 * umrddt_tune: declarations that its parts share. Two processes run it; both call the same
 * functions in the same order, and the results of the first one count.
 *
 * The cost of a message by a scheme is measured as users see it: messages are forced to use that
 * scheme (the info key pml_umrddt_scheme), in both directions, and the tuning parameters of the
 * model are derived from their sums. The work of a GPU alone is measured with umrddt's own engine.
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
 * Curves of the figures: name, figure, and legend. tune_plot.c has the figures, and for each curve
 * its value by the tuning parameters.
 */
#define TUNE_CURVES(X)                                              \
    X(HOST, SIZE, "base PML, one piece")                            \
    X(DIRECT, SIZE, "sgl, 16 pieces")                               \
    X(UMR, SIZE, "umr, 16 pieces")                                  \
    X(GPU_UMR, SIZE, "umr, 16 pieces, GPU to GPU")                  \
    X(GPU_IPC, SIZE, "ipc, 16 pieces, GPU to GPU")                  \
    X(GPU_OUT, SIZE, "copy, GPU to system memory")                  \
    X(GPU_IN, SIZE, "copy, system memory to GPU")                   \
    X(CPU_COPY, BLOCK, "the CPU packs, by Open MPI")                \
    X(CPU_PACK, BLOCK, "the CPU packs, by umrddt")                  \
    X(GPU_PACK, BLOCK, "a GPU packs in its memory")                 \
    X(GPU_UNPACK, BLOCK, "a GPU unpacks in its memory")             \
    X(GPU_PACK_HOST, BLOCK, "a GPU packs to system memory")         \
    X(GPU_UNPACK_HOST, BLOCK, "a GPU unpacks from system memory")   \
    X(IPC_COPY, BLOCK, "a GPU copies from a peer's")                \
    X(GPU_LIST, BLOCK, "a GPU packs, blocks of a list")             \
    X(COUNT_PACK, COUNT, "a GPU packs in its memory")               \
    X(COUNT_UNPACK, COUNT, "a GPU unpacks in its memory")           \
    X(COUNT_PACK_HOST, COUNT, "a GPU packs to system memory")       \
    X(COUNT_UNPACK_HOST, COUNT, "a GPU unpacks from system memory") \
    X(PIECES_DIRECT, PIECES, "sgl")                                 \
    X(PIECES_UMR, PIECES, "umr")                                    \
    X(FIRST_DIRECT, FIRST, "sgl: registration")                     \
    X(FIRST_UMR, FIRST, "umr: registration and mkeys")

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

/** A measured point: a size, a length or a number, and us, or bytes a us. */
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
    opal_umrddt_tuning_t tuning;
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

/** The machine of the tuning parameters, and their file. */
typedef struct tune_report_t {
    char hardware[OPAL_UMRDDT_TUNING_TEXT];
    char path[TUNE_PATH];
} tune_report_t;

/** Enters a tuning parameter, unless the measured value is impossible. */
#define TUNE_FIGURE(tune, name, value) \
    tune_enter((tune), &(tune)->tuning.name, tune_index(#name), (value))

/** The index of a tuning parameter or curve; the program ends if there is none of that name. */
int tune_index(const char *name);
void tune_enter(tune_t *tune, double *figure, int index, double value);

/** After all measurements: a curve with a missing rate is removed, because values of another
 * machine would stand beside measured ones. It keeps its default. */
void tune_complete(tune_t *tune);

/** Print the current step and the progress; at the first process, on stderr. */
void tune_progress(tune_t *tune, const char *what);

/** True if there is time for one more measurement; the same for both processes. */
bool tune_time_left(tune_t *tune);
/** The same for a process that measures by itself. */
bool tune_time_left_alone(const tune_t *tune);

/** Keep a point for the plots, if both values are above 0. */
void tune_point(tune_t *tune, tune_curve_t curve, double x, double y);

/** A layout of @p pieces blocks of @p block bytes, as far apart as they are long. Free it. */
MPI_Datatype tune_vector(int pieces, int block);

/** The layout of a type, which is freed. Release it. */
opal_iov_cache_layout_t *tune_layout(MPI_Datatype type);

/** Bytes from the first to the last of it. */
size_t tune_span(int pieces, int block);

/**
 * A message in one direction, between buffers of the same layout: the median, in us, of messages in
 * both directions.
 *
 * @param[out] first  if not NULL: the time of the first one, with unused buffers
 *
 * @return a negative number if the messages did not use this scheme, or there is no more time
 */
double tune_message(tune_t *tune, mca_pml_umrddt_scheme_id_t scheme_id, void *send, void *recv,
                    MPI_Datatype type, double *first);

/** Number of steps that the first three below report, if everything is available: for tune->of. */
#define TUNE_STEPS_HOST 2
#define TUNE_STEPS_HCA  2
#define TUNE_STEPS_GPU  1 /**< by itself */
#define TUNE_STEPS_GPUS 2 /**< messages between both */

/** The base PML and the CPU (tune_host.c); the HCA (tune_hca.c); GPUs (tune_gpu.c). */
void tune_host(tune_t *tune);
void tune_hca(tune_t *tune);
void tune_gpu(tune_t *tune);

/** After all tuning parameters, which have precedence: points for the figures only. One step each.
 */
void tune_host_points(tune_t *tune);
void tune_hca_points(tune_t *tune);
void tune_gpu_points(tune_t *tune);

/**
 * Before all measurements, at the first process: checks the place of the results.
 *
 * @return false: it cannot be written; prints an error
 */
bool tune_report_open(const tune_options_t *options, tune_report_t *report);

/**
 * After all measurements: draws them, adds values of earlier runs from the file, prints the table,
 * writes the file, by the options (tune_report.c).
 *
 * @return the exit status; prints errors
 */
int tune_report(tune_t *tune, const tune_options_t *options, const tune_report_t *report);

/**
 * Draw the measurements as SVG, on one page: a figure of each kind of measurement that has a point,
 * with points, and lines for the values by the tuning parameters (tune_plot.c).
 *
 * @param[in] heading  a line above, as text
 *
 * @return 0; 1: there is no point; -1: it cannot be written
 */
int tune_plot(FILE *file, const tune_t *tune, const char *heading);

#endif /* TUNE_H */
