import { z } from 'zod';
import { line } from './validation.ts';

/** The same list as in people/roles.ts. This folder must not import people, which is a later layer. */
const role = z.enum(['viewer', 'finance', 'approver', 'administrator']);

const oidcSchema = z.strictObject({
  issuer: z.url({ protocol: /^https?$/ }),
  client_id: line().min(1),
  scopes: z.array(line(100).min(1)).default(['openid', 'email', 'profile']),
  /** The claim of the ID token that lists groups. If roles_claim is empty, only administrators grant roles. */
  roles_claim: line().default(''),
  /**
   * What an absent claim `email_verified` means: `assumed`, that the address is verified; `claimed`, that it is not.
   */
  email_verified: z.enum(['claimed', 'assumed']).default('claimed'),
  roles: z.record(line().min(1), role).default({}),
});

export const consoleSchema = z.strictObject({
  /** A session ends after idle_minutes without use, and session_hours after its start at the latest. */
  idle_minutes: z.int().min(1).max(720).default(30),
  session_hours: z.int().min(1).max(24).default(12),
  link_hours: z.int().min(1).max(168).default(24),
  /** Whether partners' contacts may sign in from payment pages (/place), if mail is configured. */
  partner_place: z.boolean().default(true),
  /** The OpenID Connect provider; null means that users sign in only with passkeys and links. */
  oidc: oidcSchema.nullable().default(null),
});

export type OidcSettings = z.output<typeof oidcSchema>;
