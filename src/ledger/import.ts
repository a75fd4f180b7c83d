/**
 * Imports ledger rows: stages the files, checks all rows and what was stated of them, and records all rows or none.
 * Rows are checked outside the ledger's lock. Refusals: file_unreadable, file_unwritable, import_overtaken. Bad rows are
 * listed in the report and are not a refusal.
 */
import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { DateTime } from 'luxon';
import { beginWithArchives, copyStagedQuotes, endWithArchives } from '#archive/rows';
import { Environment } from '#config/environment';
import { lockImporters, lockLedgerShared } from '#database/ledger-lock';
import { Transaction } from '#database/transaction';
import { failpoint } from '#failpoint';
import { Actor, AuditEvent, recordEvent } from '#people/audit-events';
import { Control, ControlResult, compareControls, StatedControl } from './control.ts';
import { findDoubles, findRepeatedRows, SIGNS, Sign, surveyAlike } from './doubles.sql.ts';
import { insertGrounds } from './grounds.sql.ts';
import { Ceilings, judgeReversals } from './grounds.ts';
import {
  countNewlyHeld,
  findHeldBefore,
  HeldInFile,
  holdAfterReversals,
  holdDoubles,
  holdRelated,
  insertHeldRows,
  readHeldInFile,
} from './held.sql.ts';
import { DifferingCuts, findDifferingQuotes, readStagedCuts } from './quoted.sql.ts';
import { findAboveLargest } from './quoted.ts';
import { readRecords, SourceFile } from './read.ts';
import { rejectedRow, rejectFormat, writeRejects } from './rejects.ts';
import { inTenThousandths, rowProblem } from './row.ts';
import {
  countVerdicts,
  findKnownRows,
  findOrphans,
  findUnknownSellers,
  firstBadRows,
  insertEntries,
  OtherCurrencyRows,
  Overdrawn,
  overdrawnQuotes,
  PartnerReversals,
  readOtherCurrencyRows,
  recordOverdrawn,
  sumGoodReversals,
  sumGoodRows,
  surveyStaged,
  Totals,
  touchedMonths,
} from './rows.sql.ts';
import { createStaging, openStager, StagedCounts } from './stage.ts';
import { monthsAround, ZoneMonth } from './zone-months.ts';

const REPORTED_ERRORS = 1000;

export type ImportReport = Readonly<{
  accepted: number;
  duplicates: number;
  /** Rows that wait for a decision, including those that an earlier import held. */
  held: number;
  rejected: number;
  errors: readonly { file: string; line: number; field: string; code: string; reason: string }[];
  held_rows: readonly {
    held_row_id: number | null;
    file: string;
    line: number;
    field: string;
    code: Sign;
    reason: string;
  }[];
  late: number;
  /**
   * Accepted rows whose currency differs from their partner's currency. Such rows are allowed, but are usually a
   * mistake.
   */
  other_currencies: readonly OtherCurrencyRows[];
  differing_cuts: readonly DifferingCuts[];
  /** What was stated of the delivery, compared with its rows. A difference refuses the import. */
  control: readonly ControlResult[];
  refused: boolean;
  /** The SHA-256 of each file. */
  sha256: readonly string[];
  /** The sums of the accepted rows, by currency. */
  totals: Totals;
  /** The sums of the accepted reversals, the largest first. Only of an import. */
  reversals: readonly PartnerReversals[];
  event_id: number | null;
}>;

export type ImportOptions = Readonly<{
  skipInvalid: boolean;
  /** Records rows that differ from the API's quote with the same id. */
  acceptDiffering?: boolean;
  /** The file for bad rows and their reasons (`rejectFormat`). */
  rejects?: string | undefined;
  /** What is stated of all files together. */
  control?: Control;
  now: DateTime<true>;
  actor: Actor;
  ceilings: Ceilings;
  /** For the archives of old months. Null for a call of a partner, which does not wait for an archive. */
  environment: Environment | null;
  /** What allows the reversals. If absent, the rules judge them (grounds.ts). */
  allowedBy?: 'person' | 'processor';
  /**
   * The action that the rows come from. If absent, the action is an import of these files, with their names and hashes.
   * Only an import holds rows that may repeat a sale.
   */
  action?: Pick<AuditEvent, 'action' | 'subject' | 'details'>;
  /** The action if the row is held. */
  request?: Pick<AuditEvent, 'action' | 'subject' | 'details'>;
  onProgress?: (bytes: number) => void;
  /** Called with the report before anything is recorded. Returns whether the rows may be recorded. */
  agree?: ((foreseen: ImportReport) => Promise<boolean>) | undefined;
}>;

