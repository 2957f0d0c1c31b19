dnl IW_API_DOCUMENTS: PYTHON builds doc/openapi.json and doc/api.html.  It is not needed where both exist, as in a
dnl release tarball.
AC_DEFUN([IW_API_DOCUMENTS], [
  AC_ARG_VAR([PYTHON], [Python 3 with the module yaml; builds the API documents])
  AC_CACHE_CHECK([for python3 with the module yaml], [iw_cv_python], [
    AS_IF([${PYTHON:-python3} -c 'import yaml' >/dev/null 2>&1], [iw_cv_python=${PYTHON:-python3}], [iw_cv_python=no])
  ])
  AS_IF([test "x$iw_cv_python" != xno], [PYTHON=$iw_cv_python],
    [test -f "$srcdir/doc/openapi.json" && test -f "$srcdir/doc/api.html"], [PYTHON=python3],
    [AC_MSG_ERROR([python3 with the module yaml is missing: a build from a checkout needs it for doc/openapi.json and doc/api.html.  Install python3-yaml, set PYTHON, or build from a release tarball.])])
])
