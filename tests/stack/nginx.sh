#!/bin/bash
# Prints the private stack's nginx configuration around the shipped files.
# Arguments: port of HTTPS, port of HTTP.  The shipped files in nginx/ are
# taken as they are, save for the paths and ports that a site fills in.
set -euo pipefail

root=$IMGWARD_ROOT
var=$IMGWARD_VAR
run=$(realpath "$var/run")

cat <<CONF
daemon off;
pid $run/nginx.pid;
worker_processes 2;
error_log $var/log/nginx.log warn;
events { worker_connections 1024; }
http {
    access_log off;
    client_body_temp_path $var/tmp/body;
    fastcgi_temp_path $var/tmp/fastcgi;
    proxy_temp_path $var/tmp/proxy;
    uwsgi_temp_path $var/tmp/uwsgi;
    scgi_temp_path $var/tmp/scgi;
    server {
        listen 127.0.0.1:$2;
        return 308 https://\$host:$1\$request_uri;
    }
    server {
        listen 127.0.0.1:$1 ssl;
        ssl_certificate $var/tls/server.pem;
        ssl_certificate_key $var/tls/server.key;
        location / { return 503; }
    }
}
CONF
