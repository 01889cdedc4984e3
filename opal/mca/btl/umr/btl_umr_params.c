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
 * Registration and limits of the MCA parameters in btl_umr_params.h.
 */

#include "opal_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/base/mca_base_var.h"

#include "opal/mca/btl/umr/btl_umr_params.h"
#include "opal/mca/btl/umr/btl_umr_types.h"
#include "umrddt_params.h"
#include "umrddt_help.h"

mca_btl_umr_params_t mca_btl_umr_params;

/* Storage of the only string; mca_btl_umr_params has a copy. */
static char *device_given;

/* Open MPI's type of each type in the table, and where the MCA base stores the value. */
#define VAR_STRING MCA_BASE_VAR_TYPE_STRING
#define VAR_BOOL   MCA_BASE_VAR_TYPE_BOOL
#define VAR_INT    MCA_BASE_VAR_TYPE_INT
#define VAR_UINT   MCA_BASE_VAR_TYPE_UNSIGNED_INT
#define VAR_SIZE   MCA_BASE_VAR_TYPE_SIZE_T

#define PLACE_STRING(name) name##_given
#define PLACE_BOOL(name)   mca_btl_umr_params.name
#define PLACE_INT(name)    mca_btl_umr_params.name
#define PLACE_UINT(name)   mca_btl_umr_params.name
#define PLACE_SIZE(name)   mca_btl_umr_params.name

/** Register one parameter. @param[in,out] place  the default; then the value in use */
static void add(const char *name, mca_base_var_type_t type, int level, const char *help,
                void *place)
{
    umrddt_params_register(&mca_btl_umr_component.super.btl_version, name, help, type, NULL,
                           (mca_base_var_info_lvl_t) (OPAL_INFO_LVL_1 + level - 1), place);
}

#define ADD(type, name, level, initial, least, most, help) \
    PLACE_##type(name) = initial;                          \
    add(#name, VAR_##type, level, help, &PLACE_##type(name));

void mca_btl_umr_params_register(void)
{
    MCA_BTL_UMR_PARAMS(ADD)
    umrddt_params_unknown("btl_umr_");
}

bool mca_btl_umr_params_open(void)
{
    mca_btl_umr_params.device = strdup(NULL == device_given ? "" : device_given);
    return NULL != mca_btl_umr_params.device;
}

void mca_btl_umr_params_close(void)
{
    free(mca_btl_umr_params.device);
    mca_btl_umr_params.device = NULL;
}

/** Report that @p used is used instead of the user's value. */
static void report(const char *name, long long given, long long used)
{
    char full[64];

    (void) snprintf(full, sizeof(full), "btl_umr_%s", name);
    umrddt_show_help("help-btl-umr.txt", "bad parameter", true, full, given, used);
}

/** @return the nearest allowed value, after a message to the user if it is another one */
static uint64_t nearest(const char *name, uint64_t value, uint64_t least, uint64_t most)
{
    uint64_t used = value < least ? least : value > most ? most : value;

    if (used != value) {
        report(name, (long long) value, (long long) used);
    }
    return used;
}

/** @return the value, or its default, after a message to the user, if it is not allowed */
static int allowed(const char *name, int value, int initial, int least, int most)
{
    if (least <= value && value <= most) {
        return value;
    }
    report(name, value, initial);
    return initial;
}

#define LIMIT(type, name, level, initial, least, most, help) \
    LIMIT_##type(name, initial, least, most)
#define LIMIT_STRING(name, initial, least, most)
#define LIMIT_BOOL(name, initial, least, most)
#define LIMIT_INT(name, initial, least, most) \
    p->name = allowed(#name, p->name, initial, least, most);
#define LIMIT_UINT(name, initial, least, most) \
    p->name = (unsigned int) nearest(#name, p->name, least, most);
#define LIMIT_SIZE(name, initial, least, most) p->name = nearest(#name, p->name, least, most);

void mca_btl_umr_params_check(void)
{
    mca_btl_umr_params_t *p = &mca_btl_umr_params;

    MCA_BTL_UMR_PARAMS(LIMIT)
    if (0 != p->max_entries) {
        p->max_entries = (unsigned int) nearest("max_entries", p->max_entries, 2, 52);
    }
    p->list_bytes &= ~(size_t) 4095;
    if (0 != p->mtu && 256 != p->mtu && 512 != p->mtu && 1024 != p->mtu && 2048 != p->mtu
        && 4096 != p->mtu) {
        report("mtu", p->mtu, 0);
        p->mtu = 0;
    }
}
