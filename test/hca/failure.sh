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
# A device that failed stays so, hence each by itself.
hca "the device fails without a flush" "" "$few" device_lost
hca "the same, with receives of their own" "" "$few --mca btl_umr_srq_depth 0" device_lost
hca "a completion queue fails" "" "$few" cq_lost
hca "events of the port" "" "$few" port_events 2>port.err
cat port.err
for event in "port error" "GID table change"; do
    if [ "$(grep -c "event of the port: $event (reported once)" port.err)" -ne 1 ]; then
        echo "FAILED: not one line about: $event"
        failures=$((failures + 1))
    fi
done
rm -f port.err
finish
