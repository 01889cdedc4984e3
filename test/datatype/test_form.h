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
 * What the tests of forms of single types have in common.
 */

#ifndef TEST_FORM_H
#define TEST_FORM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "singleton.h"

#include "opal/constants.h"

#include "opal/datatype/iov_cache/iov_cache.h"

#define KIB ((int64_t) 1024)
#define MIB (KIB * KIB)
#define GIB (KIB * KIB * KIB)
#define TIB (KIB * GIB)

/* The form of a type that is consumed. */
static inline opal_iov_cache_form_t *make(MPI_Datatype type, size_t count)
{
    opal_iov_cache_form_t *form = NULL;

    MPI_Type_commit(&type);
    assert_int_equal(OPAL_SUCCESS, opal_iov_cache_form_create(opal_type(type), count, &form));
    assert_null(opal_iov_cache_form_check(form));
    MPI_Type_free(&type);
    return form;
}

static inline MPI_Datatype hvector(MPI_Datatype inner, int count, int64_t stride)
{
    MPI_Datatype type;

    MPI_Type_create_hvector(count, 1, stride, inner, &type);
    if (MPI_BYTE != inner && MPI_DOUBLE != inner && MPI_INT != inner) {
        MPI_Type_free(&inner);
    }
    return type;
}

static inline MPI_Datatype resized(MPI_Datatype inner, int64_t lb, int64_t extent)
{
    MPI_Datatype type;

    MPI_Type_create_resized(inner, lb, extent, &type);
    if (MPI_BYTE != inner && MPI_DOUBLE != inner && MPI_INT != inner) {
        MPI_Type_free(&inner);
    }
    return type;
}

static inline void expect_term(const opal_iov_cache_form_t *form, size_t i, int64_t offset,
                               uint64_t count, int64_t stride, uint64_t size, unsigned kind)
{
    assert_true(i < form->term_count);
    assert_int_equal(offset, form->terms[i].offset);
    assert_int_equal(count, form->terms[i].count);
    assert_int_equal(stride, form->terms[i].stride);
    assert_int_equal(size, form->terms[i].size);
    assert_int_equal(kind, form->terms[i].kind);
}

/* Segments of a range, one asked for at a time. */
static inline void expect_iov(const opal_iov_cache_form_t *form, uint64_t position, int64_t offset,
                              uint64_t length)
{
    opal_iov_cache_iov_t iov;
    uint64_t next;

    assert_int_equal(1, opal_iov_cache_form_iovs(form, position, form->size, &iov, 1, &next));
    assert_int_equal(offset, iov.offset);
    assert_int_equal(length, iov.length);
    assert_int_equal(position + length, next);
}

#endif /* TEST_FORM_H */
