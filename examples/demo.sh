#!/usr/bin/env bash
# The scenario that vcachediag is made for: one request, sent twice, to a faulty plugin and to
# the healthy one. Run it by `make demo`. Ends with 0 only if the faulty plugin was found out
# (exit code 1) and the healthy one was cleared (exit code 0).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Gigabytes for the KV cache; the model needs a fraction of one.
export VLLM_CPU_KVCACHE_SPACE="${VLLM_CPU_KVCACHE_SPACE:-1}"

traces=build/demo
failed=0

# replay NAME PLUGIN EXPECTED_EXIT_CODE HEADING
replay() {
    local name=$1 plugin=$2 expected=$3 heading=$4 actual=0
    local command=(vcachediag replay examples/01_same_request_twice/requests.jsonl
        --plugin "$plugin" --out "$traces/$name.vcd"
        -- plugins/glyphocr/model --block-size 32 --dtype float32 --gpu-memory-utilization 0.2)

    printf '\n== %s ==\n\n$ %s\n' "$heading" "${command[*]}"
    "${command[@]}" || actual=$?
    printf '\n$ echo $?\n%d\n' "$actual"
    if ((actual != expected)); then
        printf 'demo: expected exit code %d, not %d\n' "$expected" "$actual" >&2
        failed=1
    fi
}

rm -rf "$traces"
mkdir -p "$traces"
replay never_stops plugins/faults/never_stops.py 1 \
    'A faulty plugin: right the first time, wrong on the cache hit, never stops'
replay healthy glyphocr 0 'The healthy plugin: the same request, the same hit'

printf '\nThe recorded runs are in %s.\n' "$traces"
exit "$failed"
