/** A partner's own TypeScript program in a folder of its own, with the package of splits as it is packed. */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { packageRoot } from '../../src/package.ts';
import { layOutSplitsPackage } from '../../src/processors/stripe/splits-package.ts';
import { compiled } from '../support/program.ts';

const run = promisify(execFile);

export interface Packed {
  /** The tarball. */
  readonly file: string;
  readonly bytes: number;
  readonly unpackedBytes: number;
  readonly files: readonly string[];
}

/** npm without what this machine's own settings would add. */
export const npm = (args: readonly string[], cwd: string): Promise<{ stdout: string; stderr: string }> =>
  run('npm', [...args, '--no-audit', '--no-fund', '--no-update-notifier', '--loglevel=error'], { cwd });

export const emptyFolder = (): string => mkdtempSync(join(tmpdir(), 'reckoner-partner-'));

export async function packSplits(folder: string): Promise<Packed> {
  const laidOut = join(folder, 'laid-out');
  layOutSplitsPackage(laidOut, compiled('src/processors/stripe/splits'));
  const { stdout } = await npm(['pack', laidOut, '--json', '--pack-destination', folder], folder);
  const [packed] = Object.values(JSON.parse(stdout) as object) as [
    { filename: string; size: number; unpackedSize: number; files: { path: string }[] },
  ];
  return {
    file: join(folder, packed.filename.replace('@', '').replace('/', '-')),
    bytes: packed.size,
    unpackedBytes: packed.unpackedSize,
    files: packed.files.map(({ path }) => path).sort(),
  };
}

/** A folder with the package unpacked, and a `stripe` client as the partner has it. */
export async function partnerFolder(
  packed: Packed,
  stripe: string,
  modules: 'module' | 'commonjs' = 'module',
): Promise<string> {
  const folder = emptyFolder();
  const at = join(folder, 'node_modules/@reckoner/splits');
  mkdirSync(at, { recursive: true });
  await run('tar', ['-xzf', packed.file, '-C', at, '--strip-components=1']);
  symlinkSync(stripe, join(folder, 'node_modules/stripe'));
  writeFileSync(join(folder, 'package.json'), `{ "type": "${modules}" }`);
  return folder;
}

/** Compiles a program with TypeScript's default options, strictly, and returns what it prints. */
export async function compileAndRun(
  folder: string,
  program: string,
  { env = {}, options = [] }: { env?: Readonly<Record<string, string>>; options?: readonly string[] } = {},
): Promise<string> {
  writeFileSync(join(folder, 'program.ts'), program);
  await run(
    process.execPath,
    [
      join(packageRoot, 'node_modules/typescript/bin/tsc'),
      ...['--strict', '--exactOptionalPropertyTypes', '--module', 'nodenext', '--target', 'es2023'],
      ...['--lib', 'es2023,dom', '--types', '', ...options],
      join(folder, 'program.ts'),
    ],
    { cwd: folder },
  ).catch((error: unknown) => {
    throw new Error(`the program does not compile: ${(error as { stdout?: string }).stdout}`, { cause: error });
  });
  const ran = await run(process.execPath, [join(folder, 'program.js')], {
    cwd: folder,
    env: { ...process.env, ...env },
  });
  return ran.stdout;
}

/** The types that a generator makes of the API's description. */
const ANSWERS = `interface Split {
  split: 'real_time' | 'sequential';
  merchant_of_record: 'platform' | 'third_party';
  connected_account_id: string;
  share: number;
  requests:
    | {
        does: 'payment' | 'transfer';
        method: 'POST';
        path: string;
        headers: { [key: string]: string };
        add?: string[];
        accepted_at?: string;
        params: { [key: string]: unknown };
      }[]
    | null;
  problem: { code: string; reason: string } | null;
}
interface Accepted {
  quote_id: string;
  enrollment_id: string;
  currency: string;
  accepted_at: string;
  split?: Split;
}
type QuoteAccepted = Accepted & { spotPrice: number; partnerCut: number; invoiceAmount: number };
type RequoteAccepted = Accepted & {
  requote_id: string;
  incrementalSpotPrice: number;
  incrementalPartnerCut: number;
  incrementalInvoiceAmount: number;
};
interface Reversal {
  reversal_id: string;
  quote_id: string;
  requote_id: string | null;
  enrollment_id: string | null;
  currency: string;
  accepted_at: string;
  spotPrice: number;
  partnerCut: number;
  invoiceAmount: number;
}
declare const process: { env: { [name: string]: string } };
`;

