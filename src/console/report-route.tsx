import { fieldsOf, inputOfForm, readFields } from '#actions/fields';
import { withPartnerIds } from '#actions/partner-names';
import { Block } from '#blocks';
import { Refusal, refuse } from '#errors/refusals';
import { Report } from '#lists/report';
import { Seer } from './action-link.tsx';
import { Blocks } from './blocks.tsx';
import { FilterInput } from './filter-input.tsx';
import { addressOf, Downloads, Pager, Verdict } from './kit.tsx';
import { labelsOf } from './labels.ts';
import { idAsked } from './parameters.ts';
import { PartnerNames, Partners, readPartnersFor } from './partner-names.tsx';
import { Routes, Visit } from './route.ts';

type View = Readonly<{
  found: unknown;
  question: Readonly<Record<string, string>>;
  /** The partners to choose from. */
  partners: Partners;
  /** The number of rows of each table on the pages before. */
  after: number;
}>;

/** The page of a report of `lists/`, and its files. */
export function addReport({ screen }: Routes, report: Report, path = `/reports/${report.command}`): void {
  screen(
    path,
    { role: 'viewer', scope: report.ofLedger ? 'ledger' : 'partners', ofPeriod: report.ofPeriod },
    async (tx, visit): Promise<View> => {
      const asked = questionOf(report, visit);
      const nameOf = labelsOf({ input: report.asked });
      try {
        const read = readFields(report.asked, inputOfForm(report.asked, new URLSearchParams(asked)), nameOf);
        const found = await report.read(tx, await withPartnerIds(tx, report.asked, read, visit.scope), visit);
        return {
          ...{ found, question: { ...asked, ...report.inForce(found) } },
          partners: await readPartnersFor(tx, report.asked, visit.scope),
          after: idAsked('after', visit.query['after']) ?? 0,
        };
      } catch (thrown) {
        throw thrown instanceof Refusal ? thrown.named(nameOf) : thrown;
      }
    },
    (view, { user }) => ({
      ...{ place: 'aging', tab: `/console${path}`, title: report.title, lead: report.lead(view.found) },
      actions: <Downloads path={`/console${path}`} question={view.question} />,
      content: <ReportPage report={report} view={view} path={`/console${path}`} user={user} />,
    }),
    ({ found }) => report.sheet(found),
  );
}

/** Refusal: argument_invalid, for a parameter that would be ignored. */
function questionOf({ asked, ofCommand = [] }: Report, { query }: Visit): Readonly<Record<string, string>> {
  const names = Object.keys(asked.shape).filter((name) => !ofCommand.includes(name));
  for (const [argument, value] of Object.entries(query)) {
    const reason = `is not a parameter of this page. Its parameters are ${names.join(', ')}`;
    if (argument !== 'after' && !names.includes(argument))
      throw refuse('argument_invalid', { argument, value, reason });
  }
  return Object.fromEntries(names.map((name) => [name, query[name] ?? '']));
}

/** The rows of a table on a page. */
const MOST = 200;

/** A page of each longer table; the others are whole on each page. */
function onPage(blocks: readonly Block[], after: number): Block[] {
  const cut = <Each,>(all: readonly Each[] = []) => all.slice(after, after + MOST);
  return blocks.flatMap((block) => {
    const { title, table } = block;
    const count = table?.rows.length ?? 0;
    if (table === undefined || count <= MOST) return [block];
    if (after >= count) return [];
    const { rows, remarks, remedies } = table;
    const part = { ...table, rows: cut(rows), remarks: cut(remarks), remedies: cut(remedies) };
    return [{ ...block, title: `${title}: ${after + 1} to ${after + part.rows.length} of ${count}`, table: part }];
  });
}

type PageProps = Readonly<{ report: Report; view: View; path: string; user: Seer }>;

export function ReportPage({ report, view: { found, question, partners, after }, path, user }: PageProps) {
  const { good, text } = report.verdict(found);
  const blocks = report.blocks(found, 'page');
  const inForce = report.inForce(found);
  const isLast = blocks.every(({ table }) => (table?.rows.length ?? 0) <= after + MOST);
  return (
    <>
      <form class="filters" action={path}>
        {fieldsOf(report.asked).map((field) =>
          question[field.name] === undefined ? null : (
            <FilterInput field={{ ...field, required: Boolean(inForce[field.name]) }} value={question[field.name]} />
          ),
        )}
        <PartnerNames partners={partners} />
        <button type="submit">Show</button>
        <Verdict good={good} preliminary={report.day?.(found).preliminary}>
          {text}
        </Verdict>
      </form>
      <div class="stack">
        <Blocks blocks={onPage(blocks, after)} user={user} />
        {blocks.length === 0 && <p class="nothing">{report.nothing}</p>}
        <Pager
          first={after === 0 ? null : addressOf(path, question)}
          next={isLast ? null : addressOf(path, { ...question, after: after + MOST })}
        />
      </div>
    </>
  );
}
