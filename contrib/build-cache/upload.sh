#!/bin/sh
# Uploads the objects of a directory (ac/…, cas/…) that no machine has yet, and names them. Usage:
#   upload.sh DIR CACHE AT
# such as
#   upload.sh ~/.cache/bazel-disk 127.0.0.1:8081 127.0.0.1:7440
set -eu
cd "$1"
find ac cas -type f 2>/dev/null | "${UMBEL:-umbel}" missing build --at "$3" --file - |
    while IFS= read -r object; do
        curl -sf -T "$object" "http://$2/$object"
        echo "$object"
    done
