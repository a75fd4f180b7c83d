/** Moving the rows of an old month to a cold store, and back (archive/archive.ts). */
import { archiveMonth, unarchiveMonth, writeMonth } from '#archive/archive';
import { failpoint } from '#failpoint';
import { groupThousands } from '#money';
import { Publisher } from '#partner-events/publish';
import { counted, plural } from '#text';
import { table } from '#text-table';
import { defineAction, Facts } from './action.ts';
import { month, text } from './fields.ts';

const PUBLISH_PATIENCE_MILLISECONDS = 600_000;

export const monthArchive = defineAction({
  name: 'month.archive',
  title: 'Move the rows of an old month to a cold store',
  command: {
    called: 'archive',
    arguments: { month: '<month>' },
    options: { store: '--to <store>' },
    help: `The month's books must be closed, and three later months too. The store is a
folder in the settings ("archive"). Its files are accepted only if the rows that
are read back from them are exactly those that the close counted. Rows of quotes
that can still change stay in the database, too: run it again later. Run it as
the owner of the tables.`,
  },
  role: 'administrator',
  input: {
    month: month('Month', 'A month with closed books.'),
    store: text('Store', 'The name of the store in the settings.'),
  },
  subject: ({ month: of }) => of,
  async begin(context, input) {
    // The events of rows that are gone could not be published any more. There may be years of them.
    await new Publisher(context.database).publish(PUBLISH_PATIENCE_MILLISECONDS);
    await writeMonth(context, input);
  },
  perform: (tx, context, input) => archiveMonth(tx, context, input),
  committed: () => failpoint('archive.committed'),
  facts: async (_tx, { month: of }, moved): Promise<Facts> =>
    moved === undefined ? {} : { [`the rows of ${of}`]: { store: moved.store, moved: String(moved.moved) } },
  report: async ({ result: { month: of, store, entries, moved, stay, files }, preview }, { width }) => ({
    json: { month: of, store, entries, moved, stay, files },
    text: [
      `${of} has ${plural(entries, 'row')}: ${counted(moved)} ${preview ? 'would leave' : 'left'} the database for ` +
        `'${store}', ${counted(stay)} stay.`,
      ...(files.length === 0
        ? []
        : [
            '',
            table(
              ['file', '>rows', '>bytes', 'SHA-256'],
              files.map((file) => [
                file.name,
                counted(file.entries),
                groupThousands(String(file.bytes)),
                file.sha256.slice(0, 16),
              ]),
              width,
            ),
          ]),
    ].join('\n'),
  }),
});

export const monthUnarchive = defineAction({
  name: 'month.unarchive',
  title: 'Bring the rows of an archived month back',
  command: { called: 'unarchive', arguments: { month: '<month>' } },
  role: 'administrator',
  input: { month: month('Month', 'An archived month.') },
  subject: ({ month: of }) => of,
  perform: (tx, context, { month: of }) => unarchiveMonth(tx, context, of),
  committed: () => failpoint('archive.committed'),
  facts: async (_tx, { month: of }, returned): Promise<Facts> =>
    returned === undefined ? {} : { [`the rows of ${of}`]: { store: null } },
  report: async ({ result: { month: of, store, entries } }) => ({
    json: { month: of, store, entries },
    text: `${of} is in the database again, with ${plural(entries, 'row')}. Its files are still in '${store}'.`,
  }),
});
