/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "sim_wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sim_alloc.h"
#include "sim_wire_kind.h"

#define MAGIC        0x31524d55u /* "UMR1": also detects another byte order */
#define WIRE_VERSION 4u
#define TURNS        4
#define IN_ROOM      (2 * (SIM_CHUNK + sizeof(struct sim_frame)))

/* Connections are looked at this often, for other sides that no longer answer. */
#define LOOK_NS 50000000ull

struct sim_conn {
    int fd;
    struct sim_peer *peer; /* that we connected to: requests out, answers in; else NULL */
    bool connected;        /* it took a byte; before that there may be no process */
    bool greeted;          /* the other side said hello, or needs not */
    bool dead;
    bool want_out; /* polls for writing */
    struct sim_pulse pulse;
    char *in; /* the first part of a frame that has not come whole; NULL: none */
    size_t in_length;
    char *out; /* data that the kernel did not accept; NULL: none */
    size_t out_start;
    size_t out_length;
    size_t out_room;
    struct sim_conn *next;
};

/* Frames are read here, for all connections: an idle one has no buffer. */
static char inbox[IN_ROOM];

static int epoll_fd = -1;
static int listen_fd = -1;
static uint32_t slot;
static struct sim_conn *conns;
static struct sim_peer *peers;
static uint64_t looked;

static const struct sim_wire_kind *kind(void)
{
    return sim.conf.tcp ? &sim_wire_tcp : &sim_wire_local;
}

int sim_wire_give_up(int fd)
{
    int why = errno;

    sim_close(fd);
    errno = why;
    return -1;
}

uint32_t sim_wire_slot(void)
{
    return slot;
}

int sim_wire_fd(void)
{
    return epoll_fd;
}

int sim_wire_open(void)
{
    struct epoll_event event = {.events = EPOLLIN};
    uint32_t n;
    int fd = -1;

    if (0 <= listen_fd) {
        return 0;
    }
    errno = EADDRINUSE;
    /* Slot 0 stays free: its queue pairs would have the numbers of the special ones. */
    for (n = 0; n < SIM_SLOTS - 1 && 0 > fd && EADDRINUSE == errno; n++) {
        slot = 1 + ((uint32_t) getpid() + n) % (SIM_SLOTS - 1);
        fd = kind()->listen(slot);
    }
    if (0 > fd) {
        sim_log(1, "cannot listen: %s", strerror(errno));
        return -1;
    }
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (0 > epoll_fd || 0 != epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event)) {
        sim_log(1, "cannot listen: %s", strerror(errno));
        sim_close(fd);
        if (0 <= epoll_fd) {
            sim_close(epoll_fd);
            epoll_fd = -1;
        }
        return -1;
    }
    listen_fd = fd;
    sim_log(2, "slot %u", slot);
    return 0;
}

/* Peer is NULL for a connection that another process opened. */
static struct sim_conn *conn_new(int fd, struct sim_peer *peer)
{
    struct sim_conn *conn = sim_alloc(sizeof(*conn));
    struct epoll_event event = {.events = EPOLLIN};

    if (NULL == conn) {
        sim_close(fd);
        return NULL;
    }
    conn->fd = fd;
    conn->peer = peer;
    conn->greeted = NULL != peer;
    conn->connected = NULL == peer;
    event.data.ptr = conn;
    if (0 != epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event)) {
        sim_close(fd);
        sim_free(conn);
        return NULL;
    }
    conn->next = conns;
    conns = conn;
    if (NULL != peer) {
        peer->conn = conn;
    }
    return conn;
}

/* Only marked; freed when no thread walks the list or holds it. */
static void conn_kill(struct sim_conn *conn)
{
    if (conn->dead) {
        return;
    }
    conn->dead = true;
    if (NULL != conn->peer) {
        conn->peer->conn = NULL;
        conn->peer->breaks++;
        conn->peer->absent = !conn->connected;
        sim_log(2, "the connection to slot %u of host %08x %s", conn->peer->slot, conn->peer->host,
                conn->connected ? "broke" : "did not come about");
        sim.count.breaks += conn->connected ? 1 : 0;
    }
    sim_close(conn->fd);
    conn->fd = -1;
}

static void bury(void)
{
    struct sim_conn **at = &conns;

    while (NULL != *at) {
        struct sim_conn *conn = *at;

        if (conn->dead) {
            *at = conn->next;
            sim_conn_gone(conn);
            sim_free(conn->in);
            sim_free(conn->out);
            sim_free(conn);
        } else {
            at = &conn->next;
        }
    }
}

struct sim_peer *sim_wire_peer(uint32_t host, uint32_t to)
{
    struct sim_peer *peer;

