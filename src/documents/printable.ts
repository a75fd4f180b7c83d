/**
 * Checks whether a document can be printed: each character needs a glyph in the program's fonts or in added ones
 * (documents/pdf/added-fonts.ts). Refusal: characters_unprintable.
 */
import { join } from 'node:path';
import { Environment } from '#config/environment';
import { Instructions } from '#config/instructions';
import { Address } from '#config/validation';
import { refuse } from '#errors/refusals';
import { DocumentRow } from './documents.sql.ts';
import { AddedFont, addedFontsIn, fontsNeeded, withAddedFonts } from './pdf/added-fonts.ts';
import { unprintable } from './pdf/text.ts';
import { DocumentSnapshot } from './snapshot.ts';

/** The field's name is for people. */
export type NamedText = readonly [field: string, text: string];

export const fontFolder = ({ home }: Pick<Environment, 'home'>) => join(home, 'templates', 'fonts');

export const installedFonts = (environment: Pick<Environment, 'home'>): readonly AddedFont[] =>
  addedFontsIn(fontFolder(environment));

/**
 * The added fonts that these texts need. Refuses a character without a glyph. For a document that is already `issued`,
 * the refusal names the rerun that corrects it.
 */
export function fontsFor(
  environment: Pick<Environment, 'home'>,
  subject: string,
  texts: readonly NamedText[],
  issued?: Pick<DocumentRow, 'number' | 'purpose'>,
): readonly AddedFont[] {
  const fonts = installedFonts(environment);
  const fields = unprintableFields(texts, fonts);
  if (fields.length > 0) {
    const number = issued?.purpose === 'month' ? issued.number : undefined;
    throw refuse('characters_unprintable', {
      subject,
      fields,
      folder: fontFolder(environment),
      ...(number && { number }),
    });
  }
  const all = texts.map(([, text]) => text);
  return fontsNeeded(all, fonts);
}

/** The fields with characters that have no glyph, and these characters. */
export const unprintableFields = (texts: readonly NamedText[], fonts: readonly AddedFont[]) =>
  withAddedFonts(fonts, () =>
    texts
      .map(([field, text]) => ({ field, characters: unprintable(text) }))
      .filter(({ characters }) => characters.length > 0),
  );

/** All texts of a document that a partner, the settings or a person wrote. */
export function textsOf(snapshot: DocumentSnapshot): NamedText[] {
  const { issuer, partner, lines, instructions, reason } = snapshot;
  return [
    ["the partner's name", partner.name],
    ["the partner's address", addressText(partner.address)],
    ["the partner's contact", partner.contact_name],
    ["the partner's tax id", partner.tax_id],
    ["the partner's purchase order", partner.purchase_order],
    ["the partner's legal note", partner.legal_note],
    ...lines.map(({ policy_id, policy_name }): NamedText => [`the name of policy ${policy_id}`, policy_name]),
    ["the issuer's name", issuer.legal_name],
    ["the issuer's address", addressText(issuer.address)],
    ["the issuer's contact and tax id", [issuer.email, issuer.phone, issuer.tax_id].join(' ')],
    ['the bank details', instructionsText(instructions)],
    ['the reason', reason ?? ''],
  ];
}

export const addressText = (address: Address) => Object.values(address).join(' ');

/** The instructions as JSON, whose escaped characters never appear on a page. */
export const instructionsText = (instructions: Instructions | null) => JSON.stringify(instructions);
