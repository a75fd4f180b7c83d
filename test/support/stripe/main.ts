/** `npm run stripe:stand-in`: the stand-in by hand, with one line for each request. */
import { startStripe } from './stand-in.ts';

const port = Number(process.env['PORT'] ?? 12111);
const { url, state } = await startStripe({
  port,
  // As the program's own clock, where that is set.
  now: () => new Date(process.env['RECKONER_NOW'] ?? Date.now()),
  onRequest: ({ method, path, status, replayed, idempotencyKey }) => {
    const key = idempotencyKey === undefined ? '' : ` ${idempotencyKey}`;
    process.stdout.write(`${method} ${path} ${status}${replayed ? ' (again)' : ''}${key}\n`);
  },
});
// Two connected accounts of its platform: ours, which we read with a key of our own, and an operator's.
for (const account of ['acct_sandbox', 'acct_operator']) state.connect.accounts.add(account);
state.connect.keys.set('sk_test_sandbox', 'acct_sandbox');
process.stdout.write(`A stand-in for Stripe listens. For the program, in sandbox:
  export STRIPE_API_BASE=${url} STRIPE_SECRET_KEY=sk_test_standin STRIPE_SECRET_KEY_acct_sandbox=sk_test_sandbox
`);
