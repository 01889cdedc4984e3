/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Two HCAs on two hosts, and what happens between them when a cable is pulled, a process stops, or
 * one dies. The program drives both ends from outside, and pulls the cable itself; it runs within
 * test/hosts/world. Every wait has an end.
 *
 * cable [CASE]      the cases whose name has CASE in it, or all
 * cable --end       one of the ends, on its host; descriptor 0 leads to the driver
 */

#include "test/connectx/verbs_end.h"

#include <endian.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define AREA  (192u << 20)
#define PIECE (300u * 1024u)

/* What the driver wants of an end. */
enum what {
    OPEN,    /* answers an invitation */
    CONNECT, /* to a peer */
    FILL,    /* n bytes at offset 0 with the pattern of a seed */
    RECEIVE, /* posts n receives */
    WRITE,   /* posts a write of n bytes, with the number imm unless that is 0 */
    READ,    /* posts a read of n bytes */
    POLL,    /* waits n milliseconds at most; answers a completion */
    VERIFY,  /* answers at which of n bytes the pattern of a seed ends; n if nowhere */
};

struct invitation {
    struct end_name name;
    uint32_t rkey;
    uint64_t addr;
};

struct order {
    enum what what;
    uint32_t n;
    uint32_t imm;
    uint32_t seed;
    struct invitation peer;
};

struct completion {
    bool there;
    int status;
    uint32_t imm;
};

/* One end, as the driver sees it. */
struct far {
    const char *host;
    pid_t pid; /* of its process group */
    int fd;
    struct invitation invitation;
    unsigned breaks; /* what its HCA counted, when it has ended */
    unsigned again;
};

static uint8_t pattern(uint32_t i, uint32_t seed)
{
    return (uint8_t) ((i * 2654435761u >> 11) + seed * 97u);
}

/* --- an end ----------------------------------------------------------------------------------- */

static uint32_t verify(const uint8_t *area, uint32_t n, uint32_t seed)
{
    uint32_t i;

    for (i = 0; i < n && area[i] == pattern(i, seed); i++) {
        continue;
    }
    return i;
}

static void post(struct end *end, const struct order *order, const struct invitation *peer,
                 const struct ibv_mr *mr)
{
    ibv_wr_start(end->qpx);
    end->qpx->wr_id = order->imm;
    end->qpx->wr_flags = IBV_SEND_SIGNALED;
    if (READ == order->what) {
        ibv_wr_rdma_read(end->qpx, peer->rkey, peer->addr);
    } else if (0 != order->imm) {
        ibv_wr_rdma_write_imm(end->qpx, peer->rkey, peer->addr, htobe32(order->imm));
    } else {
        ibv_wr_rdma_write(end->qpx, peer->rkey, peer->addr);
    }
    ibv_wr_set_sge(end->qpx, mr->lkey, (uintptr_t) mr->addr, order->n);
    CHECK(0 == ibv_wr_complete(end->qpx));
}

static int be_an_end(void)
{
    static const struct end_options options = {.timeout = 10, .rnr_retry = 7};
    uint8_t *area = calloc(1, AREA);
    struct invitation mine = {0};
    struct invitation peer = {0};
    struct completion completion;
    struct ibv_mr *mr = NULL;
    struct order order;
    struct ibv_wc wc;
    struct end end;
    uint32_t i;

    CHECK(NULL != area);
    while (sizeof(order) == recv(0, &order, sizeof(order), MSG_WAITALL)) {
        switch (order.what) {
        case OPEN:
            end_open(&end, &options);
            mr = end_reg(&end, area, AREA);
            mine = (struct invitation){end.name, mr->rkey, (uintptr_t) area};
            end_report(0, &mine, sizeof(mine));
            break;
        case CONNECT:
            peer = order.peer;
            end_connect(&end, &peer.name, &options);
            end_report(0, "", 1);
            break;
        case FILL:
            for (i = 0; i < order.n; i++) {
                area[i] = pattern(i, order.seed);
            }
            end_report(0, "", 1);
            break;
        case RECEIVE:
            for (i = 0; i < order.n; i++) {
                end_recv(&end, 1000, 0, NULL, 0);
            }
            end_report(0, "", 1);
            break;
        case WRITE:
        case READ:
            post(&end, &order, &peer, mr);
            break;
        case POLL:
            memset(&completion, 0, sizeof(completion));
            completion.there = end_poll(&end, &wc, (int) order.n);
            completion.status = wc.status;
            completion.imm =
                IBV_WC_RECV_RDMA_WITH_IMM == wc.opcode ? be32toh(wc.imm_data) : (uint32_t) wc.wr_id;
            end_report(0, &completion, sizeof(completion));
            break;
        case VERIFY:
            i = verify(area, order.n, order.seed);
            end_report(0, &i, sizeof(i));
            break;
        }
    }
    return 0;
}

