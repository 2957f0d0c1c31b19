#!/bin/bash
# A private stack in one folder: MariaDB, Redis, API pool, worker, nginx. Called by ./dev up, ./dev down and ./dev
# stack, which set IMGWARD_ROOT, IMGWARD_VAR and IMGWARD_BUILD.
#
# Each part is the leader of a separate session. The session id is recorded, so that stopping a part also stops all
# its descendants.
set -euo pipefail
umask 077

root=$IMGWARD_ROOT
var=$IMGWARD_VAR
build=$IMGWARD_BUILD
log=$var/log
me=$(id -un)
parts=(mariadbd redis api console worker nginx)

say() { printf '%s\n' "$*"; }
fail() {
    printf 'stack: %s\n' "$*" >&2
    exit 1
}

# ---------------------------------------------------------------- folders
# The path of a unix socket has at most 107 bytes. If the checkout has a long path, the sockets are in a short folder,
# and a link points to it.
run_folder_make() {
    local run=$var/run
    if [ ${#run} -gt 80 ]; then
        run=$(mktemp -d "${TMPDIR:-/tmp}/imgward.XXXXXX")
        ln -sfn "$run" "$var/run"
    else
        mkdir -p "$run"
    fi
}

run_folder() { realpath "$var/run"; }

# Removes only files of an earlier stack, by name, because the folder may contain other files.
stack_forget() {
    local name
    if [ -L "$var/run" ]; then rm -rf -- "$(readlink "$var/run")"; fi
    for name in run data store log tls etc tmp dev.env; do rm -rf -- "${var:?}/$name"; done
}

# ---------------------------------------------------------------- processes
# Prints the start time of a process in clock ticks, which distinguishes it from a later process with the same id.
process_birth() {
    local stat
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
    stat=${stat##*) }
    set -- $stat
    printf '%s' "${20}"
}

# The processes of a session, except zombies.
session_members() { ps -o pid=,stat= -s "$1" 2>/dev/null | awk '$2 !~ /^Z/ {print $1}'; }

# Prints the session of a part if that session is the one that was started here.
session_of() {
    local file=$run/$1.session boot sid birth now
    [ -f "$file" ] || return 0
    read -r boot sid birth <"$file"
    [ "$boot" = "$(cat /proc/sys/kernel/random/boot_id)" ] || return 0
    now=$(process_birth "$sid") || now=$birth
    [ "$now" = "$birth" ] && printf '%s' "$sid"
    return 0
}

# A part that a test restarted is identified by its pid file.
pid_of() {
    local pid
    [ -f "$run/$1.pid" ] || return 0
    read -r pid <"$run/$1.pid" || return 0
    tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF "$var" && printf '%s' "$pid"
    return 0
}

part_processes() {
    local session
    session=$(session_of "$1")
    {
        [ -z "$session" ] || session_members "$session"
        pid_of "$1"
        echo
    } | sed '/^$/d' | sort -u
}

# Waits at most $1 tenths of a second until the command in the other arguments succeeds.
wait_for() {
    local tenths=$1
    shift
    while ! "$@"; do
        [ "$tenths" -gt 0 ] || return 1
        tenths=$((tenths - 1))
        sleep 0.1
    done
}

part_is_gone() { [ -z "$(part_processes "$1")" ]; }

# ---------------------------------------------------------------- parts
# part_command sets "command"; part_is_ready succeeds if the part serves.
part_command() {
    case $1 in
    mariadbd) command=(mariadbd --defaults-file="$var/etc/mariadb.cnf") ;;
    redis) command=(redis-server "$var/etc/redis.conf") ;;
    api) command=("$root/tests/stack/keep.sh" "$build/imgward-api" --config "$var/etc/imgward.conf") ;;
    console) command=("$root/tests/stack/keep.sh" "$build/imgward-console" --config "$var/etc/imgward.conf") ;;
    worker) command=("$root/tests/stack/keep.sh" "$build/imgward-worker" --config "$var/etc/imgward.conf") ;;
    nginx) command=(nginx -e "$log/nginx.log" -c "$var/etc/nginx.conf" -p "$var/") ;;
    *) fail "unknown part \"$1\"; the parts are ${parts[*]}" ;;
    esac
}

