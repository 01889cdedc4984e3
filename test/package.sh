#!/bin/bash
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# package.sh [--no-deb | --deb-only] [--suite NAME] [--root DIR] [BUILD | TARBALL]
#
# By hand, some minutes: the tarball of "make dist" (of the build tree BUILD, ./.umrddt/build if none is named; or TARBALL) is built
# and installed with autotools that refuse to run; then it is made a Debian package, which lintian has nothing to say about. As root
# the package is installed, with nothing but what it depends on, in a root directory that debootstrap makes of this machine's
# release (DIR, which is kept for the next time; or a temporary one): Open MPI shows the components there, docs/example.c is
# compiled and runs by UMR on umrddt_sim, and the package's removal leaves nothing. This machine's own Open MPI is left alone.
# With --suite (such as trixie) the package is that of another release of this machine's distribution: it is built, and looked at by
# lintian, in a copy of that release's root directory, and installed in another one. (As root; what --no-deb does is left out.)
#
# It needs debhelper, lintian, fakeroot and debootstrap. What cannot be done here is left out, and said: the exit status is 77 then.
# What it said when it was last run is in bench/results/packages.md.

set -u -o pipefail
top=$(cd "$(dirname "$0")/.." && pwd -P) || exit 1
deb=yes plain=yes root='' suite='' build=$top/.umrddt/build
usage()
{
    sed -n '7,18s/^# \{0,1\}//p' "$0"
}
while [ $# -gt 0 ]; do
    case $1 in
    --no-deb) deb= && shift ;;
    --deb-only) plain= && shift ;;
    --root | --suite) [ $# -ge 2 ] || { usage; exit 2; } ;;&
    --root) root=$2 && shift 2 ;;
    --suite) suite=$2 plain='' && shift 2 ;;
    -h | --help) usage && exit 0 ;;
    -*) usage && exit 2 ;;
    *) break ;;
    esac
