/** The alarm rules, judged by promtool: each of these fires when it should, and only then. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { needs, tool } from '../support/tools.ts';

const RULES = join(import.meta.dirname, '../../deploy/prometheus/reckoner.rules.yml');

/** Each series as promtool writes it, the time at which to look, and whether the alarm fires. */
const CASES: readonly [alarm: string, series: string, values: string, at: string, fires: boolean][] = [
  ['ReckonerWorkerNotRunning', 'reckoner_job_last_run_timestamp_seconds{name="worker"}', '0x200', '2h', true],
  ['ReckonerWorkerNotRunning', 'reckoner_job_last_run_timestamp_seconds{name="worker"}', '0+60x200', '2h', false],
  ['ReckonerDeliverNotRunning', 'reckoner_job_last_run_timestamp_seconds{name="deliver"}', '0x200', '2h', true],
  ['ReckonerMonthCloseNotRunning', 'reckoner_job_last_run_timestamp_seconds{name="month-close"}', '0x400', '4h', true],
  ['ReckonerDailyJobNotRunning', 'reckoner_job_last_run_timestamp_seconds{name="verify"}', '0x3000', '49h', true],
  ['ReckonerDailyJobNotRunning', 'reckoner_job_last_run_timestamp_seconds{name="verify"}', '0x3000', '47h', false],
  ['ReckonerCrashLoop', 'process_start_time_seconds{job="reckoner"}', '0+5x60', '30m', true],
  ['ReckonerCrashLoop', 'process_start_time_seconds{job="reckoner"}', '5x20 9x40', '30m', false],
  ['ReckonerDrillMissing', 'reckoner_job_last_success_timestamp_seconds{name="drill"}', '0x1000', '961h', true],
  ['ReckonerDrillMissing', 'reckoner_job_last_success_timestamp_seconds{name="drill"}', '0x1000', '959h', false],
  ['ReckonerDocumentsFailed', 'reckoner_deliveries{status="on_hold"}', '1x200', '2h', false],
  ['ReckonerDocumentsFailed', 'reckoner_deliveries{status="failed"}', '1x200', '2h', true],
  ['ReckonerLogLost', 'reckoner_log_lines_dropped_total', '0x5 7x30', '8m', true],
];

test('the rules are valid', () => {
  needs('promtool');
  expect(execFileSync(tool('promtool'), ['check', 'rules', RULES], { encoding: 'utf8' })).toContain('SUCCESS');
});

test.each(CASES)('%s: %s %s at %s: %s', (alarm, series, values, at, fires) => {
  needs('promtool');
  // A rule over weeks is evaluated each hour, because each minute of forty days takes minutes.
  const interval = Number.parseInt(at, 10) > 100 ? '1h' : '1m';
  const folder = mkdtempSync(join(tmpdir(), 'reckoner-rules-'));
  try {
    const file = join(folder, 'test.yml');
    const input_series = [{ series, values }];
    // promtool compares labels and texts too, so a rule is asked by its own series of alarms.
    const promql_expr_test = [
      {
        expr: `count(ALERTS{alertname="${alarm}",alertstate="firing"}) or vector(0)`,
        eval_time: at,
        exp_samples: [{ labels: '{}', value: fires ? 1 : 0 }],
      },
    ];
    writeFileSync(
      file,
      JSON.stringify({
        rule_files: [RULES],
        evaluation_interval: interval,
        tests: [{ interval, input_series, promql_expr_test }],
      }),
    );
    execFileSync(tool('promtool'), ['test', 'rules', file], { encoding: 'utf8', stdio: 'pipe' });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
