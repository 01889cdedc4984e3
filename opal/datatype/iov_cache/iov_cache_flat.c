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
 * The portable form. Derived values are not written:
 *
 *     "UDLF", a byte: version
 *     terms, blocks              two numbers
 *     each term                  kind; offset (signed); count; stride (signed) if count > 1;
 *                                dense: size; else: number of terms or blocks
 *     each block                 offset from the one before in its list (signed); length
 *
 * Numbers have seven bits per byte, the lowest first; the eighth bit is set if more follow. Signed
 * numbers have the sign in the lowest bit. Terms are in the order of their array, lists of blocks
 * in the order of a walk of the tree.
 */

#include "opal_config.h"

#include <stdlib.h>
#include <string.h>

#include "opal/constants.h"

#include "iov_cache_list.h"
#include "iov_cache_sums.h"

static const unsigned char magic[4] = {'U', 'D', 'L', 'F'};

/* Minimum bytes of an encoded term and block: limit the allocation by the input size. */
#define LEAST_TERM  4
#define LEAST_BLOCK 2

/* ---------------------------------------------------------------------------------------------
 * Writing
 * ------------------------------------------------------------------------------------------- */

typedef struct {
    unsigned char *at; /* NULL: only count */
    size_t bytes;
} writer_t;

static void put_byte(writer_t *writer, unsigned char byte)
{
    if (NULL != writer->at) {
        writer->at[writer->bytes] = byte;
    }
    ++writer->bytes;
}

static void put(writer_t *writer, uint64_t number)
{
    while (127 < number) {
        put_byte(writer, (unsigned char) (128 | (number & 127)));
        number >>= 7;
    }
    put_byte(writer, (unsigned char) number);
}

static void put_signed(writer_t *writer, int64_t number)
{
    put(writer, ((uint64_t) number << 1) ^ (number < 0 ? UINT64_MAX : 0));
}

static void put_blocks(writer_t *writer, const opal_iov_cache_form_t *form,
                       const opal_iov_cache_term_t *term)
{
    const opal_iov_cache_block_t *blocks = &form->blocks[term->first];
    int64_t before = 0;
    uint64_t i;

    for (i = 0; i < term->n; ++i) {
        /* modulo 2^64, as in decoding */
        put_signed(writer, (int64_t) ((uint64_t) blocks[i].offset - (uint64_t) before));
        put(writer, blocks[i].length);
        before = blocks[i].offset;
    }
}

static void put_lists(writer_t *writer, const opal_iov_cache_form_t *form,
                      const opal_iov_cache_term_t *term)
{
    uint64_t i;

    if (OPAL_IOV_CACHE_BLOCKS == term->kind) {
        put_blocks(writer, form, term);
    } else if (OPAL_IOV_CACHE_TERMS == term->kind) {
        for (i = 0; i < term->n; ++i) {
            put_lists(writer, form, &form->terms[term->first + i]);
        }
    }
}

static void put_form(writer_t *writer, const opal_iov_cache_form_t *form)
{
    size_t i;

    for (i = 0; i < sizeof(magic); ++i) {
        put_byte(writer, magic[i]);
    }
    put_byte(writer, OPAL_IOV_CACHE_FLAT_VERSION);
    put(writer, form->term_count);
    put(writer, form->block_count);
    for (i = 0; i < form->term_count; ++i) {
        const opal_iov_cache_term_t *term = &form->terms[i];

        put_byte(writer, (unsigned char) term->kind);
        put_signed(writer, term->offset);
        put(writer, term->count);
        if (1 < term->count) {
            put_signed(writer, term->stride);
        }
        put(writer, OPAL_IOV_CACHE_DENSE == term->kind ? term->size : term->n);
    }
    if (0 < form->term_count) {
        put_lists(writer, form, &form->terms[0]);
    }
}

size_t opal_iov_cache_form_flatten(const opal_iov_cache_form_t *form, void *flat, size_t room)
{
    writer_t writer = {NULL, 0};

    put_form(&writer, form);
    if (writer.bytes <= room) {
        writer.at = flat;
        writer.bytes = 0;
        put_form(&writer, form);
    }
    return writer.bytes;
}

/* ---------------------------------------------------------------------------------------------
 * Reading
 * ------------------------------------------------------------------------------------------- */

typedef struct {
    const unsigned char *at;
    size_t left;
    bool bad;
} reader_t;

static unsigned char get_byte(reader_t *reader)
{
    if (0 == reader->left) {
        reader->bad = true;
        return 0;
    }
    --reader->left;
    return *reader->at++;
}

static uint64_t get(reader_t *reader)
{
    uint64_t number = 0;
    unsigned shift = 0;
    unsigned char byte;

    do {
        byte = get_byte(reader);
        if (63 < shift || (63 == shift && 1 < (byte & 127)) || (0 < shift && 0 == byte)) {
            reader->bad = true; /* more than 64 bits, or not the shortest encoding */
            return 0;
        }
        number |= (uint64_t) (byte & 127) << shift;
        shift += 7;
    } while (128 & byte);
    return number;
}

static int64_t get_signed(reader_t *reader)
{
    uint64_t number = get(reader);

    return (int64_t) ((number >> 1) ^ (number & 1 ? UINT64_MAX : 0));
}

/* Read the encoded fields of a term. */
static void get_term(reader_t *reader, opal_iov_cache_term_t *term)
{
    term->kind = get_byte(reader);
    term->offset = get_signed(reader);
    term->count = get(reader);
    if (1 < term->count) {
        term->stride = get_signed(reader);
    }
    if (OPAL_IOV_CACHE_DENSE == term->kind) {
        term->size = get(reader);
    } else {
        term->n = get(reader);
    }
}

