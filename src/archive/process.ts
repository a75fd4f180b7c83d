/** Proves a month for folder.ts. */
import { proveMonth } from './folder.ts';

process.stdout.write(JSON.stringify(await proveMonth(process.argv[2] ?? '')));
