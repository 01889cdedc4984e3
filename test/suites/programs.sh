# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# For the scripts beside this file, which run programs of other projects: how these are fetched and run. To be
# read by bash, in the environment of test/env.sh.

skip() {
    echo "SKIPPED: $*"
    exit 77
}

die() {
    echo "${0##*/}: $*" >&2
    exit 99
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ -n "${UMRDDT_BUILDDIR:-}" ] || die "the environment is not set: . BUILD/test/env.sh"
# What is fetched and built stays there.
cache=${UMRDDT_TEST_PROGRAMS_CACHE:-$UMRDDT_BUILDDIR/test/suites}
python=${PYTHON:-python3}

# pip_of DIRECTORY: sets the array "pip" to the pip of a virtual environment.
pip_of() {
    pip=("$1/venv/bin/python" -m pip --disable-pip-version-check --no-input --retries 1 --timeout 20)
}

# mpi4py_venv [SOURCE]: mpi4py in $mpi4py/venv, with its tests in $mpi4py/source. The source distribution is SOURCE
# (an unpacked one), or comes from PyPI. It is built against the Open MPI in use, once; a mark has the Open MPI of the
# build. Skips the test if that cannot be done.
mpi4py_venv() {
    local source=${1:-} version=4.1.2 mark header pip
    mpi4py=$cache/mpi4py
    command -v "$python" >/dev/null || skip "no python3"
    mkdir -p "$mpi4py" || die "cannot write $mpi4py"
    mark="$("$UMRDDT_OMPI_INFO" --version | head -n 1); $("$python" --version); ${source:-PyPI $version}"
    # Tests that run at once build it once.
    exec 8>"$mpi4py/lock"
    flock 8
    if [ "$(cat "$mpi4py/built" 2>/dev/null)" != "$mark" ]; then
        rm -rf "$mpi4py/venv" "$mpi4py/source" "$mpi4py/built"
        "$here/../limit" --part 300 "$python" -m venv "$mpi4py/venv" >"$mpi4py/build.log" 2>&1 8>&- ||
            skip "python3 -m venv fails (is python3-venv installed?): $(tail -n 1 "$mpi4py/build.log")"
        header=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')/Python.h
        [ -r "$header" ] || skip "no $header (is python3-dev installed?)"
        [ -x "$UMRDDT_MPICC" ] || skip "no $UMRDDT_MPICC"
        pip_of "$mpi4py"
        if [ -n "$source" ]; then
            [ -r "$source/test/main.py" ] || die "$source has no test/main.py: not a source distribution of mpi4py"
            cp -r "$source" "$mpi4py/source" || die "cannot copy $source"
        else
            # pip looks into the metadata of what it downloads, and needs the backend for it; of the source
            # distribution itself nothing is wanted yet.
            timeout 200 "${pip[@]}" download --no-deps --no-binary mpi4py -d "$mpi4py/download" \
                "mpi4py==$version" >>"$mpi4py/build.log" 2>&1 8>&- ||
                skip "mpi4py $version cannot be had from PyPI: $(tail -n 1 "$mpi4py/build.log")"
            mkdir -p "$mpi4py/source"
            tar -xzf "$mpi4py/download/mpi4py-$version.tar.gz" -C "$mpi4py/source" --strip-components=1 ||
                skip "the download of mpi4py $version cannot be unpacked"
        fi
        echo "building mpi4py against $UMRDDT_MPICC ..."
        # -O0: the compiler is what takes the time, and not one test asks for speed.
        MPICC=$UMRDDT_MPICC CFLAGS=-O0 "$here/../limit" --part 900 "${pip[@]}" install --no-deps --no-cache-dir \
            "$mpi4py/source" >>"$mpi4py/build.log" 2>&1 8>&- ||
            skip "mpi4py cannot be built against $UMRDDT_MPICC: see $mpi4py/build.log"
        echo "$mark" >"$mpi4py/built"
    fi
    exec 8>&-
}

# packages NAME...: unpacks packages of this Debian or Ubuntu, and those that they depend on and that are not
# installed, into $root. Nothing is installed. Skips the test if they cannot be had.
packages() {
    local names package work
    root=$cache/packages/$1
    [ ! -e "$root/complete" ] || return 0
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || skip "$1 cannot be had: no apt-get here"
    work=$cache/packages/$1.part
    rm -rf "$work" "$root"
    mkdir -p "$work/debs" || die "cannot write $work"
    names=$(apt-get --simulate --no-install-recommends install "$@" 2>"$work/log" | sed -n 's/^Inst \([^ ]*\) .*/\1/p')
    [ -n "$names" ] || [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ] ||
        skip "the package $1 cannot be had: $(tail -n 1 "$work/log")"
    # shellcheck disable=SC2086 # a list of names
    [ -z "$names" ] || (cd "$work/debs" && timeout 300 apt-get -q download $names) >>"$work/log" 2>&1 ||
        skip "the package $1 cannot be had: $(tail -n 1 "$work/log")"
    for package in "$work"/debs/*.deb; do
        [ ! -e "$package" ] || dpkg-deb -x "$package" "$work" || die "cannot unpack $package"
    done
    rm -rf "$work/debs"
    mv "$work" "$root" && touch "$root/complete"
}

# libraries_of ROOT: the directories with shared libraries of unpacked packages, with colons. (Those of BLAS and LAPACK
# are found by links that only an installation makes.)
libraries_of() {
    find "$1/usr/lib" -name 'lib*.so*' -printf '%h\n' 2>/dev/null | sort -u | paste -s -d :
}

# same_mpi FILE: skips the test if a program or library of a package is for another Open MPI.
same_mpi() {
    local ours theirs
    ours=$("$UMRDDT_OMPI_INFO" --path libdir --parsable | sed -n 's/^path:libdir://p')
    theirs=$(ldd "$1" | awk '$1 ~ /^libmpi\.so/ { print $3 }')
    [ -n "$theirs" ] && [ "$(realpath "$theirs")" -ef "$ours/libmpi.so" ] || skip "${1##*/} is for another Open MPI: ${theirs:-none}"
}

