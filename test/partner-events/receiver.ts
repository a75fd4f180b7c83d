/** A partner's server for webhooks: checks signatures with the library that partners would use, and answers as told. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';

export interface Received {
  readonly event_id: string;
  readonly position: number;
  readonly type: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface Receiver {
  readonly url: string;
  /** Every request with a body of JSON, in the order of arrival. */
  readonly received: Received[];
  /** The status of the answer, decided for each request; 204 at first. A string is where to redirect to. */
  answer: (event: Received) => number | string | { status: number; retryAfter: string } | 'never';
  readonly end: () => Promise<void>;
}

export async function startReceiver(): Promise<Receiver> {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString('utf8');
      const event = { ...(JSON.parse(body) as Omit<Received, 'headers' | 'body'>), body };
      const all = { ...event, headers: request.headers as Record<string, string> };
      received.push(all);
      const answer = receiver.answer(all);
      if (answer === 'never') return;
      if (typeof answer === 'object') response.writeHead(answer.status, { 'retry-after': answer.retryAfter });
      else if (typeof answer === 'string') response.writeHead(307, { location: answer });
      else response.writeHead(answer);
      response.end('thank you');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const receiver: Receiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/events`,
    received,
    answer: () => 204,
    async end() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return receiver;
}

/** Whether a request is signed with a secret, by the library of the specification; `at` is the receiver's clock. */
export function isSignedWith(secret: string, { headers, body }: Received, at: Date): boolean {
  const real = Date.now;
  Date.now = () => at.getTime();
  try {
    new Webhook(secret).verify(body, headers as Record<string, string>);
    return true;
  } catch {
    return false;
  } finally {
    Date.now = real;
  }
}
