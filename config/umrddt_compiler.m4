dnl Copyright (c) 2026      The umrddt authors. All rights reserved.
dnl SPDX-License-Identifier: BSD-3-Clause
dnl $HEADER$

dnl UMRDDT_COMPILER
dnl Warnings (always on where the compiler is gcc or clang) and the threads library.
dnl Sets and substitutes UMRDDT_CFLAGS.
AC_DEFUN([UMRDDT_COMPILER], [
    UMRDDT_CFLAGS=
    AS_IF([test "x$GCC" = xyes],
          [UMRDDT_CFLAGS="-Wall -Wextra"
           AC_ARG_ENABLE([werror],
               [AS_HELP_STRING([--enable-werror], [make warnings errors (for developers)])])
           AS_IF([test "x$enable_werror" = xyes], [UMRDDT_CFLAGS="$UMRDDT_CFLAGS -Werror"])])

    AC_ARG_ENABLE([debug],
        [AS_HELP_STRING([--enable-debug], [check what users assert by info keys, and which threads call what (for developers)])])
    AS_IF([test "x$enable_debug" = xyes],
          [UMRDDT_CFLAGS="$UMRDDT_CFLAGS -DUMRDDT_ENABLE_DEBUG=1"],
          [UMRDDT_CFLAGS="$UMRDDT_CFLAGS -DUMRDDT_ENABLE_DEBUG=0"])

    dnl Open MPI's headers use a 16-byte compare-and-swap where its own build had one; gcc on x86_64
    dnl inlines it only with an option that the processor has the instruction. No library here has it.
    AC_MSG_CHECKING([for the option that makes 16-byte compare-and-swap inline])
    umrddt_cflags_save=$CFLAGS
    umrddt_cas16=no
    for umrddt_flag in "" -mcx16; do
        CFLAGS="$umrddt_cflags_save $umrddt_flag"
        AC_LINK_IFELSE([AC_LANG_PROGRAM([[static __int128 v;]],
                           [[return !__sync_bool_compare_and_swap(&v, (__int128) 0, (__int128) 1);]])],
                       [umrddt_cas16="${umrddt_flag:-nothing needed}"
                        UMRDDT_CFLAGS="$UMRDDT_CFLAGS $umrddt_flag"
                        break])
    done
    CFLAGS=$umrddt_cflags_save
    AC_MSG_RESULT([$umrddt_cas16])
    AC_SUBST([UMRDDT_CFLAGS])

    dnl Some tests are built a second time with the compiler's checks of memory and of undefined
    dnl behaviour, where it has them and their libraries are there. With -fsanitize=bool and no recovery,
    dnl gcc 12 loads a volatile bool of a local variable once: the loop of WAIT_SYNC_RELEASE in Open MPI's
    dnl headers then never ends if it has to wait. (test/builds/run_sanitized tries it.)
    AC_MSG_CHECKING([for -fsanitize=address,undefined])
    UMRDDT_SANITIZE="-fsanitize=address,undefined -fno-sanitize=bool -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
    CFLAGS="$umrddt_cflags_save $UMRDDT_SANITIZE"
    AC_RUN_IFELSE([AC_LANG_PROGRAM([[]], [[return 0;]])],
                  [umrddt_sanitize=yes], [umrddt_sanitize=no], [umrddt_sanitize=no])
    CFLAGS=$umrddt_cflags_save
    AC_MSG_RESULT([$umrddt_sanitize])
    AC_SUBST([UMRDDT_SANITIZE])
    AM_CONDITIONAL([UMRDDT_HAVE_SANITIZERS], [test "x$umrddt_sanitize" = xyes])

    dnl And with its check of races. Where addresses are very random some of its releases do not always
    dnl start, so it has to start several times.
    AC_MSG_CHECKING([for -fsanitize=thread])
    UMRDDT_TSAN="-fsanitize=thread -fno-omit-frame-pointer -Wno-tsan"
    CFLAGS="$umrddt_cflags_save $UMRDDT_TSAN"
    AC_RUN_IFELSE([AC_LANG_PROGRAM([[#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>]],
                       [[int i, status;
                         if (NULL != getenv("UMRDDT_AGAIN")) {
                             return 0;
                         }
                         setenv("UMRDDT_AGAIN", "1", 1);
                         for (i = 0; i < 16; ++i) {
                             pid_t child = fork();
                             if (0 == child) {
                                 execl("/proc/self/exe", "again", (char *) NULL);
                                 _exit(1);
                             }
                             if (child != waitpid(child, &status, 0) || 0 != status) {
                                 return 1;
                             }
                         }
                         return 0;]])],
                  [umrddt_tsan=yes], [umrddt_tsan=no], [umrddt_tsan=no])
    CFLAGS=$umrddt_cflags_save
    AC_MSG_RESULT([$umrddt_tsan])
    AC_SUBST([UMRDDT_TSAN])
    AM_CONDITIONAL([UMRDDT_HAVE_TSAN], [test "x$umrddt_tsan" = xyes])

    AC_CHECK_SIZEOF([void *])
    AS_IF([test "x$ac_cv_sizeof_void_p" != x8],
          [AC_MSG_ERROR([umrddt needs a 64-bit system (pointers have $ac_cv_sizeof_void_p bytes here).])])
])
