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

#include <mpi.h>

#include "bench_pvars.h"
#include "ompi/mca/pml/umrddt/pml_umrddt_model.h"

/** Figures, and which of them were measured. */
typedef struct tune_t {
    int rank; /**< 0 or 1 */
    bool near;
    bool gpu;        /**< both have one */
    bool umrddt;     /**< it is the PML */
    double deadline; /**< seconds of bench_now after which nothing more is begun */
    int steps;       /**< done, for the line of progress */
    bench_pvars_t pvars;
    MPI_Comm comms[MCA_PML_UMRDDT_WAYS]; /**< whose messages go by a scheme */
    mca_pml_umrddt_figures_t figures;
    mca_pml_umrddt_measured_t measured;
} tune_t;

/** Enters a figure, unless what was measured cannot be one. */
#define TUNE_FIGURE(tune, name, value) \
    tune_enter((tune), &(tune)->figures.name, tune_index(#name), (value))

/** The place of a figure or curve among all; the program ends if there is none of that name. */
int tune_index(const char *name);
void tune_enter(tune_t *tune, double *figure, int index, double value);

/** Tell what is done now; at the first process, on stderr. */
void tune_progress(tune_t *tune, const char *what);

/** True if there is time for one more measurement; the same for both processes. */
bool tune_time_left(tune_t *tune);

/** A layout of @p pieces blocks of @p block bytes, as far apart as they are long. Free it. */
MPI_Datatype tune_vector(int pieces, int block);

/** Bytes from the first to the last of it. */
size_t tune_span(int pieces, int block);

/**
 * One way of a message, from and into buffers of the same layout: the median, in us, of messages
 * there and back.
 *
 * @param[out] first  if not NULL: the first one's time, of buffers that nobody has used
 *
 * @return a negative number if the messages did not go by this scheme
 */
double tune_message(tune_t *tune, mca_pml_umrddt_way_t way, void *send, void *recv,
                    MPI_Datatype type, double *first);

/** The host PML and the CPU (tune_host.c); the card (tune_card.c); GPUs (tune_gpu.c). */
void tune_host(tune_t *tune);
void tune_card(tune_t *tune);
void tune_gpu(tune_t *tune);

#endif /* TUNE_H */
