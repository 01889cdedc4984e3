/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "info.h"

#include <stdbool.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

extern char **environ;

static void usage(FILE *file)
{
    fprintf(
        file,
        "usage: umrddt_info [--json] [DEVICE[:PORT]]...\n"
        "       umrddt_info --selftest [--gpu N] [--json] [DEVICE[:PORT]]...\n"
        "       mpirun -n 2 --host A,B umrddt_info --pair [--gpu N] [--seconds S] [--json]\n"
        "       [mpirun -n 2 --host A,B] umrddt_info --collect FILE [--gpu N] [--seconds S]\n"
        "       umrddt_info --explain LAYOUT [--to LAYOUT] [--gpu | --memory WHERE] [--schemes LIST]\n"
        "                   [--json]\n"
        "       umrddt_info --help | --version\n"
        "\n"
        "Prints the resources of this machine that umrddt can use: Open MPI and the base PML, HCAs, GPUs,\n"
        "the limit of locked memory. Also prints the protocol that messages will use, and advice about\n"
        "missing resources. Sends nothing to other machines. To check all nodes of a job:\n"
        "\n"
        "    mpirun --map-by ppr:1:node --tag-output umrddt_info\n"
        "\n"
        "By default btl/umr opens each mlx5 device and tests it with transfers to itself, as at the start\n"
        "of a job. The output has the proven and unproven capabilities, or the reason why the device\n"
        "cannot be used.\n"
        "\n"
        "Options\n"
        "  --selftest   test the devices only; the exit status is about the devices\n"
        "  --pair       in a job of two or more processes: print the ports of each process, and test each\n"
        "               pair of ports (lane) that messages between two nodes would use: the time to connect\n"
        "               and of the first write, the bandwidth, and messages between random layouts while\n"
        "               mkeys are mapped anew, with each byte compared. Also prints the counters of the\n"
        "               ports that mean trouble and have grown. Tests the pairs of rank 0, all pairs of up\n"
        "               to 4 processes, and pairs within a node only if there is one node. The exit status\n"
        "               is 0 if every lane works, and 1 if not\n"
        "  --collect FILE  write a report to a file, to be sent to the authors: everything that this\n"
        "               program prints, parameters, releases, drivers, devices, GPUs, topology and counters;\n"
        "               in a job those of all nodes, and the test of --pair. It has names and addresses of\n"
        "               hosts and devices, the values of OMPI_MCA_*, UCX_* and CUDA_VISIBLE_DEVICES, the\n"
        "               names of SLURM_*, and no other variable. An existing file is overwritten only if it\n"
        "               is a regular file\n"
        "  --gpu N      with --selftest, --pair and --collect: have the messages in the memory of GPU N; with\n"
        "               --selftest the HCA writes to itself. A failure makes the device unusable\n"
        "  --seconds S  with --pair and --collect: exchange messages for so many seconds on each lane, at least\n"
        "  --json       print one JSON object with the same content\n"
        "  --explain LAYOUT  print the protocol for messages of a layout, to a process on the same node and\n"
        "               on another node, and the reason: the predicted time of each protocol in\n"
        "               microseconds, for the first message and for the 64th. The prediction uses the\n"
        "               tuning file of this machine (see umrddt_tune), or defaults. Sends nothing. A\n"
        "               layout is a name of umrddt_bench --list, or a description (see umrddt_bench\n"
        "               --help) such as 'vector 128 x 1024 stride 2048'\n"
        "  --to LAYOUT  with --explain: the layout of the receiver, if it differs\n"
        "  --gpu        with --explain (without a number): same as --memory gpu\n"
        "  --memory WHERE  with --explain: host (default; system memory), gpu, gpu-host (from a GPU to\n"
        "               system memory) or host-gpu; this machine need not have GPUs\n"
        "  --schemes LIST  with --explain: consider these protocols, a list of umr, sgl, ipc, pack-gdr,\n"
        "               pack-staged, pack-host, without regard to this machine (default: all that its\n"
        "               devices support). The output has the name direct for sgl, and host for the base\n"
        "               PML\n"
        "  --help       print this text\n"
        "  --version    print the version\n"
        "\n"
        "MCA parameters are read from the environment (OMPI_MCA_btl_umr_max_entries=4) and from files.\n"
        "Under umrddt_sim the program tests the software ConnectX; with --gpus there are software GPUs.\n"
        "\n"
        "Exit status: 0 a device can be used, or, without --selftest, there are GPUs and umrddt works; 1\n"
        "umrddt can use nothing; 2 wrong option; 3 Open MPI does not find the components.\n");
}

