/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Texts that users and administrators write: names of devices (btl_umr_device).
 *
 * Compiled with the file under test.
 */

#include "btl_umr_device.c"

#include <stdarg.h>

#include "fuzz.h"

mca_btl_umr_t mca_btl_umr;
mca_btl_umr_params_t mca_btl_umr_params;

/* The devices that there are. */
static struct ibv_device devices[3] = {
    {.name = "mlx5_0"}, {.name = "mlx5_1"}, {.name = "a_name_of_some_length_that_is_the_longest"}};
static struct ibv_device *list[4] = {&devices[0], &devices[1], &devices[2], NULL};

bool __wrap_mlx5dv_is_supported(struct ibv_device *device);

bool __wrap_mlx5dv_is_supported(struct ibv_device *device)
{
    return &devices[1] != device;
}

/* Nothing is known about locations. */
void mca_btl_umr_topology_device(const struct ibv_device *ibv, mca_btl_umr_device_t *device)
{
    (void) ibv;
    device->numa = -1;
}

uint8_t mca_btl_umr_topology_process(const struct ibv_device *device)
{
    (void) device;
    return MCA_BTL_UMR_FAR;
}

/* All that is said has to end, and be readable. */
static int show_help(const char *file, const char *topic, bool header, ...)
{
    const char *text;
    va_list texts;

    (void) file;
    (void) topic;
    (void) header;
    va_start(texts, header);
    for (int i = 0; i < 3; ++i) {
        text = va_arg(texts, const char *);
        FUZZ_CHECK(NULL == text || strlen(text) < SIZE_MAX);
    }
    va_end(texts);
    return 0;
}

void mca_btl_umr_refuse(const char *format, ...)
{
    char why[192];
    va_list texts;

    va_start(texts, format);
    (void) vsnprintf(why, sizeof(why), format, texts);
    va_end(texts);
}

static void check_name(const char *text)
{
    char name[64];
    uint8_t port = 99;

    if (parse_name(text, name, sizeof(name), &port)) {
        FUZZ_CHECK(0 < strlen(name) && sizeof(name) > strlen(name) && 254 >= port
                   && 0 == strncmp(name, text, strlen(name)) && NULL == strchr(name, ':'));
        FUZZ_CHECK((NULL != strchr(text, ':')) == (0 < port));
    }
}

/* All names of a parameter. */
static void check_names(char *text)
{
    candidates_t all = {.list = list, .count = 3};

    mca_btl_umr_params.device = text;
    add_all_named(&all);
    FUZZ_CHECK(all.used <= all.room);
    for (int i = 0; i < all.used; ++i) {
        FUZZ_CHECK(254 >= all.found[i].port);
        for (int j = 0; j < i; ++j) {
            FUZZ_CHECK(all.found[i].device != all.found[j].device
                       || all.found[i].port != all.found[j].port);
        }
    }
    free(all.found);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void) argc;
    (void) argv;
    opal_show_help = show_help;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    FUZZ_CHECK(NULL != text);
    memcpy(text, data, size);
    text[size] = '\0';
    check_name(text);
    check_names(text);
    free(text);
    return 0;
}
