# -*- shell-script -*-
dnl Copyright (c) 2026      The umrddt authors. All rights reserved.
dnl SPDX-License-Identifier: BSD-3-Clause
dnl $HEADER$

dnl MCA_ompi_coll_umrddt_CONFIG([action-if-can-compile], [action-if-cant-compile])
AC_DEFUN([MCA_ompi_coll_umrddt_CONFIG], [
    AC_CONFIG_FILES([ompi/mca/coll/umrddt/Makefile])
    AS_IF([test "$umrddt_release_good" = yes], [$1], [$2])
])
