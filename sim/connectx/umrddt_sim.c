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
 * The wrapper: umrddt_sim COMMAND... runs a command, and all that it starts, with the software
 * ConnectX below libibverbs.
 */

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu.h"
#include "sim_conf.h"
#include "sim_count.h"
#include "sim_here.h"
#include "sim_sysfs.h"

#define LIBRARY "libumrddt_sim.so"

static void usage(FILE *file)
{
    fprintf(
        file,
        "usage: umrddt_sim [--machine NAME] [--gpus N] [--faults PLAN] [--counters | --json] COMMAND [ARGUMENT...]\n"
        "       umrddt_sim --help | --version\n"
        "\n"
        "Runs COMMAND, and all that it starts, with a software ConnectX (mlx5_0) below the machine's own\n"
        "libibverbs and libmlx5.\n"
        "\n"
        "A run proves that a program and libmlx5 agree about verbs, UMR work requests and completions.\n"
        "It proves that the program keeps the rules (keys, bounds, rights, protection domains, queue\n"
        "sizes, order), and shows its behaviour when requests fail.\n"
        "A run does not prove anything about speed, or that a real HCA reads the work requests as this\n"
        "one does. It proves nothing about GPU memory reached through PCIe, about a network, or about\n"
        "ordering within PCIe.\n"
        "\n"
        "  --machine NAME  the devices, networks, PCI and GPUs of a machine (see below)\n"
        "  --gpus N     N software GPUs, too: a libcuda.so.1 in front of the machine's own, for programs\n"
        "               that load the driver or are linked with it (see sim/cuda/README.md)\n"
        "  --faults PLAN  planned faults: a file, or the text itself (see below)\n"
        "  --counters   print the counters of the HCA at the exit of each process (same as counters=1),\n"
        "               and with --gpus those of the GPUs\n"
        "  --json       the same as JSON on stderr, an object a process in a line (same as\n"
        "               counters=1,json=1)\n"
        "  --help       this text\n"
        "  --version    the version\n"
        "\n"
        "The exit status is COMMAND's; 126 or 127 if it cannot be run, 2 for a bad option.\n"
        "\n"
        "Environment:\n"
        "  UMRDDT_SIM      options, comma separated (see below)\n"
        "  UMRDDT_SIM_DIR  directory for the device tree, and the name of the fabric: only processes\n"
        "                  with the same one reach each other (default: a directory of the user in\n"
        "                  /tmp, which stays and is used again)\n"
        "  UMRDDT_GPU      options of the GPUs, comma separated; --gpus N is devices=N\n"
        "  UMRDDT_FAULTS   planned faults; --faults sets it\n"
        "\n"
        "  UCX_MEM_MMAP_HOOK_MODE is set to reloc, unless it is set\n"
        "  OMPI_MCA_btl_openib_if_exclude is set to the software devices, unless it or _if_include is set\n"
        "\n"
        "Options in UMRDDT_SIM:\n");
    sim_conf_help(file);
    fprintf(file, "\nFaults, of --faults, UMRDDT_FAULTS and the options 'faults':\n");
    faults_help(file);
    fprintf(file, "\nCounters, as --counters prints them, one line a process:\n");
    sim_count_help(file);
    fprintf(file, "\nOptions in UMRDDT_GPU:\n");
    gpu_conf_help(file);
    fprintf(file, "\nCounters of the GPUs, before the functions of the driver that were called:\n");
    gpu_count_help(file);
}

/* The library beside this program in the build tree, or where it was installed. */
static int find_library(char *path, size_t size)
{
    static const char *const beside[] = {"/.libs/" LIBRARY, "/" LIBRARY};
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash;
    size_t i;

    if (0 < n) {
        self[n] = '\0';
        slash = strrchr(self, '/');
        if (NULL != slash) {
            *slash = '\0';
        }
        for (i = 0; NULL != slash && i < 2; i++) {
            if ((size_t) snprintf(path, size, "%s%s", self, beside[i]) < size
                && 0 == access(path, R_OK)) {
                return 0;
            }
        }
    }
    return (size_t) snprintf(path, size, "%s/%s", SIM_LIBDIR, LIBRARY) < size
                   && 0 == access(path, R_OK)
               ? 0
               : -1;
}

/* Put a value in front of the present ones, unless it is among them. */
static int put_first(const char *name, const char *value)
{
    const char *old = getenv(name);
    char *both;
    int rc;

    if (NULL == old || '\0' == *old) {
        return setenv(name, value, 1);
    }
    if (NULL != strstr(old, value)) {
        return 0;
    }
    if (0 > asprintf(&both, "%s:%s", value, old)) {
        return -1;
    }
    rc = setenv(name, both, 1);
    free(both);
    return rc;
}

