#!/bin/bash
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# package.sh [--no-deb | --deb-only] [BUILD]
#
# By hand, some minutes: the tarball of "make dist" (of the build tree BUILD, ./.umrddt/build if none is named) is built and installed with
# autotools that refuse to run; then it is made a Debian package, which lintian has nothing to say about. (It is
# not installed: that would change the machine.) Needs debhelper, lintian and fakeroot for that part, which is left out, and said so, without them.

set -u -o pipefail
top=$(cd "$(dirname "$0")/.." && pwd -P) || exit 1
deb=yes
plain=yes
case "${1:-}" in
--no-deb) deb= && shift ;;
--deb-only) plain= && shift ;;
esac
build=${1:-$top/.umrddt/build}
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT

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

[ -e "$build/config.status" ] || die "$build is not a configured build tree (./quickstart makes one)"
version=$(sed -n 's/^AC_INIT(\[umrddt\], \[\([^]]*\)\].*/\1/p' "$top/configure.ac")
step "make dist" make -C "$build" dist
tarball=$scratch/umrddt-$version.tar.gz
mv "$build/umrddt-$version.tar.gz" "$tarball" || die "there is no tarball"

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
        --with-componentdir="$scratch/prefix/components" --without-cmocka && PATH=$scratch/refuse:$PATH make -j2 install
}
if [ -n "$plain" ]; then
    step "configure, make and make install without autotools" without
    for file in bin/umrddt_info bin/umrddt_bench bin/umrddt_sim components/mca_pml_umrddt.so components/mca_btl_umr.so \
        share/man/man1/umrddt_info.1 share/doc/umrddt/README.md; do
        [ -s "$scratch/prefix/$file" ] || die "make install has not installed $file"
    done
    echo "the tarball builds without autotools"
fi
[ -n "$deb" ] || exit 0

# --- the Debian package ---------------------------------------------------------------------------------------

for tool in dpkg-buildpackage dh lintian fakeroot; do
    if ! command -v "$tool" >/dev/null; then
        echo "skipped: the Debian package: there is no $tool here"
        exit 77
    fi
done
cp "$tarball" "$scratch/openmpi-umrddt_$version.orig.tar.gz"
cp -r "$top/contrib/dist/debian" "$scratch/umrddt-$version/debian"
packaged()
{
    cd "$scratch/umrddt-$version" && dpkg-buildpackage -us -uc -j2
}
step "dpkg-buildpackage" packaged
file=$(echo "$scratch"/openmpi-umrddt_*.deb)
[ -s "$file" ] || die "there is no package"
# The project has no address for mail yet: who uploads it, puts in theirs.
lintian --allow-root --fail-on error,warning --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog \
    "$scratch"/openmpi-umrddt_*.changes || die "lintian complains (above)"
echo "lintian: good"

# The components are where Open MPI looks for them.
dpkg-deb -x "$file" "$scratch/root" || die "the package cannot be unpacked"
dpkg-deb -I "$file" | sed -n 's/^ \(Depends\|Version\): /\1: /p'
pkglibdir=$(ompi_info --path pkglibdir --parsable | sed -n 's/^path:pkglibdir://p')
for component in pml_umrddt btl_umr coll_umrddt; do
    [ -s "$scratch/root$pkglibdir/mca_$component.so" ] || die "mca_$component.so is not in $pkglibdir"
done
echo "the Debian package is built"
