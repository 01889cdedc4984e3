/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "sim_wire_kind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static socklen_t name_of(struct sockaddr_un *name, uint32_t slot)
{
    const char *dir = getenv("UMRDDT_SIM_DIR");
    uint32_t hash = 2166136261u;
    int n;

    for (; NULL != dir && '\0' != *dir; dir++) {
        hash = (hash ^ (uint8_t) *dir) * 16777619u;
    }
    memset(name, 0, sizeof(*name));
    name->sun_family = AF_UNIX;
    /* The leading zero byte makes it abstract. */
    n = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "umrddt_sim-%u-%08x-%u",
                 (unsigned) geteuid(), hash, slot);
    return (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + (size_t) n);
}

static int local_listen(uint32_t slot)
{
    struct sockaddr_un name;
    socklen_t length = name_of(&name, slot);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (0 > fd) {
        return -1;
    }
    if (0 != bind(fd, (struct sockaddr *) &name, length) || 0 != listen(fd, 512)) {
        return sim_wire_give_up(fd);
    }
    return fd;
}

static int local_connect(const struct sim_peer *peer)
{
    struct sockaddr_un name;
    socklen_t length = name_of(&name, peer->slot);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (0 > fd) {
        return -1;
    }
    return 0 == connect(fd, (struct sockaddr *) &name, length) ? fd : sim_wire_give_up(fd);
}

static uint32_t local_hello(const char **text)
{
    *text = "";
    return 0;
}

static void local_accepted(int fd)
{
    (void) fd;
}

static bool local_welcome(int fd, const char *text, uint32_t length)
{
    struct ucred cred;
    socklen_t size = sizeof(cred);

    (void) text;
    (void) length;
    return 0 == getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) && cred.uid == geteuid();
}

static bool local_answers(int fd, bool connected, struct sim_pulse *pulse)
{
    /* A process that ends takes its sockets along. */
    (void) fd;
    (void) connected;
    (void) pulse;
    return true;
}

const struct sim_wire_kind sim_wire_local = {
    .listen = local_listen,
    .connect = local_connect,
    .hello = local_hello,
    .accepted = local_accepted,
    .welcome = local_welcome,
    .answers = local_answers,
};