    if (0 == to || SIM_SLOTS <= to || (sim.conf.tcp && 0 == host)) {
        return NULL;
    }
    for (peer = peers; NULL != peer; peer = peer->next) {
        if (peer->host == host && peer->slot == to) {
            return peer;
        }
    }
    peer = sim_alloc(sizeof(*peer));
    if (NULL != peer) {
        peer->host = host;
        peer->slot = to;
        peer->next = peers;
        peers = peer;
    }
    return peer;
}

uint32_t sim_wire_breaks(const struct sim_peer *peer)
{
    return NULL == peer ? 0 : peer->breaks;
}

bool sim_wire_absent(const struct sim_peer *peer)
{
    return NULL == peer || peer->absent;
}

struct sim_conn *sim_wire_to(struct sim_peer *peer)
{
    struct sim_conn *conn;
    struct sim_frame hello;
    const char *text;
    int fd;

    if (NULL == peer) {
        return NULL;
    }
    if (NULL != peer->conn) {
        return peer->conn;
    }
    fd = kind()->connect(peer);
    if (0 > fd) {
        sim_log(2, "no process at slot %u of host %08x: %s", peer->slot, peer->host,
                strerror(errno));
        return NULL;
    }
    conn = conn_new(fd, peer);
    if (NULL != conn) {
        memset(&hello, 0, sizeof(hello));
        hello.type = SIM_HELLO;
        hello.network = WIRE_VERSION;
        hello.length = kind()->hello(&text);
        sim_conn_send(conn, &hello, text);
    }
    return conn;
}

bool sim_conn_room(const struct sim_conn *conn)
{
    return 0 == conn->out_length && !conn->dead;
}

static void want_out(struct sim_conn *conn, bool want)
{
    struct epoll_event event = {.events = want ? EPOLLIN | EPOLLOUT : EPOLLIN};

    if (want != conn->want_out) {
        event.data.ptr = conn;
        (void) epoll_ctl(epoll_fd, EPOLL_CTL_MOD, conn->fd, &event);
        conn->want_out = want;
    }
}

static void flush(struct sim_conn *conn)
{
    while (0 < conn->out_length && !conn->dead) {
        ssize_t n = send(conn->fd, conn->out + conn->out_start, conn->out_length, MSG_NOSIGNAL);

        if (0 > n) {
            if (EAGAIN == errno || EINTR == errno) {
                break;
            }
            conn_kill(conn);
            return;
        }
        conn->connected = true;
        conn->out_start += (size_t) n;
        conn->out_length -= (size_t) n;
    }
    if (0 == conn->out_length) {
        sim_free(conn->out);
        conn->out = NULL;
        conn->out_start = 0;
        conn->out_room = 0;
    }
    if (!conn->dead) {
        want_out(conn, 0 < conn->out_length);
    }
}

/* Store the data that the kernel did not accept. */
static int keep(struct sim_conn *conn, const void *data, size_t length)
{
    if (0 < conn->out_start && conn->out_start + conn->out_length + length > conn->out_room) {
        memmove(conn->out, conn->out + conn->out_start, conn->out_length);
        conn->out_start = 0;
    }
    if (0 == conn->out_length) {
        conn->out_start = 0;
    }
    if (conn->out_start + conn->out_length + length > conn->out_room) {
        size_t room = conn->out_start + conn->out_length + length + SIM_CHUNK;
        char *out = sim_realloc(conn->out, room);

        if (NULL == out) {
            return -1;
        }
        conn->out = out;
        conn->out_room = room;
    }
    memcpy(conn->out + conn->out_start + conn->out_length, data, length);
    conn->out_length += length;
    return 0;
}

void sim_conn_send(struct sim_conn *conn, struct sim_frame *frame, const void *payload)
{
    size_t head = sizeof(*frame);
    size_t sent = 0;

    if (conn->dead) {
        return;
    }
    frame->magic = MAGIC;
    sim.count.wire_bytes += SIM_HELLO == frame->type ? 0 : frame->length;
    if (0 == conn->out_length) {
        struct iovec v[2] = {{frame, head}, {(void *) payload, frame->length}};
        struct msghdr msg = {.msg_iov = v, .msg_iovlen = 0 < frame->length ? 2 : 1};
        ssize_t n = sendmsg(conn->fd, &msg, MSG_NOSIGNAL);

        if (0 > n && EAGAIN != errno && EINTR != errno) {
            conn_kill(conn);
            return;
        }
        if (0 < n) {
            conn->connected = true;
            sent = (size_t) n;
        }
    }
    if (sent < head) {
        if (0 != keep(conn, (char *) frame + sent, head - sent)) {
            conn_kill(conn);
            return;
        }
        sent = head;
    }
    if (sent < head + frame->length) {
        if (0 != keep(conn, (const char *) payload + (sent - head), head + frame->length - sent)) {
            conn_kill(conn);
            return;
        }
    }
    want_out(conn, 0 < conn->out_length);
}