part_is_ready() {
    [ -n "$(pid_of "$1")" ] || return 1
    case $1 in
    mariadbd) database_query "SELECT 1" >/dev/null 2>&1 ;;
    redis) [ "$(redis-cli -s "$run/redis.sock" ping 2>/dev/null)" = PONG ] ;;
    api) [ -S "$run/api.sock" ] ;;
    console) [ -S "$run/imgward-console/console.sock" ] ;;
    worker) true ;;
    nginx) curl -s -o /dev/null --max-time 2 --cacert "$var/tls/ca.pem" "https://127.0.0.1:$(cat "$run/https.port")/" ;;
    esac
}

database_query() { mariadb --no-defaults -N -B -S "$run/mariadb.sock" -u "$me" -e "$@"; }

part_start() {
    local name=$1 command session
    part_command "$name"
    if ! part_is_gone "$name"; then
        say "$name: is already running"
        return
    fi
    rm -f "$run/$name.pid" "$run/$name.session"
    # The unit has RuntimeDirectory for this.
    [ "$name" != console ] || mkdir -p "$run/imgward-console"
    setsid "${command[@]}" </dev/null >>"$log/$name.log" 2>&1 &
    session=$!
    disown
    # setsid needs a moment to create the session.
    wait_for 300 session_is_made "$session" || true
    printf '%s %s %s\n' "$(cat /proc/sys/kernel/random/boot_id)" "$session" \
        "$(process_birth "$session" || true)" >"$run/$name.session"
    if ! wait_for_ready "$name" 900; then
        say "$name did not come up; the end of its log:" >&2
        tail -n 20 "$log/$name.log" >&2
        return 1
    fi
}

session_is_made() { [ "$(ps -o sid= -p "$1" 2>/dev/null | tr -d ' ')" = "$1" ] || ! [ -d "/proc/$1" ]; }

# Waits until the part is ready, dead, or the time is over.
wait_for_ready() {
    local name=$1 tenths=$2
    while ! part_is_ready "$name"; do
        if [ "$tenths" -le 0 ] || part_is_gone "$name"; then return 1; fi
        tenths=$((tenths - 1))
        sleep 0.1
    done
}

processes_signal() {
    local signal=$1 pid
    shift
    for pid in "$@"; do kill "-$signal" "$pid" 2>/dev/null || true; done
}

# Sends one TERM, because a second one means an immediate exit. It goes to the keeper, which passes it on, or without
# a keeper to the pid in the pid file. Processes that remain after the wait are killed.
part_stop() {
    local name=$1 session
    session=$(session_of "$name")
    if [ -n "$session" ] && kill -0 "$session" 2>/dev/null; then
        processes_signal TERM "$session"
    else
        processes_signal TERM $(pid_of "$name")
    fi
    if ! wait_for "${2:-600}" part_is_gone "$name"; then
        say "$name: did not stop, killed"
        part_kill "$name"
    fi
    rm -f "$run/$name.pid" "$run/$name.session"
    [ "$name" != console ] || rm -rf "$run/imgward-console"
}

# Repeats until no process remains, because a process may be forking.
part_kill() {
    local tries=50
    while ! part_is_gone "$1" && [ $tries -gt 0 ]; do
        processes_signal KILL $(part_processes "$1")
        tries=$((tries - 1))
        sleep 0.05
    done
    part_is_gone "$1" || fail "$1: cannot be killed"
}

# ---------------------------------------------------------------- setup of a new stack
# Uses ports below the kernel's range for outgoing connections.
port_free() {
    local port
    while :; do
        port=$((10000 + (RANDOM * 32768 + RANDOM) % 22000))
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
    done
    printf '%s' "$port"
}