/**
 * Stages, checks and records rows in the given transaction. The caller commits the transaction, or rolls it back after
 * a preview. Nothing is recorded if a file cannot be read to its end, or if a row is bad and `skipInvalid` is not set.
 */
export async function importRows(
  tx: Transaction,
  files: readonly SourceFile[],
  options: ImportOptions,
): Promise<ImportReport> {
  const { environment } = options;
  if (environment) await beginWithArchives(tx);
  await createStaging(tx);
  const { broken, staged, sha256, trailers } = await stageFiles(tx, files, options);
  failpoint('import.staged');
  if (environment) await copyStagedQuotes(tx, environment);
  // Only one importer at a time continues from here, so the results of these checks still hold when the rows are
  // recorded.
  await lockImporters(tx);
  await judge(tx, staged, options);
  failpoint('import.judged');

  const { good, duplicates, held, rejected } = await countVerdicts(tx, staged);
  const bad = rejected === 0 ? [] : await firstBadRows(tx, { limit: REPORTED_ERRORS });
  const stated = statedControls(options, files, trailers);
  const isInvalid = broken || (rejected > 0 && !options.skipInvalid);
  const { results: control, errors: differing } = await compareControls(tx, isInvalid ? [] : stated, files);
  const errors = [...bad.map((row) => ({ ...row, file: (files[row.file] as SourceFile).name })), ...differing];
  if (options.rejects !== undefined) {
    await writeRejects(tx, options.rejects, files);
  }
  const refused = isInvalid || differing.length > 0;
  const newlyHeld = held === 0 || refused ? 0 : await countNewlyHeld(tx);
  const heldRows = async () =>
    held === 0 ? [] : (await readHeldInFile(tx, { limit: REPORTED_ERRORS })).map((row) => describeHeld(row, files));
  const nothing: ImportReport = {
    ...{ accepted: 0, duplicates, held, rejected, errors, control, refused, sha256, held_rows: await heldRows() },
    ...{ late: 0, other_currencies: [], differing_cuts: [], totals: {}, reversals: [], event_id: null },
  };
  if (good + newlyHeld === 0 || refused) return nothing;
  const differing_cuts = await readStagedCuts(tx);
  const totals = await sumGoodRows(tx);
  const reversals = options.action === undefined ? await sumGoodReversals(tx) : [];
  const foreseen = { ...nothing, accepted: good, differing_cuts, totals, reversals };
  if (options.agree !== undefined && !(await options.agree(foreseen))) return foreseen;
  const zoneMonths = (await touchedMonths(tx)).flatMap(({ time_zone, utc_month }) =>
    monthsAround(time_zone, utc_month),
  );
  const names = files.map(({ name }) => name);
  const action = (newlyHeld > 0 ? options.request : undefined) ??
    options.action ?? {
      action: 'ledger.import',
      subject: names.map((name) => basename(name)).join(' '),
      details: {
        ...{ files: names, sha256, duplicates, rejected, skip_invalid: options.skipInvalid },
        ...(newlyHeld > 0 && { held: newlyHeld }),
        ...(options.acceptDiffering && { accept_differing: true }),
        ...(differing_cuts.length > 0 && { differing_cuts }),
        ...(stated.length > 0 && { control: stated }),
      },
    };
  const now = options.now.toISO();
  const details = { ...action.details, accepted: good, totals };
  await lockLedgerShared(tx);
  const event_id = await recordEvent(tx, options.actor, { ...action, details, now });
  await insertGrounds(tx, { allowedBy: options.allowedBy, recordedAt: now, eventId: event_id });
  const recorded = await insertEntries(tx, distinct(zoneMonths), { recordedAt: now, eventId: event_id });
  if (environment) await endWithArchives(tx, event_id);
  failpoint('import.recorded');
  if (!isDeepStrictEqual(recorded.totals, totals)) {
    throw new Error(`${good} rows were good, but ${recorded.entries} were recorded, or other amounts`);
  }
  if (newlyHeld > 0) await insertHeldRows(tx, { recordedAt: now, eventId: event_id });
  const other_currencies = await readOtherCurrencyRows(tx, { eventId: event_id });
  const late = recorded.late_entries;
  return { ...foreseen, held_rows: await heldRows(), late, other_currencies, event_id };
}

/** What was stated of the delivery: by the caller, by files of totals, and by trailers. */
const statedControls = (
  { control }: ImportOptions,
  files: readonly SourceFile[],
  trailers: readonly StatedControl[],
) => [
  ...(control === undefined ? [] : [{ ...control, by: 'option', file: null } as const]),
  ...files.flatMap(({ totals }, file) =>
    totals === undefined ? [] : [{ ...totals, by: 'totals_file', file } as const],
  ),
  ...trailers,
];

