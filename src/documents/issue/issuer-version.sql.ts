/** Stores the issuer as printed on documents, each version once. Documents refer to its id. */

import { Logo } from '#config/logo';
import { Issuer } from '#config/settings';
import { execute, executing, queryOne, Transaction } from '#database/transaction';

/** Records the issuer in the current settings and returns its version. The logo is stored by its hash. */
export async function recordIssuerVersion(tx: Transaction, issuer: Issuer, now: string) {
  const { logo } = issuer;
  if (logo !== null) await recordLogo(tx, { ...logo, now });
  // If an issuer has no logo, the content and version are the same as before logos existed.
  const bindings = { content: JSON.stringify({ ...issuer, logo: logo === null ? '' : { sha256: logo.sha256 } }), now };
  await execute(
    tx,
    `INSERT INTO issuer_versions (content, first_used_at) VALUES (:content::jsonb, :now::timestamptz)
     ON CONFLICT ON CONSTRAINT issuer_version_once DO NOTHING`,
    bindings,
  );
  const { id } = await queryOne<{ id: number }>(
    tx,
    `SELECT issuer_version_id AS id FROM issuer_versions WHERE content = :content::jsonb`,
    bindings,
  );
  return id;
}

const recordLogo = executing<{ now: string } & Logo>(`
  INSERT INTO logos (sha256, media_type, width, height, content, first_used_at)
  VALUES (:sha256, :media_type, :width, :height, decode(:content, 'base64'), :now::timestamptz)
  ON CONFLICT ON CONSTRAINT logo_once DO NOTHING`);
