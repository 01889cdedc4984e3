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
 * Output files of umrddt_tune. A regular file is replaced when the new one is complete, so no
 * process reads a partial one; a symbolic link stays, and the file that it names is replaced. Other
 * files (/dev/null, a FIFO) are written in place. Errors are printed on stderr.
 */

#ifndef TUNE_FILE_H
#define TUNE_FILE_H

#include <stdbool.h>
#include <stdio.h>

/** Bytes of a file's name. */
#define TUNE_PATH 1024

/** A file that is being written. */
typedef struct tune_file_t {
    const char *path;            /**< as the user calls it */
    char target[TUNE_PATH];      /**< the replaced file */
    char beside[TUNE_PATH + 24]; /**< what replaces it; "" if the file is written to as it is */
    FILE *file;
} tune_file_t;

/** True if there is something that is no regular file. */
bool tune_file_is_special(const char *path);

/** Returns true if it could be written, without a change of its content; makes its directories. */
bool tune_file_can_write(const char *path);

/** Begin. @return false: it cannot be, and nothing is open */
bool tune_file_open(tune_file_t *file, const char *path);

/** End. @param[in] whole  false: drop the written data. @return 0, or 1 */
int tune_file_close(tune_file_t *file, bool whole);

/** End without a word; nothing was written that is worth it. */
void tune_file_drop(tune_file_t *file);

#endif /* TUNE_FILE_H */
