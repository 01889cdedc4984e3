#!/bin/bash
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# intree.sh [--work DIR] [--jobs N] [--modes dso,static] TARBALL | RELEASE
#
# By hand, half an hour or more: the components are grafted into the source tree of an Open MPI. That is its
# release tarball, or one of a checkout with its submodules; or a release, such as 4.1.4 or 5.0.7, whose
# tarball this machine's Debian mirror has. It is then made by its own autogen.pl, configure and make, twice:
# with components that are loaded at run time (dso), and with components within its libraries (static).
# ompi_info must show the components of each. Where this tree has umrddt_sim (UMRDDT_BUILD, or
# ./.umrddt/build), docs/example.c runs on two processes by UMR, on the software ConnectX.
#
# As little of Open MPI as possible is built. Steps that are done are not done again in the same DIR (default:
# a temporary one, which is deleted). The results of earlier runs are in bench/results/intree.md.

set -u -o pipefail
top=$(cd "$(dirname "$0")/.." && pwd -P) || exit 1
build=${UMRDDT_BUILD:-$top/.umrddt/build}
work='' jobs=2 modes=dso,static
usage()
{
    sed -n '7,17s/^# \{0,1\}//p' "$0"
}
while [ $# -gt 0 ]; do
    case $1 in
    --work | --jobs | --modes) [ $# -ge 2 ] || { usage; exit 2; } ;;&
    --work) work=$2 && shift 2 ;;
    --jobs) jobs=$2 && shift 2 ;;
    --modes) modes=$2 && shift 2 ;;
    -h | --help) usage && exit 0 ;;
    -*) usage && exit 2 ;;
    *) break ;;
    esac
done
[ $# -eq 1 ] || { usage; exit 2; }
if [ -z "$work" ]; then
    work=$(mktemp -d) || exit 99
    trap 'rm -rf "$work"' EXIT
fi
mkdir -p "$work" && work=$(cd "$work" && pwd -P) || exit 99

die()
{
    echo "FAILED: $*"
    exit 1
}

# step NAME WHAT COMMAND...: once in a work directory.
step()
{
    local name=$1 what=$2 begin=$SECONDS
    shift 2
    if [ -e "$work/$name.done" ]; then
        echo "$what: done before ($(cat "$work/$name.done"))"
        return
    fi
    if ! "$@" >"$work/$name.log" 2>&1; then
        tail -n 30 "$work/$name.log"
        die "$what (all of it: $work/$name.log)"
    fi
    echo "$((SECONDS - begin)) s" >"$work/$name.done"
    echo "$what: good ($((SECONDS - begin)) s)"
}

# The tarball of Debian's source package, which every suite that has or had it shares.
fetch()
{
    local mirror
    # shellcheck disable=SC2016 # apt's own names
    for mirror in $(apt-get indextargets --format '$(CREATED_BY) $(COMPONENT) $(REPO_URI)' |
        awk '"Packages" == $1 && "main" == $2 && !seen[$3]++ { print $3 }'); do
        /usr/lib/apt/apt-helper download-file "${mirror%/}/pool/main/o/openmpi/$(basename "$tarball")" \
            "$tarball" && return
    done
    return 1
}

unpack()
{
    mkdir -p "$work/source" && tar -C "$work/source" --strip-components=1 -xf "$tarball"
}

# What autogen.pl can leave out is not the same in the two releases; 5.0's would make its own copies of what
# distributions have. OpenPMIx before 5 (Debian 12) does not do for it. Its mpirun is in PRRTE, which stays.
pmix=external
pkg-config --atleast-version=5 pmix 2>/dev/null || pmix=internal
autogen()
{
    local args=(--force) own=hwloc,libevent
    [ $pmix = internal ] || own+=,openpmix
    case $series in
    4.1) args+=(--no-oshmem --exclude "btl-openib,btl-usnic,io-romio321") ;;
    5.0 | 6.0) args+=(--no-3rdparty "$own") ;;
    esac
    cd "$work/source" && nice ./autogen.pl "${args[@]}"
}

