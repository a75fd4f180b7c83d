/** The settings of the console: its sessions, and the identity provider that its users sign in with. */
import { z } from 'zod';
import { line } from './validation.ts';

/** The same as in people/roles.ts, which this folder must not import because it is a later layer. */
const role = z.enum(['viewer', 'finance', 'approver', 'administrator']);

const oidcSchema = z.strictObject({
  issuer: z.url({ protocol: /^https?$/ }),
  client_id: line().min(1),
  scopes: z.array(line(100).min(1)).default(['openid', 'email', 'profile']),
  /** The claim of the ID token that lists groups; if absent, only administrators grant roles. */
  roles_claim: line().default(''),
  /**
   * If the claim `email_verified` is absent, an address counts as verified with `assumed`, and otherwise as unverified.
   */
  email_verified: z.enum(['claimed', 'assumed']).default('claimed'),
  /** The role that each group gives. */
  roles: z.record(line().min(1), role).default({}),
});

export const consoleSchema = z.strictObject({
  /** A session ends after this many idle minutes, and in any case after this many hours. */
  idle_minutes: z.int().min(1).max(720).default(30),
  session_hours: z.int().min(1).max(24).default(12),
  /** How long a sign-in link is valid. */
  link_hours: z.int().min(1).max(168).default(24),
  /** Whether partners' contacts may sign in from payment pages (/place). This requires mail. */
  partner_place: z.boolean().default(true),
  /** OpenID Connect; null: users sign in only with passkeys and links. */
  oidc: oidcSchema.nullable().default(null),
});

export type OidcSettings = z.output<typeof oidcSchema>;
