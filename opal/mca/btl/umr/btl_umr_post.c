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
 * Mappings of keysets: their work requests and completions.
 *
 * A keyset that needs mkeys passes through three queues: waiting (no room yet for all its mappings
 * in the queue pair), posted, and done (its user must be notified). The queue pair works in order,
 * so the first two are FIFOs.
 */

#include "opal_config.h"

#include <string.h>

#include "opal/util/output.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_post.h"

/** Some of their mappings may have been executed. */
static void forget_contents(mca_btl_umr_mapping_t *mappings, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        if (NULL != mappings[i].mkey) {
            mappings[i].mkey->unknown = true;
        }
    }
}

void mca_btl_umr_keysets_fail(mca_btl_umr_hca_t *hca)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    mca_btl_umr_keyset_object_t *keyset;

    hca->failed = true;
    /* Posted mappings must not be executed later. (The queue pair may be in ERR already.) */
    if (NULL != hca->mkeys.sq.qp) {
        (void) ibv_modify_qp(hca->mkeys.sq.qp, &attr, IBV_QP_STATE);
    }
    if (mca_btl_umr_rebuild_failed(&hca->mkeys.rebuild, hca->mkeys.sq.done)) {
        MCA_BTL_UMR_LOG(hca, "mapping has failed %u times in a row: this HCA maps no more mkeys",
                        hca->mkeys.rebuild.tries);
    }
    /* No completion is expected any more. */
    hca->mkeys.sq.done = hca->mkeys.sq.posted;
    while (NULL != (keyset = mca_btl_umr_keyset_queue_pop(&hca->keysets_posted))
           || NULL != (keyset = mca_btl_umr_keyset_queue_pop(&hca->keysets_waiting))) {
        forget_contents(keyset->mappings, keyset->pub.count);
        forget_contents(keyset->inners, keyset->inner_count);
        keyset->status = OPAL_ERROR;
        mca_btl_umr_keyset_queue_append(&hca->keysets_done, keyset);
    }
    hca->events->maps_failed(hca);
}

bool mca_btl_umr_keysets_recover(mca_btl_umr_hca_t *hca)
{
    int err;

    if (!hca->failed) {
        return true;
    }
    if (hca->lost || !mca_btl_umr_rebuild_due(&hca->mkeys.rebuild)) {
        return false;
    }
    /*
     * Destroying the old queue pair drops its pending requests and completions. Half-executed
     * mappings belong to keysets that end with an error and are destroyed with them; free mkeys
     * were destroyed at the failure.
     */
    err = mca_btl_umr_mkeys_qp_anew(hca);
    if (0 != err) {
        if (mca_btl_umr_rebuild_failed(&hca->mkeys.rebuild, 0)) {
            MCA_BTL_UMR_LOG(hca, "the queue pair for mappings cannot be replaced: %s",
                            strerror(err));
        }
        return false;
    }
    ++hca->stats.maps_rebuilt;
    hca->failed = false;
    return true;
}

/** Pieces of memory in a window, up to @p max from @p position on. @return number of pieces */
static size_t pieces(const mca_btl_umr_keyset_object_t *keyset,
                     const opal_iov_cache_window_t *window, uint64_t *position,
                     struct ibv_sge *sges, size_t max)
{
    opal_iov_cache_iov_t room[MCA_BTL_UMR_ENTRIES_AT_ONCE];
    const opal_iov_cache_iov_t *iovs;
    size_t count;

    iovs = opal_iov_cache_form_view(keyset->layout->form, *position, window->start + window->length,
                                    room, max, &count, position);

    for (size_t k = 0; k < count; ++k) {
        sges[k].addr = (uintptr_t) keyset->name.buffer + (uint64_t) iovs[k].offset;
        sges[k].length = (uint32_t) iovs[k].length;
        sges[k].lkey = mca_btl_umr_memory_find(keyset->memory, (uintptr_t) sges[k].addr)->lkey;
    }
    return count;
}

/** The entries of a mapping's list, up to MCA_BTL_UMR_ENTRIES_AT_ONCE from @p position on. */
static size_t entries_at(const mca_btl_umr_keyset_object_t *keyset,
                         const mca_btl_umr_mapping_t *mapping, uint64_t *position,
                         struct ibv_sge *sges)
{
    const mca_btl_umr_mapping_t *inner = keyset->inners + mapping->inner_first;
    size_t count = 0;

    if (0 == mapping->inner_count) {
        return pieces(keyset, &mapping->window, position, sges, MCA_BTL_UMR_ENTRIES_AT_ONCE);
    }
    for (size_t k = 0; k < mapping->inner_count && MCA_BTL_UMR_ENTRIES_AT_ONCE > count; ++k) {
        if (inner[k].window.start < *position) {
            continue;
        }
        if (NULL == inner[k].mkey) {
            count += pieces(keyset, &inner[k].window, position, &sges[count], 1);
        } else {
            /* Zero-based, as a peer would use it. */
            sges[count].addr = 0;
            sges[count].length = (uint32_t) inner[k].window.length;
            sges[count].lkey = inner[k].mkey->dv->lkey;
            ++count;
            *position = inner[k].window.start + inner[k].window.length;
        }
    }
    return count;
}