configure()
{
    local args=(--disable-mpi-fortran --disable-io-romio --with-hwloc=external --with-libevent=external --without-ucx
        --without-ofi --without-psm2 --with-umrddt-cuda=no CFLAGS=-O0)
    case $series in
    4.1) args+=(--disable-mpi-cxx --disable-oshmem --disable-man-pages) ;;
    5.0 | 6.0) args+=("--with-pmix=$pmix" --disable-oshmem --disable-sphinx) ;;
    esac
    case $1 in
    dso) args+=(--enable-mca-dso) ;;
    static) args+=(--enable-mca-static) ;;
    esac
    mkdir -p "$work/$1" && cd "$work/$1" && nice "$work/source/configure" "--prefix=$work/prefix-$1" "${args[@]}"
}

make_install()
{
    cd "$work/$1" && nice make -j "$jobs" V=0 install
}

# The components are there, where they belong, as ompi_info and the files of this installation see it.
look()
{
    local prefix=$work/prefix-$1 component
    for component in "pml: umrddt" "coll: umrddt" "btl: umr"; do
        "$prefix/bin/ompi_info" | grep "MCA $component " || { echo "ompi_info does not name $component" && return 1; }
    done
    "$prefix/bin/ompi_info" --param pml umrddt --level 9 | grep -c pml_umrddt_
    [ -s "$prefix/share/openmpi/help-mca-pml-umrddt.txt" ] || return 1
    for component in pml_umrddt coll_umrddt btl_umr; do
        case $1 in
        dso) [ -s "$prefix/lib/openmpi/mca_$component.so" ] || return 1 ;;
        static) [ ! -e "$prefix/lib/openmpi/mca_$component.so" ] || return 1 ;;
        esac
    done
    # What they share is in libopen-pal, once.
    [ "$(nm -D --defined-only "$prefix"/lib/*.so "$prefix"/lib/openmpi/*.so 2>/dev/null |
        grep -c ' opal_umrddt_gpu_engine_get$')" -eq 1 ]
}

# Two processes, by keys of the software HCA.
job()
{
    local prefix=$work/prefix-$1
    "$prefix/bin/mpicc" -o "$work/example-$1" "$top/docs/example.c" || return 1
    "$build/sim/connectx/umrddt_sim" "$prefix/bin/mpirun" --allow-run-as-root --oversubscribe -n 2 --mca pml umrddt \
        --mca pml_umrddt_memory all --mca pml_umrddt_stats 2 --mca pml_umrddt_key_sets 5000 "$work/example-$1"
}

check_job()
{
    [ "$(grep -c ': 0 of 1024 rows are wrong' "$work/job-$1.log")" -eq 2 ] ||
        die "the job's rows are wrong: $work/job-$1.log"
    [ "$(grep -cE ' keys_used +[1-9]' "$work/job-$1.log")" -eq 2 ] ||
        die "no message went by keys: $work/job-$1.log"
    # A parameter is out of range. (6.0 has the texts of messages within its library.)
    grep -q '^A parameter of pml/umrddt is out of range' "$work/job-$1.log" ||
        die "a message has no text: $work/job-$1.log"
}

case $1 in
*[!0-9.]*) tarball=$(realpath -e "$1") || exit 2 ;;
*) tarball=$work/openmpi_$1.orig.tar.xz && step fetch "fetching Open MPI $1 from Debian's mirror" fetch ;;
esac
step unpack "unpacking $(basename "$tarball")" unpack
series=$(sed -n 's/^major=//p' "$work/source/VERSION").$(sed -n 's/^minor=//p' "$work/source/VERSION")
echo "Open MPI $series.$(sed -n 's/^release=//p' "$work/source/VERSION")"
step graft "autogen.pl --graft" "$top/autogen.pl" --graft "$work/source"
step autogen "Open MPI's autogen.pl" autogen
for mode in ${modes//,/ }; do
    step "configure-$mode" "$mode: configure" configure "$mode"
    step "make-$mode" "$mode: make install" make_install "$mode"
    step "look-$mode" "$mode: the components are there" look "$mode"
    if [ -x "$build/sim/connectx/umrddt_sim" ]; then
        step "job-$mode" "$mode: a job by UMR on the software ConnectX" job "$mode"
        check_job "$mode"
    else
        echo "$mode: no job: there is no umrddt_sim in $build"
    fi
done
