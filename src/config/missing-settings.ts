import { printsOwnPage } from '#processors/links/providers';
import { firstSettings } from './first-settings.ts';
import { Settings, settingsSchema, WrittenSettings } from './settings.ts';

/** Empty, or still the sandbox's fictitious value. */
interface MissingSetting {
  readonly path: string;
  readonly needs: string;
}

/** What must be completed before production may issue documents. */
export function missingSettings(settings: Settings): MissingSetting[] {
  const fictitious = settingsSchema.parse(firstSettings('sandbox'));
  const values = (
    of: Pick<Settings, 'issuer' | 'public_url' | 'mail_from' | 'payment_link'> | WrittenSettings,
  ): ReadonlyArray<readonly [path: string, value: string]> => [
    ['issuer.legal_name', of.issuer.legal_name],
    ['issuer.address.line1', of.issuer.address.line1],
    ['issuer.address.city', of.issuer.address.city],
    ['issuer.address.country', of.issuer.address.country],
    ['issuer.email', of.issuer.email],
    ...(printsOwnPage(of.payment_link) ? ([['public_url', of.public_url]] as const) : []),
    ['mail_from', of.mail_from],
  ];
  const known = new Map(values(fictitious));
  const missing = values(settings).flatMap(([path, value]): MissingSetting[] => {
    if (value === '') return [{ path, needs: 'a value' }];
    // A real city or country may equal the fictitious one.
    const identity = !path.startsWith('issuer.address.');
    return identity && value === known.get(path) ? [{ path, needs: "your own value: this is the sandbox's" }] : [];
  });
  const invented = JSON.stringify(Object.values(fictitious.instructions));
  for (const currency of Object.keys(settings.instructions).sort()) {
    for (const kind of ['ach', 'wire'] as const) {
      const written = settings.instructions[currency]?.[kind];
      if (written !== undefined && invented.includes(JSON.stringify(written))) {
        const path = `instructions.${currency}.${kind}`;
        missing.push({ path, needs: "a real bank account: this is the sandbox's" });
      }
    }
  }
  return missing;
}
