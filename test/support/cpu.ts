/**
 * The CPU milliseconds that this process spends on the work. A bound on them holds no matter how busy the machine is.
 */
export function cpuMilliseconds(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
