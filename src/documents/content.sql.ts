/** Hashes documents' content, to ensure that exactly the confirmed or approved content is issued. */
import { querying } from '#database/transaction';

/**
 * The content of a document `d` of issuer version `i` and partner `p`, without numbers and dates, which depend on the
 * day of issue.
 */
export const CONTENT = `jsonb_build_array(
                to_jsonb(d) - '{document_id,series,sequence,number,log_no,issuer_version_id}'::text[]
                            - '{issued_on,due_on,issued_at,reopened_on,entry_on,contact_name}'::text[],
                personal(d.contact_name), i.content, p.contact_email)`;

export const readContents = querying<Readonly<{ number: string; sha256: string }>, { numbers: readonly string[] }>(`
  SELECT d.number, encode(sha256(convert_to(jsonb_build_array(${CONTENT}, (
           SELECT jsonb_agg(jsonb_build_array(policy_id, policy_name, kind, month, count, spot_price, partner_cut,
                                              invoice_amount, tax) ORDER BY position)
           FROM document_lines l WHERE l.document_id = d.document_id))::text, 'UTF8')), 'hex') AS sha256
  FROM documents d
  JOIN issuer_versions i USING (issuer_version_id)
  JOIN partners p USING (partner_id)
  WHERE d.number = ANY (:numbers::text[])`);
