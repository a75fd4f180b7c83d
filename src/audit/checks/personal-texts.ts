/** The check of personal texts and their erasures. */
import { COMMITMENTS_USED } from '#log/personal.sql';

/**
 * A fact that names a person has a commitment. The commitment's text is kept and hashes to it, or it was erased, and
 * then the text is gone. No text is kept that nothing names, because an erasure would not find it.
 */
export const PERSONAL_TEXTS_KEPT_OR_ERASED = `used AS MATERIALIZED (
  ${COMMITMENTS_USED}
), inspected AS MATERIALIZED (
  SELECT commitment, min("table" || ', number ' || number) AS place, t.commitment IS NOT NULL AS is_kept,
         e.commitment IS NOT NULL AS is_erased, commitment_of(t.salt, t.text) AS of_text
  FROM used u FULL JOIN personal_texts t USING (commitment) FULL JOIN erasures e USING (commitment)
  GROUP BY commitment, t.commitment, t.salt, t.text, e.commitment
), differences AS (
  SELECT coalesce(place, 'personal text ' || commitment) AS subject,
         CASE WHEN NOT is_commitment(commitment) THEN 'has a personal text in place of its commitment'
              WHEN is_kept AND is_erased THEN format('names %s, which was erased, but its text is kept', commitment)
              WHEN place IS NULL AND is_kept THEN 'is kept, but nothing names it'
              WHEN NOT is_kept AND NOT is_erased
                THEN format('names %s, whose text is missing and was not erased', commitment)
              ELSE format('names %s, whose text is another: it gives %s', commitment, of_text) END AS detail
  FROM inspected
  WHERE NOT is_commitment(commitment) OR is_kept = is_erased OR (place IS NULL AND is_kept) OR of_text <> commitment
)`;
