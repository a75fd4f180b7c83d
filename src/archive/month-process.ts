/** The process that proves a month for packs.ts. It ends with its parent. */
import { proveMonth } from './month-proof.ts';

process.stdin.resume().once('end', () => process.exit());
process.stdout.write(JSON.stringify(await proveMonth(process.argv[2] ?? '')), () => process.exit());
