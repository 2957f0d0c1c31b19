#!/bin/sh
# Protects a picture through imgward's API: create an order, upload, confirm, wait, download.  Needs curl and jq.
#
#   export IMGWARD_URL=https://img.example.org IMGWARD_KEY=iw_live_...
#   sh protect.sh PICTURE [RESULT]
#
# RESULT is protected-PICTURE in this folder unless it is given.  IMGWARD_CA is the file of a private certificate authority.
# The first failure ends the script with a message and code 1; RESULT is then not written.
set -eu

fail() {
    echo "protect.sh: $*" >&2
    exit 1
}

[ $# -eq 1 ] || [ $# -eq 2 ] || fail "usage: protect.sh PICTURE [RESULT]"
picture=$1
name=${picture##*/}
result=${2:-protected-$name}
orders=${IMGWARD_URL:?is not set: the address of the server, https://...}/api/v2/orders
: "${IMGWARD_KEY:?is not set: the API key, iw_live_...}"
[ -f "$picture" ] || fail "$picture: no such file"
for program in curl jq; do command -v $program >/dev/null || fail "$program is not installed"; done
trap 'rm -f -- "$result.part"' EXIT
: >"$result.part"

# send WHAT CURL-ARGUMENTS...: prints the answer.  A request without a byte for a minute fails.  With -g, curl sends the brackets
# of a name as they are.
send() {
    what=$1
    shift
    answer=$(curl -gsS --fail-with-body --connect-timeout 10 --speed-limit 1 --speed-time 60 \
        ${IMGWARD_CA:+--cacert "$IMGWARD_CA"} "$@") ||
        fail "$what: $(printf '%s' "${answer:-no answer}" | jq -r '"\(.code): \(.message)"' 2>/dev/null || printf '%s' "${answer:-no answer}")"
    printf '%s' "$answer"
}

# The key is not an argument of curl, because other users of the machine see those.
api() {
    what=$1
    shift
    printf 'header = "Authorization: Bearer %s"\n' "$IMGWARD_KEY" | send "$what" -K - -H 'Content-Type: application/json' "$@"
}

# 1. Create the order.  A repeated request with the same idempotencyKey gets the same order, so each order has a new one.
key=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
order=$(api "not created" "$orders/anti-ai" -d "$(jq -n --arg key "$key" --arg name "$name" \
    '{idempotencyKey: $key, files: [{fileName: $name}]}')")
id=$(printf '%s' "$order" | jq -r .data.orderId)

# 2. Upload the picture to the presigned URL.  It needs no API key.
send "order $id: not uploaded" -T "$picture" "$(printf '%s' "$order" | jq -r '.data.files[0].uploadUrl')" >/dev/null

# 3. Confirm the order.
api "order $id: not confirmed" "$orders/anti-ai/confirm" -d "{\"idempotencyKey\": \"confirm-$id\", \"orderId\": \"$id\"}" >/dev/null

# 4. Wait for its end, ten minutes at most.  A webhook is better for many orders.
status=inProgress seconds=0
while [ "$status" = inProgress ]; do
    [ $seconds -lt 600 ] || fail "order $id: in progress for more than $seconds s; GET $orders/$id shows its status"
    [ $seconds -eq 0 ] || sleep 1
    seconds=$((seconds + 1))
    order=$(api "order $id: no status" "$orders/$id")
    status=$(printf '%s' "$order" | jq -r .data.status)
done
[ "$status" = complete ] || fail "order $id: $status: $(printf '%s' "$order" | jq -r .data.errors)"

# 5. Download the result.
link=$(api "order $id: no download URL" "$orders/$id/download")
send "order $id: not downloaded" -o "$result.part" "$(printf '%s' "$link" | jq -r .data.downloadUrl)" >/dev/null
mv -- "$result.part" "$result"
printf '%s' "$order" | jq -r --arg result "$result" \
    '.data.files[0] | "\(.fileName): protection \(.protection.word), \(.protection.share) %; written to \($result)"'
