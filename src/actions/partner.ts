import { hash } from 'node:crypto';
import { basename } from 'node:path';
import { Block } from '#blocks';
import { Environment } from '#config/environment';
import { PartnerChange, readPartnerFacts } from '#partners/changes';
import { PartnerRecord, partnerFile } from '#partners/file';
import { importPartners } from '#partners/import';
import { changeWords } from '#people/field-changes';
import { refuseUnsplittable, remarksOnSplits } from '#splits/currencies';
import { defineAction, FileInput, file } from './action.ts';
import { contentOf } from './contents.ts';

const partnersIn = (file: FileInput): Promise<PartnerRecord[]> => contentOf(file, partnerFile, {});

export const partnerImport = defineAction({
  name: 'partner.import',
  title: 'Import partners',
  command: { summary: 'Create and update partners', arguments: { file: '<file>' } },
  role: 'finance',
  input: { file: file('File', 'A JSON array of partners.') },
  subject: ({ file }) => file.name,
  read: async (_context, { file }) => refuseUnsplittable(await partnersIn(file), file.name),
  locksImporters: true,
  perform: async (tx, { actor, environment, settings }, { file }) =>
    importPartners(tx, await partnersIn(file), {
      ...{ actor, now: environment.now(), settings },
      event: {
        ...{ action: 'partner.import', subject: basename(file.name) },
        details: { file: file.name, sha256: hash('sha256', file.bytes.toString('utf8')) },
      },
    }),
  facts: async (tx, { file }) =>
    readPartnerFacts(
      tx,
      (await partnersIn(file)).map(({ partner_id }) => partner_id),
    ),
  async report({ input: { file }, result }, { environment }) {
    const report = { ...result, changes: result.changes.filter(({ created }) => !created) };
    return {
      json: report,
      text: `Partners: ${report.created} new, ${report.updated} updated, ${report.unchanged} unchanged.`,
      blocks: changesOf(report.changes),
      notes: await remarksOnPartners(environment, await partnersIn(file)),
    };
  },
});

function changesOf(partners: readonly PartnerChange[]): Block[] {
  const rows = partners.flatMap(({ partner_id, changes }) =>
    changes.map((change, index) => [index === 0 ? partner_id : '', ...changeWords(change)]),
  );
  return rows.length === 0
    ? []
    : [{ title: 'Changes', table: { headings: ['partner', 'field', '~old', '~new'], rows } }];
}

export const remarksOnPartners = async (environment: Environment, partners: readonly PartnerRecord[]) => [
  ...remarksOnSplits(partners),
  ...(await unprintableRemarks(environment, partners)),
];

/** The fonts cover Latin, Greek, Cyrillic and Vietnamese. A warning at the import avoids a held invoice later. */
async function unprintableRemarks(environment: Environment, partners: readonly PartnerRecord[]) {
  const { addressText, installedFonts, unprintableFields } = await import('#documents/printable');
  const fonts = installedFonts(environment);
  return partners.flatMap(({ partner_id: partnerId, name, address, legal_note: note }) => {
    const missing = unprintableFields([['', [name, addressText(address), note].join(' ')]], fonts);
    return missing.map(
      ({ characters }) =>
        `Partner ${partnerId}: no font has ${characters.join('')}, so its documents will be held. ` +
        'Put a font that has these characters into the folder templates/fonts of the installation, or use other letters.',
    );
  });
}
