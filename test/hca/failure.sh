#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# Early ends. Few retries, so that the tests do not wait for timeouts of hardware.

. "${srcdir:-.}/common.sh"

few="--mca btl_umr_timeout 12 --mca btl_umr_retry_count 2"
hca "the receiver breaks" "" "$few" broken_by_receiver
hca "the receiver breaks, send queue of 8" "" "$few --mca btl_umr_sq_depth 8" broken_by_receiver
hca "the sender breaks" "" "$few" broken_by_sender
hca "the sender breaks, send queue of 8" delay=200 "$few --mca btl_umr_sq_depth 8" broken_by_sender
hca "the sender breaks between writes" "" "$few --mca btl_umr_sq_depth 8" broken_in_between
hca "mappings fail" "" "$few" hca_fails random_layouts
hca "a write fails" fail_write=300 "$few" failed_write
hca "closed in use" delay=500 "$few --mca btl_umr_sq_depth 8" closed_in_use plain_keys closed_in_use
finish
