#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# btl/umr as a btl: put, get, atomics and flush for users of the framework.

NO_MKEYS=1
. "${srcdir:-.}/common.sh"
messages="random_layouts plain_keys"
[ "${UMRDDT_TEST_DEVICE:-}" != no-umr ] || messages=

hca "not asked for" "" "" module_off
OMPI_MCA_btl_umr_rdma=1
export OMPI_MCA_btl_umr_rdma
hca "as it comes" "" "" module_contract module_bytes module_atomics module_passive \
    module_registrations
hca "RoCE, a device each" link=eth,devices=2 "" module_bytes module_atomics
OMPI_MCA_btl_umr_rdma_depth=2
export OMPI_MCA_btl_umr_rdma_depth
hca "two operations at once, late" delay=20 "" module_bytes module_atomics
unset OMPI_MCA_btl_umr_rdma_depth
OMPI_MCA_btl_umr_reg_cache_size=1048576
export OMPI_MCA_btl_umr_reg_cache_size
# shellcheck disable=SC2086 # names
hca "a bound on what is registered; messages between" "" "" module_registrations module_bytes $messages module_bytes
unset OMPI_MCA_btl_umr_reg_cache_size
hca "what is not allowed" "" "" module_refused module_unposted module_bytes
if [ -n "$messages" ]; then
    hca "the HCA fails" "" "" module_lost
fi
HCA_THREADS=1
export HCA_THREADS
hca "threads" "" "" module_threads
finish
