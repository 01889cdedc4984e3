# -*- shell-script -*-
dnl Copyright (c) 2026      The umrddt authors. All rights reserved.
dnl SPDX-License-Identifier: BSD-3-Clause
dnl $HEADER$

dnl MCA_opal_common_umrddt_gpu_COMPILE_MODE(project, framework, component, variable)
dnl Before Open MPI's own library, and so before all components that are linked from here.
AC_DEFUN([MCA_opal_common_umrddt_gpu_COMPILE_MODE], [
    AC_MSG_CHECKING([for MCA component $2:$3 compile mode])
    $4="static"
    dnl 5.0.7 uses the value of the variable with the name of the answer.
    static=static
    AC_MSG_RESULT([$$4])
])

dnl MCA_opal_common_umrddt_gpu_CONFIG([action-if-can-compile], [action-if-cant-compile])
dnl The first of the configure.m4 files of umrddt to run: common checks are here.
AC_DEFUN([MCA_opal_common_umrddt_gpu_CONFIG], [
    AC_CONFIG_FILES([opal/mca/common/umrddt_gpu/Makefile
                     opal/mca/common/umrddt_gpu/kernels/Makefile
                     opal/mca/common/umrddt_gpu/driver/Makefile
                     opal/mca/common/umrddt_gpu/staging/Makefile
                     opal/mca/common/umrddt_gpu/engine/Makefile
                     opal/mca/common/umrddt_gpu/ipc/Makefile
                     opal/mca/common/umrddt_gpu/rdma/Makefile
                     opal/datatype/iov_cache/Makefile])

    UMRDDT_CHECK_CUDA([umrddt-cuda])

    dnl What users assert by info keys is checked where Open MPI checks itself.
    AS_IF([test "x$enable_debug" = xyes],
          [UMRDDT_CFLAGS="-DUMRDDT_ENABLE_DEBUG=1"],
          [UMRDDT_CFLAGS="-DUMRDDT_ENABLE_DEBUG=0"])
    dnl Visible are only the components' structures and what components share (umrddt_export.h), whatever Open MPI's own
    dnl visibility is.
    AS_IF([test "x$GCC" = xyes], [UMRDDT_CFLAGS="$UMRDDT_CFLAGS -fvisibility=hidden"])
    AC_SUBST([UMRDDT_CFLAGS])
    dnl What Open MPI puts in front of the names of its libraries: 4.1 has one variable for it, 5.0 another.
    UMRDDT_OPAL_PREFIX="${OPAL_LIB_NAME}${OPAL_LIB_PREFIX}"
    AC_SUBST([UMRDDT_OPAL_PREFIX])
    dnl The library with what components call: since 6.0 libmpi has only the functions of MPI.
    AS_IF([test $OPAL_MAJOR_VERSION -ge 6],
          [UMRDDT_OMPI_LIBRARY=libopen_mpi],
          [UMRDDT_OMPI_LIBRARY='lib$(OMPI_LIBMPI_NAME)'])
    AC_SUBST([UMRDDT_OMPI_LIBRARY])

    AS_CASE([$OPAL_MAJOR_VERSION.$OPAL_MINOR_VERSION],
            [4.1 | 5.0 | 6.0],
            [umrddt_release_good=yes
             $1],
            [umrddt_release_good=no
             AC_MSG_WARN([umrddt builds within Open MPI 4.1.x, 5.0.x and 6.0.x, and this is $OPAL_MAJOR_VERSION.$OPAL_MINOR_VERSION: left out])
             $2])
])
