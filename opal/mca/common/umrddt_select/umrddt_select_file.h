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
 * The tuning file: parameters that umrddt_tune measured on a machine, read by pml/umrddt.
 */

#ifndef OPAL_UMRDDT_SELECT_FILE_H
#define OPAL_UMRDDT_SELECT_FILE_H

#include <stdio.h>

#include "opal/mca/common/umrddt_select/umrddt_select_model.h"

/** Result of reading a tuning file. */
typedef enum opal_umrddt_tuning_file_t {
    OPAL_UMRDDT_TUNING_FILE_GOOD,
    OPAL_UMRDDT_TUNING_FILE_ABSENT,  /**< or not readable */
    OPAL_UMRDDT_TUNING_FILE_STALE,   /**< of another format version */
    OPAL_UMRDDT_TUNING_FILE_FOREIGN, /**< for other hardware */
    OPAL_UMRDDT_TUNING_FILE_MALFORMED
} opal_umrddt_tuning_file_t;

/** Size of a hardware description, and of an error text. */
#define OPAL_UMRDDT_TUNING_TEXT 512

/** Size of the description of a measurement. */
#define OPAL_UMRDDT_TUNING_NOTE 128

/** Which parameters of a file were measured, and when. */
typedef struct opal_umrddt_tuning_measured_t {
    bool figure[OPAL_UMRDDT_TUNING_VALUE_COUNT
                + OPAL_UMRDDT_TUNING_CURVE_COUNT]; /**< in their order */
    char near[OPAL_UMRDDT_TUNING_NOTE]; /**< by two processes of one node; empty: never */
    char far[OPAL_UMRDDT_TUNING_NOTE];  /**< by processes of two nodes; empty: never */
    bool any;                           /**< the file is for any hardware */
} opal_umrddt_tuning_measured_t;

/**
 * Describe the hardware that the parameters depend on: processor, GPUs, HCAs. The same text in all
 * processes of a machine, with or without the CUDA driver; a few hundred bytes in one line.
 */
void opal_umrddt_tuning_hardware(char text[OPAL_UMRDDT_TUNING_TEXT]);

/**
 * Path of the tuning file for this hardware: DIRECTORY/model-HASH.txt.
 *
 * @param[in]  system  below sysconfdir; else below $XDG_CONFIG_HOME, or $HOME/.config
 * @param[out] path    of @p room bytes
 *
 * @return false: no such directory is defined, or @p room is too small
 */
bool opal_umrddt_tuning_path(const char *hardware, bool system, char *path, size_t room);

/** Reports the error of a tuning file to the user; @p hardware: of this machine. */
typedef void (*opal_umrddt_tuning_report_t)(const char *path, const char *wrong,
                                            const char *hardware);

/**
 * Find the tuning parameters of this machine.
 *
 * @param[in]  model   value of pml_umrddt_model: "none", "defaults", the path of a file, or "" for
 *                     the file that umrddt_tune writes
 * @param[out] tuning  the defaults if there is none
 * @param[out] source  of the parameters, for the user
 * @param[in]  report  called for a file that cannot be used; such a file is ignored
 *
 * @return false: there are none, and the fixed rules select schemes
 */
bool opal_umrddt_tuning_find(const char *model, opal_umrddt_tuning_t *tuning,
                             char source[OPAL_UMRDDT_TUNING_TEXT],
                             opal_umrddt_tuning_report_t report);

/**
 * Read a tuning file. Parameters that it does not name keep their defaults. Unknown names and
 * invalid values make it malformed.
 *
 * @param[in]  hardware  of this machine; a file for any hardware also matches
 * @param[out] tuning   written only on success
 * @param[out] measured  written only on success; or NULL
 * @param[out] wrong     description of the error, for the user
 */
opal_umrddt_tuning_file_t opal_umrddt_tuning_read(const char *path, const char *hardware,
                                                  opal_umrddt_tuning_t *tuning,
                                                  opal_umrddt_tuning_measured_t *measured,
                                                  char wrong[OPAL_UMRDDT_TUNING_TEXT]);

/**
 * Write a tuning file. Parameters that were not measured are written as comments.
 *
 * @return 0, or -1
 */
int opal_umrddt_tuning_write(FILE *file, const char *hardware, const opal_umrddt_tuning_t *tuning,
                             const opal_umrddt_tuning_measured_t *measured);

/**
 * Merge an earlier measurement into a new one. Parameters that the new one lacks are taken from the
 * earlier one. So are those of the wire between HCAs (hca_*, gpu_flush), if the earlier one used
 * two nodes and the new one uses one.
 *
 * @param[in,out] tuning, measured  of the new measurement
 */
void opal_umrddt_tuning_add(opal_umrddt_tuning_t *tuning, opal_umrddt_tuning_measured_t *measured,
                            const opal_umrddt_tuning_t *before,
                            const opal_umrddt_tuning_measured_t *measured_before);

#endif /* OPAL_UMRDDT_SELECT_FILE_H */
