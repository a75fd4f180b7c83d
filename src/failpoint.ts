/**
 * Failpoints: named places at which crash tests end the process, as kill -9 would. Failpoints work only in a sandbox.
 * RECKONER_FAILPOINT=close.committed ends the process at that place; close.committed:2 ends it there the second time.
 */

const [armed, count = '1'] =
  process.env['RECKONER_ENVIRONMENT'] === 'production' ? [] : (process.env['RECKONER_FAILPOINT'] ?? '').split(':');
let passings = 0;

/** Ends the process if this failpoint is armed. Each is before or after the end of a transaction or an external call. */
export function failpoint(name: string) {
  if (name !== armed) return;
  passings += 1;
  if (passings === Number(count)) process.kill(process.pid, 'SIGKILL');
}