# Fills @NAME@ in a template of tests/stack.
template_fill() {
    sed -e "s|@RUN@|$run|g" -e "s|@VAR@|$var|g" -e "s|@ROOT@|$root|g" -e "s|@BUILD@|$build|g" \
        -e "s|@USER@|$me|g" -e "s|@HTTPS@|$https|g" -e "s|@HTTP@|$http|g" \
        -e "s|@REDIS_TIMEOUT_MS@|${IMGWARD_REDIS_TIMEOUT_MS:-250}|g" \
        -e "s|@DATABASE_TIMEOUT_S@|${IMGWARD_DATABASE_TIMEOUT_S:-5}|g" "$root/tests/stack/$1" >"$2"
}

tls_make() {
    local tls=$var/tls
    mkdir -p "$tls"
    {
        openssl ecparam -name prime256v1 -genkey -noout -out "$tls/ca.key"
        openssl req -x509 -new -key "$tls/ca.key" -days 30 -subj "/CN=imgward test authority" \
            -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign -out "$tls/ca.pem"
        openssl ecparam -name prime256v1 -genkey -noout -out "$tls/server.key"
        openssl req -new -key "$tls/server.key" -subj "/CN=localhost" -out "$tls/server.csr"
        printf '%s\n' 'subjectAltName=DNS:localhost,IP:127.0.0.1' 'extendedKeyUsage=serverAuth' \
            'basicConstraints=CA:FALSE' >"$tls/server.ext"
        openssl x509 -req -in "$tls/server.csr" -CA "$tls/ca.pem" -CAkey "$tls/ca.key" -CAcreateserial \
            -days 30 -extfile "$tls/server.ext" -out "$tls/server.pem"
    } >>"$log/tls.log" 2>&1 || fail "openssl failed; see $log/tls.log"
}

secrets_make() {
    openssl rand -hex 24 >"$var/etc/database.password"
    local name
    for name in owner api console worker; do openssl rand -hex 24 >"$var/etc/$name.password"; done
    printf 'one:%s\n' "$(openssl rand -hex 32)" >"$var/etc/signing.keys"
    openssl rand -out "$var/etc/watermark.key" 32
    "$build/imgwardctl" secret sealing "$var/etc/sealing.key" >>"$log/up.log"
}

# Creates the database in memory if there is space, because mariadb-install-db syncs a thousand times. It needs a separate
# folder for temporary tables, because a starting server deletes those of other servers in the same folder.
database_make() {
    local made=$var/data room
    room=$(df -Pm /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }')
    if [ "${room:-0}" -gt 100 ] && [ -w /dev/shm ]; then made=$(mktemp -d /dev/shm/imgward.XXXXXX); fi
    [ "$made" = "$var/data" ] || trap 'rm -rf -- "'"$made"'"' EXIT
    mariadb-install-db --no-defaults --datadir="$made" --user="$me" --skip-test-db --skip-name-resolve --force \
        --auth-root-authentication-method=socket --auth-root-socket-user="$me" \
        --tmpdir="$var/tmp" --innodb-log-file-size=4M >"$log/install-db.log" 2>&1 ||
        fail "mariadb-install-db failed; see $log/install-db.log"
    [ "$made" = "$var/data" ] || { cp -a "$made" "$var/data" && rm -rf -- "$made"; }
    trap - EXIT
}

# The user of imgwardctl reads and writes rows; another user creates tables. The programs have separate users, which
# get their rights after the tables are created.
database_users_make() {
    database_query "
        CREATE DATABASE imgward CHARACTER SET utf8mb4;
        CREATE USER imgward@localhost IDENTIFIED BY '$(cat "$var/etc/database.password")';
        GRANT SELECT, INSERT, UPDATE, DELETE ON imgward.* TO imgward@localhost;
        CREATE USER imgward_owner@localhost IDENTIFIED BY '$(cat "$var/etc/owner.password")';
        GRANT ALL ON imgward.* TO imgward_owner@localhost;"
}

