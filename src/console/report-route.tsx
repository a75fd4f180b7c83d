import { fieldsOf, inputOfForm, readFields } from '#actions/fields';
import { Refusal, refuse } from '#errors/refusals';
import { Report } from '#lists/report';
import { Seer } from './action-link.tsx';
import { Blocks } from './blocks.tsx';
import { FilterInput } from './filter-input.tsx';
import { Downloads, Verdict } from './kit.tsx';
import { labelsOf } from './labels.ts';
import { Routes, Visit } from './route.ts';

type View = Readonly<{ found: unknown; question: Readonly<Record<string, string>> }>;

/** The page of a report of `lists/`, and its files. */
export function addReport({ screen }: Routes, report: Report): void {
  const path = `/reports/${report.command}`;
  screen(
    path,
    { role: 'viewer', scope: report.ofLedger ? 'ledger' : 'partners', ofPeriod: report.ofPeriod },
    async (tx, visit): Promise<View> => {
      const asked = questionOf(report, visit);
      const nameOf = labelsOf({ input: report.asked });
      try {
        const read = readFields(report.asked, inputOfForm(report.asked, new URLSearchParams(asked)), nameOf);
        const found = await report.read(tx, read, visit);
        return { found, question: { ...asked, ...report.inForce(found) } };
      } catch (thrown) {
        throw thrown instanceof Refusal ? thrown.named(nameOf) : thrown;
      }
    },
    (view, { user }) => ({
      ...{ place: 'aging', tab: `/console${path}`, title: report.title, lead: report.lead(view.found) },
      actions: <Downloads path={`/console${path}`} question={view.question} />,
      content: <Page report={report} view={view} path={`/console${path}`} user={user} />,
    }),
    ({ found }) => report.sheet(found),
  );
}

/** Refusal: argument_invalid, for a parameter that would be ignored. */
function questionOf({ asked, ofCommand = [] }: Report, { query }: Visit): Readonly<Record<string, string>> {
  const names = Object.keys(asked.shape).filter((name) => !ofCommand.includes(name));
  for (const [argument, value] of Object.entries(query)) {
    const reason = `is not a parameter of this page. Its parameters are ${names.join(', ')}`;
    if (!names.includes(argument)) throw refuse('argument_invalid', { argument, value, reason });
  }
  return Object.fromEntries(names.map((name) => [name, query[name] ?? '']));
}

type PageProps = Readonly<{ report: Report; view: View; path: string; user: Seer }>;

function Page({ report, view: { found, question }, path, user }: PageProps) {
  const { good, text } = report.verdict(found);
  const blocks = report.blocks(found);
  return (
    <>
      <form class="filters" action={path}>
        {fieldsOf(report.asked).map((field) =>
          question[field.name] === undefined ? null : (
            <FilterInput field={{ ...field, required: question[field.name] !== '' }} value={question[field.name]} />
          ),
        )}
        <button type="submit">Show</button>
        <Verdict good={good} preliminary={report.day?.(found).preliminary}>
          {text}
        </Verdict>
      </form>
      <div class="stack">
        <Blocks blocks={blocks} user={user} />
        {blocks.length === 0 && <p class="nothing">{report.nothing}</p>}
      </div>
    </>
  );
}
