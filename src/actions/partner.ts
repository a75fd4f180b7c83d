import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import { Environment } from '#config/environment';
import { PartnerChange, readPartnerFacts } from '#partners/changes';
import { PartnerRecord, partnerFile } from '#partners/file';
import { importPartners, PartnerImport } from '#partners/import';
import { changeCells } from '#people/field-changes';
import { refuseUnsplittable, remarksOnSplits } from '#splits/currencies';
import { table } from '#text-table';
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
  partners: async () => 'all',
  read: async (_context, { file }) => refuseUnsplittable(await partnersIn(file), file.name),
  locksImporters: true,
  perform: async (tx, { actor, environment, settings }, { file }) =>
    importPartners(tx, await partnersIn(file), {
      ...{ actor, now: environment.now(), settings },
      event: {
        ...{ action: 'partner.import', subject: basename(file.name) },
        details: { file: file.name, sha256: createHash('sha256').update(file.bytes.toString('utf8')).digest('hex') },
      },
    }),
  facts: async (tx, { file }) =>
    readPartnerFacts(
      tx,
      (await partnersIn(file)).map(({ partner_id }) => partner_id),
    ),
  async report({ input: { file }, result }, { environment, width }) {
    const report = { ...result, changes: result.changes.filter(({ created }) => !created) };
    return {
      json: report,
      text: describeImport(report, width),
      notes: await remarksOnPartners(environment, await partnersIn(file)),
    };
  },
});

function describeImport(
  report: PartnerImport & { readonly changes: readonly PartnerChange[] },
  width: number | undefined,
) {
  const changes = report.changes.flatMap(({ partner_id, changes: fields }) =>
    fields.map((change, index) => [index === 0 ? partner_id : '', ...changeCells(change)]),
  );
  return [
    `Partners: ${report.created} new, ${report.updated} updated, ${report.unchanged} unchanged.`,
    ...(changes.length === 0 ? [] : ['', table(['partner', 'field', '~old', '~new'], changes, width)]),
  ].join('\n');
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
