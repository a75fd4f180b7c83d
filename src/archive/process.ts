/** Proves a month for proof.ts, and ends with the process that wants it. */
import { proveMonth } from './proof.ts';

process.stdin.resume().once('end', () => process.exit());
process.stdout.write(JSON.stringify(await proveMonth(process.argv[2] ?? '')), () => process.exit());