/* In front of the others, which may change what it sets. */
static int put_option(const char *name, const char *option)
{
    const char *old = getenv(name);
    char *both;
    int rc;

    if (0 > asprintf(&both, "%s%s%s", option, NULL == old || !*old ? "" : ",",
                     NULL == old ? "" : old)) {
        return -1;
    }
    rc = setenv(name, both, 1);
    free(both);
    return rc;
}

static int add_option(const char *name, const char *option)
{
    const char *old = getenv(name);
    char *both;
    int rc;

    if (0 > asprintf(&both, "%s%s%s", NULL == old ? "" : old, NULL == old || !*old ? "" : ",",
                     option)) {
        return -1;
    }
    rc = setenv(name, both, 1);
    free(both);
    return rc;
}

/* The directory of the software CUDA driver, in the build tree or where it was installed. */
static int find_driver(char *path, size_t size)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char library[PATH_MAX + 32];
    int i;

    self[0 < n ? n : 0] = '\0';
    if (NULL != strrchr(self, '/')) {
        *strrchr(self, '/') = '\0';
    }
    for (i = 0; i < 2; i++) {
        int length = 0 == i ? snprintf(path, size, "%s/../cuda/.libs", self)
                            : snprintf(path, size, "%s/cuda", SIM_LIBDIR);

        snprintf(library, sizeof(library), "%s/libcuda.so.1", path);
        if ((size_t) length < size && 0 == access(library, R_OK)) {
            return 0;
        }
    }
    return -1;
}

/* The software GPUs: their number and the driver, which is found by its name. */
static int add_gpus(const char *number, const char *counters)
{
    char directory[PATH_MAX];
    char error[PATH_MAX];
    struct gpu_conf conf;
    char *option;

    if (0 > asprintf(&option, "devices=%s%s", number, counters)) {
        return -1;
    }
    if (0 != add_option("UMRDDT_GPU", option)
        || 0 != gpu_conf_parse(getenv("UMRDDT_GPU"), &conf, error, sizeof(error))) {
        fprintf(stderr, "umrddt_sim: UMRDDT_GPU: %s; see umrddt_sim --help\n", error);
        free(option);
        return -1;
    }
    free(option);
    if (0 != find_driver(directory, sizeof(directory))) {
        fprintf(
            stderr,
            "umrddt_sim: cannot find libcuda.so.1, neither beside this program nor in %s/cuda\n",
            SIM_LIBDIR);
        return -1;
    }
    if (0 != put_first("LD_LIBRARY_PATH", directory)) {
        perror("umrddt_sim");
        return -1;
    }
    return 0;
}

/* The plan of faults, for all that is started. */
static int add_faults(const char *plan)
{
    struct faults faults = {0};
    char text[FAULTS_TEXT];
    char error[PATH_MAX];

    if (0 != faults_read(plan, text, sizeof(text), error, sizeof(error))
        || 0 != faults_parse(text, &faults, error, sizeof(error))) {
        fprintf(stderr, "umrddt_sim: --faults: %s; see umrddt_sim --help\n", error);
        return -1;
    }
    if (0 != setenv("UMRDDT_FAULTS", text, 1)) {
        perror("umrddt_sim");
        return -1;
    }
    return 0;
}

/*
 * Keep the rest of a job off this HCA, where it would use it. Open MPI's btl/openib opens every
 * device that is not excluded, and complains about missing properties of this one. (UCX asks
 * whether it may open the device file, which is not there; libfabric finds no connection manager.)
 */
static int keep_others_off(const struct sim_conf *conf)
{
    char devices[128] = "";
    int d;

    if (NULL != getenv("OMPI_MCA_btl_openib_if_include")
        || NULL != getenv("OMPI_MCA_btl_openib_if_exclude")) {
        return 0;
    }
    for (d = 0; d < conf->devices; d++) {
        snprintf(devices + strlen(devices), sizeof(devices) - strlen(devices), "%smlx5_%d",
                 0 == d ? "" : ",", d);
    }
    return setenv("OMPI_MCA_btl_openib_if_exclude", devices, 1);
}

/*
 * UCX watches mmap by writing into the code of the function that it finds, which here is the
 * library's own, and Open MPI, which watches in the same way, then gets no report of memory that is
 * mapped over. With the setting to replace references, UCX does not patch the function.
 */
