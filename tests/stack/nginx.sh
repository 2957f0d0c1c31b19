#!/bin/bash
# Writes the private stack's nginx configuration to $IMGWARD_VAR/etc. It takes the shipped files and sets the ports,
# paths and names of the site. Arguments: HTTPS port, HTTP port.
set -euo pipefail

https=$1 http=$2
root=$IMGWARD_ROOT
var=$IMGWARD_VAR
run=$(realpath "$var/run")
etc=$var/etc

# Built by make; in an unpacked release tarball they are next to their source.
documents=$IMGWARD_BUILD/doc
[ -f "$documents/openapi.json" ] || documents=$root/doc

# The directive that configure chose.
tls=$(sed -n "s|.*listen 443 \(.*\);\$|\1|p" "$IMGWARD_BUILD/nginx/site.conf")

mkdir -p "$etc/imgward" "$var/tmp/nginx"
# Links to the pages, without the files of the folder that are not installed.
rm -rf "$var/web"
cp -rs "$root/web" "$var/web"
rm -f "$var/web/README.md" "$var/web/Makefile.inc"
rm -rf "$var/site"
cp -rs "$root/site" "$var/site"
[ ! -f "$IMGWARD_BUILD/site/docs/index.html" ] || cp -rs "$IMGWARD_BUILD/site/docs" "$var/site"
cp -rs "$root/doc/protection" "$root/doc/examples" "$var/site/docs"
for file in "$root"/nginx/*.conf "$root"/nginx/*.conf.in; do
    name=${file##*/}
    sed -e "s|unix:/run/imgward/api.sock|unix:$run/api.sock|" \
        -e "s|/run/imgward-console|$run/imgward-console|" \
        -e "s|@pkgdatadir@/web/|$var/web/|" -e "s|@pkgdatadir@/site/|$var/site/|" \
        -e "s|@localstatedir@/lib/imgward/store|$var/store|g" \
        -e "s|@pkgdatadir@/api/|$documents/|" -e 's|@nginxdir@/|imgward/|' -e "s|@tls@|$tls|" \
        -e "s|root /var/www/html;|root $var/www;|" \
        -e "s|/var/log/nginx/imgward.log|$var/log/access.log|" \
        -e "s|/etc/ssl/imgward.example/fullchain.pem|$var/tls/server.pem|" \
        -e "s|/etc/ssl/imgward.example/privkey.pem|$var/tls/server.key|" \
        -e "s|listen 80;|listen 127.0.0.1:$http;|" -e "s|listen 443 ssl|listen 127.0.0.1:$https ssl|" \
        -e '/listen \[::\]/d' -e 's|server_name imgward.example;|server_name 127.0.0.1 localhost;|' \
        -e "s|return 308 https://\$server_name\$request_uri;|return 308 https://\$server_name:$https\$request_uri;|" \
        "$file" >"$etc/imgward/${name%.in}"
done

# Run the nginx workers as the current user, who owns the store of this stack.
owner=
if [ "$(id -u)" -eq 0 ]; then owner="user $(id -un) $(id -gn);"; fi

cat >"$etc/nginx.conf" <<CONF
daemon off;
$owner
pid $run/nginx.pid;
worker_processes 2;
error_log $var/log/nginx.log warn;
events { worker_connections 2048; }
http {
    client_body_temp_path $var/tmp/nginx/body;
    fastcgi_temp_path $var/tmp/nginx/fastcgi;
    proxy_temp_path $var/tmp/nginx/proxy;
    uwsgi_temp_path $var/tmp/nginx/uwsgi;
    scgi_temp_path $var/tmp/nginx/scgi;
    include imgward/http.conf;
    include imgward/site.conf;
}
CONF
