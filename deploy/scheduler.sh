#!/bin/sh
# Replaces cron in a container: runs the jobs of jobs/crontab at the same minutes in UTC. They log to stderr. If a job does
# not exit with 0, a line is printed, and jobs/alarm runs. A missed run does no harm, nor does a second one. `once JOB` runs
# only that job.
set -u
jobs=$(dirname "$(readlink -f "$0")")/../jobs

run() {
  if [ "$1" = backup ]; then "$jobs/run-backup"; else node "$jobs/../dist/jobs/$1.js" >&2; fi
  exit_status=$?
  if [ "$exit_status" != 0 ]; then
    echo "$1: exit $exit_status" >&2
    "$jobs/alarm" "$1" "$exit_status"
  fi
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
  [ "$day" = $((2 * 60 + 40)) ] && run backup &
  [ "$day" = $((3 * 60 + 15)) ] && run verify &
  [ "$day" = $((4 * 60 + 10)) ] && run purge &
  [ "$day" = $((5 * 60 + 20)) ] && run reconcile &
  [ "$day" = $((5 * 60 + 30)) ] && [ "$(date -u +%d)" = 02 ] && run drill &
  [ "$day" = $((7 * 60 + 30)) ] && run watch &
  [ "$day" = $((9 * 60)) ] && run remind &
  sleep $((60 - $(date -u +%s) % 60)) &
  wait $!
done
