/** `npm run stripe:stand-in`: the stand-in by hand, with one line for each request. */
import { startStripe } from './stand-in.ts';

const port = Number(process.env['PORT'] ?? 12111);
const { url } = await startStripe({
  port,
  onRequest: ({ method, path, status, replayed, idempotencyKey }) => {
    const key = idempotencyKey === undefined ? '' : ` ${idempotencyKey}`;
    process.stdout.write(`${method} ${path} ${status}${replayed ? ' (again)' : ''}${key}\n`);
  },
});
process.stdout.write(`A stand-in for Stripe listens. For the program, in sandbox:
  export STRIPE_API_BASE=${url} STRIPE_SECRET_KEY=sk_test_standin
`);
