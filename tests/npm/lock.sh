#!/bin/bash
# Makes package-lock.json from package.json, without the sponsors' addresses that npm adds.
set -euo pipefail
cd "$(dirname "$0")"
npm install --package-lock-only
jq --indent 2 'del(.packages[].funding)' package-lock.json >package-lock.json.new
mv package-lock.json.new package-lock.json
