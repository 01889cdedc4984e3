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
 * umrddt_info --collect: one file with all that a report about a machine, or about the nodes of a
 * job, needs. Each node collects its part before MPI_Init; rank 0 writes the file.
 */

#include "info.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/** Commands of a shell, and what they show. $INFO is this program. */
static const struct {
    const char *title;
    const char *command;
} table[] = {
    {"date and system", "date -u; uname -a; cat /etc/os-release; ulimit -l"},
    {"umrddt_info", "\"$INFO\""},
    {"release of Open MPI", "ompi_info --version; ompi_info --path prefix"},
    {"parameters of pml/umrddt", "ompi_info --param pml umrddt --level 9 --parsable"},
    {"parameters of btl/umr", "ompi_info --param btl umr --level 9 --parsable"},
    {"parameters of coll/umrddt", "ompi_info --param coll umrddt --level 9 --parsable"},
    {"HCAs", "ibv_devinfo -v"},
    {"ports", "rdma link; ibdev2netdev"},
    {"drivers",
     "lsmod | grep -E '^(mlx5|ib_|rdma|nvidia|gdrdrv)'; ofed_info -s; cat /proc/driver/nvidia/version"},
    {"libraries", "dpkg -l 2>/dev/null | grep -E 'ibverbs|librdmacm|libucx|openmpi|libhwloc' || "
                  "rpm -qa | grep -E 'ibverbs|rdma-core|ucx|openmpi|hwloc'; ucx_info -v"},
    {"PCI devices of NVIDIA Mellanox", "lspci -nn -d 15b3:"},
    {"GPUs",
     "nvidia-smi --query-gpu=index,name,pci.bus_id,driver_version,compute_mode,mig.mode.current "
     "--format=csv"},
    {"GPUs and HCAs", "nvidia-smi topo -m"},
    {"topology", "lstopo-no-graphics --of console --no-useless-caches || lscpu"},
    {"counters of ports", "cd \"${SYSFS_PATH:-/sys}/class/infiniband\" && "
                          "grep -s . */ports/*/hw_counters/* */ports/*/counters/*"},
};

/** Open the file. @return -1: it is there and no regular file, or cannot be written; printed */
static int open_output(const char *path)
{
    struct stat status;
    int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644);
    const char *why = NULL;

    if (0 > fd) {
        why = ELOOP == errno ? "a link, and not a regular file" : strerror(errno);
    } else if (0 != fstat(fd, &status) || !S_ISREG(status.st_mode)) {
        why = "not a regular file";
    } else if (0 != ftruncate(fd, 0)) {
        why = strerror(errno);
    }
    if (NULL != why) {
        fprintf(stderr, "umrddt_info: %s: %s\n", path, why);
        if (0 <= fd) {
            close(fd);
        }
        return -1;
    }
    return fd;
}

/** Run a command of a shell, no part of the job, with all its output in a file. */
static void run(const char *command, FILE *file)
{
    int status = 0;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (0 == pid) {
        int null = open("/dev/null", O_RDONLY);

        (void) dup2(null, STDIN_FILENO);
        (void) dup2(fileno(file), STDOUT_FILENO);
        (void) dup2(fileno(file), STDERR_FILENO);
        info_leave_job();
        execlp("timeout", "timeout", "-k", "9", "120", "/bin/sh", "-c", command, (char *) NULL);
        _exit(127);
    }
    if (0 < pid && pid == waitpid(pid, &status, 0) && 0 != status) {
        (void) fseek(file, 0, SEEK_END);
        fprintf(file, "(exit status %d)\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    }
    (void) fseek(file, 0, SEEK_END);
}

/** True if the value of a variable of this name may be a secret. */
static bool hidden(const char *name, size_t length)
{
    static const char *const words[] = {"token", "secret",     "passw", "credential",
                                        "jwt",   "transports", "uri"};
    char copy[256];

    snprintf(copy, sizeof(copy), "%.*s", (int) length, name);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); ++i) {
        if (NULL != strcasestr(copy, words[i])) {
            return true;
        }
    }
    return 4 < length && 0 == strncasecmp(name + length - 4, "_key", 4);
}

