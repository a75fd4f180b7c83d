/** The partners that a field suggests by id and name while its user types. */
import type { z } from 'zod';
import { fieldsOf } from '../actions/fields.ts';
import type { Transaction } from '../database/transaction.ts';
import { readPartnerNames } from '../partners/partners.sql.ts';
import type { Scope } from '../people/scope.ts';

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
