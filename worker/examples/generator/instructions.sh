#!/bin/sh
# Instructions per operation in user space: of two runs under callgrind, the difference of
# instructions over the difference of operations, so that arming and ending don't count. Run it
# from the top of the repository. Arguments: cases of `generator once`; without any, all that say
# something.
set -eu
# valgrind hides the vDSO, which rustix looks for itself unless it is told to ask libc.
cargo build --quiet --release -p iofleet-worker --example generator --features rustix/use-libc-auxv
program=${CARGO_TARGET_DIR:-target}/release/examples/generator
[ $# -gt 0 ] || set -- null-sequential null-random null-random-once null-mix \
    sync-sequential sync-random sync-random-once sync-mix \
    sync-sequential-verified sync-random-verified sync-random-once-verified sync-mix-verified

count() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" once "$1" "$2" 2>&1 |
        awk '/Collected/ { print $NF }'
}

few=50000
many=550000
echo '| case | instructions per operation |'
echo '|---|---|'
for case; do
    less=$(count "$case" $few)
    more=$(count "$case" $many)
    [ -n "$less" ] && [ -n "$more" ] || { echo "$case failed" >&2; exit 1; }
    awk -v name="$case" -v n=$((more - less)) -v of=$((many - few)) \
        'BEGIN { printf "| %s | %.1f |\n", name, n / of }'
done
