/**
 * The calls for settlement files, with which a partner whose account we cannot read reports which transfer belongs to
 * which quote.
 */
import { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { Amount } from '#money';
import { thisProcess } from '#people/audit-events';
import { instant } from '#quotes/accept';
import { SettlementReading } from '#splits/read-settlement';
import { MOST_LINES, readSentFile, readSettlementFile, sendSettlementFile, sentFile } from '#splits/settlement-files';
import { SettlementFileState } from '#splits/settlement-files.sql';
import { OtherResult, serve } from './call.ts';
import { operation } from './operation.ts';
import { settlementFileAnswer } from './schemas.ts';
import { Shared } from './shared.ts';

/** A file of MOST_LINES lines is smaller than this. */
const FILE_BYTES = 1024 * 1024;

const EXAMPLE = {
  sha256: '6c1f4c0bd0ff0f4f1ad6b1f0a9d1b9d4f1d5a1c8f1f0d3a1e2c4b5a697887766',
  received_at: '2026-11-02T06:00:04.120Z',
  ...{ lines: 412, duplicates: 3, matched: 408, awaited: 0, unknown_quotes: 1 },
  unmatched: [
    {
      ...{ line: 77, status: 'unknown_quote', quote_id: 'q-4711', requote_id: null, transfer: 'tr_1Pq', payment: null },
      ...{ kind: 'share', currency: 'USD', amount: '14.87' },
    },
  ],
};

const common = { answer: settlementFileAnswer, example: EXAMPLE } as const;

export const sendFile = operation({
  ...common,
  id: 'sendSettlementFile',
  action: 'makes',
  path: '/api/v1/settlement-files',
  summary: 'Send a settlement file',
  description:
    'Which transfers and payments belong to which quotes, as CSV in UTF-8 with a header: quote_id, transfer, ' +
    'payment, amount, and as needed requote_id, currency, occurred_at, kind, refunded, reversal_id. At most 1 MiB ' +
    `(1048576 bytes) and ${MOST_LINES} lines; split larger files. A file is recorded as a whole or not at all: ` +
    'settlement_invalid lists up to 20 lines, each with a code. Sending the same file again records nothing (200), ' +
    'and lines in several files count once. Only for partners with a connected account.',
  body: z.string(),
  file: { type: 'text/csv', bytes: FILE_BYTES },
  otherwise: { status: 200, description: 'The same file was sent before: its current result' },
  refusals: ['partner_not_connected', 'settlement_invalid', 'ledger_busy'],
});

export const readFile = operation({
  ...common,
  id: 'readSettlementFile',
  action: 'reads',
  path: '/api/v1/settlement-files/{sha256}',
  summary: 'The result of a settlement file',
  description:
    'By the SHA-256 of the bytes that you sent, in hexadecimal: how many of its lines are matched to their quotes, ' +
    'and which are not yet. `lines` is the sum of the counts that follow.',
  params: z.object({ sha256: z.string().regex(/^[0-9a-f]{64}$/) }),
  refusals: ['settlement_file_unknown'],
});

export function addSettlementFiles(app: FastifyInstance, shared: Shared) {
  const acting = { environment: shared.environment, settings: shared.settings, actor: thisProcess('http') };
  serve(
    app,
    shared,
    sendFile,
    async (tx, { body, caller }, reading: SettlementReading | undefined) => {
      const { file, fresh } = await sendSettlementFile(tx, acting, body, caller, reading);
      return fresh ? answer(file) : new OtherResult(answer(file));
    },
    ({ body, caller }) => readSentFile(shared.database, acting, sentFile(body), caller.partnerId),
  );
  serve(app, shared, readFile, async (tx, { params, caller: { partnerId } }) =>
    answer(await readSettlementFile(tx, { partnerId, sha256: params.sha256 })),
  );
}

const answer = ({ received_at, unmatched, ...file }: SettlementFileState) => ({
  ...file,
  received_at: instant(received_at),
  unmatched: unmatched.map((line) => ({ ...line, amount: Amount.of(line.amount, line.currency).toString() })),
});
