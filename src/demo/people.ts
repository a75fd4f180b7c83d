/** The demo's users. Every role is assigned, so that a second person can approve. */
export const ADMINISTRATOR = 'ada@issuer.example';
export const FINANCE = 'mara@issuer.example';
export const PEOPLE = [
  [ADMINISTRATOR, 'Ada Okafor', 'administrator'],
  [FINANCE, 'Mara Lindqvist', 'finance'],
  ['lee@issuer.example', 'Lee Tanaka', 'approver'],
  ['kim@auditor.example', 'Kim Duarte', 'viewer'],
] as const;