/** The variables that affect messages. Of Slurm's only the names: some are secrets. */
static void print_environment(FILE *file)
{
    static const char *const prefixes[] = {"OMPI_MCA_", "UCX_", "CUDA_VISIBLE_DEVICES="};

    for (char **at = environ; NULL != *at; ++at) {
        size_t length = strcspn(*at, "=");
        bool known = false;

        for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); ++i) {
            known = known || 0 == strncmp(prefixes[i], *at, strlen(prefixes[i]));
        }
        if (known && !hidden(*at, length)) {
            fprintf(file, "%.500s\n", *at);
        } else if (known || 0 == strncmp("SLURM_", *at, strlen("SLURM_"))) {
            fprintf(file, "%.*s is set\n", (int) length, *at);
        }
    }
}

/** Everything about this node. */
static void collect_node(FILE *file, int gpu)
{
    char path[4096] = "umrddt_info", host[256] = "", command[64];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

    (void) gethostname(host, sizeof(host) - 1);
    if (0 < length) {
        path[length] = '\0';
    }
    setenv("INFO", path, 1);
    fprintf(file, "\n==== node %s, umrddt %s ====\n", host, UMRDDT_VERSION);
    fprintf(file, "\n== environment\n");
    print_environment(file);
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); ++i) {
        fprintf(file, "\n== %s: %s\n", table[i].title, table[i].command);
        run(table[i].command, file);
    }
    if (0 <= gpu) {
        snprintf(command, sizeof(command), "\"$INFO\" --selftest --gpu %d", gpu);
        fprintf(file, "\n== GPU memory: %s\n", command);
        run(command, file);
    }
    unsetenv("INFO");
}

/** A number that mpirun gives to a process, or else srun; @p none: it is in no job. */
static int number_of(const char *name, const char *slurm_name, int none)
{
    const char *text = getenv(name);

    if (NULL == text && NULL != getenv("PMIX_RANK")) {
        text = getenv(slurm_name);
    }
    return NULL == text ? none : atoi(text);
}

int info_collect(const char *path, int gpu, double seconds, bool software)
{
    int rank = number_of("OMPI_COMM_WORLD_RANK", "SLURM_PROCID", 0), status = INFO_USABLE, fd = -1;
    bool job = 1 < number_of("OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", 1);
    FILE *text = tmpfile();

    if (0 == rank) {
        fd = open_output(path);
    }
    if (NULL == text) {
        perror("umrddt_info: no temporary file");
        return INFO_USAGE;
    }
    if (0 == rank && 0 > fd) {
        return INFO_USAGE;
    }
    if (0 == number_of("OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", 0)) {
        collect_node(text, gpu);
    }
    if (0 == rank) {
        printf("umrddt_info: writing %s%s\n", path, job ? ", with the test of all lanes" : "");
        fflush(stdout);
        if (0 > dup2(fd, STDOUT_FILENO)) {
            perror("umrddt_info");
            return INFO_BROKEN;
        }
        /* Before the test, which may abort. */
        info_collect_print(text);
    }
    if (job) {
        status = info_pair(gpu, seconds, software, text);
    }
    fclose(text);
    if (0 == rank && (0 != fflush(stdout) || 0 != ferror(stdout) || 0 != fsync(STDOUT_FILENO))) {
        fprintf(stderr, "umrddt_info: %s: cannot be written\n", path);
        status = INFO_USAGE;
    }
    return status;
}

void info_collect_print(FILE *text)
{
    char line[4096];

    rewind(text);
    while (NULL != fgets(line, sizeof(line), text)) {
        fputs(line, stdout);
    }
    fflush(stdout);
}
