#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# Ends before their time. Few retries: nobody waits for a timeout of hardware.

. "${srcdir:-.}/common.sh"

few="--mca btl_umr_timeout 12 --mca btl_umr_retry_count 2"
card "the receiver breaks" "" "$few" broken_by_receiver
card "the receiver breaks, send queue of 8" "" "$few --mca btl_umr_sq_depth 8" broken_by_receiver
card "the sender breaks" "" "$few" broken_by_sender
card "the sender breaks, send queue of 8" delay=200 "$few --mca btl_umr_sq_depth 8" broken_by_sender
card "the sender breaks between writes" "" "$few --mca btl_umr_sq_depth 8" broken_in_between
card "mappings fail" "" "$few" card_fails random_layouts
card "a write fails" fail_write=300 "$few" failed_write
card "closed in use" delay=500 "$few --mca btl_umr_sq_depth 8" closed_in_use plain_keys closed_in_use
finish
