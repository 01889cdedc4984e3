/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * A slot is a port: option port + slot, at the address of this host. Any process with the address
 * (it is in the GID or LID) and the slot (it is in the queue pair number) can connect; nothing else
 * is shared between hosts.
 *
 * A cable that is pulled says nothing. The kernel would go on trying for a quarter of an hour, so
 * its own record of the connection shows whether the other kernel still answers. A process that
 * is merely slow, or stopped, has a kernel that does.
 */

#include "sim_wire_kind.h"

#include <arpa/inet.h>
#include <errno.h>
/* Not netinet/tcp.h, which lacks some of tcp_info. */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

static struct sockaddr_in name_of(uint32_t host, uint32_t slot)
{
    struct sockaddr_in name = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t) (sim.conf.port + slot)),
                               .sin_addr.s_addr = htonl(host)};

    return name;
}

static void set(int fd, int level, int option, int value)
{
    (void) setsockopt(fd, level, option, &value, sizeof(value));
}

/* Frames are sent at once; an idle connection is checked for its other side. */
static void tcp_accepted(int fd)
{
    set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 1);
    set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
    /* Ours is the decision, below. */
    set(fd, IPPROTO_TCP, TCP_KEEPCNT, 100);
}

static int tcp_listen(uint32_t slot)
{
    struct sockaddr_in name = name_of(sim.conf.here, slot);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (0 > fd) {
        return -1;
    }
    /* Connections of a process that had this slot before do not keep the port. */
    set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (0 != bind(fd, (struct sockaddr *) &name, sizeof(name)) || 0 != listen(fd, 512)) {
        return sim_wire_give_up(fd);
    }
    return fd;
}

static int tcp_connect(const struct sim_peer *peer)
{
    struct sockaddr_in name = name_of(peer->host, peer->slot);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (0 > fd) {
        return -1;
    }
    tcp_accepted(fd);
    if (0 != connect(fd, (struct sockaddr *) &name, sizeof(name)) && EINPROGRESS != errno) {
        return sim_wire_give_up(fd);
    }
    return fd;
}

static uint32_t tcp_hello(const char **text)
{
    *text = sim.conf.fabric;
    return (uint32_t) strlen(sim.conf.fabric);
}

static bool tcp_welcome(int fd, const char *text, uint32_t length)
{
    (void) fd;
    return length == strlen(sim.conf.fabric) && 0 == memcmp(text, sim.conf.fabric, length);
}

static bool tcp_answers(int fd, bool connected, struct sim_pulse *pulse)
{
    uint64_t now = sim_now() / 1000000;
    struct tcp_info info;
    socklen_t size = sizeof(info);
    bool waits = !connected;

    memset(&info, 0, sizeof(info));
    if (connected) {
        uint64_t last_data;

        if (0 != getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size)) {
            return true;
        }
        last_data = now - info.tcpi_last_ack_recv;
        /* Give or take the ticks of two clocks. */
        if (last_data > pulse->last_data + 20) {
            pulse->last_data = last_data;
            pulse->since = 0;
        }
        /*
         * A receiver without buffer space answers each retransmission, which is less and less
         * often; so what counts is whether there was an answer since. Of the probes the last one is
         * not counted: its answer may come before the kernel has counted it.
         */
        waits = 1 < info.tcpi_probes
                || (0 < info.tcpi_unacked && info.tcpi_last_ack_recv > info.tcpi_last_data_sent);
    }
    if (!waits) {
        pulse->since = 0;
        return true;
    }
    if (0 == pulse->since) {
        pulse->since = now;
    }
    return now - pulse->since < sim.conf.wire_ms;
}

const struct sim_wire_kind sim_wire_tcp = {
    .listen = tcp_listen,
    .connect = tcp_connect,
    .hello = tcp_hello,
    .accepted = tcp_accepted,
    .welcome = tcp_welcome,
    .answers = tcp_answers,
};
