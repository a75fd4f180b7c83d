/** The pages of every act of the registry, for the role that each needs: its form, its preview, its confirmation. */
import type { Act, Report } from '../acts/act.ts';
import { monthClose } from '../acts/close.ts';
import { inputOfForm } from '../acts/fields.ts';
import { glExport } from '../acts/general-ledger.ts';
import { ACTS } from '../acts/loaded.ts';
import { OutdatedPreview, previewAct, type RunOptions, runAct } from '../acts/run.ts';
import { Refusal } from '../errors/refusals.ts';
import { placesOf } from './menu.ts';
import type { Reader } from './page.tsx';
import type { Access, Answer, Routes, Visit } from './route.ts';
import { actAsked, actDone, actForm, actPreview, monthHref, takesFiles } from './screens/act.tsx';
import { approvalHref } from './screens/approvals.tsx';
import { USERS } from './screens/people.tsx';
import { QUEUE } from './screens/queue.tsx';

export function addActs({ screen, form: sent }: Routes): void {
  for (const act of ACTS.values()) {
    const path = `/acts/${act.name}`;
    const access: Access = { role: act.role, scope: 'partners', repeats: true };
    screen(
      path,
      access,
      async (_tx, { asked }) => asked,
      (form, { reader }) => actForm({ act, reader, form }),
    );
    const files = takesFiles(act);
    sent(path, { ...access, files }, (visit, form) => answerTo(act, visit, form));
  }
}

/** A refusal shows the form again, with what is wrong above what was filled in. */
async function answerTo(act: Act, visit: Visit, form: URLSearchParams): Promise<Answer> {
  const asked = { act, reader: visit.reader, form };
  const input = inputOfForm(act.input, form);
  const step = form.get('step');
  if (step === 'edit') return { screen: actForm(asked) };
  try {
    if (step !== 'confirm') return { screen: actPreview(asked, await previewAct(visit.context, act, input)) };
    const report = await confirmed(act, visit, input, form.get('shown') ?? '');
    if (report !== undefined) return doneOf(act, visit, report, input);
    // Somebody else was faster: shown again.
    return { screen: actPreview(asked, await previewAct(visit.context, act, input), true), status: 409 };
  } catch (thrown) {
    if (!(thrown instanceof Refusal)) throw thrown;
    if (thrown.code === 'approval_needed') {
      const request = Number(thrown.facts['request_id']);
      const link = { name: `Request ${request}`, href: approvalHref(request) };
      return { screen: actAsked(act, visit.reader, thrown, [link, ...linksOf(act, visit.reader, input)]) };
    }
    return { screen: actForm(asked, thrown), status: 422 };
  }
}

/** Undefined where it would do something else by now than what was shown. */
async function confirmed(act: Act, visit: Visit, input: unknown, shown: string): Promise<Report | undefined> {
  try {
    return await runAct(visit.context, act, input, { ...laterOf(act, visit), shown });
  } catch (thrown) {
    if (thrown instanceof OutdatedPreview) return undefined;
    throw thrown;
  }
}

/** The close of a month leads to its cockpit, every other act to a page that says what was done. */
export function doneOf(
  act: Act,
  { reader }: Visit,
  report: Report,
  input: Readonly<Record<string, unknown>>,
  links = linksOf(act, reader, input),
): Answer {
  const { month } = input;
  if (act.name === monthClose.name && typeof month === 'string') return { to: `/console/close/${month}` };
  return { screen: actDone(act, reader, report, links) };
}

/** A close sends more e-mails than a browser waits for: they go after the answer, and the cockpit shows how they stand. */
export function laterOf(act: Act, { request }: Visit): Pick<RunOptions, 'later'> {
  if (act.name !== monthClose.name) return {};
  return {
    later: (follow) => void follow().catch((err: unknown) => request.log.error({ err }, 'what follows a close failed')),
  };
}

/** Where to go on: to what it was done to. */
function linksOf(
  act: Act,
  reader: Reader,
  { number, partnerId, paymentId, month }: Readonly<Record<string, unknown>>,
): { name: string; href: string }[] {
  const documents = [number].flat().filter((each) => typeof each === 'string');
  return [
    ...documents.map((each) => ({ name: each, href: `/console/invoices/${encodeURIComponent(each)}` })),
    ...(typeof partnerId === 'string'
      ? [{ name: partnerId, href: `/console/partners/${encodeURIComponent(partnerId)}` }]
      : []),
    ...(typeof paymentId === 'number'
      ? [{ name: `Payment ${paymentId}`, href: `/console/payments/${paymentId}` }]
      : []),
    ...(act.name === glExport.name ? [{ name: 'General ledger', href: '/console/reports/general-ledger' }] : []),
    ...(typeof month === 'string' && placesOf(reader).some(({ path }) => path === 'close')
      ? [{ name: month, href: monthHref(act, month) }]
      : []),
    ...(act.name.startsWith('user.') ? [USERS] : []),
    { name: 'Work queue', href: QUEUE },
  ];
}
