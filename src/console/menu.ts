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

type SectionPage = Readonly<{
  name: string;
  path: string;
  /** As the page's route requires. */
  ofLedger?: true;
  ofPeriod?: true;
}>;

/** The pages that the tabs of a section lead to. */
const SECTIONS: Readonly<Record<string, readonly SectionPage[]>> = {
  Payments: [
    { name: 'To decide', path: '/console/payments' },
    { name: 'All payments', path: '/console/payments/all' },
    { name: 'Bank lines', path: '/console/payments/lines', ofLedger: true },
  ],
  Reports: [
    { name: 'Aging', path: '/console/aging' },
    { name: 'Roll-forward', path: '/console/reports/roll-forward' },
    { name: 'Reserve', path: '/console/reports/reserve' },
    { name: 'Trial balance', path: '/console/reports/trial-balance', ofLedger: true },
    { name: 'Tax', path: '/console/reports/tax', ofLedger: true },
    { name: 'Unearned', path: '/console/reports/unearned', ofLedger: true },
    { name: 'Bank', path: '/console/reports/bank-reconciliation', ofLedger: true },
    { name: 'General ledger', path: '/console/reports/general-ledger', ofLedger: true, ofPeriod: true },
    { name: 'Coverage', path: '/console/reports/coverage' },
    { name: 'Cash application', path: '/console/reports/cash-application', ofLedger: true },
    { name: 'Close report', path: '/console/reports/close', ofPeriod: true },
  ],
  Audit: [
    { name: 'Events', path: '/console/audit', ofPeriod: true },
    { name: 'Checkpoints', path: '/console/audit/checkpoints', ofLedger: true },
    { name: 'Checks', path: '/console/audit/checks', ofLedger: true },
    { name: 'Settings changes', path: '/console/audit/settings', ofLedger: true },
    { name: 'Access', path: '/console/audit/access', ofLedger: true },
    { name: 'Packs', path: '/console/audit/packs', ofLedger: true, ofPeriod: true },
  ],
  Settings: [
    { name: 'Settings', path: '/console/settings' },
    { name: 'Users', path: '/console/settings/users' },
    { name: 'API clients', path: '/console/settings/clients' },
  ],
};

/** The section of a page, and those of its pages that the reader may open. Undefined for a page of no section. */
export function sectionOf(reader: Reader, path: string) {
  const [label, pages] = Object.entries(SECTIONS).find(([, all]) => all.some((each) => each.path === path)) ?? [];
  if (label === undefined || pages === undefined) return undefined;
  const seen = pages.filter(
    ({ ofLedger, ofPeriod }) =>
      (!ofLedger || scopeOf(reader, 'viewer') === null) && (ofPeriod || periodOf(reader) === null),
  );
  return { label, tabs: seen.map((each) => ({ name: each.name, href: each.path, current: each.path === path })) };
}

type Reader = Pick<User, 'roles' | 'limits'>;

export const placesOf = (reader: Reader): readonly PlaceLink[] => {
  if (periodOf(reader) !== null) {
    return PLACES.flatMap((place) =>
      OF_PERIOD[place.path] ? [{ ...place, at: OF_PERIOD[place.path] as string }] : [],
    );
  }
  return scopeOf(reader, 'viewer') === null ? PLACES : PLACES.filter(({ path }) => !OF_ALL.includes(path));
};