# The statements that imgwardctl prints have no password.
database_grants_make() {
    local name
    "$build/imgwardctl" --config "$var/etc/imgward.conf" grants >"$var/etc/grants.sql"
    for name in api console worker; do
        sed -i "s|'imgward_$name'@'localhost' IDENTIFIED BY 'THE-PASSWORD'|'imgward_$name'@'localhost' IDENTIFIED BY '$(cat "$var/etc/$name.password")'|" \
            "$var/etc/grants.sql"
    done
    mariadb --no-defaults -S "$run/mariadb.sock" -u "$me" <"$var/etc/grants.sql"
    rm -f "$var/etc/grants.sql"
}

configuration_make() {
    template_fill mariadb.cnf "$var/etc/mariadb.cnf"
    template_fill redis.conf "$var/etc/redis.conf"
    template_fill imgward.conf "$var/etc/imgward.conf"
    sed -e 's|^user = imgward$|user = imgward_owner|' -e 's|database\.password|owner.password|' \
        "$var/etc/imgward.conf" >"$var/etc/owner.conf"
    "$root/tests/stack/nginx.sh" "$https" "$http"
}

ctl() { "$build/imgwardctl" --config "$var/etc/imgward.conf" "$@"; }

# imgwardctl prints an account's number, or a key, on the last line.
key_make() {
    local plan=$1 account
    account=$(ctl account create --plan "$plan" "dev-$plan" | tail -n 1 | grep -oE '[0-9]+' | head -n 1)
    ctl key create --name dev "$account" 2>>"$log/up.log" | grep -oE 'iw_live_[0-9A-Za-z]{43}' | head -n 1
}

# Makes a user of the web console in the account of a plan and prints the variables of its address and password.
user_make() {
    local suffix=$1 email=$2 plan=$3 password
    shift 3
    password=$(ctl user create "$@" "$email" "dev-$plan" 2>>"$log/up.log" | tail -n 1)
    [ -n "$password" ] || fail "imgwardctl made no user $email"
    printf 'IMGWARD_CONSOLE%s_USER=%q\n' "$suffix" "$email"
    printf 'IMGWARD_CONSOLE%s_PASSWORD=%q\n' "$suffix" "$password"
}

