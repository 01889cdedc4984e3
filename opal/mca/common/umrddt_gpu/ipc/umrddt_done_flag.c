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
 * Completion flags: creation and mapping. Read umrddt_done_flag.h first.
 *
 * The memory is an unnamed file (memfd), so nothing remains after any kind of exit. Other processes
 * of the same user open it through /proc and the number of the descriptor. Seals fix its length, so
 * that it cannot shrink under a mapping.
 */

#include "umrddt_done_flag.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

opal_umrddt_done_flags_t *opal_umrddt_own_done_flags;
static int own_fd = -1;

static opal_umrddt_done_flags_t *map(int fd)
{
    void *at =
        mmap(NULL, sizeof(opal_umrddt_done_flags_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    return MAP_FAILED == at ? NULL : at;
}

static void make(const uint8_t *cookie)
{
    int fd = memfd_create("umrddt completion flags", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (0 > fd) {
        return;
    }
    if (0 == ftruncate(fd, (off_t) sizeof(opal_umrddt_done_flags_t))
        && 0 == fcntl(fd, F_ADD_SEALS, SEALS)) {
        opal_umrddt_own_done_flags = map(fd);
    }
    if (NULL == opal_umrddt_own_done_flags) {
        close(fd);
        return;
    }
    memcpy(opal_umrddt_own_done_flags->cookie, cookie, OPAL_UMRDDT_DONE_FLAG_COOKIE);
    own_fd = fd;
}

void opal_umrddt_done_flags_report(const uint8_t *cookie, uint32_t *pid, uint32_t *fd)
{
    if (NULL == opal_umrddt_own_done_flags) {
        make(cookie);
    }
    *pid = NULL == opal_umrddt_own_done_flags ? 0 : (uint32_t) getpid();
    *fd = NULL == opal_umrddt_own_done_flags ? 0 : (uint32_t) own_fd;
}

opal_umrddt_done_flags_t *opal_umrddt_done_flags_map(uint32_t pid, uint32_t fd,
                                                     const uint8_t *cookie)
{
    opal_umrddt_done_flags_t *done_flags = NULL;
    char path[64];
    struct stat stat;
    int file, seals;

    if (0 == pid) {
        return NULL;
    }
    snprintf(path, sizeof(path), "/proc/%u/fd/%u", (unsigned) pid, (unsigned) fd);
    /* The descriptor may be a pipe or a terminal by now: do not block, do not make it the
     * controlling terminal. */
    file = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (0 > file) {
        return NULL;
    }
    if (0 == fstat(file, &stat) && S_ISREG(stat.st_mode)
        && (off_t) sizeof(opal_umrddt_done_flags_t) == stat.st_size
        && 0 <= (seals = fcntl(file, F_GET_SEALS)) && SEALS == (SEALS & seals)) {
        done_flags = map(file);
    }
    close(file);
    if (NULL != done_flags && 0 != memcmp(done_flags->cookie, cookie, sizeof(done_flags->cookie))) {
        opal_umrddt_done_flags_unmap(done_flags);
        done_flags = NULL;
    }
    return done_flags;
}

void opal_umrddt_done_flags_unmap(opal_umrddt_done_flags_t *done_flags)
{
    (void) munmap(done_flags, sizeof(*done_flags));
}

void opal_umrddt_done_flags_close(void)
{
    if (NULL != opal_umrddt_own_done_flags) {
        opal_umrddt_done_flags_unmap(opal_umrddt_own_done_flags);
        opal_umrddt_own_done_flags = NULL;
        close(own_fd);
        own_fd = -1;
    }
}
