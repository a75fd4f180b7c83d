/** SQL of the letters about checkpoints. */
import { querying, queryingFirst, queryingOne } from '#database/transaction';
import { Checkpoint } from '#log/checkpoints.sql';
import { CheckpointOf } from '#log/closing.sql';
import { LogKey } from '#log/signatures.sql';
import { Month } from '#month';

/** Only checkpoints that close a month, unless every checkpoint gets a letter. */
const OF_LETTERS = `(:every::boolean OR closes LIKE 'month %')`;

/**
 * Checkpoints without a letter: those taken after an instant, and the latest. One without a signature waits until
 * `unsignedBefore`, if that is given.
 */
export const readLettersDue = querying<
  Pick<Checkpoint, 'size'>,
  Readonly<{ every: boolean; since: string; unsignedBefore: string | null }>
>(`
  SELECT size FROM log_checkpoints c
  WHERE ${OF_LETTERS}
    AND (taken_at >= :since::timestamptz OR size = (SELECT max(size) FROM log_checkpoints WHERE ${OF_LETTERS}))
    AND NOT EXISTS (SELECT FROM emails e WHERE e.kind = 'checkpoint' AND e.checkpoint_size = c.size)
    AND (:unsignedBefore::timestamptz IS NULL OR taken_at < :unsignedBefore::timestamptz
         OR EXISTS (SELECT FROM log_signatures s WHERE s.size = c.size AND s.key_name = c.origin))
  ORDER BY size`);

export type LetterHead = Pick<Checkpoint, 'origin' | 'size' | 'root' | 'taken_at' | 'closes'>;

const HEAD = 'c.origin, c.size, c.root, c.taken_at, c.closes';

export const readLetterHead = queryingOne<LetterHead, { size: number | null }>(
  `SELECT ${HEAD} FROM log_checkpoints c WHERE size = :size::bigint`,
);

/** The checkpoint of the previous letter, or of the last one that the log's key signed. */
export const readLetterBefore = queryingFirst<LetterHead, Readonly<{ size: number; signed: boolean }>>(`
  SELECT ${HEAD} FROM log_checkpoints c
  WHERE size < :size::bigint
    AND EXISTS (SELECT FROM emails e
                WHERE e.kind = 'checkpoint' AND e.checkpoint_size = c.size AND e.status <> 'withdrawn')
    AND (NOT :signed::boolean OR EXISTS (
      SELECT FROM log_signatures s WHERE s.size = c.size AND s.key_name = c.origin))
  ORDER BY size DESC LIMIT 1`);

/** The months whose books were closed by checkpoints after the size `after`, up to the size `to`. */
export const readBooksClosed = querying<
  CheckpointOf & Pick<Checkpoint, 'closes'>,
  Readonly<{ after: number; to: number }>
>(`
  SELECT closes, size, encode(root, 'base64') AS root FROM log_checkpoints
  WHERE closes LIKE 'books %' AND size > :after::bigint AND size <= :to::bigint ORDER BY size`);

/** The keys of the log, latest first. */
export const readKeys = querying<LogKey & { readonly reason: string }>(
  `SELECT key_name, public_key, previous, signature, reason FROM log_keys ORDER BY log_no DESC`,
);

/** The counts of a month's close. */
type MonthCounts = Readonly<{
  entries: number;
  late_entries: number;
  partners_with_documents: number;
  totals: readonly Readonly<{
    currency: string;
    entries: number;
    spot_price: string;
    partner_cut: string;
    invoice_amount: string;
  }>[];
}>;

export const readMonthCounts = queryingOne<MonthCounts, { month: Month }>(`
  SELECT m.entries, m.late_entries, m.partners_with_documents, coalesce(t.totals, '[]') AS totals
  FROM closed_months m
  CROSS JOIN LATERAL (
    SELECT json_agg(json_build_object('currency', currency, 'entries', entries, 'spot_price', spot_price::text,
             'partner_cut', partner_cut::text, 'invoice_amount', invoice_amount::text) ORDER BY currency) AS totals
    FROM month_totals WHERE month = m.month) AS t
  WHERE m.month = :month`);