done
[ $# -le 1 ] || { usage; exit 2; }
[ $# -eq 0 ] || build=$(realpath "$1") || exit 2
[ -z "$root" ] || { mkdir -p "$root" && root=$(realpath "$root"); } || exit 2
scratch=$(mktemp -d) || exit 99
trap 'rm -rf --one-file-system "$scratch"' EXIT

die()
{
    echo "FAILED: $*"
    exit 1
}

# step WHAT COMMAND...
step()
{
    local what=$1 begin=$SECONDS
    shift
    if ! "$@" >"$scratch/log" 2>&1; then
        tail -n 40 "$scratch/log"
        die "$what"
    fi
    echo "$what: good ($((SECONDS - begin)) s)"
}

if [ -f "$build" ]; then
    tarball=$scratch/$(basename "$build")
    cp "$build" "$tarball" || die "there is no tarball"
else
    [ -e "$build/config.status" ] || die "$build is not a configured build tree (./quickstart makes one)"
    name=umrddt-$(sed -n 's/^S\["PACKAGE_VERSION"\]="\(.*\)"/\1/p' "$build/config.status").tar.gz
    tarball=$scratch/$name
    step "make dist" make -C "$build" dist
    mv "$build/$name" "$tarball" || die "there is no tarball"
    step "make dist once more" make -C "$build" dist
    cmp "$build/$name" "$tarball" || die "two tarballs of one tree differ"
    rm "$build/$name"
    echo "two tarballs of one tree are the same"
fi
# A snapshot has a version of its own; debian/changelog has that of the release.
version=$(tar -tzf "$tarball" | sed -n '1s|^umrddt-\([^/]*\)/.*|\1|p')
release=$("$top/contrib/version" --release)

# --- without autotools ----------------------------------------------------------------------------------------

step "unpacking" tar -C "$scratch" -xzf "$tarball"
mkdir "$scratch/refuse"
for tool in aclocal autoconf autoheader automake autoreconf libtoolize autom4te; do
    printf '#!/bin/sh\necho "package.sh: %s was called"\nexit 1\n' "$tool" >"$scratch/refuse/$tool"
    chmod +x "$scratch/refuse/$tool"
done
mkdir "$scratch/plain"
without()
{
    cd "$scratch/plain" && PATH=$scratch/refuse:$PATH "../umrddt-$version/configure" --prefix="$scratch/prefix" \
        --with-componentdir="$scratch/prefix/components" --with-cuda=no --without-cmocka && PATH=$scratch/refuse:$PATH make -j2 install
}
if [ -n "$plain" ]; then
    step "configure, make and make install without autotools" without
    for file in bin/umrddt_info bin/umrddt_bench bin/umrddt_sim components/mca_pml_umrddt.so components/mca_btl_umr.so \
        components/libmca_common_umrddt.so \
        share/man/man1/umrddt_info.1 share/doc/umrddt/README.md; do
        [ -s "$scratch/prefix/$file" ] || die "make install has not installed $file"
    done
    echo "the tarball builds without autotools"
fi
[ -n "$deb" ] || exit 0

# --- root directories of a release -----------------------------------------------------------------------------

ours=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
distribution=$(sed -n 's/^ID=//p' /etc/os-release)
suite=${suite:-$ours}
elsewhere()
{
    [ "$suite" != "$ours" ]
}

cannot()
{
    if elsewhere; then
        echo "skipped: no package for $suite: $*"
    else
        echo "skipped: the package is not installed anywhere: $*"
    fi
    exit 77
}

# The first of the mirrors of this machine's apt that has the release itself, and not a part or a supplement of it.
find_mirror()
{
    # shellcheck disable=SC2016 # apt's own names
    apt-get indextargets --format '$(CREATED_BY) $(COMPONENT) $(REPO_URI)' |
        awk '"Packages" == $1 && "main" == $2 && !seen[$3]++ { print $3 }' |
        while read -r mirror; do
            if /usr/lib/apt/apt-helper -q -q download-file "${mirror%/}/dists/$suite/InRelease" "$scratch/release" >/dev/null 2>&1 &&
                grep -qx "Codename: $suite" "$scratch/release"; then
                echo "${mirror%/}"
                break
            fi
        done
}

make_root()
{
    debootstrap --variant=minbase --force-check-gpg --keyring="/usr/share/keyrings/$distribution-archive-keyring.gpg" \
        "$suite" "$root" "$mirror" || return 1
    echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/umrddt" || return 1
    # As this machine reaches its mirror; no passwords.
    apt-config dump | grep -E '^Acquire::(https?::[Pp]roxy|Retries|Check-)' >"$root/etc/apt/apt.conf.d/90umrddt"
    in_root apt-get update -q && touch "$root/umrddt-package-root"
}

# Mounts are of a namespace of its own, and end with the command, as all processes that it started.
# shellcheck disable=SC2016 # the inner shell's
in_root()
{
    unshare --mount --propagation private --pid --fork --kill-child=KILL bash -c '
        root=$1 && shift
        mount -t proc proc "$root/proc" && mount --rbind /sys "$root/sys" && mount --rbind /dev "$root/dev" &&
            mount -t tmpfs -o mode=1777 umrddt "$root/dev/shm" && mount -t tmpfs -o mode=1777 umrddt "$root/tmp" || exit 99
        exec chroot "$root" /usr/bin/env -i HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"' in_root "$root" "$@"
}

add()
{
    in_root apt-get install -y -q --no-install-recommends "$@"
}

# The root directory that the package will be installed in, if it can be had.
have_root()
{
    [ "$(id -u)" -eq 0 ] || cannot "chroot and mounts need root"
    command -v debootstrap >/dev/null || cannot "there is no debootstrap here"
    unshare --mount --pid --fork true 2>/dev/null || cannot "namespaces are not permitted here"
    [ -n "$root" ] || root=$scratch/installed
    if [ ! -e "$root/umrddt-package-root" ]; then
        mirror=$(find_mirror)
        [ -n "$mirror" ] || cannot "apt has no mirror of $suite here"
        step "a root directory of $distribution $suite" make_root
    fi
    grep -qx "VERSION_CODENAME=$suite" "$root/etc/os-release" || die "$root is that of another release than $suite"
    in_root apt-get purge -y -q openmpi-umrddt >/dev/null 2>&1
}

# --- the Debian package ---------------------------------------------------------------------------------------

# Of another release: in a copy of its root directory, with what debian/control asks for.
building=$scratch/building place=$scratch/package
copy_root()
{
    cp -a --reflink=auto "$root" "$building" && root=$building add dpkg-dev fakeroot lintian
}

# shellcheck disable=SC2016 # the inner shell's
there()
{
    if elsewhere; then
        root=$building in_root sh -c 'cd /root/package && exec "$@"' there "$@"
    else
        (cd "$place" && "$@")
    fi
}

sources()
{
    mkdir "$place" && cp "$tarball" "$place/openmpi-umrddt_$release.orig.tar.gz" && tar -C "$place" -xzf "$tarball" &&
        cp -r "$top/contrib/dist/debian" "$place/umrddt-$version/debian"
}

if elsewhere; then
    have_root
    step "a copy of it to build in" copy_root
    place=$building/root/package
else
    for tool in dpkg-buildpackage dh lintian fakeroot; do
        if ! command -v "$tool" >/dev/null; then
            echo "skipped: the Debian package: there is no $tool here"
            exit 77
        fi
    done
fi
step "the source package" sources
if elsewhere; then
    step "what the package needs to be built" there apt-get build-dep -y -q --no-install-recommends "./umrddt-$version"
fi
step "dpkg-buildpackage" there env -C "umrddt-$version" dpkg-buildpackage -us -uc -j2
file=$(echo "$place"/openmpi-umrddt_*.deb)
[ -s "$file" ] || die "there is no package"
# The project has no address for mail yet: who uploads it, puts in theirs.
there sh -c 'exec lintian --allow-root --fail-on error,warning \
    --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog openmpi-umrddt_*.changes' || die "lintian complains (above)"
echo "lintian: good"

# The components are where Open MPI looks for them.
dpkg-deb -x "$file" "$scratch/root" || die "the package cannot be unpacked"
dpkg-deb -I "$file" | sed -n 's/^ \(Depends\|Version\): /\1: /p'
pkglibdir=$(there ompi_info --path pkglibdir --parsable | sed -n 's/^path:pkglibdir://p')
for component in pml_umrddt btl_umr coll_umrddt; do
    [ -s "$scratch/root$pkglibdir/mca_$component.so" ] || die "mca_$component.so is not in $pkglibdir"
done
[ -s "$scratch/root$pkglibdir/libmca_common_umrddt.so" ] || die "libmca_common_umrddt.so is not in $pkglibdir"
# README.Debian says where they are, for the architecture that it names.
readme=$scratch/root/usr/share/doc/openmpi-umrddt/README.Debian
triplet=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
grep -qxF "    ${pkglibdir//$triplet/x86_64-linux-gnu}" "$readme" || die "README.Debian does not say that components are in $pkglibdir"
echo "the Debian package is built: $(basename "$file"), $(stat -c %s "$file") bytes"

# --- installed, in a root directory of its own -----------------------------------------------------------------

# A user's first command. (umrddt_info is in the package, and reports that this machine has no such HCA: its status is ignored.)
ask()
{
    local component said
    said=$(in_root ompi_info) || return 1
    for component in "pml: umrddt" "btl: umr" "coll: umrddt"; do
        grep "MCA $component " <<<"$said" || { echo "ompi_info does not name $component" && return 1; }
    done
    said=$(in_root ompi_info --param pml umrddt --level 9) && grep -q pml_umrddt_memory <<<"$said" || return 1
    in_root umrddt_sim umrddt_info --selftest
}

# Two processes, by keys of the software HCA. With Debian's Open MPI 5.0 what README.Debian says has to be set, and nothing else.
job()
{
    local set=()
    case $(in_root ompi_info --version) in
    *" v5."*)
        mapfile -t set < <(sed -n "s/^export //p" "$readme" | sed "s/x86_64-linux-gnu/$triplet/g")
        [ ${#set[@]} -eq 2 ] || return 1
        ;;
    esac
    cp "$top/docs/example.c" "$root/root/example.c" && in_root mpicc -Wall -o /root/example /root/example.c || return 1
    in_root "${set[@]}" umrddt_sim mpirun --allow-run-as-root --oversubscribe -n 2 --mca pml umrddt --mca pml_umrddt_memory all \
        --mca pml_umrddt_stats 2 /root/example >"$scratch/job" 2>&1
    local status=$?
    cat "$scratch/job"
    [ $status -eq 0 ] && [ "$(grep -c ': 0 of 1024 rows are wrong' "$scratch/job")" -eq 2 ] &&
        [ "$(grep -cE ' keys_used +[1-9]' "$scratch/job")" -eq 2 ]
}

# contrib/dist/umrddt.modulefile.in, by both programs that read such files. (Each of the two packages removes the other.)
modules()
{
    local package init
    mkdir -p "$root/root/modules" && printf '#%%Module1.0\n' >"$root/root/modules/openmpi" || return 1
    sed -e 's|@PREFIX@|/opt/u|' -e 's|@COMPONENTS@|/opt/u/components|' -e 's|@PKGLIBDIR@|/opt/o|' \
        "$top/contrib/dist/umrddt.modulefile.in" >"$root/root/modules/umrddt" || return 1
    cat >"$root/root/try_module" <<'END'
set -e
. "$1" >/dev/null
module use /root/modules
before=$PATH pages=${MANPATH:-}
module load openmpi
module load umrddt
echo "$OMPI_MCA_mca_base_component_path $PATH"
[ "$OMPI_MCA_mca_base_component_path" = /opt/u/components:/opt/o ]
case $PATH in /opt/u/bin:*) ;; *) exit 1 ;; esac
# One directory alone in it would hide the system's pages.
[ "${MANPATH:-}" = "$pages" ]
module help umrddt 2>&1 | grep -q "mpirun --mca pml umrddt"
module unload umrddt
[ -z "${OMPI_MCA_mca_base_component_path:-}" ]
[ "$PATH" = "$before" ]
END
    for package in environment-modules lmod; do
        add "$package" || return 1
        case $package in
        lmod) init=$(cd "$root" && echo usr/share/lmod/*/init/bash) ;;
        *) init=usr/share/modules/init/bash ;;
        esac
        if ! in_root bash /root/try_module "/${init##* }"; then
            echo "by $package"
            return 1
        fi
    done
}

# No file stays, and the same program runs by Open MPI's own components.
remove()
{
    local name said left=0
    in_root dpkg-query -L openmpi-umrddt >"$scratch/names" && in_root apt-get purge -y -q openmpi-umrddt || return 1
    while read -r name; do
        case $name in
        */umrddt* | */openmpi-umrddt* | */mca_*umr* | */libmca_common_umrddt*) [ ! -e "$root$name" ] || { echo "left behind: $name" && left=1; } ;;
        *) [ -d "$root$name" ] || [ ! -e "$root$name" ] || { echo "left behind: $name" && left=1; } ;;
        esac
    done <"$scratch/names"
    [ $left -eq 0 ] || return 1
    said=$(in_root ompi_info) || return 1
    ! grep umr <<<"$said" || return 1
    in_root mpirun --allow-run-as-root --oversubscribe -n 2 /root/example
}

elsewhere || have_root
cp "$file" "$root/root/openmpi-umrddt.deb" || die "$root cannot be written"
step "the package is installed, with what it depends on" add /root/openmpi-umrddt.deb
step "Open MPI shows the components, and the software hca is good" ask
step "a compiler and Open MPI's headers are installed" add gcc libc6-dev libopenmpi-dev
step "docs/example.c is compiled, and goes by UMR on the software hca" job
step "the modulefile is good for Environment Modules and Lmod" modules
step "the package is removed, and leaves nothing" remove
echo "the Debian package installs, works and goes"
