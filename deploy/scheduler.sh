#!/bin/sh
# Replaces cron in a container: runs the jobs of jobs/crontab, except the backup, at the same minutes in UTC. They log to
# stderr. A missed run does no harm, nor does a second one. `once JOB` runs only that job.
set -u
jobs=$(dirname "$(readlink -f "$0")")/../dist/jobs

run() {
  node "$jobs/$1.js"
  exit_status=$?
  [ "$exit_status" = 0 ] || echo "$1: exit $exit_status" >&2
  return "$exit_status"
}

[ "${1:-}" = once ] && { run "$2"; exit $?; }

trap 'kill $(jobs -p) 2>/dev/null; wait; exit 0' TERM INT
while :; do
  # $minute of the hour and $day, the minute of the day, have no leading zeros.
  now=$(date -u +%s)
  minute=$((now / 60 % 60))
  day=$((now / 60 % 1440))
  [ $((minute % 10)) = 0 ] && run deliver &
  [ "$minute" = 7 ] && run month-close &
  [ "$day" = $((3 * 60 + 15)) ] && run verify &
  [ "$day" = $((4 * 60 + 10)) ] && run purge &
  [ "$day" = $((5 * 60 + 20)) ] && run reconcile &
  [ "$day" = $((7 * 60 + 30)) ] && run watch &
  [ "$day" = $((9 * 60)) ] && run remind &
  sleep $((60 - $(date -u +%s) % 60)) &
  wait $!
done
