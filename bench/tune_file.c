/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "tune_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Symbolic links to one another, as many as the kernel follows. */
#define MAX_LINKS 40

static bool cannot(const char *path, int error)
{
    fprintf(stderr, "umrddt_tune: %s cannot be written: %s\n", path, strerror(error));
    return false;
}

/* The directories above a file. */
static void make_directories(const char *path)
{
    char *copy = strdup(path);

    for (char *slash = NULL == copy ? NULL : strchr(copy + 1, '/'); NULL != slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void) mkdir(copy, 0777);
        *slash = '/';
    }
    free(copy);
}

/* The target of a name: the end of a chain of links, which need not exist. @return 0 or errno */
static int follow(const char *path, char target[TUNE_PATH])
{
    int links;

    if (TUNE_PATH <= strlen(path)) {
        return ENAMETOOLONG;
    }
    (void) strcpy(target, path);
    for (links = 0; links <= MAX_LINKS; ++links) {
        char to[TUNE_PATH];
        const ssize_t length = readlink(target, to, sizeof(to) - 1);
        char *slash = strrchr(target, '/');
        const size_t kept = NULL == slash || '/' == to[0] ? 0 : (size_t) (slash + 1 - target);

        if (0 > length) {
            return 0;
        }
        to[length] = '\0';
        if (TUNE_PATH <= kept + (size_t) length) {
            return ENAMETOOLONG;
        }
        (void) strcpy(target + kept, to);
    }
    return ELOOP;
}

bool tune_file_is_special(const char *path)
{
    struct stat status;

    /* Links below /dev and /proc name open files of a process, which a replacement would not reach.
     */
    return 0 == stat(path, &status)
           && (!S_ISREG(status.st_mode) || 0 == strncmp(path, "/dev/", 5)
               || 0 == strncmp(path, "/proc/", 6));
}

/* @return 0 or errno */
static int open_file(tune_file_t *file, const char *path)
{
    struct stat status;
    int error;

    file->path = path;
    file->beside[0] = '\0';
    if (tune_file_is_special(path)) {
        file->file = fopen(path, "we");
        return NULL == file->file ? errno : 0;
    }
    error = follow(path, file->target);
    if (0 != error) {
        return error;
    }
    make_directories(file->target);
    error = stat(file->target, &status);
    if (0 == error && 0 != access(file->target, W_OK)) {
        return errno;
    }
    (void) snprintf(file->beside, sizeof(file->beside), "%s.%ld", file->target, (long) getpid());
    file->file = fopen(file->beside, "we");
    if (NULL == file->file) {
        return errno;
    }
    if (0 == error) {
        (void) fchmod(fileno(file->file), status.st_mode & 07777);
    }
    return 0;
}

bool tune_file_open(tune_file_t *file, const char *path)
{
    const int error = open_file(file, path);

    return 0 == error || cannot(path, error);
}

int tune_file_close(tune_file_t *file, bool whole)
{
    errno = 0;
    whole = 0 == fclose(file->file) && whole;
    if (!whole || ('\0' != file->beside[0] && 0 != rename(file->beside, file->target))) {
        (void) cannot(file->path, 0 == errno ? EIO : errno);
        if ('\0' != file->beside[0]) {
            (void) unlink(file->beside);
        }
        return 1;
    }
    fprintf(stderr, "umrddt_tune: written to %s\n", file->path);
    return 0;
}

void tune_file_drop(tune_file_t *file)
{
    (void) fclose(file->file);
    if ('\0' != file->beside[0]) {
        (void) unlink(file->beside);
    }
}

bool tune_file_can_write(const char *path)
{
    struct stat status;
    tune_file_t file;

    if (0 == stat(path, &status) && S_ISDIR(status.st_mode)) {
        return cannot(path, EISDIR);
    }
    if (tune_file_is_special(path)) {
        /* It is not opened, because the reader of a FIFO would see an end of file. */
        return 0 == access(path, W_OK) || cannot(path, errno);
    }
    if (!tune_file_open(&file, path)) {
        return false;
    }
    tune_file_drop(&file);
    return true;
}
