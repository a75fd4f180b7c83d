import { scopeOf, type User } from '../people/roles.ts';

/** `key` is the letter to type after the letter `g`. */
const PLACES = [
  { path: '', name: 'Today', key: 't' },
  { path: 'close', name: 'Close', key: 'c' },
  { path: 'queue', name: 'Work queue', key: 'q' },
  { path: 'payments', name: 'Payments', key: 'p' },
  { path: 'invoices', name: 'Invoices', key: 'i' },
  { path: 'partners', name: 'Partners', key: 'r' },
  { path: 'aging', name: 'Reports', key: 'a' },
  { path: 'accounts', name: 'Accounts', key: 'o' },
  { path: 'audit', name: 'Audit', key: 'u' },
  { path: 'settings', name: 'Settings', key: 's' },
] as const;
export type Place = (typeof PLACES)[number]['path'];

export type PlaceLink = (typeof PLACES)[number];

const OF_ALL: readonly Place[] = ['close', 'settings'];

export const placesOf = (reader: Pick<User, 'roles'>): readonly PlaceLink[] =>
  scopeOf(reader, 'viewer') === null ? PLACES : PLACES.filter(({ path }) => !OF_ALL.includes(path));