/** As keyset_build, with a non-inline list. */
static bool build_long(mca_btl_umr_keyset_object_t *keyset, const mca_btl_umr_mapping_t *mapping)
{
    mca_btl_umr_hca_t *hca = keyset->hca;
    const opal_iov_cache_window_t *window = &mapping->window;
    struct ibv_sge sges[MCA_BTL_UMR_ENTRIES_AT_ONCE];
    uint64_t position = window->start;
    uint32_t entries = 0;
    struct mlx5_wqe_data_seg *list = mca_btl_umr_klm_list(hca, (uint32_t) window->iov_count);

    if (NULL == list) {
        return false;
    }
    while (position < window->start + window->length) {
        size_t count = entries_at(keyset, mapping, &position, sges);

        for (size_t k = 0; k < count; ++k) {
            mca_btl_umr_klm_set(&list[entries++], sges[k].addr, sges[k].length, sges[k].lkey);
        }
    }
    keyset->last_seq =
        mca_btl_umr_klm_build_map(mapping->mkey, keyset->name.role, entries, window->length, list);
    hca->stats.key_entries += entries;
    return true;
}

/** Build one mapping. @return false: retry later, no memory for its list */
static bool build(mca_btl_umr_keyset_object_t *keyset, const mca_btl_umr_mapping_t *mapping,
                  bool last)
{
    mca_btl_umr_hca_t *hca = keyset->hca;
    struct ibv_sge sges[MCA_BTL_UMR_ENTRIES_AT_ONCE];
    uint64_t position = mapping->window.start;
    size_t count;

    if (0 < mapping->stride) {
        uintptr_t addr = (uintptr_t) keyset->name.buffer
                         + (uintptr_t) opal_iov_cache_form_offset(keyset->layout->form, position);

        keyset->last_seq = mca_btl_umr_mkey_build_strided(
            mapping->mkey, keyset->name.role, addr,
            mca_btl_umr_memory_find(keyset->memory, addr)->lkey, mapping->block, mapping->stride,
            (uint32_t) (mapping->window.length / mapping->block), last);
        ++hca->stats.key_entries;
    } else if (hca->mkeys.entries < mapping->window.iov_count) {
        if (!build_long(keyset, mapping)) {
            return false;
        }
    } else {
        count = entries_at(keyset, mapping, &position, sges);
        keyset->last_seq = mca_btl_umr_mkey_build_map(mapping->mkey, keyset->name.role,
                                                      (uint16_t) count, sges, last);
        hca->stats.key_entries += count;
    }
    ++hca->stats.keys_mapped;
    hca->stats.keys_nested += 0 < mapping->inner_count ? 1 : 0;
    return true;
}

/** The first key from @p i on that is not plain; count if there is none. */
static size_t keyset_next_mapped(const mca_btl_umr_keyset_object_t *keyset, size_t i)
{
    while (i < keyset->pub.count && NULL == keyset->mappings[i].mkey) {
        ++i;
    }
    return i;
}

/** The first window below a key from @p i on that is not plain. */
static size_t next_inner(const mca_btl_umr_keyset_object_t *keyset, size_t key, size_t i)
{
    const mca_btl_umr_mapping_t *mapping = &keyset->mappings[key];

    while (i < mapping->inner_count && NULL == keyset->inners[mapping->inner_first + i].mkey) {
        ++i;
    }
    return i;
}

/** Advance to the next key that is not plain, and to the first window below it. */
static void keyset_go_to(mca_btl_umr_keyset_object_t *keyset, size_t key)
{
    keyset->next_post = keyset_next_mapped(keyset, key);
    keyset->next_inner =
        keyset->next_post < keyset->pub.count ? next_inner(keyset, keyset->next_post, 0) : 0;
}

/**
 * Build the next mapping of a keyset: the windows below a key, then the key.
 *
 * @return false: retry later, no memory for its list
 */
static bool keyset_build(mca_btl_umr_keyset_object_t *keyset)
{
    mca_btl_umr_hca_t *hca = keyset->hca;
    const mca_btl_umr_mapping_t *mapping = &keyset->mappings[keyset->next_post];
    /* The next mapping may wait for memory and be cancelled: this one needs a completion then. */
    bool wanted = 0 < hca->klm.list_count;

    if (keyset->next_inner < mapping->inner_count) {
        if (!build(keyset, &keyset->inners[mapping->inner_first + keyset->next_inner], wanted)) {
            return false;
        }
        keyset->next_inner = next_inner(keyset, keyset->next_post, keyset->next_inner + 1);
        return true;
    }
    wanted = wanted || keyset_next_mapped(keyset, keyset->next_post + 1) == keyset->pub.count;
    if (!build(keyset, mapping, wanted)) {
        return false;
    }
    keyset_go_to(keyset, keyset->next_post + 1);
    return true;
}

