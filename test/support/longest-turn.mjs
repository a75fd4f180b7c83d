/**
 * Loaded into a server by `--import`: measures the longest turn of its event loop, in the CPU time of its main thread.
 * Unlike a delay by the clock, this does not grow while other programs have the processor. SIGUSR2 writes the longest
 * turn since the last one, in milliseconds, to the file RECKONER_TURNS.
 */
import { openSync, readSync, writeFileSync } from 'node:fs';

const schedule = openSync(`/proc/self/task/${process.pid}/schedstat`, 'r');
const text = Buffer.alloc(64);
const used = () => Number.parseInt(text.toString('latin1', 0, readSync(schedule, text, 0, 64, 0)), 10) / 1e6;

let before = used();
let longest = 0;
const turn = () => {
  const now = used();
  longest = Math.max(longest, now - before);
  before = now;
};
setInterval(turn, 1).unref();
process.on('SIGUSR2', () => {
  turn();
  writeFileSync(process.env.RECKONER_TURNS, String(longest));
  longest = 0;
});
