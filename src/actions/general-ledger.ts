import { hash } from 'node:crypto';
import { Block } from '#blocks';
import { failpoint } from '#failpoint';
import { fieldName } from '#field-names';
import { GL_FORMATS } from '#general-ledger/accounts';
import { exportGl, GlExportResult } from '#general-ledger/export';
import { readParts } from '#general-ledger/exports.sql';
import { externalId } from '#general-ledger/files';
import { CurrencyJournal, summarise } from '#general-ledger/journal';
import { plural } from '#values';
import { choice, defineAction, flag, month } from './action.ts';

export const glExport = defineAction({
  name: 'gl.export',
  command: { called: 'export gl' },
  title: 'Export a month for the general ledger',
  role: 'finance',
  input: {
    month: month('Month', 'A month whose books are closed.'),
    format: choice('Format', 'The program that imports the journal.', GL_FORMATS),
    preliminary: flag(
      'Preliminary',
      'Export a month whose books are open. Later changes become another part.',
    ).optional(),
    reclassify: flag('Reclassify', 'Move exported amounts to the accounts that accounts.json now names.').optional(),
  },
  subject: ({ month }) => month,
  perform: exportGl,
  committed: () => failpoint('gl.committed'),
  async facts(tx, { month, format }) {
    const last = (await readParts(tx, { month, format })).at(-1);
    return last === undefined
      ? {}
      : {
          [`the journal of ${month} for ${format}`]: {
            part: String(last.part),
            kind: last.kind,
            checkpoint: last.checkpoint,
          },
        };
  },
  amounts: (_seen, _input, { recorded, lines }) => (recorded ? summarise(lines).map(({ total }) => total) : []),
  async report({ input: { month, format }, result }) {
    const { part, recorded, files, lines, movable } = result;
    const journals = summarise(lines);
    return {
      json: {
        ...{ month, format, recorded, part: part?.part ?? null, kind: part?.kind ?? null },
        ...{
          books_closed: part?.books_closed ?? null,
          checkpoint: part?.checkpoint ?? null,
          recorded_at: part?.recorded_at ?? null,
        },
        journals: journals.map((journal) => ({
          external_id: part === undefined ? null : externalId({ ...part }, journal.currency),
          currency: journal.currency,
          debit: journal.total.toString(),
          credit: journal.total.toString(),
          lines: journal.lines.length,
        })),
        files: files.map(({ name, content }) => ({ name, sha256: sha256Of(content), bytes: content.length })),
        movable: [...new Set(movable.map(({ account }) => account))],
      },
      text: [titleOf(month, format, result), ...describeMovable(result)].join('\n'),
      blocks: journals.map((journal) => blockOf(journal, part === undefined ? '' : externalId(part, journal.currency))),
      attention: recorded ? false : movable.length > 0,
    };
  },
});

const sha256Of = (content: Buffer) => hash('sha256', content);

function titleOf(month: string, format: string, { part, recorded, lines }: GlExportResult) {
  if (part === undefined) return `Nothing was posted in ${month}, so there is nothing to export.`;
  const of = `${month} for ${format}`;
  if (!recorded) {
    return (
      `Nothing was posted since part ${part.part} of ${of} was exported on ${part.recorded_at.slice(0, 10)}: its ` +
      'files are unchanged.'
    );
  }
  const books = part.books_closed ? 'The books are closed.' : 'The books are OPEN: later changes become another part.';
  const what = {
    journal: `Part 1 of ${of}: the journal of the month, ${plural(lines.length, 'account')}.`,
    difference: `Part ${part.part} of ${of}: what was posted since part ${part.part - 1}. Import it after the earlier parts.`,
    reclassification: `Part ${part.part} of ${of}: moves what was exported to other accounts. Import it after the earlier parts.`,
  };
  return `${what[part.kind]}\n${books}`;
}

const blockOf = ({ currency, lines, total }: CurrencyJournal, id: string): Block => ({
  title: `Journal ${id || currency}`,
  table: {
    headings: ['~account', '~name', '~ours', '>debit', '>credit'],
    rows: lines.map(({ to_account, name, memo, amount }) => [
      ...[to_account, name, memo],
      ...(amount.isNegative() ? [null, amount.negated()] : [amount, null]),
    ]),
    foot: [['total', null, null, total, total]],
  },
});

function describeMovable({ movable }: GlExportResult) {
  const accounts = [...new Set(movable.map(({ account }) => account))];
  if (accounts.length === 0) return [];
  return [
    'accounts.json has changed: it now maps ' +
      `${accounts.slice(0, 5).join(', ')}${accounts.length > 5 ? ` and ${accounts.length - 5} more` : ''} elsewhere. ` +
      `Exported amounts stay where they are; to move them, export with ${fieldName('reclassify')}.`,
  ];
}