/* --- the driver ------------------------------------------------------------------------------- */

static char self[4096];
static char here[4096];

static void start(struct far *far, const char *host, const char *options)
{
    char command[3 * sizeof(self)];
    char agent[2 * sizeof(here)];
    char errors[2 * sizeof(here)];
    int fd[2];

    /* With its counters at the end. */
    snprintf(errors, sizeof(errors), "%s/%s/end.err", getenv("UMRDDT_WORLD"), host);
    snprintf(command, sizeof(command),
             "exec env UMRDDT_SIM=%s,counters=1 UMRDDT_SIM_TEST=1 %s '%s' --end", options,
             getenv("UMRDDT_SIM_WRAPPER"), self);
    snprintf(agent, sizeof(agent), "%s/agent", here);
    CHECK(0 == socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd));
    far->host = host;
    far->fd = fd[0];
    far->pid = fork();
    CHECK(0 <= far->pid);
    if (0 == far->pid) {
        setpgid(0, 0);
        if (0 <= dup2(fd[1], 0) && NULL != freopen(errors, "w", stderr)) {
            execl(agent, agent, host, command, (char *) NULL);
        }
        perror(agent);
        _exit(127);
    }
    setpgid(far->pid, far->pid);
    close(fd[1]);
}

static void order(struct far *far, enum what what, uint32_t n, uint32_t imm, uint32_t seed)
{
    struct order o = {.what = what, .n = n, .imm = imm, .seed = seed};

    end_report(far->fd, &o, sizeof(o));
}

static struct completion await(struct far *far, uint32_t ms)
{
    struct completion completion;

    order(far, POLL, ms, 0, 0);
    end_pipe_read(far->fd, &completion, sizeof(completion));
    return completion;
}

static void expect(struct far *far, uint32_t ms, enum ibv_wc_status status, uint32_t imm)
{
    struct completion completion = await(far, ms);

    if (!completion.there || (int) status != completion.status || imm != completion.imm) {
        fprintf(stderr, "%s: %s: %s of %u, but expected '%s' of %u\n", end_case, far->host,
                completion.there ? ibv_wc_status_str((enum ibv_wc_status) completion.status)
                                 : "no completion",
                completion.imm, ibv_wc_status_str(status), imm);
        exit(1);
    }
}

static void expect_pattern(struct far *far, uint32_t n, uint32_t seed)
{
    uint32_t right;

    order(far, VERIFY, n, 0, seed);
    end_pipe_read(far->fd, &right, sizeof(right));
    CHECK(n == right);
}

static void cable(const char *host, const char *state)
{
    char command[2 * sizeof(here)];

    snprintf(command, sizeof(command), "'%s/world' --cable hca %s %s", here, host, state);
    CHECK(0 == system(command));
}

static void pause_ms(long ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};

    while (0 != nanosleep(&left, &left) && EINTR == errno) {
        continue;
    }
}

static double now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double) ts.tv_sec + 1e-9 * (double) ts.tv_nsec;
}

