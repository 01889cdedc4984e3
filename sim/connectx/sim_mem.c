/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "sim_mem.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Set once the kernel forbids process_vm_readv (seccomp of old containers), or by an option. */
static bool forbidden;
static int detour[2] = {-1, -1};

/*
 * A pipe also reports bad addresses by EFAULT; it is only slower. At most one page is in it at a
 * time, so that no write blocks.
 */
static int copy_by_pipe(void *to, const void *from, size_t length)
{
    while (0 < length) {
        size_t part = length < 4096 ? length : 4096;
        ssize_t n;

        if (0 > detour[0] && 0 != pipe2(detour, O_CLOEXEC | O_NONBLOCK)) {
            return -1;
        }
        n = write(detour[1], from, part);
        if (0 >= n) {
            return -1;
        }
        if (n != read(detour[0], to, (size_t) n)) {
            char rest[4096];

            /* The destination is bad: empty the pipe for the next copy. */
            while (0 < read(detour[0], rest, sizeof(rest))) {
                continue;
            }
            return -1;
        }
        to = (char *) to + n;
        from = (const char *) from + n;
        length -= (size_t) n;
    }
    return 0;
}

static int copy_pieces(void *buffer, const struct iovec *pieces, size_t count, bool gather)
{
    while (0 < count) {
        size_t batch = count < 512 ? count : 512;
        size_t length = 0;
        struct iovec here;
        ssize_t n;
        size_t i;

        for (i = 0; i < batch; i++) {
            length += pieces[i].iov_len;
        }
        if (!forbidden) {
            here.iov_base = buffer;
            here.iov_len = length;
            n = gather ? process_vm_readv(getpid(), &here, 1, pieces, batch, 0)
                       : process_vm_writev(getpid(), &here, 1, pieces, batch, 0);
            if (0 > n && (EPERM == errno || ENOSYS == errno)) {
                forbidden = true;
            } else if (0 > n || (size_t) n != length) {
                return -1;
            }
        }
        if (forbidden) {
            char *at = buffer;

            for (i = 0; i < batch; i++) {
                if (0
                    != (gather ? copy_by_pipe(at, pieces[i].iov_base, pieces[i].iov_len)
                               : copy_by_pipe(pieces[i].iov_base, at, pieces[i].iov_len))) {
                    return -1;
                }
                at += pieces[i].iov_len;
            }
        }
        buffer = (char *) buffer + length;
        pieces += batch;
        count -= batch;
    }
    return 0;
}

void sim_mem_by_pipe(void)
{
    forbidden = true;
}

int sim_mem_gather(void *to, const struct iovec *pieces, size_t count)
{
    return copy_pieces(to, pieces, count, true);
}

int sim_mem_scatter(const struct iovec *pieces, size_t count, const void *from)
{
    return copy_pieces((void *) from, pieces, count, false);
}

/* One line of /proc/self/maps: its range and rights. */
struct mapping {
    uint64_t low;
    uint64_t high;
    bool readable;
    bool writable;
};

static const char *parse_hex(const char *at, uint64_t *value)
{
    *value = 0;
    for (;; at++) {
        if ('0' <= *at && '9' >= *at) {
            *value = *value << 4 | (uint64_t) (*at - '0');
        } else if ('a' <= *at && 'f' >= *at) {
            *value = *value << 4 | (uint64_t) (*at - 'a' + 10);
        } else {
            return at;
        }
    }
}

/* Lines, read without stdio, which would allocate. */
struct lines {
    int fd;
    size_t at;
    size_t length;
    char buffer[8192];
};

static bool next_mapping(struct lines *lines, struct mapping *mapping)
{
    char *end = NULL;
    const char *at;

    while (NULL == (end = memchr(lines->buffer + lines->at, '\n', lines->length - lines->at))) {
        ssize_t n;

        memmove(lines->buffer, lines->buffer + lines->at, lines->length - lines->at);
        lines->length -= lines->at;
        lines->at = 0;
        if (sizeof(lines->buffer) == lines->length) {
            return false; /* no path is that long */
        }
        n = read(lines->fd, lines->buffer + lines->length, sizeof(lines->buffer) - lines->length);
        if (0 >= n) {
            return false;
        }
        lines->length += (size_t) n;
    }
    at = parse_hex(lines->buffer + lines->at, &mapping->low);
    at = parse_hex(at + 1, &mapping->high);
    mapping->readable = 'r' == at[1];
    mapping->writable = 'w' == at[2];
    lines->at = (size_t) (end + 1 - lines->buffer);
    return true;
}

bool sim_mem_mapped(uint64_t addr, uint64_t length, bool writable)
{
    static struct lines lines;
    uint64_t end = addr + length;
    struct mapping mapping;
    bool whole = 0 == length;

    if (end < addr) {
        return false;
    }
    lines.fd = (int) syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
    lines.at = 0;
    lines.length = 0;
    if (0 > lines.fd) {
        return false;
    }
    while (!whole && next_mapping(&lines, &mapping)) {
        if (mapping.high <= addr) {
            continue;
        }
        if (mapping.low > addr || !mapping.readable || (writable && !mapping.writable)) {
            break;
        }
        addr = mapping.high;
        whole = addr >= end;
    }
    (void) syscall(SYS_close, lines.fd);
    return whole;
}
