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
 * The process's side of the HCA: the few functions of libc through which libibverbs and libmlx5
 * reach their device. Everything else goes straight through, at the price of one load where no
 * device is open. Nothing is done when the library is loaded.
 */

#include "sim.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/netlink.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rdma/rdma_user_ioctl_cmds.h>

#include "sim_cmd.h"
#include "sim_engine.h"
#include "sim_gpu.h"
#include "sim_sysfs.h"

#define EXPORT   __attribute__((visibility("default")))
#define DEVICES  "/dev/infiniband/uverbs"
#define STAND_IN "/dev/null"
#define MAX_OPEN 64

/* More than the largest offset at which libmlx5 maps a page of the device. */
#define PAGES_BYTES ((off_t) 1 << 36)

/* Descriptors of opened devices, for the hooks to look at without a lock. 0: none. */
static atomic_int open_fds[MAX_OPEN];

/* Which of them have pages by now. Guarded by sim.lock. */
static bool open_paged[MAX_OPEN];

/* The next definition of a function after ours. */
#define REAL(name)                                                          \
    static __typeof__(&name) real;                                          \
    do {                                                                    \
        if (NULL == real) {                                                 \
            real = (__typeof__(&name)) (uintptr_t) dlsym(RTLD_NEXT, #name); \
        }                                                                   \
    } while (0)

/* The device that a path names, or -1. */
static int device_of(const char *path)
{
    char *end;
    long n;

    if (NULL == path || 0 != strncmp(path, DEVICES, sizeof(DEVICES) - 1)) {
        return -1;
    }
    n = strtol(path + sizeof(DEVICES) - 1, &end, 10);
    if ('\0' != *end || 0 > n || !sim_conf_ready() || n >= sim.conf.devices) {
        return -1;
    }
    return (int) n;
}

static bool is_device(int fd)
{
    int i;

    if (0 >= fd || 0 == atomic_load_explicit(&sim.contexts, memory_order_relaxed)) {
        return false;
    }
    for (i = 0; i < MAX_OPEN; i++) {
        if (fd == atomic_load_explicit(&open_fds[i], memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

void sim_preload_forget(void)
{
    int i;

    for (i = 0; i < MAX_OPEN; i++) {
        atomic_store(&open_fds[i], 0);
    }
}

/* An open of a device became this descriptor. */
static int opened(int fd, int device)
{
    int rc = EMFILE;
    int i;

    if (0 > fd) {
        return fd;
    }
    pthread_mutex_lock(&sim.lock);
    for (i = 0; i < MAX_OPEN; i++) {
        if (0 == atomic_load(&open_fds[i])) {
            rc = sim_ctx_open(fd, device);
            if (0 == rc) {
                atomic_store(&open_fds[i], fd);
                open_paged[i] = false;
            }
            break;
        }
    }
    pthread_mutex_unlock(&sim.lock);
    if (0 != rc) {
        sim_close(fd);
        errno = rc;
        return -1;
    }
    return fd;
}

/* What open(2) takes after its flags. */
#define MODE(flags, mode)                                                   \
    mode_t mode = 0;                                                        \
    do {                                                                    \
        if (0 != ((flags) &O_CREAT) || O_TMPFILE == ((flags) &O_TMPFILE)) { \
            va_list args;                                                   \
            va_start(args, flags);                                          \
            mode = (mode_t) va_arg(args, unsigned);                         \
            va_end(args);                                                   \
        }                                                                   \
    } while (0)

EXPORT int open(const char *path, int flags, ...)
{
    int device = device_of(path);

    MODE(flags, mode);
    REAL(open);
    return 0 > device ? real(path, flags, mode) : opened(real(STAND_IN, flags), device);
}

EXPORT int open64(const char *path, int flags, ...)
{
    int device = device_of(path);

    MODE(flags, mode);
    REAL(open64);
    return 0 > device ? real(path, flags, mode) : opened(real(STAND_IN, flags), device);
}

EXPORT int openat(int dir, const char *path, int flags, ...)
{
    int device = device_of(path);

    MODE(flags, mode);
    REAL(openat);
    return 0 > device ? real(dir, path, flags, mode) : opened(real(dir, STAND_IN, flags), device);
}

EXPORT int openat64(int dir, const char *path, int flags, ...)
{
    int device = device_of(path);

    MODE(flags, mode);
    REAL(openat64);
    return 0 > device ? real(dir, path, flags, mode) : opened(real(dir, STAND_IN, flags), device);
}

/* What fortified code calls where no mode is given. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);

EXPORT int __open_2(const char *path, int flags)
{
    int device = device_of(path);

    REAL(__open_2);
    return 0 > device ? real(path, flags) : opened(real(STAND_IN, flags), device);
}

EXPORT int __open64_2(const char *path, int flags)
{
    int device = device_of(path);

    REAL(__open64_2);
    return 0 > device ? real(path, flags) : opened(real(STAND_IN, flags), device);
}

EXPORT int stat(const char *path, struct stat *st)
{
    REAL(stat);
    return real(0 > device_of(path) ? path : STAND_IN, st);
}

EXPORT int stat64(const char *path, struct stat64 *st)
{
    REAL(stat64);
    return real(0 > device_of(path) ? path : STAND_IN, st);
}

/* stat(2) of programs built against a glibc before 2.33. */
int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);

EXPORT int __xstat(int version, const char *path, struct stat *st)
{
    REAL(__xstat);
    return real(version, 0 > device_of(path) ? path : STAND_IN, st);
}

EXPORT int __xstat64(int version, const char *path, struct stat64 *st)
{
    REAL(__xstat64);
    return real(version, 0 > device_of(path) ? path : STAND_IN, st);
}

/*
 * Pages of the device must be there for the kernel, too: Open MPI 5.0 and UCX watch mmap by writing
 * into the code of the function that they find, which is ours, and then call the kernel. libibverbs
 * has seen that the descriptor is a character device when it comes with the first command; from
 * then on it is a file of zeros. Where there is no memfd, mmap's hook below has to do.
 */
static void give_pages(int fd)
{
    int i, pages;

    for (i = 0; i < MAX_OPEN && fd != atomic_load(&open_fds[i]); i++) {
    }
    if (MAX_OPEN == i || open_paged[i]) {
        return;
    }
    open_paged[i] = true;
    pages = memfd_create("umrddt_sim", MFD_CLOEXEC);
    if (0 > pages) {
        return;
    }
    if (0 == ftruncate(pages, PAGES_BYTES)) {
        (void) dup3(pages, fd, O_CLOEXEC);
    }
    sim_close(pages);
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
    struct sim_gpu_memory gpu;
    struct sim_ctx *ctx;
    va_list args;
    void *arg;
    int rc;

    va_start(args, request);
    arg = va_arg(args, void *);
    va_end(args);
    if (RDMA_VERBS_IOCTL != request || !is_device(fd)) {
        REAL(ioctl);
        return real(fd, request, arg);
    }
    sim_gpu_find();
    sim_cmd_gpu(arg, &gpu);
    pthread_mutex_lock(&sim.lock);
    give_pages(fd);
    ctx = sim_ctx_of(fd);
    rc = NULL == ctx ? ENODEV : sim_cmd_ioctl(ctx, arg, &gpu);
    pthread_mutex_unlock(&sim.lock);
    if (0 <= gpu.fd) {
        sim_close(gpu.fd);
    }
    if (0 != rc) {
        errno = rc;
        return -1;
    }
    return 0;
}

/* A page of the device. Doorbell writes to it are ignored: the doorbell records have all data. */
EXPORT void *mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset)
{
    REAL(mmap);
    if (is_device(fd)) {
        return real(addr, length, prot | PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    return real(addr, length, prot, flags, fd, offset);
}

EXPORT void *mmap64(void *addr, size_t length, int prot, int flags, int fd, off64_t offset)
{
    REAL(mmap64);
    if (is_device(fd)) {
        return real(addr, length, prot | PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    return real(addr, length, prot, flags, fd, offset);
}

EXPORT int close(int fd)
{
    REAL(close);
    if (is_device(fd)) {
        struct sim_ctx *ctx;
        int i;

        pthread_mutex_lock(&sim.lock);
        ctx = sim_ctx_of(fd);
        if (NULL != ctx) {
            sim_ctx_close(ctx);
        }
        for (i = 0; i < MAX_OPEN; i++) {
            if (fd == atomic_load(&open_fds[i])) {
                atomic_store(&open_fds[i], 0);
            }
        }
        pthread_mutex_unlock(&sim.lock);
    }
    return real(fd);
}

/* libibverbs tries netlink first, where only the kernel answers; then it reads sysfs. */
EXPORT int socket(int domain, int type, int protocol)
{
    REAL(socket);
    if (AF_NETLINK == domain && NETLINK_RDMA == protocol) {
        char path[PATH_MAX];
        char error[PATH_MAX + 128];
        const char *sysfs = getenv("SYSFS_PATH");

        if (sim_conf_ready() && 0 == sim_sysfs_path(&sim.conf, path, sizeof(path)) && NULL != sysfs
            && 0 == strcmp(path, sysfs)
            && 0 != sim_sysfs_make(&sim.conf, path, error, sizeof(error))) {
            fprintf(stderr, "umrddt_sim: %s\n", error);
        }
        errno = EPROTONOSUPPORT;
        return -1;
    }
    return real(domain, type, protocol);
}

/* The nodes of pages, for calls that move none: the nodes take turns. */
EXPORT long syscall(long number, ...)
{
    va_list args;
    long a[6];
    int i;

    REAL(syscall);
    va_start(args, number);
    for (i = 0; i < 6; i++) {
        a[i] = va_arg(args, long);
    }
    va_end(args);
    if (SYS_move_pages == number && 0 == a[3] && sim_conf_ready() && 0 < sim.conf.nodes) {
        void *const *pages = (void *const *) a[2];
        int *status = (int *) a[4];

        for (i = 0; i < a[1]; i++) {
            status[i] = (int) (((uintptr_t) pages[i] >> 16) % (unsigned) sim.conf.nodes);
        }
        return 0;
    }
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* libmlx5 holds a lock whenever it posts or polls: the moment to drive the HCA. */
EXPORT int pthread_spin_unlock(pthread_spinlock_t *lock)
{
    int rc;

    REAL(pthread_spin_unlock);
    rc = real(lock);
    if (0 != atomic_load_explicit(&sim.contexts, memory_order_relaxed)) {
        sim_engine_kick();
    }
    return rc;
}

__attribute__((destructor)) static void leave(void)
{
    sim_engine_stop();
}