static int keep_mmap(void)
{
    return setenv("UCX_MEM_MMAP_HOOK_MODE", "reloc", 0);
}

/* Processes of a job have other working directories. */
static int absolute_dir(void)
{
    const char *dir = getenv("UMRDDT_SIM_DIR");
    char *cwd;
    char *both;
    int rc;

    if (NULL == dir || '\0' == *dir || '/' == *dir) {
        return 0;
    }
    cwd = getcwd(NULL, 0);
    if (NULL == cwd || 0 > asprintf(&both, "%s/%s", cwd, dir)) {
        free(cwd);
        return -1;
    }
    rc = setenv("UMRDDT_SIM_DIR", both, 1);
    free(both);
    free(cwd);
    return rc;
}

int main(int argc, char **argv)
{
    struct sim_conf conf;
    char error[PATH_MAX + 128];
    char library[PATH_MAX];
    char tree[PATH_MAX];
    const char *gpus = NULL;
    char number[16];
    const char *counters = ""; /* options */
    int first = 1;

    while (first < argc && '-' == argv[first][0]) {
        if (0 == strcmp(argv[first], "--help")) {
            usage(stdout);
            return 0;
        }
        if (0 == strcmp(argv[first], "--version")) {
            printf("umrddt_sim %s\n", UMRDDT_VERSION);
            return 0;
        }
        if (0 == strcmp(argv[first], "--counters")) {
            counters = ",counters=1";
            if (0 != add_option("UMRDDT_SIM", "counters=1")) {
                perror("umrddt_sim");
                return 2;
            }
        } else if (0 == strcmp(argv[first], "--json")) {
            counters = ",counters=1,json=1";
            if (0 != add_option("UMRDDT_SIM", "counters=1,json=1")) {
                perror("umrddt_sim");
                return 2;
            }
        } else if (0 == strcmp(argv[first], "--machine") && first + 1 < argc) {
            char option[64];

            snprintf(option, sizeof(option), "machine=%s", argv[++first]);
            if (0 != put_option("UMRDDT_SIM", option)) {
                perror("umrddt_sim");
                return 2;
            }
        } else if (0 == strcmp(argv[first], "--gpus") && first + 1 < argc) {
            gpus = argv[++first];
        } else if (0 == strcmp(argv[first], "--faults") && first + 1 < argc) {
            if (0 != add_faults(argv[++first])) {
                return 2;
            }
        } else if (0 == strcmp(argv[first], "--")) {
            first++;
            break;
        } else {
            fprintf(stderr, "umrddt_sim: unknown option '%s'; see umrddt_sim --help\n",
                    argv[first]);
            return 2;
        }
        first++;
    }
    if (first >= argc) {
        usage(stderr);
        return 2;
    }
    if (0 != sim_conf_parse(getenv("UMRDDT_SIM"), &conf, error, sizeof(error))
        || 0 != sim_here_find(&conf, error, sizeof(error))) {
        fprintf(stderr, "umrddt_sim: UMRDDT_SIM: %s; see umrddt_sim --help\n", error);
        return 2;
    }
    if (NULL != conf.machine && NULL == gpus) {
        snprintf(number, sizeof(number), "%d", conf.machine->gpus);
        gpus = number;
    }
    if (NULL != gpus && 0 != add_gpus(gpus, counters)) {
        return 2;
    }
    if (0 != find_library(library, sizeof(library))) {
        fprintf(stderr, "umrddt_sim: cannot find %s, neither beside this program nor in %s\n",
                LIBRARY, SIM_LIBDIR);
        return 2;
    }
    if (0 != absolute_dir()) {
        perror("umrddt_sim: UMRDDT_SIM_DIR");
        return 2;
    }
    if (0 != sim_sysfs_path(&conf, tree, sizeof(tree))) {
        fprintf(stderr, "umrddt_sim: the path of UMRDDT_SIM_DIR is too long\n");
        return 2;
    }
    if (0 != sim_sysfs_make(&conf, tree, error, sizeof(error))) {
        fprintf(stderr, "umrddt_sim: %s\n", error);
        return 2;
    }
    if (0 != put_first("LD_PRELOAD", library) || 0 != setenv("SYSFS_PATH", tree, 1)
        || 0 != keep_others_off(&conf) || 0 != keep_mmap()) {
        perror("umrddt_sim");
        return 2;
    }
    execvp(argv[first], argv + first);
    fprintf(stderr, "umrddt_sim: cannot run %s: %s\n", argv[first], strerror(errno));
    return ENOENT == errno ? 127 : 126;
}