environment_write() {
    {
        printf 'IMGWARD_URL=%q\n' "https://127.0.0.1:$https"
        printf 'IMGWARD_HTTP_URL=%q\n' "http://127.0.0.1:$http"
        printf 'IMGWARD_CA=%q\n' "$var/tls/ca.pem"
        printf 'IMGWARD_RUN=%q\n' "$run"
        printf 'IMGWARD_DB_SOCKET=%q\n' "$run/mariadb.sock"
        printf 'IMGWARD_REDIS_SOCKET=%q\n' "$run/redis.sock"
        printf 'IMGWARD_STORE=%q\n' "$var/store"
        printf 'IMGWARD_CONFIG=%q\n' "$var/etc/imgward.conf"
        printf 'IMGWARD_CTL=%q\n' "$build/imgwardctl"
        printf 'IMGWARD_BUILD=%q\n' "$build"
        printf 'IMGWARD_VAR=%q\n' "$var"
        printf 'IMGWARD_LOG=%q\n' "$log"
        printf 'IMGWARD_CONSOLE_URL=%q\n' "https://127.0.0.1:$https/console/"
        [ $# -eq 0 ] || printf '%s\n' "$@"
    } >"$var/dev.env.new"
    mv "$var/dev.env.new" "$var/dev.env"
}

program_is_built() { [ -x "$build/$1" ]; }

# If another program took the port of nginx, nginx is started with another port.
nginx_start() {
    local tries=3
    while ! part_start nginx 2>>"$log/up.log"; do
        tries=$((tries - 1))
        if [ $tries -eq 0 ] || ! grep -q 'Address already in use' "$log/nginx.log"; then
            tail -n 20 "$log/nginx.log" >&2
            return 1
        fi
        https=$(port_free) http=$(port_free)
        ports_write
        configuration_make
    done
}

ports_write() {
    printf '%s\n' "$https" >"$run/https.port"
    printf '%s\n' "$http" >"$run/http.port"
}

stack_prepare() {
    mkdir -p "$var" "$var/etc" "$var/store" "$var/tmp" "$log"
    run_folder_make
    run=$(run_folder)
    https=$(port_free) http=$(port_free)
    ports_write
    tls_make
    secrets_make
    configuration_make
    database_make
}

stack_start() {
    local keys=() plan key
    part_start mariadbd
    part_start redis
    database_users_make
    if "$build/imgwardctl" help | grep ' migrate' >/dev/null; then
        "$build/imgwardctl" --config "$var/etc/owner.conf" migrate --directory "$root/sql"
        database_grants_make
        for plan in free pro enterprise; do
            key=$(key_make "$plan") || true
            [ -n "$key" ] || fail "imgwardctl made no key for the plan $plan"
            keys+=("IMGWARD_KEY_${plan^^}=$key")
        done
        keys+=("$(user_make "" demo@imgward.example enterprise --name Demo)")
        keys+=("$(user_make _ADMIN admin@imgward.example enterprise --name Operator --admin)")
    else
        say "imgwardctl: has no command migrate yet; no tables, no accounts"
    fi
    for plan in api console worker; do
        if program_is_built "imgward-$plan"; then part_start "$plan"; else say "$plan: not built, left out"; fi
    done
    nginx_start
    environment_write ${keys[@]+"${keys[@]}"}
}

verb_up() {
    local begin=$EPOCHREALTIME
    program_is_built imgwardctl || fail "not built yet: ./dev build"
    if [ -e "$var/run" ]; then
        run=$(run_folder)
        local part
        for part in "${parts[@]}"; do
            part_is_gone "$part" || fail "a stack runs in $var already; ./dev down ends it"
        done
    fi
    stack_forget
    stack_prepare
    if ! (stack_start); then
        verb_down >/dev/null 2>&1 || true
        fail "did not come up; the logs are in $log"
    fi
    say "up in $(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }') s: https://127.0.0.1:$(cat "$run/https.port")"
    say ". $var/dev.env has the other variables; ./dev down stops it"
}

# Stops from the outside in, so that no part calls one that is stopped.
verb_down() {
    local part at left=()
    [ -e "$var/run" ] || {
        say "down: no stack is running in $var"
        return
    }
    run=$(run_folder)
    for ((at = ${#parts[@]} - 1; at >= 0; at--)); do
        part_is_gone "${parts[at]}" || part_stop "${parts[at]}"
    done
    for part in "${parts[@]}"; do
        part_is_gone "$part" || left+=("$part")
    done
    [ ${#left[@]} -eq 0 ] || fail "still there: ${left[*]}"
    if [ -L "$var/run" ]; then rm -rf -- "$(readlink "$var/run")"; fi
    rm -rf -- "${var:?}/run" "$var/dev.env"
    say "down: no process is left"
}

run_needed() {
    [ -e "$var/run" ] || fail "no stack in $var; ./dev up starts one"
    run=$(run_folder)
}

verb_start() { run_needed && part_start "$1"; }
verb_stop() { run_needed && part_command "$1" && part_stop "$1"; }
verb_kill() { run_needed && part_command "$1" && part_kill "$1" && rm -f "$run/$1.session"; }
verb_log() { tail -n 50 "$log/$1.log"; }
verb_status() {
    run_needed
    local part processes
    for part in "${parts[@]}"; do
        processes=$(part_processes "$part" | tr '\n' ' ')
        printf '%-9s %s\n' "$part" "${processes:-is not there}"
    done
}

main() {
    local verb=${1:-}
    case $verb in
    up | down | status) ;;
    start | stop | kill | log) [ $# -eq 2 ] || fail "$verb which of ${parts[*]}?" ;;
    *) fail "up, down, status, or start, stop, kill, log with a part" ;;
    esac
    "verb_$@"
}

main "$@"