const describeHeld = ({ file, line, field, sign, repeats, held_row_id }: HeldInFile, files: readonly SourceFile[]) => ({
  ...{ held_row_id, file: (files[file] as SourceFile).name, line, field, code: sign },
  reason: reasonToHold(sign, repeats),
});

/** Says why a row is held, as `may repeat dbl-a: the same enrollment, second and amounts`. */
export const reasonToHold = (sign: Sign, repeats: string | null) =>
  repeats === null ? `is ${SIGNS[sign]}` : `may repeat ${repeats}: ${SIGNS[sign]}`;

async function stageFiles(tx: Transaction, files: readonly SourceFile[], options: ImportOptions) {
  const now = options.now.toMillis();
  const { rejects } = options;
  const stager = await openStager(tx, rejects === undefined ? undefined : rejectedRow(rejectFormat(rejects, files)));
  const hashes = files.map(() => createHash('sha256'));
  const trailers: StatedControl[] = [];
  let broken = false;
  try {
    for (const [index, file] of files.entries()) {
      const onBytes = (bytes: number, content: Buffer) => {
        hashes[index]?.update(content);
        options.onProgress?.(bytes);
      };
      for await (const batch of readRecords(file, onBytes)) {
        for (const record of batch) {
          if (record.trailer !== undefined) {
            trailers.push({ ...record.trailer, by: 'trailer', file: index, line: record.line });
            continue;
          }
          stager.add(index, record, record.problem ?? rowProblem(record.texts, now));
          if (record.fatal) broken = true;
        }
        await stager.drained();
      }
    }
    return { broken, staged: await stager.finish(), sha256: hashes.map((hash) => hash.digest('hex')), trailers };
  } catch (error) {
    await stager.abandon();
    throw error;
  }
}

async function judge(
  tx: Transaction,
  { spreadsheet }: StagedCounts,
  { skipInvalid, acceptDiffering = false, action, allowedBy, now, ceilings }: ImportOptions,
) {
  const holds = action === undefined;
  await surveyStaged(tx);
  await surveyAlike(tx);
  // Known rows are found first, so that a row recorded while its partner was active stays a duplicate.
  await findKnownRows(tx);
  if (holds) await findHeldBefore(tx);
  await findUnknownSellers(tx);
  if (!acceptDiffering) await findDifferingQuotes(tx);
  await findRepeatedRows(tx);
  await findAboveLargest(tx, { skipInvalid });
  // A requote or reversal of a sale that is not recorded waits with it.
  if (holds) await holdRelated(tx);
  await findOrphans(tx, { skipInvalid });
  if (holds) {
    // Sales are held before the sums are checked, because a reversal must not need a sale that is not recorded.
    await findDoubles(tx, { spreadsheet });
    await holdDoubles(tx, { reversals: false });
    await holdRelated(tx);
  }
  const overdrawn = await overdrawnQuotes(tx, { inFileOrder: skipInvalid });
  if (overdrawn.length > 0) await recordOverdrawn(tx, reversalsTooMany(overdrawn, { inFileOrder: skipInvalid }));
  if (holds) await holdDoubles(tx, { reversals: true });
  if (allowedBy !== undefined) return;
  await judgeReversals(tx, now, ceilings);
  if (holds) await holdAfterReversals(tx);
}

/**
 * The reversals to reject so that no amount of a quote falls below zero. The rows of a quote are added up in order, and
 * a reversal that would take an amount below zero is rejected. Without --skip-invalid the order of rows does not
 * matter, so reversals are added last.
 */
function reversalsTooMany(rows: readonly Overdrawn[], { inFileOrder }: { inFileOrder: boolean }) {
  const isReversal = (row: Overdrawn) => Number(row.kind === 'reversal');
  const ordered = inFileOrder ? rows : [...rows].sort((a, b) => isReversal(a) - isReversal(b) || a.seq - b.seq);
  const balances = new Map<string, readonly bigint[]>();
  const tooMany: number[] = [];
  for (const row of ordered) {
    const quote = `${row.partner_id} ${row.quote_id}`;
    const before =
      balances.get(quote) ??
      [row.spot_price_before, row.partner_cut_before, row.invoice_amount_before].map(inTenThousandths);
    const own = [row.spot_price, row.partner_cut, row.invoice_amount].map(inTenThousandths);
    const after = before.map((amount, index) => amount + (own[index] as bigint));
    const tooLow = row.kind === 'reversal' && after.some((amount) => amount < 0n);
    if (tooLow) tooMany.push(row.seq);
    balances.set(quote, tooLow ? before : after);
  }
  return tooMany;
}

function distinct(zoneMonths: readonly ZoneMonth[]) {
  return [...new Map(zoneMonths.map((each) => [`${each.time_zone} ${each.month}`, each])).values()];
}
