dnl IW_TRY_FLAG(FLAG, VARIABLE): adds FLAG to VARIABLE if the compiler and the
dnl linker take it without a word.
AC_DEFUN([IW_TRY_FLAG], [
  AC_MSG_CHECKING([whether $CC takes $1])
  iw_saved_cflags=$CFLAGS
  CFLAGS="$CFLAGS -Werror $1"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
    [AC_MSG_RESULT([yes]); $2="$$2 $1"],
    [AC_MSG_RESULT([no])])
  CFLAGS=$iw_saved_cflags
])

dnl IW_TRY_LINK_FLAG(FLAG, VARIABLE): the same for a flag of the linker.
AC_DEFUN([IW_TRY_LINK_FLAG], [
  AC_MSG_CHECKING([whether the linker takes $1])
  iw_saved_ldflags=$LDFLAGS
  LDFLAGS="$LDFLAGS $1"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
    [AC_MSG_RESULT([yes]); $2="$$2 $1"],
    [AC_MSG_RESULT([no])])
  LDFLAGS=$iw_saved_ldflags
])

dnl IW_COMPILER_FLAGS: warnings in WARN_CFLAGS, hardening in HARDEN_CFLAGS and
dnl HARDEN_LDFLAGS, loops of the engines in LOOP_CFLAGS.  --enable-werror makes warnings errors (CI does).
AC_DEFUN([IW_COMPILER_FLAGS], [
  AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [make compiler warnings errors])])
  for iw_flag in -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
                 -Wformat=2 -Wvla -Wpointer-arith -Wcast-qual -Wundef; do
    IW_TRY_FLAG([$iw_flag], [WARN_CFLAGS])
  done
  AS_IF([test "x$enable_werror" = xyes], [WARN_CFLAGS="$WARN_CFLAGS -Werror"])
  for iw_flag in -fstack-protector-strong -fstack-clash-protection -fcf-protection \
                 -fno-common -fno-strict-aliasing -fPIE; do
    IW_TRY_FLAG([$iw_flag], [HARDEN_CFLAGS])
  done
  for iw_flag in -pie -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,--as-needed; do
    IW_TRY_LINK_FLAG([$iw_flag], [HARDEN_LDFLAGS])
  done
  for iw_flag in -ftree-vectorize -fvect-cost-model=dynamic -fpeel-loops -funswitch-loops -fsplit-loops; do
    IW_TRY_FLAG([$iw_flag], [LOOP_CFLAGS])
  done
  AC_SUBST([WARN_CFLAGS])
  AC_SUBST([LOOP_CFLAGS])
  AC_SUBST([HARDEN_CFLAGS])
  AC_SUBST([HARDEN_LDFLAGS])
])

dnl IW_FAULTS: --enable-faults compiles in the places of include/imgward/fault.h; for tests alone.
AC_DEFUN([IW_FAULTS], [
  AC_ARG_ENABLE([faults], [AS_HELP_STRING([--enable-faults], [compile in the places where tests break things])])
  AS_IF([test "x$enable_faults" = xyes], [FAULT_CPPFLAGS=-DIW_FAULTS], [FAULT_CPPFLAGS=])
  AC_SUBST([FAULT_CPPFLAGS])
  AM_CONDITIONAL([FAULTS], [test "x$enable_faults" = xyes])
])

dnl IW_SANITIZERS: --enable-sanitizers builds everything under ASan and UBSan.  Loops are left as they stand, and
dnl debuggers are not told where variables are: with a check at every access both take the compiler minutes.
AC_DEFUN([IW_SANITIZERS], [
  AC_ARG_ENABLE([sanitizers], [AS_HELP_STRING([--enable-sanitizers], [build under ASan and UBSan])])
  AS_IF([test "x$enable_sanitizers" = xyes],
    [SANITIZE_CFLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -fno-var-tracking"
     LOOP_CFLAGS=
     HARDEN_CPPFLAGS=],
    [SANITIZE_CFLAGS=
     HARDEN_CPPFLAGS="-D_FORTIFY_SOURCE=2"])
  AC_SUBST([SANITIZE_CFLAGS])
  AC_SUBST([HARDEN_CPPFLAGS])
  AM_CONDITIONAL([SANITIZERS], [test "x$enable_sanitizers" = xyes])
])
