/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Handles that no driver made, in descriptions whose check is right: what another process of the
 * job can send if it wants to. Only the driver can validate them. The software one refuses them or
 * takes no notice; a real one may crash, or hang (seen: H200, driver 580). So they are opened by
 * processes of their own, whose crash in a real driver is reported and accepted.
 */

#include "gpu_owner.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>

#include "opal/constants.h"

#define SIZE    10000
#define WORDS   64 /* behind the 64 bytes of a handle, each changed by a process */
#define ALL     65
#define NONE    66 /* the truth: the driver, the owner and its memory have come to no harm */
#define AT_ONCE 8
#define SECONDS 60

/* What a process that was given forged handles says at its end. */
typedef struct outcome_t {
    int opened;
    int refused;
} outcome_t;

typedef struct opener_t {
    pid_t pid;
    int from;
    int at;
} opener_t;

/* ---- there ---- */

static uint64_t seed = 1;

static uint64_t random_number(void)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return seed >> 16 ^ seed << 24;
}

static void forge(opal_umrddt_gpu_export_t *said, int at, int turn)
{
    uint64_t word = 0 == turn % 2 ? random_number() : UINT64_MAX >> turn;
    size_t i;

    if (WORDS > at) {
        said->handle[at] ^= (uint8_t) (1u << turn);
    } else if (WORDS == at) {
        memcpy(&said->handle[8 * turn], &word, sizeof(word));
    } else if (ALL == at) {
        for (i = 0; i < sizeof(said->handle); i++) {
            said->handle[i] = (uint8_t) random_number();
        }
    }
    said->check = opal_umrddt_gpu_export_check(said);
}

/* A heap that was quarantined shows when it is used. */
static void use_heap(void)
{
    void *block[64];
    size_t i;

    for (i = 0; i < sizeof(block) / sizeof(block[0]); i++) {
        block[i] = malloc(16 << i % 10);
    }
    for (i = 0; i < sizeof(block) / sizeof(block[0]); i++) {
        free(block[i]);
    }
}

static int opener_main(int from, int at)
{
    const opal_umrddt_gpu_ipc_params_t none = {0, 0, 0};
    opal_umrddt_gpu_engine_t *engine;
    opal_umrddt_gpu_export_t truth;
    outcome_t outcome = {0, 0};
    int i;

    alarm(SECONDS);
    CHECK(sizeof(truth) == read(from, &truth, sizeof(truth)));
    engine = engine_make(0);
    opal_umrddt_gpu_ipc_params(&none);
    for (i = 0; i < 8; i++) {
        opal_umrddt_gpu_export_t said = truth;
        opal_umrddt_gpu_import_t *opened = NULL;
        int rc;

        forge(&said, at, i);
        rc = opal_umrddt_gpu_import(engine, 0, &said, &opened);
        CHECK((OPAL_SUCCESS == rc) == (NULL != opened));
        if (NULL != opened) {
            uint64_t address =
                opal_umrddt_gpu_import_address(opened, said.base, said.base + SIZE, NULL);

            CHECK(0 != address && (NONE != at || engine_sees(engine, address, SIZE, 1)));
            opal_umrddt_gpu_import_release(opened);
            outcome.opened++;
        } else {
            /* Another answer would be taken for a message that is malformed, or for a reason to
             * wait. */
            CHECK(OPAL_ERR_BAD_PARAM == rc || OPAL_ERR_NOT_SUPPORTED == rc
                  || OPAL_ERR_OUT_OF_RESOURCE == rc);
            outcome.refused++;
        }
        use_heap();
    }
    opal_umrddt_gpu_ipc_close();
    use_heap();
    CHECK(sizeof(outcome) == write(from, &outcome, sizeof(outcome)));
    return 0;
}

/* ---- here ---- */

static opener_t opener_start(const opal_umrddt_gpu_export_t *truth, int at)
{
    opener_t opener = {.at = at};
    char number[16], which[16], self[4096] = "";
    char *args[] = {self, (char *) "opener", number, which, NULL};
    int fds[2];

    CHECK(0 == socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds));
    CHECK(sizeof(*truth) == write(fds[0], truth, sizeof(*truth)));
    opener.pid = fork();
    CHECK(-1 != opener.pid);
    if (0 == opener.pid) {
        snprintf(number, sizeof(number), "%d", fds[1]);
        snprintf(which, sizeof(which), "%d", at);
        CHECK(0 == fcntl(fds[1], F_SETFD, 0));
        CHECK(0 < readlink("/proc/self/exe", self, sizeof(self) - 1));
        execv(self, args);
        _exit(99);
    }
    close(fds[1]);
    opener.from = fds[0];
    return opener;
}

/* @return false: it died */
static bool opener_end(const opener_t *opener, outcome_t *all)
{
    outcome_t outcome = {0, 0};
    bool whole = sizeof(outcome) == recv(opener->from, &outcome, sizeof(outcome), 0);
    int status;

    close(opener->from);
    CHECK(opener->pid == waitpid(opener->pid, &status, 0));
    all->opened += outcome.opened;
    all->refused += outcome.refused;
    if (WIFSIGNALED(status)) {
        printf("%s %d: the process that opened them died: %s\n",
               WORDS > opener->at ? "handles with a bit changed in byte" : "forged handles, kind",
               opener->at, strsignal(WTERMSIG(status)));
        return false;
    }
    CHECK(whole && 0 == status);
    return true;
}

static void forged(void)
{
    owner_t owner = owner_start(NULL, NULL);
    owner_memory_t memory = owner_alloc(&owner, OWNER_DEVICE, 0, SIZE, 1);
    outcome_t all = {0, 0}, last = {0, 0};
    opener_t openers[NONE];
    int dead = 0;
    int at;

    EXPECT(OPAL_SUCCESS, owner_export(&owner, &memory));
    for (at = 0; at < NONE + AT_ONCE; at++) {
        if (AT_ONCE <= at && !opener_end(&openers[at - AT_ONCE], &all)) {
            dead++;
        }
        if (NONE > at) {
            openers[at] = opener_start(&memory.export, at);
        }
    }
    CHECK(0 == dead || gpu_test_real());
    openers[0] = opener_start(&memory.export, NONE);
    CHECK(opener_end(&openers[0], &last) && 8 == last.opened && owner_is(&owner, &memory, 1));
    owner_end(&owner);
    printf("forged handles: %d opened, %d refused; %d of %d processes died\n", all.opened,
           all.refused, dead, NONE);
}

int main(int argc, char **argv)
{
    static const gpu_test_part_t parts[] = {
        {"forged handles", forged, ""},
    };

    if (3 == argc && 0 == strcmp(argv[1], "owner")) {
        return owner_main(atoi(argv[2]));
    }
    if (4 == argc && 0 == strcmp(argv[1], "opener")) {
        return opener_main(atoi(argv[2]), atoi(argv[3]));
    }
    return gpu_test_main(argc, argv, parts, sizeof(parts) / sizeof(parts[0]));
}