/* Remove the variables of the job, so that each started process is a job of its own. With those of
 * srun alone, Open MPI 4.1 takes a process for a task of srun whose PMIx is missing. */
void info_leave_job(void)
{
    static const char *const prefixes[] = {
        "PMIX_",          "PRTE_LAUNCHED", "OMPI_COMM_WORLD_",   "OMPI_MCA_ess",
        "OMPI_MCA_orte_", "OMPI_MCA_pmix", "OMPI_UNIVERSE_SIZE", "SLURM_"};
    size_t i, k;

    for (i = 0; NULL != environ[i];) {
        const char *end = strchr(environ[i], '=');
        char name[256] = "";
        bool drop = false;

        for (k = 0; k < sizeof(prefixes) / sizeof(prefixes[0]); ++k) {
            drop = drop || 0 == strncmp(environ[i], prefixes[k], strlen(prefixes[k]));
        }
        if (drop && NULL != end && (size_t) (end - environ[i]) < sizeof(name)) {
            memcpy(name, environ[i], (size_t) (end - environ[i]));
            unsetenv(name);
        } else {
            ++i;
        }
    }
    setenv("OMPI_MCA_ess_singleton_isolated", "1", 1);
}

/* Print all of a file to the standard error. */
static void report(FILE *file)
{
    char line[512];

    rewind(file);
    while (NULL != fgets(line, sizeof(line), file)) {
        fputs(line, stderr);
    }
}

/* The GPU of --selftest; -1: none. */
static int selftest_gpu = -1;

/* Start this program again with --one or --mpi. Its output goes on, or into a file. @return its
 * exit status */
