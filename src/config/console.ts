/** The settings of the console: its sessions, and the identity provider that its users sign in with. */
import { z } from 'zod';
import { line } from './validation.ts';

/** As in people/roles.ts, which comes after this folder. */
const role = z.enum(['viewer', 'finance', 'approver', 'administrator']);

const oidcSchema = z.strictObject({
  issuer: z.url({ protocol: /^https?$/ }),
  client_id: line().min(1),
  scopes: z.array(line(100).min(1)).default(['openid', 'email', 'profile']),
  /** The claim of the ID token that lists groups; without it, roles are granted by administrators alone. */
  roles_claim: line().default(''),
  /** Where the claim `email_verified` is absent: the address counts as unverified, or, with `assumed`, as verified. */
  email_verified: z.enum(['claimed', 'assumed']).default('claimed'),
  /** By group, the role that it gives. */
  roles: z.record(line().min(1), role).default({}),
});

export const consoleSchema = z.strictObject({
  /** A session ends after so many minutes without a request, and in any case after these hours. */
  idle_minutes: z.int().min(1).max(720).default(30),
  session_hours: z.int().min(1).max(24).default(12),
  /** How long a sign-in link can be used. */
  link_hours: z.int().min(1).max(168).default(24),
  /** Whether partners' contacts may sign in from payment pages (/place). It takes mail that is set up. */
  partner_place: z.boolean().default(true),
  /** OpenID Connect; null: users sign in with passkeys and links alone. */
  oidc: oidcSchema.nullable().default(null),
});

export type OidcSettings = z.output<typeof oidcSchema>;
