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
 * The command line of umrddt_info --explain, and the process that prints the explanation.
 */

#include "info.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "opal/mca/common/umrddt_select/umrddt_select_model.h"

#define HCA_SCHEMES \
    (MCA_PML_UMRDDT_BIT_UMR | MCA_PML_UMRDDT_BIT_DIRECT | MCA_PML_UMRDDT_BIT_PACK_GDR)

/** The command line. */
typedef struct requested_t {
    bench_chosen_list_t from, to;
    bool from_gpu, to_gpu;
    unsigned candidates; /**< 0: all that this machine can */
} requested_t;

/** Print an error of the command line. @return the exit status */
static int wrong(const char *option, const char *value, const char *what)
{
    fprintf(stderr, "umrddt_info: %s '%s': %s\n", option, value, what);
    return INFO_USAGE;
}

/** One layout. @return INFO_USABLE, or the exit status */
static int read_layout(const char *option, const char *text, bench_chosen_list_t *list)
{
    char error[LAYOUT_ERROR] = "";

    bench_chosen_free(list);
    if (!bench_chosen_read(text, list, error)) {
        return wrong(option, text, error);
    }
    return 1 == list->count ? INFO_USABLE : wrong(option, text, "expected one layout");
}

static int read_memory(const char *text, requested_t *requested)
{
    static const char *const names[] = {"host", "gpu-host", "host-gpu", "gpu"};

    for (unsigned i = 0; i < 4; ++i) {
        if (0 == strcmp(text, names[i])) {
            requested->from_gpu = 0 != (i & 1);
            requested->to_gpu = 0 != (i & 2);
            return INFO_USABLE;
        }
    }
    return wrong("--memory", text,
                 "expected 'host', 'gpu', 'gpu-host' (from a GPU to system memory) or 'host-gpu'");
}

static int read_schemes(const char *text, requested_t *requested)
{
    const char *at = text;

    requested->candidates = 0;
    for (size_t length; '\0' != *at; at += length + (',' == at[length] ? 1 : 0)) {
        int scheme_id = 0;

        length = strcspn(at, ",");
        if (3 == length && 0 == strncmp(at, "sgl", length)) {
            requested->candidates |= MCA_PML_UMRDDT_BIT_DIRECT;
            continue;
        }
        while (scheme_id < MCA_PML_UMRDDT_SCHEMES
               && (length != strlen(mca_pml_umrddt_scheme_names[scheme_id])
                   || 0 != strncmp(at, mca_pml_umrddt_scheme_names[scheme_id], length))) {
            ++scheme_id;
        }
        if (MCA_PML_UMRDDT_SCHEMES == scheme_id || MCA_PML_UMRDDT_SCHEME_BASE == scheme_id) {
            requested->candidates = 0;
            break;
        }
        requested->candidates |= 1u << scheme_id;
    }
    return 0 != requested->candidates
               ? INFO_USABLE
               : wrong("--schemes", text,
                       "expected a list of umr, sgl, ipc, pack-gdr, pack-staged, pack-host");
}

/** @return INFO_USABLE, or the exit status */
static int parse(int argc, char **argv, requested_t *requested)
{
    static const struct option known[] = {
        {"explain", required_argument, NULL, 'e'},
        {"to", required_argument, NULL, 't'},
        {"memory", required_argument, NULL, 'm'},
        {"gpu", no_argument, NULL, 'g'},
        {"schemes", required_argument, NULL, 's'},
        {"json", no_argument, NULL, 'j'},
        {NULL, 0, NULL, 0},
    };
    int c, status = INFO_USABLE;

    while (INFO_USABLE == status && -1 != (c = getopt_long(argc, argv, "", known, NULL))) {
        switch (c) {
        case 'e':
            status = read_layout("--explain", optarg, &requested->from);
            break;
        case 't':
            status = read_layout("--to", optarg, &requested->to);
            break;
        case 'm':
            status = read_memory(optarg, requested);
            break;
        case 'g':
            requested->from_gpu = requested->to_gpu = true;
            break;
        case 's':
            status = read_schemes(optarg, requested);
            break;
        case 'j':
            info_json = true;
            break;
        default:
            fprintf(stderr, "umrddt_info: --explain permits --to, --gpu, --memory, --schemes and "
                            "--json (see --help)\n");
            status = INFO_USAGE;
        }
    }
    if (INFO_USABLE == status && optind < argc) {
        fprintf(stderr, "umrddt_info: --explain excludes devices, such as '%s'\n", argv[optind]);
        status = INFO_USAGE;
    }
    return status;
}

/** In a process of its own, which is a job of its own. @return the exit status */
static int explain(const info_explain_t *what)
{
    int status = 0;
    pid_t pid;

    info_leave_job();
    setenv("OMPI_MCA_pml", "umrddt", 1);
    setenv("OMPI_MCA_btl", "self", 1);
    setenv("OMPI_MCA_osc", "^ucx", 1);
    fflush(NULL);
    pid = fork();
    if (0 == pid) {
        exit(info_explain(what));
    }
    if (0 > pid || pid != waitpid(pid, &status, 0)) {
        fprintf(stderr, "umrddt_info: %s\n", strerror(errno));
        return INFO_BROKEN;
    }
    if (!WIFEXITED(status)
        || (INFO_USABLE != WEXITSTATUS(status) && INFO_USAGE != WEXITSTATUS(status))) {
        fprintf(stderr,
                "umrddt_info: --explain needs pml/umrddt, which failed; umrddt_info without "
                "options prints the reason\n");
        return INFO_BROKEN;
    }
    return WEXITSTATUS(status);
}

int info_explain_main(int argc, char **argv)
{
    requested_t requested;
    info_explain_t what;
    int status;

    memset(&requested, 0, sizeof(requested));
    memset(&what, 0, sizeof(what));
    status = parse(argc, argv, &requested);
    if (INFO_USABLE == status) {
        what.from = &requested.from.all[0];
        what.to = 0 < requested.to.count ? &requested.to.all[0] : NULL;
        what.from_gpu = requested.from_gpu;
        what.to_gpu = requested.to_gpu;
        what.hca =
            0 == requested.candidates ? info_has_mlx5() : 0 != (HCA_SCHEMES & requested.candidates);
        what.candidates =
            0 == requested.candidates ? MCA_PML_UMRDDT_BITS_ALL : requested.candidates;
        status = explain(&what);
    }
    bench_chosen_free(&requested.from);
    bench_chosen_free(&requested.to);
    return status;
}