static int again(const char *option, const char *argument, FILE *out, FILE *errors)
{
    const char *arguments[6] = {"umrddt_info", option};
    char number[16];
    int status = 0, count = 2;
    pid_t pid;

    if (NULL != argument) {
        snprintf(number, sizeof(number), "%d", selftest_gpu);
        arguments[count++] = argument;
        arguments[count++] = number;
    }
    arguments[count] = info_json ? "--json" : NULL;
    fflush(NULL);
    pid = fork();
    if (0 == pid) {
        if (NULL != out) {
            (void) dup2(fileno(out), STDOUT_FILENO);
        }
        if (NULL != errors) {
            (void) dup2(fileno(errors), STDERR_FILENO);
        }
        execv("/proc/self/exe", (char *const *) arguments);
        perror("umrddt_info");
        _exit(INFO_BROKEN);
    }
    if (0 > pid || pid != waitpid(pid, &status, 0)) {
        fprintf(stderr, "umrddt_info: %s\n", strerror(errno));
        return INFO_BROKEN;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : INFO_BROKEN;
}

/* A device that could not be examined, in an array. */
static void json_untested(const char *name)
{
    info_json_open(NULL, '{');
    info_json_text("name", name);
    info_json_bool("usable", false);
    info_json_text("why_not", "the test could not run");
    info_json_close('}');
}

/* Whether one of the examined devices has UMR. */
static bool seen_umr;

/* @return the exit status of a process that examines this device */
static int report_device(const char *name)
{
    FILE *errors = tmpfile(), *out = info_json ? tmpfile() : NULL;
    char value[8192];
    int status;

    setenv("OMPI_MCA_btl_umr_device", name, 1);
    setenv("OMPI_MCA_btl_umr_selftest", "2", 1);
    setenv("OMPI_MCA_pml", "ob1", 1);
    setenv("OMPI_MCA_btl", "self", 1);
    setenv("OMPI_MCA_osc", "^ucx", 1);
    status = again("--one", name, out, errors);
    seen_umr = seen_umr || INFO_USABLE == status;
    if (INFO_WITHOUT == status) {
        status = INFO_USABLE;
    }
    /* The component's own message has the same content. */
    if (INFO_USABLE != status && INFO_UNUSABLE != status) {
        if (info_json) {
            json_untested(name);
        } else {
            printf("%s: the test could not run\n", name);
        }
        if (NULL != errors) {
            report(errors);
        }
        status = INFO_BROKEN;
    } else if (NULL != out) {
        size_t length;

        rewind(out);
        length = fread(value, 1, sizeof(value) - 1, out);
        value[length] = '\0';
        if (0 < length) {
            info_json_raw(value);
        }
    }
    if (NULL != errors) {
        fclose(errors);
    }
    if (NULL != out) {
        fclose(out);
    }
    return status;
}

static int by_name(const void *a, const void *b)
{
    return strverscmp(ibv_get_device_name(*(struct ibv_device *const *) a),
                      ibv_get_device_name(*(struct ibv_device *const *) b));
}

/* Print firmware and part number, if available. */
static void print_device(struct ibv_device *device)
{
    struct ibv_context *context = ibv_open_device(device);
    struct ibv_device_attr attr;

    if (NULL != context && 0 == ibv_query_device(context, &attr)) {
        if (info_json) {
            info_json_text("firmware", attr.fw_ver);
            info_json_number("part", attr.vendor_part_id);
        } else {
            printf("%s: firmware %s, part %u\n", ibv_get_device_name(device), attr.fw_ver,
                   attr.vendor_part_id);
        }
    }
    if (NULL != context) {
        ibv_close_device(context);
    }
}

/* The better one of two exit statuses. */
static int better(int a, int b)
{
    return INFO_USABLE == a || INFO_USABLE == b ? INFO_USABLE : (a > b ? a : b);
}

bool info_has_mlx5(void)
{
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    bool found = false;

    for (int i = 0; NULL != list && i < count; ++i) {
        found = found || mlx5dv_is_supported(list[i]);
    }
    if (NULL != list) {
        ibv_free_device_list(list);
    }
    return found;
}

/* A device of the list. @return the exit status about it; INFO_USAGE: it was not examined */
static int query_listed(struct ibv_device *device)
{
    const char *name = ibv_get_device_name(device);
    bool mlx5 = mlx5dv_is_supported(device);
    int status = INFO_USAGE;

    if (info_json) {
        info_json_open(NULL, '{');
        info_json_text("name", name);
        info_json_bool("mlx5", mlx5);
    }
    if (mlx5) {
        print_device(device);
        if (info_json) {
            info_json_open("hcas", '[');
        }
        status = report_device(name);
        if (info_json) {
            info_json_close(']');
        }
    } else if (!info_json) {
        printf("%s: not an mlx5 device; umrddt uses it only if btl_umr_device names it\n", name);
    }
    if (info_json) {
        info_json_close('}');
    }
    return status;
}

static int query_all(void)
{
    int count = 0, requested = 0, status = INFO_UNUSABLE, i, one;
    struct ibv_device **list = ibv_get_device_list(&count);

    if (NULL == list || 0 == count) {
        if (!info_json) {
            printf(
                "there is no RDMA device\n"
                "  what to do: if this machine has an HCA (lspci -d 15b3:), check that its driver is\n"
                "              loaded (mlx5_core and mlx5_ib), that /dev/infiniband exists, and that\n"
                "              containers have access to it.\n");
        }
        return INFO_UNUSABLE;
    }
    qsort(list, (size_t) count, sizeof(*list), by_name);
    for (i = 0; i < count; ++i) {
        one = query_listed(list[i]);
        if (INFO_USAGE != one) {
            status = better(status, one);
            ++requested;
        }
    }
    if (0 == requested && !info_json) {
        printf("there is no mlx5 device (NVIDIA ConnectX)\n");
    }
    ibv_free_device_list(list);
    return status;
}

/* All devices, or those that are named. */
static int query_devices(int count, char **names)
{
    int status = INFO_UNUSABLE, i;

    if (info_json) {
        info_json_open(0 == count ? "devices" : "hcas", '[');
    }
    for (i = 0; i < count; ++i) {
        status = better(status, report_device(names[i]));
    }
    if (0 == count) {
        status = query_all();
    }
    if (info_json) {
        info_json_close(']');
    }
    return status;
}

/* Store the properties that a job reports, line by line. */
static void read_mpi(FILE *file, char *library, size_t room, info_found_t *found)
{
    char line[512];

    rewind(file);
    while (NULL != fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = '\0';
        (void) sscanf(line, "pml=%31s", found->pml);
        (void) sscanf(line, "memory=%15s", found->memory);
        (void) sscanf(line, "scheme=%15s", found->scheme);
        (void) sscanf(line, "base_gpu=%7s", found->gpu);
        if (0 == strncmp("library=", line, 8)) {
            snprintf(library, room, "%.*s", (int) room - 1, line + 8);
        }
        found->cuda = found->cuda || 0 == strcmp("cuda=1", line);
        found->umrddt = found->umrddt || 0 == strcmp("umrddt=1", line);
    }
}

/* Query Open MPI with umrddt and, if that fails, without. */
static void query_mpi(info_found_t *found)
{
    char library[128] = "Open MPI of an unknown release";

    for (int with = 1; 0 <= with && !found->umrddt; --with) {
        FILE *out = tmpfile(), *errors = tmpfile();

        if (NULL != out && NULL != errors) {
            if (with) {
                setenv("OMPI_MCA_pml", "umrddt", 1);
            } else {
                unsetenv("OMPI_MCA_pml");
            }
            (void) again("--mpi", NULL, out, errors);
            read_mpi(out, library, sizeof(library), found);
        }
        if (NULL != out) {
            fclose(out);
        }
        if (NULL != errors) {
            fclose(errors);
        }
    }
    unsetenv("OMPI_MCA_pml");
    if (info_json) {
        info_json_open("open_mpi", '{');
        info_json_text("library", library);
        info_json_bool("supports_gpu_memory", found->cuda);
        info_json_bool("umrddt_works", found->umrddt);
        info_json_text("base_pml", found->pml);
        info_json_text("pml_umrddt_memory", found->umrddt ? found->memory : NULL);
        info_json_text("pml_umrddt_scheme", found->umrddt ? found->scheme : NULL);
        info_json_close('}');
        return;
    }
    printf("%s, %s\n", library,
           found->cuda ? "CUDA-aware" : "which supports GPU memory through umrddt only");
    if (found->umrddt) {
        printf("  pml/umrddt works; the base PML is pml/%s\n", found->pml);
    } else {
        printf(
            "  pml/umrddt does not work: pml/%s carries all messages\n"
            "  what to do: check that ompi_info --param pml umrddt lists it. See the last lines of\n"
            "              \"make install\", and the manual of umrddt, install.rst.\n",
            '\0' == found->pml[0] ? "(none)" : found->pml);
    }
}

/* Print everything. */
static int doctor(int count, char **names)
{
    info_found_t found = {.umrddt = false};
    info_gpus_t gpus;
    int status;

    query_mpi(&found);
    status = query_devices(count, names);
    found.hca = INFO_USABLE == status;
    found.umr = seen_umr;
    info_gpus(&gpus);
    info_schemes(&found, &gpus);
    if (!found.umrddt) {
        return INFO_BROKEN;
    }
    return found.hca || 0 < gpus.count ? INFO_USABLE : INFO_UNUSABLE;
}

/* Of this program, started by itself. @return the exit status; -1: it was not */
static int by_itself(int argc, char **argv)
{
    info_json = 2 < argc && 0 == strcmp("--json", argv[argc - 1]);
    if (4 <= argc && 0 == strcmp("--one", argv[1])) {
        return info_device(argv[2], atoi(argv[3]));
    }
    if (2 <= argc && 0 == strcmp("--mpi", argv[1])) {
        return info_mpi();
    }
    info_json = false;
    return -1;
}

/* The number behind an option. @return false: printed */
static bool read_number(char **argv, int at, double most, double *value)
{
    char *end = NULL;

    *value = NULL == argv[at + 1] ? -1 : strtod(argv[at + 1], &end);
    if (NULL == end || '\0' != *end || end == argv[at + 1] || !(0 <= *value && most >= *value)) {
        fprintf(stderr, "umrddt_info: %s needs a number of 0 to %.0f\n", argv[at], most);
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    const char *preload = getenv("LD_PRELOAD");
    char host[256] = "this machine";
    const char *collect = NULL;
    bool devices_only = false, pair = false, software;
    double gpu = -1, seconds = 0;
    int status, i;

    status = by_itself(argc, argv);
    if (0 <= status) {
        return status;
    }
    /* Options of --explain may precede it; --gpu has no number then. */
    for (i = 1; i < argc && 0 != strcmp("--help", argv[i]) && 0 != strcmp("--version", argv[i]);
         ++i) {
        if (0 == strncmp("--explain", argv[i], strlen("--explain"))) {
            return info_explain_main(argc, argv);
        }
    }
    for (i = 1; i < argc && '-' == argv[i][0]; ++i) {
        if (0 == strcmp("--help", argv[i])) {
            usage(stdout);
            return 0;
        }
        if (0 == strcmp("--version", argv[i])) {
            printf("umrddt_info %s\n", UMRDDT_VERSION);
            return 0;
        }
        if (0 == strcmp("--selftest", argv[i])) {
            devices_only = true;
        } else if (0 == strcmp("--pair", argv[i])) {
            pair = true;
        } else if (0 == strcmp("--json", argv[i])) {
            info_json = true;
        } else if (0 == strcmp("--collect", argv[i]) && NULL != argv[i + 1]) {
            collect = argv[++i];
        } else if (0 == strcmp("--gpu", argv[i])) {
            if (!read_number(argv, i++, 1023, &gpu)) {
                return INFO_USAGE;
            }
        } else if (0 == strcmp("--seconds", argv[i])) {
            if (!read_number(argv, i++, 1e6, &seconds)) {
                return INFO_USAGE;
            }
        } else {
            break;
        }
    }
    argv += i;
    argc -= i;
    for (i = 0; i < argc; ++i) {
        if ('-' == argv[i][0]) {
            fprintf(stderr, "umrddt_info: unknown option '%s', or it is not before the devices\n",
                    argv[i]);
            return INFO_USAGE;
        }
    }

    if ((pair || NULL != collect) && (devices_only || 0 < argc || (pair && NULL != collect))) {
        fprintf(stderr,
                "umrddt_info: --pair and --collect exclude each other, --selftest, and devices "
                "(see btl_umr_device)\n");
        return INFO_USAGE;
    }
    if ((0 <= gpu && !devices_only && !pair && NULL == collect)
        || (0 < seconds && !pair && NULL == collect) || (info_json && NULL != collect)) {
        fprintf(stderr, "umrddt_info: these options do not go together; see --help\n");
        return INFO_USAGE;
    }
    software = NULL != preload && NULL != strstr(preload, "umrddt_sim");
    if (NULL != collect) {
        return info_collect(collect, (int) gpu, seconds, software);
    }
    if (pair) {
        return info_pair((int) gpu, seconds, software, NULL);
    }
    selftest_gpu = (int) gpu;
    info_leave_job();
    (void) gethostname(host, sizeof(host) - 1);
    if (info_json) {
        info_json_open(NULL, '{');
        info_json_text("umrddt", UMRDDT_VERSION);
        info_json_text("host", host);
        info_json_bool("software_hca", software);
    } else {
        printf("umrddt %s on %s\n", UMRDDT_VERSION, host);
        if (software) {
            printf(
                "This is the software ConnectX of umrddt_sim: the output does not describe a real HCA.\n");
        }
    }
    info_locked_memory();
    if (devices_only && 0 <= gpu) {
        info_kernels(true);
    }
    status = devices_only ? query_devices(argc, argv) : doctor(argc, argv);
    if (info_json) {
        info_json_close('}');
    }
    return status;
}