/* State of the computation of derived values. */
typedef struct {
    opal_iov_cache_form_t *form;
    reader_t *reader;
    size_t terms; /* with a known enclosing body */
    size_t blocks;
} builder_t;

static bool build_terms(builder_t *builder, uint64_t first, uint64_t n, uint32_t level,
                        opal_iov_cache_sums_t *sums);

/* Read a list of blocks. Its canonical form is checked at the end. */
static bool build_blocks(builder_t *builder, opal_iov_cache_term_t *term,
                         opal_iov_cache_sums_t *sums)
{
    uint64_t at = 0, i;

    if (0 == term->n || term->n > builder->form->block_count - builder->blocks) {
        return false;
    }
    term->first = builder->blocks;
    for (i = 0; i < term->n; ++i) {
        opal_iov_cache_block_t *block = &builder->form->blocks[builder->blocks++];
        opal_iov_cache_sums_t one;
        uint64_t size;

        at += (uint64_t) get_signed(builder->reader);
        block->offset = (int64_t) at;
        size = get(builder->reader);
        block->length = size;
        if (builder->reader->bad || 0 == size || size > INT64_MAX - sums->size
            || !opal_iov_cache_sums_block(block->offset, size, &one)) {
            return false;
        }
        (void) opal_iov_cache_sums_add(sums, &one);
    }
    return true;
}

static bool build_term(builder_t *builder, opal_iov_cache_term_t *term, uint32_t level,
                       opal_iov_cache_sums_t *whole)
{
    opal_iov_cache_sums_t body = {0};

    builder->form->depth = level > builder->form->depth ? level : builder->form->depth;
    if (OPAL_IOV_CACHE_MAX_DEPTH < level || 0 == term->count) {
        return false;
    }
    switch (term->kind) {
    case OPAL_IOV_CACHE_DENSE:
        if (0 == term->size || !opal_iov_cache_sums_block(0, term->size, &body)) {
            return false;
        }
        break;
    case OPAL_IOV_CACHE_TERMS:
        if (0 == term->n || term->n > builder->form->term_count - builder->terms) {
            return false;
        }
        term->first = builder->terms;
        if (!build_terms(builder, term->first, term->n, level + 1, &body)) {
            return false;
        }
        break;
    case OPAL_IOV_CACHE_BLOCKS:
        if (!build_blocks(builder, term, &body)) {
            return false;
        }
        break;
    default:
        return false;
    }
    return opal_iov_cache_sums_repeat(term, &body, whole);
}

static bool build_terms(builder_t *builder, uint64_t first, uint64_t n, uint32_t level,
                        opal_iov_cache_sums_t *sums)
{
    uint64_t i;

    builder->terms += n;
    for (i = 0; i < n; ++i) {
        opal_iov_cache_term_t *term = &builder->form->terms[first + i];
        opal_iov_cache_sums_t whole;

        if (!build_term(builder, term, level, &whole)) {
            return false;
        }
        term->start = sums->size;
        term->begins = sums->segments;
        if (opal_iov_cache_sums_add(sums, &whole)) {
            term->flags |= OPAL_IOV_CACHE_JOINED;
        }
        if (INT64_MAX < sums->size) {
            return false;
        }
    }
    return true;
}

static bool build(reader_t *reader, opal_iov_cache_form_t *form)
{
    builder_t builder = {.form = form, .reader = reader};
    opal_iov_cache_sums_t sums = {0};
    size_t i;

    for (i = 0; i < form->term_count; ++i) {
        get_term(reader, &form->terms[i]);
    }
    if (reader->bad || (0 < form->term_count && !build_terms(&builder, 0, 1, 1, &sums))
        || reader->bad || 0 < reader->left) {
        return false;
    }
    form->size = sums.size;
    form->lb = sums.lb;
    form->ub = sums.ub;
    form->segments = sums.segments;
    form->uniform = sums.uniform;
    if (builder.terms != form->term_count || builder.blocks != form->block_count) {
        return false;
    }
    opal_iov_cache_form_index(form);
    return NULL == opal_iov_cache_form_check(form);
}

int opal_iov_cache_form_unflatten(const void *flat, size_t bytes, opal_iov_cache_form_t **form)
{
    reader_t reader = {.at = flat, .left = bytes};
    opal_iov_cache_form_t *made;
    uint64_t terms, blocks;
    size_t i;

    for (i = 0; i < sizeof(magic); ++i) {
        reader.bad = reader.bad || magic[i] != get_byte(&reader);
    }
    if (reader.bad || 0 == reader.left) {
        return OPAL_ERR_BAD_PARAM;
    }
    if (OPAL_IOV_CACHE_FLAT_VERSION != get_byte(&reader)) {
        return OPAL_ERR_NOT_SUPPORTED;
    }
    terms = get(&reader);
    blocks = get(&reader);
    if (reader.bad || terms > reader.left / LEAST_TERM || blocks > reader.left / LEAST_BLOCK) {
        return OPAL_ERR_BAD_PARAM;
    }
    made = opal_iov_cache_form_new((size_t) terms, (size_t) blocks);
    if (NULL == made) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    if (!build(&reader, made)) {
        opal_iov_cache_form_free(made);
        return OPAL_ERR_BAD_PARAM;
    }
    *form = made;
    return OPAL_SUCCESS;
}
