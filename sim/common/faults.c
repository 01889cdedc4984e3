/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "faults.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "umrddt_cuda.h"

/* Other names of functions of the CUDA driver. */
static const struct {
    const char *name;
    const char *function;
} aliases[] = {
    {"alloc", "cuMemAlloc"},        {"pinned", "cuMemHostAlloc"}, {"export", "cuIpcGetMemHandle"},
    {"open", "cuIpcOpenMemHandle"}, {"launch", "cuLaunchKernel"},
};

/** Numbers of the CUDA driver's errors have three digits. */
#define MOST_ERROR 999

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool is_of_hca_or_process(const char *what)
{
#define SAME(name, how, help)       \
    if (0 == strcmp(what, #name)) { \
        return true;                \
    }
    FAULTS_OF_HCAS(SAME)
    FAULTS_OF_PROCESSES(SAME)
    return false;
}

static bool is_of_gpu(const char *what)
{
#define OF_GPUS(exported, base, version, arguments)                \
    if (0 == strcmp(what, #exported) || 0 == strcmp(what, base)) { \
        return true;                                               \
    }
    UMRDDT_CUDA_FUNCTIONS(OF_GPUS)
    return 0 == strcmp(what, "kernel") || 0 == strcmp(what, "copy") || 0 == strcmp(what, "call");
}

int faults_add(struct faults *faults, const char *what, uint64_t first, uint64_t last, uint64_t how)
{
    struct fault *fault = &faults->fault[faults->count];
    size_t i;

    for (i = 0; i < COUNT(aliases); i++) {
        if (0 == strcmp(what, aliases[i].name)) {
            what = aliases[i].function;
        }
    }
    if (FAULTS_MAX == faults->count || sizeof(fault->what) <= strlen(what)
        || (!is_of_hca_or_process(what) && (!is_of_gpu(what) || MOST_ERROR < how))) {
        return -1;
    }
    memset(fault, 0, sizeof(*fault));
    strcpy(fault->what, what);
    fault->first = first;
    fault->last = last;
    fault->how = how;
    faults->count++;
    return 0;
}

/* A number that begins at *text, which is moved behind it. */
static bool number(const char **text, uint64_t *value)
{
    char *end;

    if (0 == isdigit((unsigned char) **text)) {
        return false;
    }
    errno = 0;
    *value = strtoull(*text, &end, 10);
    *text = end;
    return 0 == errno && 0 < *value;
}

/* WHICH: N, N-M, N-, * or any of these with ~CHANCE behind. */
static bool read_which(const char *text, struct fault *fault)
{
    fault->first = 1;
    fault->last = UINT64_MAX;
    fault->chance = 0;
    if ('*' == *text) {
        text++;
    } else if ('~' != *text) {
        if (!number(&text, &fault->first)) {
            return false;
        }
        fault->last = fault->first;
        if ('-' == *text) {
            text++;
            fault->last = UINT64_MAX;
            if ('\0' != *text && '~' != *text && !number(&text, &fault->last)) {
                return false;
            }
        }
    }
    if ('~' == *text) {
        text++;
        if (!number(&text, &fault->chance)) {
            return false;
        }
    }
    return '\0' == *text && fault->first <= fault->last;
}

/* The rank of this process, or -1: it has none. */
static long own_rank(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");

    if (NULL == rank) {
        rank = getenv("PMIX_RANK");
    }
    return NULL == rank ? -1 : strtol(rank, NULL, 10);
}

/* [RANK@]WHAT:WHICH[:HOW] */
static bool read_one(char *item, struct faults *faults)
{
    char *at = strchr(item, '@');
    char *what = NULL == at ? item : at + 1;
    char *which, *how;
    struct fault fault = {.how = 0};
    bool here = true;

    if (NULL != at) {
        char *end;

        if (0 == isdigit((unsigned char) *item)) {
            return false;
        }
        here = strtol(item, &end, 10) == own_rank();
        if (end != at) {
            return false;
        }
    }
    which = strchr(what, ':');
    if (NULL == which) {
        return false;
    }
    *which++ = '\0';
    how = strchr(which, ':');
    if (NULL != how) {
        const char *text = how + 1;

        *how = '\0';
        if (!number(&text, &fault.how) || '\0' != *text) {
            return false;
        }
    }
    if (0 == strcmp(what, "seed")) {
        const char *text = which;

        return number(&text, &faults->seed) && '\0' == *text && NULL == how;
    }
    if (!read_which(which, &fault)
        || 0 != faults_add(faults, what, fault.first, fault.last, fault.how)) {
        return false;
    }
    faults->fault[faults->count - 1].chance = fault.chance;
    faults->count -= here ? 0 : 1;
    return true;
}

int faults_parse(const char *text, struct faults *faults, char *error, size_t size)
{
    char buffer[FAULTS_TEXT];
    char *save = NULL;
    char *item;

    if (NULL == text) {
        return 0;
    }
    if (strlen(text) >= sizeof(buffer)) {
        snprintf(error, size, "the plan of faults is longer than %zu bytes", sizeof(buffer) - 1);
        return -1;
    }
    strcpy(buffer, text);
    for (item = strtok_r(buffer, "; \t\n", &save); NULL != item;
         item = strtok_r(NULL, "; \t\n", &save)) {
        char shown[64];

        snprintf(shown, sizeof(shown), "%s", item);
        if (!read_one(item, faults)) {
            snprintf(error, size, "'%s' is no fault, or there are more than %d", shown, FAULTS_MAX);
            return -1;
        }
    }
    return 0;
}

static uint64_t draw(struct faults *faults)
{
    uint64_t z = (faults->seed += 0x9e3779b97f4a7c15u);

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

const struct fault *faults_hit(struct faults *faults, const char *what, const char *alias,
                               uint64_t number)
{
    int i;

    for (i = 0; i < faults->count; i++) {
        const struct fault *fault = &faults->fault[i];

        if (fault->first <= number && number <= fault->last
            && (0 == strcmp(fault->what, what)
                || (NULL != alias && 0 == strcmp(fault->what, alias)))
            && (0 == fault->chance || 0 == draw(faults) % fault->chance)) {
            return fault;
        }
    }
    return NULL;
}

int faults_read(const char *text_or_file, char *text, size_t room, char *error, size_t size)
{
    FILE *file = fopen(text_or_file, "r");
    bool comment = false;
    size_t at = 0;
    int c;

    if (NULL == file && NULL != strchr(text_or_file, '/')) {
        snprintf(error, size, "%s: %s", text_or_file, strerror(errno));
        return -1;
    }
    while (at + 1 < room
           && EOF
                  != (c = NULL != file               ? fgetc(file)
                          : '\0' == text_or_file[at] ? EOF
                                                     : (unsigned char) text_or_file[at])) {
        comment = '\n' == c ? false : comment || (NULL != file && '#' == c);
        if (!comment) {
            text[at++] = (char) ('\n' == c ? ';' : c);
        }
    }
    text[at] = '\0';
    if (NULL != file) {
        (void) fclose(file);
    }
    if (at + 1 == room) {
        snprintf(error, size, "the plan of faults is longer than %zu bytes", room - 2);
        return -1;
    }
    return 0;
}

void faults_help(FILE *file)
{
    size_t i;

    fprintf(
        file,
        "  [RANK@]WHAT:WHICH[:HOW], several with ';', blanks or lines between them; in a file '#'\n"
        "  begins a comment. RANK: in this process of an MPI job only. WHICH: N, the N-th of the\n"
        "  process; N-M; N-, from there on; *, all; and with ~P behind, one in P of them, drawn\n"
        "  (~P alone: *~P). seed:N is the seed of what is drawn.\n"
        "  WHAT of HCAs:\n");
#define ROW(name, how, help) fprintf(file, "    %-7s %-5s  %s\n", #name, how, help);
    FAULTS_OF_HCAS(ROW)
    fprintf(file, "  WHAT of processes into which libumrddt_failing is loaded, too:\n");
    FAULTS_OF_PROCESSES(ROW)
    fprintf(
        file,
        "  WHAT of GPUs: 'kernel' or 'copy', that a device begins (it spoils the context), or a\n"
        "  function of the driver ('call': any), whose call then does nothing; HOW is the number of the error\n"
        "  (default 2, CUDA_ERROR_OUT_OF_MEMORY; of kernel and copy 700). Also:\n");
    for (i = 0; i < COUNT(aliases); i++) {
        fprintf(file, "    %-7s        %s\n", aliases[i].name, aliases[i].function);
    }
}