/** The samples of a page in TypeScript, each a program of its own, beside what they leave to the reader. */
export const samplesOf = (page: string): string[] =>
  [...readFileSync(join(packageRoot, page), 'utf8').matchAll(/^```ts\n(.*?)^```$/gms)].map(([, sample = '']) => {
    const isImport = (line: string) => line.startsWith('import ');
    const lines = sample.split('\n');
    return `import type Client from 'stripe';
import type { Routing } from '@reckoner/splits';
${lines.filter(isImport).join('\n')}
${ANSWERS}
declare const stripe: Client;
declare const answer: QuoteAccepted | RequoteAccepted;
declare const reversal: Reversal;
declare const routing: Routing;
declare const quote_id: string, currency: string, payment_method: string;
declare function showToCustomer(client_secret: string | null): void;
export async function sample(): Promise<void> {
${lines.filter((line) => !isImport(line)).join('\n')}}
`;
  });

/** A checkout that takes the API's answers as they are. */
export const CHECKOUT = `import { planDispute, planRefund, planSplit, SplitImpossible } from '@reckoner/splits';
import { executeRequests, SplitUnfinished } from '@reckoner/splits/execute';
import Stripe from 'stripe';

${ANSWERS}
const { hostname: host, port } = new URL(process.env['STRIPE_API_BASE'] ?? 'http://localhost:1');
const stripe = new Stripe('sk_test_platform', { protocol: 'http', host, port: Number(port), maxNetworkRetries: 0 });

async function checkout(answer: QuoteAccepted | RequoteAccepted, payment_method: string) {
  if (answer.split === undefined) return;
  const requests = answer.split.requests ?? planSplit(answer, answer.split).requests;
  try {
    const done = await executeRequests(stripe, requests, { payment_method });
    console.log(done.map(({ does, amount, known }) => [does, amount, known].join(' ')).join(', '));
    return done;
  } catch (error) {
    if (error instanceof SplitUnfinished) console.log(error.code, error.payment?.status, error.payment?.next_action?.type);
    else console.log((error as { code?: string }).code);
    return undefined;
  }
}

async function main() {
  const split: Split = {
    ...{ split: 'real_time', merchant_of_record: 'platform', connected_account_id: 'acct_us', share: 7 },
    ...{ requests: null, problem: null },
  };
  const ids = { enrollment_id: 'e-1', currency: 'USD', accepted_at: new Date().toISOString() };
  const quote = { ...ids, quote_id: 'q-1', spotPrice: 10, partnerCut: 3, invoiceAmount: 7, split };
  await checkout(quote, 'pm_card_visa_chargeDeclined');
  await checkout(quote, 'pm_card_threeDSecure2Required');
  const asked = { ...quote, quote_id: 'q-2' };
  const done = await checkout(asked, 'pm_card_visa');
  await checkout(asked, 'pm_card_visa');
  await checkout({ ...asked, split: JSON.parse(JSON.stringify({ ...split, requests: planSplit(asked, split).requests })) }, 'pm_card_visa');
  const requote = { ...ids, quote_id: 'q-2', requote_id: 'rq-1', split };
  await checkout({ ...requote, incrementalSpotPrice: 1.1, incrementalPartnerCut: 0.3, incrementalInvoiceAmount: 0.8 }, 'pm_card_visa');
  const third = { ...split, split: 'sequential', merchant_of_record: 'third_party' } as const;
  const { requests } = planSplit({ ...quote, quote_id: 'q-3' }, third, { operator_account: 'acct_host', platform_fee: 1 });
  const sold = await executeRequests(stripe, requests, { payment_method: 'pm_card_visa' });
  const reversal: Reversal = {
    ...{ ...ids, quote_id: 'q-3', requote_id: null, reversal_id: 'rv-1' },
    ...{ spotPrice: -10, partnerCut: -3, invoiceAmount: -7 },
  };
  const back = planRefund(reversal, third, { operator_account: 'acct_host' });
  await executeRequests(stripe, back, { payment_intent: sold[0]?.id, transfer: sold[1]?.id });
  const lost = planDispute({ ...asked, dispute_id: 'dp_1' }, split);
  await executeRequests(stripe, lost, { transfer: done?.[0]?.transfer });
  try {
    planSplit({ ...quote, spotPrice: 0.4, partnerCut: 0.1, invoiceAmount: 0.3 }, split);
  } catch (error) {
    if (error instanceof SplitImpossible) console.log(error.code);
  }
}
void main();
`;

export const CHECKOUT_PRINTS = `card_declined
payment_unpaid requires_action use_stripe_sdk
payment 1000 false
payment 1000 true
payment 1000 true
payment 110 false
amount_too_small
`;