static void greet(struct sim_conn *conn, const struct sim_frame *frame, const char *text)
{
    if (SIM_HELLO != frame->type || WIRE_VERSION != frame->network
        || !kind()->welcome(conn->fd, text, frame->length)) {
        sim_log(1, "a connection of another user, fabric or version was refused");
        conn_kill(conn);
        return;
    }
    conn->greeted = true;
}

/* Take the whole frames of the inbox. @return bytes of these; the connection may be dead then */
static size_t take_frames(struct sim_conn *conn, size_t length)
{
    size_t at = 0;

    while (!conn->dead && length - at >= sizeof(struct sim_frame)) {
        struct sim_frame frame;

        memcpy(&frame, inbox + at, sizeof(frame));
        if (MAGIC != frame.magic || SIM_CHUNK < frame.length) {
            sim_log(1, "garbage on a connection");
            conn_kill(conn);
            break;
        }
        if (length - at < sizeof(frame) + frame.length) {
            break;
        }
        if (!conn->greeted) {
            greet(conn, &frame, inbox + at + sizeof(frame));
        } else {
            sim_frame_in(conn, &frame, inbox + at + sizeof(frame));
        }
        at += sizeof(frame) + frame.length;
    }
    return at;
}

/* Store the begin of a frame until the rest comes. */
static void put_by(struct sim_conn *conn, size_t length)
{
    if (0 < length && !conn->dead) {
        conn->in = sim_alloc_dirty(length);
        if (NULL == conn->in) {
            conn_kill(conn);
            return;
        }
        memcpy(conn->in, inbox, length);
        conn->in_length = length;
    }
}

static void read_in(struct sim_conn *conn)
{
    size_t length = conn->in_length;
    int turn;

    if (0 < length) {
        memcpy(inbox, conn->in, length);
        sim_free(conn->in);
        conn->in = NULL;
        conn->in_length = 0;
    }
    /* Not as long as the peer sends: the poll set reports that there is more. */
    for (turn = 0; turn < TURNS && !conn->dead; turn++) {
        size_t room = IN_ROOM - length;
        ssize_t n = recv(conn->fd, inbox + length, room, 0);
        size_t taken;

        if (0 > n && (EAGAIN == errno || EINTR == errno)) {
            break;
        }
        if (0 >= n) {
            conn_kill(conn);
            return;
        }
        taken = take_frames(conn, length + (size_t) n);
        length += (size_t) n - taken;
        memmove(inbox, inbox + taken, length);
        if ((size_t) n < room) {
            /* That was all. */
            break;
        }
    }
    put_by(conn, length);
}

static void accept_all(void)
{
    int fd;

    while (0 <= (fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK))) {
        kind()->accepted(fd);
        (void) conn_new(fd, NULL);
    }
}

/* Give up connections whose other side is gone without a word. */
static void look(void)
{
    uint64_t now = sim_now();
    struct sim_conn *conn;

    if (now - looked < LOOK_NS) {
        return;
    }
    looked = now;
    for (conn = conns; NULL != conn; conn = conn->next) {
        if (!conn->dead && !kind()->answers(conn->fd, conn->connected, &conn->pulse)) {
            sim_log(1, "a connection has had no data for too long");
            conn_kill(conn);
        }
    }
}

int sim_wire_progress(void)
{
    struct epoll_event events[32];
    int n;
    int i;

    if (0 > epoll_fd) {
        return 0;
    }
    n = epoll_wait(epoll_fd, events, 32, 0);
    for (i = 0; i < n; i++) {
        struct sim_conn *conn = events[i].data.ptr;

        if (NULL == conn) {
            accept_all();
            continue;
        }
        if (!conn->dead && 0 != (events[i].events & EPOLLOUT)) {
            flush(conn);
        }
        if (!conn->dead && 0 != (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))) {
            read_in(conn);
        }
    }
    if (NULL != conns) {
        look();
    }
    bury();
    return 0 < n ? n : 0;
}

static void close_all(bool politely)
{
    struct sim_conn *conn;

    for (conn = conns; NULL != conn; conn = conn->next) {
        if (politely && !conn->dead) {
            flush(conn);
        }
        conn_kill(conn);
    }
    bury();
    if (0 <= listen_fd) {
        sim_close(listen_fd);
        listen_fd = -1;
    }
    if (0 <= epoll_fd) {
        sim_close(epoll_fd);
        epoll_fd = -1;
    }
}

void sim_wire_close(void)
{
    close_all(true);
}

void sim_wire_forget(void)
{
    /* The epoll set is the parent's too: only the descriptors are closed here. */
    close_all(false);
}
