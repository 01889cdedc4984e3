# -*- shell-script -*-
dnl Copyright (c) 2026      The umrddt authors. All rights reserved.
dnl SPDX-License-Identifier: BSD-3-Clause
dnl $HEADER$

dnl MCA_ompi_coll_umrddt_COMPILE_MODE(project, framework, component, variable)
dnl Never within libmpi: it has its own copies of the GPU libraries (README.md), which would clash with those of pml/umrddt.
AC_DEFUN([MCA_ompi_coll_umrddt_COMPILE_MODE], [
    AC_MSG_CHECKING([for MCA component $2:$3 compile mode])
    $4="dso"
    dnl 5.0.7 takes the value of the variable that the answer names.
    dso=dso
    AC_MSG_RESULT([$$4])
])

dnl MCA_ompi_coll_umrddt_CONFIG([action-if-can-compile], [action-if-cant-compile])
AC_DEFUN([MCA_ompi_coll_umrddt_CONFIG], [
    AC_CONFIG_FILES([ompi/mca/coll/umrddt/Makefile])
    AS_IF([test "$umrddt_release_good" = yes && test "$enable_dlopen" != no && test "$enable_shared" != no],
          [$1],
          [AC_MSG_NOTICE([coll/umrddt is loaded at run time only, which this Open MPI does not do or not build for: left out])
           $2])
])
