# -*- shell-script -*-
dnl Copyright (c) 2026      The umrddt authors. All rights reserved.
dnl SPDX-License-Identifier: BSD-3-Clause
dnl $HEADER$

dnl MCA_opal_common_umrddt_select_COMPILE_MODE(project, framework, component, variable)
dnl As common/umrddt_gpu: before all components that are linked from here.
AC_DEFUN([MCA_opal_common_umrddt_select_COMPILE_MODE], [
    AC_MSG_CHECKING([for MCA component $2:$3 compile mode])
    $4="static"
    dnl 5.0.7 takes the value of the variable that the answer names.
    static=static
    AC_MSG_RESULT([$$4])
])

dnl MCA_opal_common_umrddt_select_CONFIG([action-if-can-compile], [action-if-cant-compile])
AC_DEFUN([MCA_opal_common_umrddt_select_CONFIG], [
    AC_CONFIG_FILES([opal/mca/common/umrddt_select/Makefile])
    AS_IF([test "$umrddt_release_good" = yes], [$1], [$2])
])
