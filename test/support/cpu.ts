/** CPU milliseconds that this process spends on the work: a bound on them holds however busy the machine is. */
export function cpuMilliseconds(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