void mca_btl_umr_keysets_post(mca_btl_umr_hca_t *hca)
{
    mca_btl_umr_mkeys_t *mkeys = &hca->mkeys;
    mca_btl_umr_sq_t *sq = &mkeys->sq;
    mca_btl_umr_keyset_object_t *keyset;
    int err;

    if (hca->failed || 0 == mca_btl_umr_sq_room(sq)
        || (opal_list_is_empty(&mkeys->invalid) && NULL == hca->keysets_waiting.head)) {
        return;
    }

    ibv_wr_start(sq->qpx);
    while (0 < mca_btl_umr_sq_room(sq) && !opal_list_is_empty(&mkeys->invalid)) {
        mca_btl_umr_mkey_t *mkey = (mca_btl_umr_mkey_t *) opal_list_remove_first(&mkeys->invalid);

        /* Before a long mkey can be destroyed, this work request must be complete. */
        mkey->last_seq = mca_btl_umr_mkey_build_invalidate(mkey, NULL != mkey->class);
        mca_btl_umr_mkey_idle(mkey);
    }
    while (0 < mca_btl_umr_sq_room(sq) && NULL != (keyset = hca->keysets_waiting.head)) {
        if (!keyset_build(keyset)) {
            break; /* a completion releases memory */
        }
        if (keyset->next_post == keyset->pub.count) {
            mca_btl_umr_keyset_queue_append(&hca->keysets_posted,
                                            mca_btl_umr_keyset_queue_pop(&hca->keysets_waiting));
        }
    }
    err = ibv_wr_complete(sq->qpx);
    if (0 != err) {
        /* None of the batch was posted, but the counters include it: the queue pair is lost. */
        ++hca->stats.errors;
        MCA_BTL_UMR_LOG(hca, "mkeys cannot be mapped (UMR): %s", strerror(err));
        mca_btl_umr_keysets_fail(hca);
    }
}

int mca_btl_umr_keysets_poll(mca_btl_umr_hca_t *hca)
{
    struct ibv_wc wc[16];
    int count, events = 0;

    if (NULL == hca->mkeys.cq || hca->mkeys.sq.posted == hca->mkeys.sq.done) {
        return 0;
    }
    count = ibv_poll_cq(hca->mkeys.cq, 16, wc);
    for (int i = 0; i < count && !hca->failed; ++i) {
        if (IBV_WC_SUCCESS == wc[i].status) {
            mca_btl_umr_sq_complete(&hca->mkeys.sq, MCA_BTL_UMR_WR_SEQ(wc[i].wr_id));
            mca_btl_umr_klm_destroy_retired(hca);
        } else {
            ++hca->stats.errors;
            MCA_BTL_UMR_LOG(hca, "mapping an mkey (UMR) failed: %s (vendor error 0x%x)",
                            ibv_wc_status_str(wc[i].status), wc[i].vendor_err);
            mca_btl_umr_keysets_fail(hca);
        }
    }
    if (!hca->failed) {
        mca_btl_umr_keyset_object_t *keyset;

        while (NULL != (keyset = hca->keysets_posted.head)
               && mca_btl_umr_sq_is_done(&hca->mkeys.sq, keyset->last_seq)) {
            keyset->status = OPAL_SUCCESS;
            mca_btl_umr_keyset_queue_append(&hca->keysets_done,
                                            mca_btl_umr_keyset_queue_pop(&hca->keysets_posted));
            ++events;
        }
    }
    return events + (0 < count ? count : 0);
}

void mca_btl_umr_keyset_prepare(mca_btl_umr_keyset_object_t *keyset)
{
    keyset_go_to(keyset, 0);
}

void mca_btl_umr_keyset_post(mca_btl_umr_keyset_object_t *keyset)
{
    mca_btl_umr_keyset_queue_append(&keyset->hca->keysets_waiting, keyset);
    mca_btl_umr_keysets_post(keyset->hca);
}

bool mca_btl_umr_keyset_withdraw(mca_btl_umr_keyset_object_t *keyset)
{
    mca_btl_umr_hca_t *hca = keyset->hca;
    mca_btl_umr_keyset_object_t *other, *before = NULL;
    mca_btl_umr_keyset_queue_t *queue = &hca->keysets_waiting;

    for (other = queue->head; NULL != other && other != keyset; other = other->next) {
        before = other;
    }
    if (NULL == other) {
        return false;
    }
    if (NULL == before) {
        queue->head = keyset->next;
    } else {
        before->next = keyset->next;
    }
    if (queue->tail == keyset) {
        queue->tail = before;
    }
    keyset->next = NULL;
    if (keyset->next_post == keyset_next_mapped(keyset, 0)
        && keyset->next_inner == next_inner(keyset, keyset->next_post, 0)) {
        return true;
    }
    mca_btl_umr_keyset_queue_append(&hca->keysets_posted, keyset);
    return false;
}
