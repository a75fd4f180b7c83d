/**
 * Requests from webhooks to read a connected account now. Webhooks come in bursts and may be lost. Requests within a
 * short time cause only one reading, and only one account is read at a time. The daily job reads every account anyway.
 */
import { setTimeout as pause } from 'node:timers/promises';

type PollRequests = Readonly<{
  take: (accounts: readonly string[]) => void;
  /** Stops after the account that is being read. */
  stop: () => Promise<void>;
}>;

/** How long requests are collected after a reading, before the next reading. */
const GATHER_MILLISECONDS = 5000;

export function pollOnRequest(
  read: (account: string) => Promise<void>,
  onFailure: (account: string, error: unknown) => void,
  gatherMilliseconds = GATHER_MILLISECONDS,
): PollRequests {
  const waiting = new Set<string>();
  const stopping = new AbortController();
  let working: Promise<void> | undefined;
  const work = async () => {
    while (waiting.size > 0 && !stopping.signal.aborted) {
      const accounts = [...waiting];
      waiting.clear();
      for (const account of accounts) {
        if (!stopping.signal.aborted) await read(account).catch((error: unknown) => onFailure(account, error));
      }
      await pause(gatherMilliseconds, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
    working = undefined;
  };
  return {
    take(accounts) {
      for (const account of accounts) waiting.add(account);
      if (waiting.size > 0) working ??= work();
    },
    async stop() {
      stopping.abort();
      await working;
    },
  };
}
