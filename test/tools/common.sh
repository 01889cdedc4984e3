# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# shellcheck shell=bash disable=SC2034
#
# Read by tests: a scratch directory, expect, and the source of Open MPI.

top=$(cd "${srcdir:-$(dirname "$0")}/../.." && pwd) || exit 99
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
failures=0

# expect STATUS TEXT COMMAND...: the command ends with that exit status, and its output has the text.
expect()
{
    local want=$1 text=$2 status
    shift 2
    "$@" >"$scratch/raw" 2>&1 </dev/null
    status=$?
    # The mpirun of 5.0 puts NULs into what a job says that is aborted, and for grep they end lines.
    tr -d '\000' <"$scratch/raw" >"$scratch/output"
    if [ "$status" -ne "$want" ] || [[ "$(cat "$scratch/output")" != *"$text"* ]]; then
        printf 'FAILED: %s\n  exit status %s, expected %s; expected in the output: %s\n' "$*" "$status" \
            "$want" "$text"
        sed 's/^/  | /' "$scratch/output"
        failures=$((failures + 1))
    fi
}

# ompi_tarball RELEASE: sets $source to the source of that Open MPI, a tarball or a tree: UMRDDT_TEST_OMPI_SOURCE in the
# environment (one of both, or a directory with tarballs of several releases), else the tarball of Debian's source package,
# from this machine's mirror. The test is skipped if there is none.
ompi_tarball()
{
    local release=$1 deb=openmpi_${1/rc/~rc}.orig.tar.xz mirror file
    source=${UMRDDT_TEST_OMPI_SOURCE:-}
    if [ -n "$source" ] && [ -d "$source" ] && [ ! -e "$source/VERSION" ]; then
        for file in "$source/openmpi-$release".tar.* "$source/$deb" ''; do
            [ ! -f "$file" ] || break
        done
        source=$file
    fi
    if [ -z "$source" ] && command -v apt-get >/dev/null; then
        # shellcheck disable=SC2016 # apt's own names
        for mirror in $(apt-get indextargets --format '$(CREATED_BY) $(COMPONENT) $(REPO_URI)' |
            awk '"Packages" == $1 && "main" == $2 && !seen[$3]++ { print $3 }'); do
            if /usr/lib/apt/apt-helper download-file "${mirror%/}/pool/main/o/openmpi/$deb" "$scratch/$deb" >/dev/null 2>&1; then
                source=$scratch/$deb
                break
            fi
        done
    fi
    if [ ! -e "$source" ]; then
        echo "SKIPPED: the source of Open MPI $release cannot be fetched (UMRDDT_TEST_OMPI_SOURCE names it)"
        exit 77
    fi
}

# ompi_source RELEASE: ompi_tarball, and $source is one that tar can unpack here.
ompi_source()
{
    local file
    ompi_tarball "$1"
    # tar needs xz for that compression; Python does not.
    case $source in
    *.xz)
        if ! command -v xz >/dev/null; then
            mkdir "$scratch/source"
            file=$source source=
            if python3 -W ignore -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$file" \
                "$scratch/source" >/dev/null 2>&1; then
                source=$(echo "$scratch"/source/*)
            fi
        fi
        ;;
    esac
    if [ ! -e "$source" ]; then
        echo "SKIPPED: the source of Open MPI $1 cannot be fetched (UMRDDT_TEST_OMPI_SOURCE names it)"
        exit 77
    fi
}

finish()
{
    if [ "$failures" -ne 0 ]; then
        echo "$failures failed"
        exit 1
    fi
    exit 0
}
