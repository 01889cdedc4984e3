dnl Copyright (c) 2026      The umrddt authors. All rights reserved.
dnl SPDX-License-Identifier: BSD-3-Clause
dnl $HEADER$

dnl UMRDDT_DIRS
dnl Where components and help texts go. Substitutes
dnl   componentdir helpdir
dnl   UMRDDT_PMIX_COMPONENTS  OpenPMIx's component directory (5.0, 6.0)
dnl   UMRDDT_PMIX_PINNED      the path of components in OpenPMIx's settings, which mpirun of 5.0 and 6.0 hands on
dnl   UMRDDT_COMPONENT_SH     what to export so that Open MPI looks in $umrddt_components, as lines of shell
AC_DEFUN([UMRDDT_DIRS], [
    AC_ARG_WITH([componentdir],
        [AS_HELP_STRING([--with-componentdir=DIR],
            [where make install puts the components; "ompi": this Open MPI's own component directory
             (default: LIBDIR/openmpi-components)])])
    AC_MSG_CHECKING([where the components will go])
    AS_CASE(["$with_componentdir"],
        [no], [AC_MSG_ERROR([--without-componentdir: the components must go somewhere.])],
        [yes|''], [componentdir='${libdir}/openmpi-components'],
        [ompi], [componentdir="$OMPI_PKGLIBDIR"],
        [/*|'$'*], [componentdir="$with_componentdir"],
        [AC_MSG_ERROR([--with-componentdir=$with_componentdir: give a full path, or "ompi".])])
    AC_MSG_RESULT([$componentdir])
    AC_SUBST([componentdir])
    helpdir='${datadir}/umrddt'
    AC_SUBST([helpdir])

    dnl In 4.1 the path replaces the default one, so the system's directory is named too. In 5.0 and 6.0 mpirun's
    dnl own libraries (PMIx, PRRTE) read the same variable unless they have one of their own.
    OMPI_BINDIR=`dirname "$OMPI_INFO"`
    umrddt_pmix_components=
    for umrddt_dir in "$OMPI_LIBDIR/pmix2/lib/pmix" "`dirname "$OMPI_LIBDIR"`/../pmix2/lib/pmix" "$OMPI_LIBDIR/pmix"; do
        AS_IF([test -z "$umrddt_pmix_components" && test -d "$umrddt_dir"],
              [umrddt_pmix_components=`cd "$umrddt_dir" && pwd`])
    done
    UMRDDT_COMPONENT_SH="OMPI_MCA_mca_base_component_path=\"\$umrddt_components:$OMPI_PKGLIBDIR\"
export OMPI_MCA_mca_base_component_path"
    UMRDDT_PMIX_COMPONENTS=
    UMRDDT_PMIX_PINNED=
    AS_IF([test "$OMPI_SERIES" != 4.1 && test -n "$umrddt_pmix_components"],
          [UMRDDT_PMIX_COMPONENTS="$umrddt_pmix_components"
           UMRDDT_COMPONENT_SH="$UMRDDT_COMPONENT_SH
PMIX_MCA_mca_base_component_path='$umrddt_pmix_components'
export PMIX_MCA_mca_base_component_path"
           umrddt_pmix_prefix=`echo "$umrddt_pmix_components" | $SED 's|/lib[[^/]]*/pmix$||'`
           for umrddt_file in "$umrddt_pmix_prefix/share/pmix-mca-params.conf" "$umrddt_pmix_prefix/etc/pmix-mca-params.conf" \
                              /etc/pmix/pmix-mca-params.conf /etc/pmix-mca-params.conf; do
               AS_IF([test -z "$UMRDDT_PMIX_PINNED" && test -r "$umrddt_file"],
                     [UMRDDT_PMIX_PINNED=`$SED -n 's/^@<:@ \t@:>@*mca_base_component_path@<:@ \t@:>@*=@<:@ \t@:>@*//p' "$umrddt_file" | $SED '$!d'`])
           done])
    AC_SUBST([OMPI_BINDIR])
    AC_SUBST([UMRDDT_PMIX_COMPONENTS])
    AC_SUBST([UMRDDT_PMIX_PINNED])
    AC_SUBST([UMRDDT_COMPONENT_SH])
    AM_SUBST_NOTMAKE([UMRDDT_COMPONENT_SH])
])
