/** Replaces the names of partners with their ids. Refusal: argument_invalid. */
import { z } from 'zod';
import { Transaction } from '#database/transaction';
import { refuseField } from '#errors/refusals';
import { readNamesakes } from '#partners/partners.sql';
import { Scope } from '#people/scope';
import { fieldsOf } from './fields.ts';

/** An input, in which each partner is named by its id. */
export async function withPartnerIds<Input>(tx: Transaction, fields: z.ZodObject, input: Input, scope: Scope) {
  const given = input as Readonly<Record<string, string | string[] | undefined>>;
  const named = fieldsOf(fields).flatMap(({ kind, name }) =>
    kind === 'partner' ? [given[name] ?? []].flat().map((value) => [name, value] as const) : [],
  );
  if (named.length === 0) return input;
  const ids = await idsOf(tx, named, scope);
  const of = (name: string) => ids.filter(([field]) => field === name).map(([, id]) => id);
  return {
    ...input,
    ...Object.fromEntries(named.map(([name]) => [name, Array.isArray(given[name]) ? of(name) : of(name)[0]])),
  };
}

/** The id of a partner, given by its id or name. */
export async function partnerIdOf(tx: Transaction, value: string, field = 'partnerId'): Promise<string> {
  const [[, id] = ['', value]] = await idsOf(tx, [[field, value]], null);
  return id;
}

/** An id counts before a name. A text that is neither is kept, and refused by the function that uses it. */
async function idsOf(
  tx: Transaction,
  named: readonly (readonly [field: string, value: string])[],
  scope: Scope,
): Promise<(readonly [field: string, id: string])[]> {
  const found = await readNamesakes(tx, { names: named.map(([, value]) => value), scope });
  return named.map(([field, value]) => {
    const ids = found.filter(({ asked }) => asked === value).map(({ partner_id }) => partner_id);
    if (ids.length < 2 || ids.includes(value)) return [field, ids.includes(value) ? value : (ids[0] ?? value)];
    throw refuseField(field, value, `is the name of ${ids.length} partners: ${ids.join(', ')}. Enter the id of one`);
  });
}
