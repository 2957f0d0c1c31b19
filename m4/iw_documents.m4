dnl IW_API_DOCUMENTS: PYTHON builds doc/openapi.json and the generated files of site/docs.  It is not needed where
dnl they exist, as in a release tarball.
AC_DEFUN([IW_API_DOCUMENTS], [
  AC_ARG_VAR([PYTHON], [Python 3 with the modules yaml and markdown_it; builds the API documents and the guides])
  AC_CACHE_CHECK([for python3 with the modules yaml and markdown_it], [iw_cv_python], [
    AS_IF([${PYTHON:-python3} -c 'import yaml, markdown_it' >/dev/null 2>&1], [iw_cv_python=${PYTHON:-python3}], [iw_cv_python=no])
  ])
  AS_IF([test "x$iw_cv_python" != xno], [PYTHON=$iw_cv_python],
    [test -f "$srcdir/doc/openapi.json" && test -f "$srcdir/site/docs/search.json"], [PYTHON=python3],
    [AC_MSG_ERROR([python3 with the modules yaml and markdown_it is missing: a build from a checkout needs them for doc/openapi.json and site/docs.  Install python3-yaml and python3-markdown-it, set PYTHON, or build from a release tarball.])])
])
