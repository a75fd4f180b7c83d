/** Proves a month for proof.ts. */
import { proveMonth } from './proof.ts';

process.stdout.write(JSON.stringify(await proveMonth(process.argv[2] ?? '')));
