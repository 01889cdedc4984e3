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
 * Layouts: forms with an id, a reference count and a memo for the owner of the cache.
 */

#include "opal_config.h"

#include <string.h>

#include "opal/constants.h"

#include "iov_cache.h"

static void layout_construct(opal_iov_cache_layout_t *layout)
{
    static uint64_t last_id;

    layout->id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
    layout->size = 0;
    layout->lb = 0;
    layout->ub = 0;
    layout->iov_count = 0;
    layout->form = NULL;
    memset(layout->memo, 0, sizeof(layout->memo));
}

static void layout_destruct(opal_iov_cache_layout_t *layout)
{
    opal_iov_cache_form_free(layout->form);
}

OBJ_CLASS_INSTANCE(opal_iov_cache_layout_t, opal_list_item_t, layout_construct, layout_destruct);

int opal_iov_cache_layout_of_form(opal_iov_cache_form_t *form, opal_iov_cache_layout_t **layout)
{
    opal_iov_cache_layout_t *made = OBJ_NEW(opal_iov_cache_layout_t);

    if (NULL == made) {
        opal_iov_cache_form_free(form);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    made->size = form->size;
    made->lb = form->lb;
    made->ub = form->ub;
    made->iov_count = form->segments;
    made->form = form;
    *layout = made;
    return OPAL_SUCCESS;
}

int opal_iov_cache_layout_create(const opal_datatype_t *type, size_t count,
                                 opal_iov_cache_layout_t **layout)
{
    opal_iov_cache_form_t *form;
    int rc = opal_iov_cache_form_create(type, count, &form);

    return OPAL_SUCCESS == rc ? opal_iov_cache_layout_of_form(form, layout) : rc;
}
