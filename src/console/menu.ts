import { periodOf, scopeOf, User } from '#people/roles';

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

/** `at`: the page below /console, if it is not `path`. */
export type PlaceLink = (typeof PLACES)[number] & { readonly at?: string };

const OF_ALL: readonly Place[] = ['close', 'settings'];

/** The pages of users who may see some months only. */
const OF_PERIOD: Readonly<Partial<Record<Place, string>>> = {
  ...{ payments: 'payments/all', invoices: 'invoices', aging: 'reports/close', audit: 'audit' },
};

export const placesOf = (reader: Pick<User, 'roles' | 'limits'>): readonly PlaceLink[] => {
  if (periodOf(reader) !== null) {
    return PLACES.flatMap((place) =>
      OF_PERIOD[place.path] ? [{ ...place, at: OF_PERIOD[place.path] as string }] : [],
    );
  }
  return scopeOf(reader, 'viewer') === null ? PLACES : PLACES.filter(({ path }) => !OF_ALL.includes(path));
};
