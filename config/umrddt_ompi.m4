dnl Copyright (c) 2026      The umrddt authors. All rights reserved.
dnl SPDX-License-Identifier: BSD-3-Clause
dnl $HEADER$

dnl UMRDDT_CHECK_OMPI
dnl Finds the Open MPI to build for, and proves that its library and its devel headers are there and
dnl are of one release. Sets and substitutes:
dnl   OMPI_INFO OMPI_MPICC OMPI_MPIRUN   its tools
dnl   OMPI_RELEASE OMPI_SERIES           "4.1.4", "4.1"
dnl   OMPI_PKGLIBDIR OMPI_PKGDATADIR OMPI_LIBDIR
dnl   OMPI_CPPFLAGS                      mpi.h and the devel headers
dnl   OMPI_LDFLAGS OMPI_LIBS             -lmpi for MPI programs (6.0: -lopen_mpi too)
dnl   OMPI_COMPONENT_LIBS                the same with -lopen-pal, for components
AC_DEFUN([UMRDDT_CHECK_OMPI], [
    AC_ARG_WITH([ompi],
        [AS_HELP_STRING([--with-ompi=DIR],
            [the Open MPI to build for: its prefix, with bin/ompi_info below it
             (default: the one of ompi_info or mpicc on PATH)])])
    AC_ARG_WITH([devel-headers],
        [AS_HELP_STRING([--with-devel-headers=DIR],
            [where that Open MPI's devel headers are: the directory that has openmpi/opal_config.h
             (default: its include directory)])])

    umrddt_ompi_bin=
    AS_CASE(["$with_ompi"],
        [no], [AC_MSG_ERROR([umrddt consists of components of Open MPI: --without-ompi leaves nothing to build.])],
        [yes|''], [],
        [AS_IF([test ! -d "$with_ompi"],
               [AC_MSG_ERROR([--with-ompi=$with_ompi: there is no such directory.])])
         umrddt_ompi_bin="$with_ompi/bin"
         AS_IF([test ! -x "$umrddt_ompi_bin/ompi_info"],
               [AC_MSG_ERROR([--with-ompi=$with_ompi: there is no bin/ompi_info below it; give the prefix that this Open MPI was installed to.])])])

    AS_IF([test -n "$umrddt_ompi_bin"],
          [OMPI_INFO="$umrddt_ompi_bin/ompi_info"],
          [AC_PATH_PROG([OMPI_INFO], [ompi_info])
           dnl Distributions with alternatives may have mpicc of Open MPI under another name only.
           AS_IF([test -z "$OMPI_INFO"],
                 [AC_PATH_PROG([umrddt_mpicc], [mpicc])
                  AS_IF([test -n "$umrddt_mpicc"],
                        [umrddt_ompi_bin=`"$umrddt_mpicc" --showme:command >/dev/null 2>&1 && dirname "$umrddt_mpicc"`
                         AS_IF([test -n "$umrddt_ompi_bin" && test -x "$umrddt_ompi_bin/ompi_info"],
                               [OMPI_INFO="$umrddt_ompi_bin/ompi_info"])])])])
    AS_IF([test -z "$OMPI_INFO"],
          [AC_MSG_ERROR([no Open MPI was found: neither ompi_info nor an Open MPI mpicc is on PATH. Install it (Debian and Ubuntu: apt-get install openmpi-bin libopenmpi-dev) or name it with --with-ompi=DIR.])])
    umrddt_ompi_bin=`dirname "$OMPI_INFO"`
    for umrddt_name in mpicc.openmpi mpicc; do
        AS_IF([test -z "$OMPI_MPICC" && test -x "$umrddt_ompi_bin/$umrddt_name"],
              [OMPI_MPICC="$umrddt_ompi_bin/$umrddt_name"])
    done
    for umrddt_name in mpirun.openmpi mpirun; do
        AS_IF([test -z "$OMPI_MPIRUN" && test -x "$umrddt_ompi_bin/$umrddt_name"],
              [OMPI_MPIRUN="$umrddt_ompi_bin/$umrddt_name"])
    done

    dnl Answers of the library in use (not of the headers).
    AC_MSG_CHECKING([release of Open MPI ($OMPI_INFO)])
    OMPI_RELEASE=`"$OMPI_INFO" --version 2>/dev/null | $SED -n 's/^Open MPI v//p' | $SED 1q`
    AC_MSG_RESULT([${OMPI_RELEASE:-unknown}])
    AS_IF([test -z "$OMPI_RELEASE"],
          [AC_MSG_ERROR([$OMPI_INFO --version does not print a release ("Open MPI v..."): is it an Open MPI that can run here?])])
    OMPI_SERIES=`echo "$OMPI_RELEASE" | $SED 's/^\([[0-9]]*\.[[0-9]]*\).*/\1/'`
    AS_CASE(["$OMPI_SERIES"],
        [4.1|5.0|6.0], [],
        [AC_MSG_ERROR([umrddt builds for Open MPI 4.1.x, 5.0.x and 6.0.x, and this one is $OMPI_RELEASE: install one of these releases and name it with --with-ompi=DIR.])])

    umrddt_path() { "$OMPI_INFO" --path "$[]1" --parsable 2>/dev/null | $SED -n "s/^path:$[]1://p" | $SED 1q; }
    OMPI_PKGLIBDIR=`umrddt_path pkglibdir`
    OMPI_PKGDATADIR=`umrddt_path pkgdatadir`
    OMPI_LIBDIR=`umrddt_path libdir`
    umrddt_incdir=`umrddt_path incdir`
    AS_IF([test -z "$OMPI_PKGLIBDIR" || test -z "$OMPI_LIBDIR" || test -z "$umrddt_incdir"],
          [AC_MSG_ERROR([$OMPI_INFO --path does not print this Open MPI's directories.])])

    AS_CASE(["$with_devel_headers"],
        [yes|no|''], [],
        [umrddt_incdir="$with_devel_headers"])
    UMRDDT_OMPI_SOURCE
    AC_MSG_CHECKING([for the devel headers of Open MPI])
    umrddt_missing=
    for umrddt_header in openmpi/opal_config.h openmpi/opal/mca/btl/btl.h \
                         openmpi/opal/datatype/opal_convertor.h openmpi/ompi/mca/pml/pml.h \
                         openmpi/ompi/mca/pml/base/base.h; do
        AS_IF([test ! -r "$umrddt_incdir/$umrddt_header"],
              [umrddt_missing="$umrddt_missing $umrddt_header"])
    done
    AS_IF([test -n "$umrddt_missing"],
          [AC_MSG_RESULT([no])
           AC_MSG_ERROR([$umrddt_incdir lacks$umrddt_missing: install the devel headers (Debian and Ubuntu: apt-get install libopenmpi-dev; a build of your own: configure Open MPI with --with-devel-headers), or name the directory of the headers with --with-devel-headers=DIR, or let configure make them: download the tarball of Open MPI $OMPI_RELEASE (https://www.open-mpi.org/software), and add --with-ompi-source=TARBALL.])])
    AC_MSG_RESULT([$umrddt_incdir/openmpi])

    dnl As system headers: the warnings in them are not ours.
    umrddt_i=-I
    AS_IF([test "x$GCC" = xyes], [umrddt_i="-isystem "])
    OMPI_CPPFLAGS="$umrddt_i$umrddt_incdir $umrddt_i$umrddt_incdir/openmpi"
    UMRDDT_OMPI_INCLUDES
    dnl Debian's packages of 5.0 and 6.0 lack headers that its own opal_config.h names.
    umrddt_standin=
    AS_IF([test "$OMPI_SERIES" != 4.1 &&
           test ! -r "$umrddt_incdir/openmpi/opal/mca/threads/pthreads/threads_pthreads_mutex.h" &&
           $GREP 'threads/pthreads/threads_pthreads_mutex.h' "$umrddt_incdir/openmpi/opal_config.h" >/dev/null],
          [umrddt_standin=`cd "$srcdir/opal/include/openmpi-5.0" && pwd`
           AC_MSG_NOTICE([Open MPI's own threads_pthreads_*.h are missing; taking the stand-ins in opal/include/openmpi-5.0])
           OMPI_CPPFLAGS="$OMPI_CPPFLAGS $umrddt_i$umrddt_standin"])
    OMPI_LDFLAGS="-L$OMPI_LIBDIR"
    dnl A distribution's libraries are found without help; others are not.
    AS_CASE(["$OMPI_LIBDIR"],
        [/usr/lib/*|/usr/lib64/*|/usr/lib|/usr/lib64|/lib/*], [],
        [OMPI_LDFLAGS="$OMPI_LDFLAGS -Wl,-rpath,$OMPI_LIBDIR"])
    dnl An undefined symbol is an error of the build, and not of the first call.
    umrddt_save_LDFLAGS="$LDFLAGS"
    LDFLAGS="$LDFLAGS -Wl,-z,defs"
    AC_MSG_CHECKING([whether the linker takes -z defs])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
        [AC_MSG_RESULT([yes])
         OMPI_LDFLAGS="$OMPI_LDFLAGS -Wl,-z,defs"],
        [AC_MSG_RESULT([no])])
    LDFLAGS="$umrddt_save_LDFLAGS"
    OMPI_LIBS="-lmpi"
    OMPI_COMPONENT_LIBS="-lmpi -lopen-pal"
    dnl 4.1 prints names of processes by its run-time library. From 6.0 on, libmpi has MPI's functions only; what
    dnl MPI_INT and other handles are is in libopen_mpi.
    AS_CASE(["$OMPI_SERIES"],
        [4.1], [OMPI_COMPONENT_LIBS="-lmpi -lopen-rte -lopen-pal"],
        [6.0],
            [OMPI_LIBS="-lmpi -lopen_mpi"
             OMPI_COMPONENT_LIBS="-lmpi -lopen_mpi -lopen-pal"])

    umrddt_save_CPPFLAGS="$CPPFLAGS"
    umrddt_save_LDFLAGS="$LDFLAGS"
    umrddt_save_LIBS="$LIBS"
    CPPFLAGS="$CPPFLAGS $OMPI_CPPFLAGS"
    LDFLAGS="$LDFLAGS $OMPI_LDFLAGS"
    LIBS="$OMPI_COMPONENT_LIBS $LIBS"

    AC_MSG_CHECKING([release of the devel headers])
    AC_COMPUTE_INT([umrddt_h_major], [OMPI_MAJOR_VERSION], [#include "opal_config.h"], [umrddt_h_major=-1])
    AC_COMPUTE_INT([umrddt_h_minor], [OMPI_MINOR_VERSION], [#include "opal_config.h"], [umrddt_h_minor=-1])
    AC_COMPUTE_INT([umrddt_h_release], [OMPI_RELEASE_VERSION], [#include "opal_config.h"], [umrddt_h_release=-1])
    umrddt_headers="$umrddt_h_major.$umrddt_h_minor.$umrddt_h_release"
    AC_MSG_RESULT([$umrddt_headers])
    umrddt_plain=`echo "$OMPI_RELEASE" | $SED 's/^\([[0-9]]*\.[[0-9]]*\.[[0-9]]*\).*/\1/'`
    AS_IF([test "x$umrddt_headers" != "x$umrddt_plain"],
          [AC_MSG_ERROR([the devel headers in $umrddt_incdir/openmpi are of Open MPI $umrddt_headers, and $OMPI_INFO is of $OMPI_RELEASE: components built so would break. Name the headers of this release with --with-devel-headers=DIR, or the other Open MPI with --with-ompi=DIR.])])

    AC_MSG_CHECKING([whether a program links with $OMPI_COMPONENT_LIBS])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[
#include "opal_config.h"
#include "opal/util/show_help.h"
#include <mpi.h>
]], [[return MPI_Finalize() + opal_show_help_add_dir("/");]])],
        [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
         AC_MSG_ERROR([a program with Open MPI's devel headers does not link with -L$OMPI_LIBDIR $OMPI_COMPONENT_LIBS (config.log has the compiler's words).])])

    AC_MSG_CHECKING([release of the Open MPI library that a program gets])
    AC_RUN_IFELSE([AC_LANG_PROGRAM([[
#include <mpi.h>
#include <stdio.h>
#include <string.h>
]], [[
    char name[MPI_MAX_LIBRARY_VERSION_STRING];
    const char *v;
    int len, major = -1, minor = -1, release = -1;
    FILE *f = fopen("conftest.release", "w");
    MPI_Get_library_version(name, &len);
    v = strstr(name, "Open MPI v");
    if (NULL == f || NULL == v || 3 != sscanf(v, "Open MPI v%d.%d.%d", &major, &minor, &release)) {
        return 1;
    }
    fprintf(f, "%d.%d.%d\n", major, minor, release);
    return fclose(f);
]])],
        [umrddt_library=`cat conftest.release`
         rm -f conftest.release
         AC_MSG_RESULT([$umrddt_library])
         AS_IF([test "x$umrddt_library" != "x$umrddt_headers"],
               [AC_MSG_ERROR([programs here get Open MPI $umrddt_library at run time, and the headers are of $umrddt_headers: mend LD_LIBRARY_PATH, or name the other Open MPI with --with-ompi=DIR.])])],
        [AC_MSG_RESULT([unknown])
         AC_MSG_ERROR([a program linked with Open MPI does not run, or does not print its release (see config.log).])],
        [AC_MSG_RESULT([not looked at when cross-compiling])])

    dnl MPI 4's forms with MPI_Count (ompi/libumrddt_mpi).
    UMRDDT_MPI_COUNT_FORMS=0
    AC_CHECK_DECL([MPI_Pack_c], [UMRDDT_MPI_COUNT_FORMS=1], [], [#include <mpi.h>])
    AC_SUBST([UMRDDT_MPI_COUNT_FORMS])

    CPPFLAGS="$umrddt_save_CPPFLAGS"
    LDFLAGS="$umrddt_save_LDFLAGS"
    LIBS="$umrddt_save_LIBS"

    AC_SUBST([OMPI_INFO])
    AC_SUBST([OMPI_MPICC])
    AC_SUBST([OMPI_MPIRUN])
    AC_SUBST([OMPI_RELEASE])
    AC_SUBST([OMPI_SERIES])
    AC_SUBST([OMPI_PKGLIBDIR])
    AC_SUBST([OMPI_PKGDATADIR])
    AC_SUBST([OMPI_LIBDIR])
    AC_SUBST([OMPI_CPPFLAGS])
    AC_SUBST([OMPI_LDFLAGS])
    AC_SUBST([OMPI_LIBS])
    AC_SUBST([OMPI_COMPONENT_LIBS])
])
