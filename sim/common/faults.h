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
 * A plan of faults, for the software ConnectX and the software CUDA driver: the faults, and
 * their occurrences and kinds. One text is for both (`umrddt_sim --faults`, UMRDDT_FAULTS);
 * the language is in sim/connectx/README.md.
 */

#ifndef UMRDDT_FAULTS_H
#define UMRDDT_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define FAULTS_MAX  32
#define FAULTS_TEXT 4096 /**< bytes of a plan, at most */

/** One of them. */
struct fault {
    char what[48];   /**< "write", ...: FAULTS_OF_HCAS, FAULTS_OF_PROCESSES, or a function of
                        the CUDA driver, or "call": of any */
    uint64_t first;  /**< occurrences that it is about, counted from 1 in each process ... */
    uint64_t last;   /**< ... the last of them included */
    uint64_t chance; /**< not 0: of these, one in so many, drawn */
    uint64_t how;    /**< a number whose meaning depends on what; 0: none was given */
};

struct faults {
    int count;
    struct fault fault[FAULTS_MAX];
    uint64_t seed; /**< of what is drawn; it changes with each drawing */
};

/** Faults of HCAs: name, meaning of HOW ("": none), help. */
#define FAULTS_OF_HCAS(X)                                                                         \
    X(command, "ERRNO",                                                                           \
      "a command to the kernel, except one that releases, fails (default ENOMEM)")                \
    X(slow, "US",                                                                                 \
      "such a command takes so many microseconds (default 1000) while others use the device")     \
    X(mkey, "", "the creation of an mkey fails")                                                  \
    X(reg, "ERRNO", "a registration fails (default ENOMEM)")                                      \
    X(umr, "", "a UMR work request completes with an error")                                      \
    X(write, "", "an RDMA write completes with a remote access error, and nothing is written")    \
    X(part, "",                                                                                   \
      "half of an arriving RDMA write is written, then it fails with a remote access error, "     \
      "as on hardware, which checks a key for each packet")                                       \
    X(send, "", "a send completes with an error")                                                 \
    X(qp, "", "a work request and all behind it are flushed: its queue pair fails (QP_FATAL)")    \
    X(lost, "",                                                                                   \
      "from a work request on, all packets of its connection are lost, in both directions: "      \
      "requests fail after their retries")                                                        \
    X(deaf, "",                                                                                   \
      "after a received write with immediate data, which succeeds, its queue pair fails, "        \
      "and the peer gets no report")                                                              \
    X(device, "",                                                                                 \
      "at a work request its device is lost: all queue pairs fail (DEVICE_FATAL), and "           \
      "no object can be created")                                                                 \
    X(silent, "",                                                                                 \
      "at a work request its device fails as hardware does (DEVICE_FATAL): nothing is "           \
      "flushed, and no completion comes any more")                                                \
    X(cq, "",                                                                                     \
      "at a work request its completion queue fails (CQ_ERR), which loses all further "           \
      "completions")                                                                              \
    X(port, "",                                                                                   \
      "at a work request its device reports PORT_ERR and GID_CHANGE, twice each; nothing "        \
      "else happens")                                                                             \
    X(route, "ERRNO", "the connection of a queue pair fails (default ETIMEDOUT, after route_ms)") \
    X(probe, "US", "a write of no bytes starts so many microseconds later (default 1000)")        \
    X(rnr, "TIMES", "an arriving message finds no receive, so many times (default 1)")            \
    X(late, "US",                                                                                 \
      "a work request, and all after it, start so many microseconds later (default 1000)")        \
    X(kill, "", "at a work request, or a kernel or copy of a GPU, the process is killed (SIGKILL)")

enum fault_of_hca {
#define FAULT_NUMBER(name, how, help) FAULT_##name,
    FAULTS_OF_HCAS(FAULT_NUMBER)
#undef FAULT_NUMBER
    FAULT_OF_HCA_MAX
};

/** Faults by libumrddt_failing (test/connectx/failing.c): calls by umrddt's own components.
 */
#define FAULTS_OF_PROCESSES(X)                                                           \
    X(malloc, "", "an allocation fails, of malloc, calloc, realloc, memalign or strdup") \
    X(post, "", "the post of a work request, or of a receive, fails (ENOMEM)")           \
    X(list, "", "an empty free list gets no more items")

/**
 * Add the faults of a text to a plan. Those of another rank (OMPI_COMM_WORLD_RANK, PMIX_RANK) are
 * read, and left out.
 *
 * @param[in]     text    NULL: none
 * @param[in,out] faults  begin with {0}
 * @param[out]    error   the error of the text
 *
 * @retval 0 or -1
 */
int faults_parse(const char *text, struct faults *faults, char *error, size_t size);

/** Add one. @retval 0 or -1: there is no room, or no such fault */
int faults_add(struct faults *faults, const char *what, uint64_t first, uint64_t last,
               uint64_t how);

/**
 * The fault that occurrence @p number of a thing has, or NULL.
 *
 * @param[in] alias  another name that the plan may call it by, or NULL
 */
const struct fault *faults_hit(struct faults *faults, const char *what, const char *alias,
                               uint64_t number);

/**
 * The plan in a text, or, if that is the name of a file, in the file; without comments and line
 * ends.
 *
 * @retval 0 or -1
 */
int faults_read(const char *text_or_file, char *text, size_t room, char *error, size_t size);

/** The language, for --help. */
void faults_help(FILE *file);

#endif /* UMRDDT_FAULTS_H */
