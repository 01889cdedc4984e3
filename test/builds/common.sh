# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# shellcheck shell=bash
#
# Read by scripts that build the libraries again with other flags.

# What MPI processes load, as "DIRECTORY TARGET": the common library's parts, then the components.
gpu=opal/mca/common/umrddt_gpu
libraries="opal/datatype/iov_cache $gpu/driver $gpu/kernels:libumrddt_gpu_plan.la $gpu/staging $gpu/engine $gpu/ipc $gpu/rdma
    opal/mca/common/umrddt_select opal/mca/common/umrddt opal/mca/btl/umr ompi/mca/pml/umrddt ompi/mca/coll/umrddt"

# second_build TREE CFLAGS LDFLAGS [DIRECTORY]...: a build tree without objects, configured as this one but for the
# flags. It takes the answers of this one's configure. With directories it has no more than these.
second_build()
{
    local tree=$1 files=() directory
    sed -e "s|^S\[\"CFLAGS\"\]=.*|S[\"CFLAGS\"]=\"$2\"|" -e "s|^S\[\"LDFLAGS\"\]=.*|S[\"LDFLAGS\"]=\"$3\"|" \
        -e "s|^srcdir=.*|srcdir='$UMRDDT_SRCDIR'|" -e "s|^ac_pwd=.*|ac_pwd='$tree'|" \
        "$UMRDDT_BUILDDIR/config.status" >"$tree/config.status" || return 1
    shift 3
    for directory in "$@"; do
        [ ! -e "$UMRDDT_BUILDDIR/$directory/Makefile" ] || files+=("$directory/Makefile")
    done
    [ $# -eq 0 ] || files+=(libtool depfiles)
    (cd "$tree" && "${CONFIG_SHELL:-/bin/sh}" ./config.status "${files[@]}")
}

# components TREE: a directory of its libraries as Open MPI searches it; prints its name
components()
{
    local so
    mkdir -p "$1/components" || return 1
    for so in opal/mca/common/umrddt/.libs/libmca_common_umrddt.so opal/mca/btl/umr/.libs/mca_btl_umr.so \
        ompi/mca/pml/umrddt/.libs/mca_pml_umrddt.so ompi/mca/coll/umrddt/.libs/mca_coll_umrddt.so; do
        [ ! -e "$1/$so" ] || ln -sf "$1/$so" "$1/components/" || return 1
    done
    echo "$1/components"
}