static struct far a;
static struct far b;

static void connect_to(struct far *far, const struct far *peer)
{
    struct order o = {.what = CONNECT, .peer = peer->invitation};
    char c;

    end_report(far->fd, &o, sizeof(o));
    end_pipe_read(far->fd, &c, 1);
}

static void begin(const char *options)
{
    start(&a, "h1", options);
    start(&b, "h2", options);
    order(&a, OPEN, 0, 0, 0);
    order(&b, OPEN, 0, 0, 0);
    end_pipe_read(a.fd, &a.invitation, sizeof(a.invitation));
    end_pipe_read(b.fd, &b.invitation, sizeof(b.invitation));
    connect_to(&a, &b);
    connect_to(&b, &a);
}

static void receive(struct far *far, uint32_t n)
{
    char c;

    order(far, RECEIVE, n, 0, 0);
    end_pipe_read(far->fd, &c, 1);
}

static void fill(struct far *far, uint32_t n, uint32_t seed)
{
    char c;

    order(far, FILL, n, 0, seed);
    end_pipe_read(far->fd, &c, 1);
}

/* Output of an end: its counters, and unexpected messages. */
static void hear_errors(struct far *far)
{
    char line[2 * sizeof(here)];
    FILE *file;

    snprintf(line, sizeof(line), "%s/%s/end.err", getenv("UMRDDT_WORLD"), far->host);
    file = fopen(line, "r");
    CHECK(NULL != file);
    while (NULL != fgets(line, sizeof(line), file)) {
        const char *counters = strstr(line, "breaks=");

        if (NULL == counters
            || 2 != sscanf(counters, "breaks=%u again=%u", &far->breaks, &far->again)) {
            fprintf(stderr, "%s: %s: %s", end_case, far->host, line);
        }
    }
    fclose(file);
}

/* Nsenter stops with its child, but does not always go on with it. */
static int wait_for(struct far *far)
{
    int status;
    pid_t pid;

    while (0 == (pid = waitpid(far->pid, &status, WNOHANG))) {
        (void) kill(-far->pid, SIGCONT);
        pause_ms(2);
    }
    CHECK(far->pid == pid);
    far->breaks = 0;
    far->again = 0;
    hear_errors(far);
    return status;
}

/* An end that was not killed ends well. */
static void finish(void)
{
    int status;

    close(a.fd);
    status = wait_for(&a);
    CHECK(WIFEXITED(status) && 0 == WEXITSTATUS(status));
    close(b.fd);
    status = wait_for(&b);
    CHECK(WIFSIGNALED(status) || 0 == WEXITSTATUS(status));
}

static const char *options;

static void plain(void)
{
    begin(options);
    receive(&b, 1);
    fill(&a, PIECE, 1);
    order(&a, WRITE, PIECE, 7, 0);
    expect(&a, END_LONG_MS / 2, IBV_WC_SUCCESS, 7);
    expect(&b, END_LONG_MS / 2, IBV_WC_SUCCESS, 7);
    expect_pattern(&b, PIECE, 1);
    /* And read back by the other. */
    fill(&b, PIECE, 2);
    order(&a, READ, PIECE, 8, 0);
    expect(&a, END_LONG_MS / 2, IBV_WC_SUCCESS, 8);
    expect_pattern(&a, PIECE, 2);
    finish();
    CHECK(0 == a.breaks && 0 == b.again);
}

/* Disconnected for longer than the connection is kept open: lost data is sent again. */
static void pulled_for_a_moment(void)
{
    uint32_t i;

    begin(options);
    receive(&b, 5);
    fill(&a, PIECE, 3);
    order(&a, WRITE, PIECE, 1, 0);
    expect(&a, END_LONG_MS / 2, IBV_WC_SUCCESS, 1);
    cable("h2", "down");
    for (i = 2; i <= 5; i++) {
        order(&a, WRITE, PIECE, i, 0);
    }
    CHECK(!await(&a, 400).there);
    cable("h2", "up");
    for (i = 2; i <= 5; i++) {
        expect(&a, END_LONG_MS / 2, IBV_WC_SUCCESS, i);
    }
    for (i = 1; i <= 5; i++) {
        expect(&b, END_LONG_MS / 2, IBV_WC_SUCCESS, i);
    }
    CHECK(!await(&b, 20).there);
    expect_pattern(&b, PIECE, 3);
    finish();
    CHECK(0 < a.breaks);
}

