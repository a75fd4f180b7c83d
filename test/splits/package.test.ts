/** What a partner's own TypeScript program imports: types and code, without anything else of this package. */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { packageRoot } from '../../src/package.ts';
import { compiled as builtFile } from '../support/program.ts';

const run = promisify(execFile);

const PROGRAM = `import { planSplit, type ProcessorRequest, type Routing, SplitImpossible } from 'reckoner/splits';

const routing: Routing = { split: 'real_time', merchant_of_record: 'platform', connected_account_id: 'acct_1' };
const accepted = { quote_id: 'q-1', currency: 'USD', spotPrice: '55.00', partnerCut: '5.00', invoiceAmount: '50.00' };
const requests: readonly ProcessorRequest[] = planSplit(accepted, routing).requests;
for (const request of requests) {
  if (request.does === 'payment') console.log(request.params.amount, request.params.transfer_data?.amount);
}
try {
  planSplit(accepted, { ...routing, split: 'sequential', merchant_of_record: 'third_party' });
} catch (error) {
  if (error instanceof SplitImpossible) console.log(error.code);
}
`;

const EXECUTING = `import { planSplit } from 'reckoner/splits';
import { executeRequests, SplitUnfinished } from 'reckoner/splits/execute';
import Stripe from 'stripe';

const stripe = new Stripe('sk_test_platform');
const { requests } = planSplit(
  { quote_id: 'q-1', currency: 'USD', spotPrice: '55.00', partnerCut: '5.00', invoiceAmount: '50.00' },
  { split: 'real_time', merchant_of_record: 'platform', connected_account_id: 'acct_1' },
);
try {
  const [payment] = await executeRequests(stripe, requests, {});
  console.log(payment?.id);
} catch (error) {
  if (error instanceof SplitUnfinished) console.log(error.code, error.done.length);
}
`;

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'reckoner-partner-'));
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(packageRoot, join(folder, 'node_modules/reckoner'));
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  symlinkSync(join(packageRoot, 'node_modules/stripe'), join(folder, 'node_modules/stripe'));
  writeFileSync(join(folder, 'checkout.ts'), PROGRAM);
  writeFileSync(join(folder, 'executing.ts'), EXECUTING);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Compiles a program with TypeScript's default options and returns what it prints. */
async function compiled(name: string, ...options: string[]): Promise<string> {
  await run(
    process.execPath,
    [
      join(packageRoot, 'node_modules/typescript/bin/tsc'),
      ...['--strict', '--module', 'nodenext', '--target', 'es2023', '--lib', 'es2023,dom', '--types', ''],
      ...options,
      join(folder, `${name}.ts`),
    ],
    { cwd: folder },
  );
  return (await run(process.execPath, [join(folder, `${name}.js`)], { cwd: folder })).stdout;
}

test("a partner's program compiles against the built package and runs", async () => {
  expect(await compiled('checkout')).toBe('5500 5000\noperator_missing\n');
});

test('a program that makes the requests passes its own client of the processor', async () => {
  // The client's types need those of Node.
  expect(await compiled('executing', '--skipLibCheck')).toBe('input_missing 0\n');
});

test('the imported module depends on nothing outside itself', () => {
  const read = (file: string) => readFileSync(builtFile(join('src', file)), 'utf8');
  const imports = (text: string) =>
    [...text.matchAll(/^(?:import|export) .*from '([^']+)'/gm)].map((match) => match[1]);
  const modules = readdirSync(builtFile('src/processors/stripe/splits')).filter((file) => file.endsWith('.js'));
  expect(modules).toContain('plan.js');
  expect(modules).toContain('execute.js');
  const outside = modules.flatMap((file) =>
    imports(read(`processors/stripe/splits/${file}`)).filter((from) => !/^\.\/[a-z-]+\.js$/.test(from ?? '')),
  );
  expect(outside).toEqual([]);
});
