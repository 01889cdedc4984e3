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
 * The tuning file: what umrddt_tune measured on a machine, and pml/umrddt reads.
 */

#ifndef OPAL_UMRDDT_SELECT_FILE_H
#define OPAL_UMRDDT_SELECT_FILE_H

#include <stdio.h>

#include "opal/mca/common/umrddt_select/umrddt_select_model.h"

/** What may be wrong with a file of figures. */
typedef enum opal_umrddt_tuning_file_t {
    OPAL_UMRDDT_TUNING_FILE_GOOD,
    OPAL_UMRDDT_TUNING_FILE_ABSENT,  /**< or not to be read */
    OPAL_UMRDDT_TUNING_FILE_STALE,   /**< of another version */
    OPAL_UMRDDT_TUNING_FILE_FOREIGN, /**< of other hardware */
    OPAL_UMRDDT_TUNING_FILE_MALFORMED
} opal_umrddt_tuning_file_t;

/** Bytes of a description of hardware, and of what is wrong with a file. */
#define OPAL_UMRDDT_TUNING_TEXT 512

/** Bytes of a line about a measurement. */
#define OPAL_UMRDDT_TUNING_NOTE 128

/** What of a file's figures was measured, and when. */
typedef struct opal_umrddt_tuning_measured_t {
    bool figure[OPAL_UMRDDT_TUNING_VALUE_COUNT
                + OPAL_UMRDDT_TUNING_CURVE_COUNT]; /**< in their order */
    char near[OPAL_UMRDDT_TUNING_NOTE]; /**< by two processes of one host; empty: never */
    char far[OPAL_UMRDDT_TUNING_NOTE];  /**< by those of two hosts; empty: never */
    bool any;                           /**< the file is for any hardware */
} opal_umrddt_tuning_measured_t;

/**
 * What this machine is, as far as the figures depend on it: processor, GPUs, HCAs. The same text
 * in every process of it, without a driver. In a few hundred bytes, one line.
 */
void opal_umrddt_tuning_hardware(char text[OPAL_UMRDDT_TUNING_TEXT]);

/**
 * Where the file for such hardware is, or is to be: DIRECTORY/model-HASH.txt.
 *
 * @param[in]  system  below sysconfdir; else below $XDG_CONFIG_HOME, or $HOME/.config
 * @param[out] path    of @p room bytes
 *
 * @return false: there is no such place, or no room for its name
 */
bool opal_umrddt_tuning_path(const char *hardware, bool system, char *path, size_t room);

/**
 * Read a file of figures. What it does not name is left at its default; what is not a figure makes
 * it malformed, as a value that is none does.
 *
 * @param[in]  hardware  of this machine; a file for any hardware fits it, too
 * @param[out] figures   written only if all is well
 * @param[out] measured  as figures; or NULL
 * @param[out] wrong     what is the matter, for the user
 */
opal_umrddt_tuning_file_t opal_umrddt_tuning_read(const char *path, const char *hardware,
                                                  opal_umrddt_tuning_t *figures,
                                                  opal_umrddt_tuning_measured_t *measured,
                                                  char wrong[OPAL_UMRDDT_TUNING_TEXT]);

/**
 * Write one. What was not measured is written as comments.
 *
 * @return 0, or -1
 */
int opal_umrddt_tuning_write(FILE *file, const char *hardware, const opal_umrddt_tuning_t *figures,
                             const opal_umrddt_tuning_measured_t *measured);

/**
 * Add to what was measured now what was measured before: figures that were not, now; and those of
 * the wire between HCAs (hca_*, gpu_flush), if two hosts measured them then and one does now.
 *
 * @param[in,out] figures, measured  of now
 */
void opal_umrddt_tuning_add(opal_umrddt_tuning_t *figures, opal_umrddt_tuning_measured_t *measured,
                            const opal_umrddt_tuning_t *before,
                            const opal_umrddt_tuning_measured_t *measured_before);

#endif /* OPAL_UMRDDT_SELECT_FILE_H */
