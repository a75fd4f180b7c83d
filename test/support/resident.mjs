/**
 * The compiled program in a process that stays. It runs one command after another; each arrives as a message with its
 * own environment. Loading the modules takes most of the time of a short command.
 */
import { runProgram } from '../../dist/src/cli/program.js';

const own = { ...process.env };
let [stdout, stderr] = ['', ''];
const keep = (into) => (content, encoding, done) => {
  into(typeof content === 'string' ? content : Buffer.from(content).toString());
  const told = typeof encoding === 'function' ? encoding : done;
  if (told) process.nextTick(told);
  return true;
};
process.stdout.write = keep((text) => {
  stdout += text;
});
process.stderr.write = keep((text) => {
  stderr += text;
});

const home = process.cwd();
process.on('message', async ({ args, env, cwd }) => {
  [stdout, stderr] = ['', ''];
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, own, env);
  process.chdir(cwd ?? home);
  const status = await runProgram([process.execPath, 'reckoner', ...args]);
  process.chdir(home);
  process.send({ status, stdout, stderr });
});
process.on('disconnect', () => process.exit());
