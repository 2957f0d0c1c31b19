dnl IW_TRY_FLAG(FLAG, VARIABLE): add FLAG to VARIABLE if compiler and linker accept it without a warning.
AC_DEFUN([IW_TRY_FLAG], [
  AC_MSG_CHECKING([whether $CC accepts $1])
  iw_saved_cflags=$CFLAGS
  CFLAGS="$CFLAGS -Werror $1"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
    [AC_MSG_RESULT([yes]); $2="$$2 $1"],
    [AC_MSG_RESULT([no])])
  CFLAGS=$iw_saved_cflags
])

dnl IW_TRY_LINK_FLAG(FLAG, VARIABLE): the same for a linker flag.
AC_DEFUN([IW_TRY_LINK_FLAG], [
  AC_MSG_CHECKING([whether the linker accepts $1])
  iw_saved_ldflags=$LDFLAGS
  LDFLAGS="$LDFLAGS $1"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
    [AC_MSG_RESULT([yes]); $2="$$2 $1"],
    [AC_MSG_RESULT([no])])
  LDFLAGS=$iw_saved_ldflags
])

dnl IW_COMPILER_FLAGS: set WARN_CFLAGS (warnings), HARDEN_CFLAGS and HARDEN_LDFLAGS (hardening) and LOOP_CFLAGS
dnl (loops of the engines).  --enable-werror makes warnings errors; CI uses it.
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

dnl IW_FAULTS: --enable-faults compiles the fault points of src/base/fault.h; for tests only.
AC_DEFUN([IW_FAULTS], [
  AC_ARG_ENABLE([faults], [AS_HELP_STRING([--enable-faults], [compile the fault points for tests])])
  AS_IF([test "x$enable_faults" = xyes], [FAULT_CPPFLAGS=-DIW_FAULTS], [FAULT_CPPFLAGS=])
  AC_SUBST([FAULT_CPPFLAGS])
  AM_CONDITIONAL([FAULTS], [test "x$enable_faults" = xyes])
])

dnl IW_SANITIZERS: --enable-sanitizers builds everything with ASan and UBSan.  The default of CFLAGS is then -g1 -O1.
dnl Loop flags and the tracking of variables for debuggers are off: with a check at every access they take minutes.
dnl So is the second stack of ASan: in it GCC 14 stores vectors of 64 bytes at addresses that are no multiple of 64.
AC_DEFUN([IW_SANITIZERS], [
  AC_ARG_ENABLE([sanitizers], [AS_HELP_STRING([--enable-sanitizers], [build with ASan and UBSan])])
  AS_IF([test "x$enable_sanitizers" = xyes],
    [SANITIZE_CFLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -fno-var-tracking"
     LOOP_CFLAGS=
     AS_IF([test "x$iw_cflags_given" != xyes], [CFLAGS="-g1 -O1"])
     IW_TRY_FLAG([--param=asan-use-after-return=0], [SANITIZE_CFLAGS])
     HARDEN_CPPFLAGS=],
    [SANITIZE_CFLAGS=
     HARDEN_CPPFLAGS="-D_FORTIFY_SOURCE=2"])
  AC_SUBST([SANITIZE_CFLAGS])
  AC_SUBST([HARDEN_CPPFLAGS])
  AM_CONDITIONAL([SANITIZERS], [test "x$enable_sanitizers" = xyes])
])
