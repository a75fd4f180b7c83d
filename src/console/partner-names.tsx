/** The partners that a field suggests by id and name while its user types. */
import { z } from 'zod';
import { fieldsOf } from '#actions/fields';
import { Transaction } from '#database/transaction';
import { readPartnerNames } from '#partners/partners.sql';
import { Scope } from '#people/scope';

export type Partners = ReadonlyMap<string, string>;

/** A page with more would be slow. Every other partner can be typed. */
const SUGGESTED = 500;

export const PARTNER_NAMES = 'partner-names';

/** The names that fields of these kinds suggest. */
export const readPartnersFor = async (tx: Transaction, fields: z.ZodObject, scope: Scope): Promise<Partners> =>
  fieldsOf(fields).some(({ kind }) => kind === 'partner') ? readPartnerNames(tx, scope, SUGGESTED) : new Map();

export const PartnerNames = ({ partners }: { partners: Partners }) =>
  partners.size === 0 ? null : (
    <datalist id={PARTNER_NAMES}>
      {[...partners].map(([id, name]) => (
        <option value={id}>{name}</option>
      ))}
    </datalist>
  );