# helpers: compiles the libraries beside this file, for "job".
helpers() {
    local name
    scratch=$(mktemp -d) || exit 99
    trap 'rm -rf "$scratch"' EXIT
    for name in program_counters program_memory; do
        "$UMRDDT_MPICC" -std=gnu11 -O1 -Wall -Wextra -shared -fPIC -o "$scratch/$name.so" "$here/$name.c" -ldl ||
            die "$name.c does not compile"
    done
}

has_pml() {
    "$UMRDDT_OMPI_INFO" --parsable --param pml "$1" --level 9 2>/dev/null | grep -q "^mca:pml:$1:"
}

# job NAME RANKS bare|hca|gpu BASE COMMAND...: runs a program without umrddt; with it on the software HCA, with
# messages in system memory; or on software GPUs, with what program_memory.py puts there. The output is in
# $scratch/NAME.out, and the counters are in $scratch/NAME.counters.RANK. Returns the exit status.
job() {
    local name=$1 ranks=$2 with=$3 base=$4 mca=() prefix=()
    shift 4
    [ "$base" != ucx ] || mca+=(--mca opal_common_ucx_tls any --mca opal_common_ucx_devices any)
    if [ "$with" = bare ]; then
        mca+=(--mca pml "$base")
    else
        mca+=(--mca pml umrddt --mca pml_umrddt_base_pml "$base" "${settings[@]}")
    fi
    # Open MPI's limitation: btl/tcp finds no route from a machine's own address to itself.
    export "OMPI_MCA_btl_tcp_if_include=${OMPI_MCA_btl_tcp_if_include-lo}"
    export UMRDDT_TEST_PRELOAD=$scratch/program_counters.so
    unset UMRDDT_TEST_PROGRAM_MEMORY
    case $with in
    hca)
        prefix=(umrddt_sim)
        mca+=(--mca pml_umrddt_memory all --mca pml_umrddt_min_size 1)
        ;;
    gpu)
        prefix=(umrddt_sim --gpus 2 env -u LD_PRELOAD)
        export UMRDDT_GPU=touch=1 UMRDDT_TEST_PROGRAM_MEMORY=$scratch/program_memory.so
        ;;
    esac
    UMRDDT_TEST_PRELOAD+=${preload:+:$preload}
    UMRDDT_TEST_COUNTERS=$scratch/$name.counters PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1 \
        "$here/../limit" --part "${limit:-300}" "${prefix[@]}" mpirun -n "$ranks" "${mca[@]}" \
        sh -c 'LD_PRELOAD=$UMRDDT_TEST_PRELOAD${LD_PRELOAD:+:$LD_PRELOAD} exec "$@"' sh "$@" >"$scratch/$name.out" 2>&1
}

# counter NAME VARIABLE: the sum over all ranks of a job.
counter() {
    cat "$scratch/$1".counters.* 2>/dev/null | awk -v name="$2" '$1 == name { sum += $2 } END { print sum + 0 }'
}

# wants NAME VARIABLE: fails if the job did not count it.
wants() {
    local value
    value=$(counter "$1" "$2")
    echo "$1: $2 = $value"
    if [ "$value" -eq 0 ]; then
        echo "FAILED: umrddt took no part in $1: $2 is 0"
        cat "$scratch/$1".counters.* 2>/dev/null | sort | uniq -c
        failed=1
    fi
}

# none NAME VARIABLE...: fails if the job counted one of them.
none() {
    local name=$1 variable value
    shift
    for variable in "$@"; do
        value=$(counter "$name" "$variable")
        if [ "$value" -ne 0 ]; then
            echo "FAILED: $name: $variable is $value"
            failed=1
        fi
    done
}

# ended NAME STATUS: fails if a job did not end well.
ended() {
    if [ "$2" -ne 0 ]; then
        tail -n 40 "$scratch/$1.out"
        echo "FAILED: $1 ended with exit status $2"
        failed=1
    fi
}

# More libraries that jobs preload, with colons.
preload=''
settings=()
failed=0
command -v umrddt_sim >/dev/null || skip "no umrddt_sim: configured without libibverbs"