/* Who is merely slow is not dead. */
static void stopped(void)
{
    begin(options);
    receive(&b, 1);
    fill(&a, AREA / 4, 4);
    CHECK(0 == kill(-b.pid, SIGSTOP));
    order(&a, WRITE, AREA / 4, 1, 0);
    CHECK(!await(&a, 1000).there);
    CHECK(0 == kill(-b.pid, SIGCONT));
    expect(&a, END_LONG_MS / 2, IBV_WC_SUCCESS, 1);
    expect(&b, END_LONG_MS / 2, IBV_WC_SUCCESS, 1);
    expect_pattern(&b, AREA / 4, 4);
    finish();
    CHECK(0 == a.breaks && 0 == b.again);
}

static void killed(void)
{
    double before;

    begin(options);
    order(&a, WRITE, AREA, 1, 0);
    order(&a, WRITE, 8, 2, 0);
    pause_ms(20);
    before = now();
    CHECK(0 == kill(-b.pid, SIGKILL));
    expect(&a, END_LONG_MS / 2, IBV_WC_RETRY_EXC_ERR, 1);
    expect(&a, END_LONG_MS / 2, IBV_WC_WR_FLUSH_ERR, 2);
    CHECK(60 > now() - before);
    finish();
}

/* For good, in the middle of a long write or read. */
static void pulled(enum what what)
{
    double before;

    begin(options);
    order(&a, READ, 8, 7, 0);
    expect(&a, END_LONG_MS / 2, IBV_WC_SUCCESS, 7);
    order(&a, what, AREA, 1, 0);
    cable("h2", "down");
    before = now();
    expect(&a, END_LONG_MS / 2, IBV_WC_RETRY_EXC_ERR, 1);
    CHECK(0.1 < now() - before);
    printf("  error after %.1f s\n", now() - before);
    cable("h2", "up");
    finish();
}

static void pulled_while_writing(void)
{
    pulled(WRITE);
}

static void pulled_while_reading(void)
{
    pulled(READ);
}

/* It was never there. */
static void no_cable(void)
{
    begin(options);
    cable("h1", "down");
    order(&a, WRITE, 8, 1, 0);
    expect(&a, END_LONG_MS / 2, IBV_WC_RETRY_EXC_ERR, 1);
    cable("h1", "up");
    finish();
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"plain", plain},
    {"pulled for a moment", pulled_for_a_moment},
    {"stopped", stopped},
    {"killed", killed},
    {"pulled while writing", pulled_while_writing},
    {"pulled while reading", pulled_while_reading},
    {"no cable", no_cable},
};

int main(int argc, char **argv)
{
    const char *sim = getenv("UMRDDT_SIM");
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    size_t i;

    alarm(END_HANG_SECONDS);
    if (2 == argc && 0 == strcmp(argv[1], "--end")) {
        return be_an_end();
    }
    CHECK(0 < n && NULL != getenv("UMRDDT_HOSTS_DIR") && NULL != getenv("UMRDDT_SIM_WRAPPER"));
    snprintf(here, sizeof(here), "%s", getenv("UMRDDT_HOSTS_DIR"));
    options = sim;
    CHECK(NULL != options);
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (1 < argc && NULL == strstr(cases[i].name, argv[1])) {
            continue;
        }
        end_case = cases[i].name;
        cases[i].run();
        printf("ok: %s\n", end_case);
        fflush(stdout);
    }
    return 0;
}
