dnl IW_NGINX: set NGINX_TLS and NGINX_TLS_SOCKET, the ends of the site's two listen directives.  nginx 1.25.1 has
dnl the directive http2 and warns of the parameter before it.  Without an nginx the parameter is used.
AC_DEFUN([IW_NGINX], [
  AC_CACHE_CHECK([whether nginx has the directive http2], [iw_cv_nginx_http2], [
    mkdir -p conftest.nginx
    printf 'pid pid; error_log stderr; events { } http { access_log off; http2 on;' >conftest.nginx/nginx.conf
    for iw_path in client_body fastcgi proxy scgi uwsgi; do
      printf ' %s_temp_path %s;' $iw_path $iw_path >>conftest.nginx/nginx.conf
    done
    echo ' }' >>conftest.nginx/nginx.conf
    AS_IF([PATH=$PATH:/usr/sbin nginx -t -q -e stderr -p "$PWD/conftest.nginx/" -c nginx.conf >&AS_MESSAGE_LOG_FD 2>&1],
      [iw_cv_nginx_http2=yes], [iw_cv_nginx_http2=no])
    rm -rf conftest.nginx
  ])
  AS_IF([test "x$iw_cv_nginx_http2" = xyes],
    [AC_SUBST([NGINX_TLS], ['ssl; http2 on']) AC_SUBST([NGINX_TLS_SOCKET], [ssl])],
    [AC_SUBST([NGINX_TLS], ['ssl http2']) AC_SUBST([NGINX_TLS_SOCKET], ['ssl http2'])])
])
