import { Remedy, toDo, toRun } from '#remedy';
import { plural } from '#text';
import { badInput, bullets, LineProblem, refused, says } from './definition.ts';

const MOST_SHOWN = 20;

const some = (problems: readonly LineProblem[]) =>
  bullets(problems.slice(0, MOST_SHOWN)) +
  (problems.length > MOST_SHOWN ? `\n  and ${plural(problems.length - MOST_SHOWN, 'more problem')}` : '');

export const OPENING = {
  opening_invalid: badInput<{ file: string; problems: readonly LineProblem[] }>(
    (f) =>
      `Nothing was carried over: ${f.file} cannot be read.\n${some(f.problems)}\nCorrect the file and import it again.`,
  ),
  opening_clash: refused<{ file: string; problems: readonly LineProblem[] }>((f) =>
    says(
      `Nothing was carried over: ${f.file} does not fit this ledger.\n${some(f.problems)}\n` +
        'Correct the file, or reverse the items that were carried over earlier. Then import the file again.',
      toDo('Reverse an item', 'opening.reverse'),
    ),
  ),
  opening_control_differs: refused<{
    file: string;
    differences: readonly { what: string; control: string; file: string }[];
  }>(
    (f) =>
      `Nothing was carried over: ${f.file} does not match the control totals.\n` +
      `${bullets(f.differences.map(({ what, control, file }) => ({ path: what, reason: `the control is ${control}, the file has ${file}` })))}\n` +
      "A control total is receivables less credit and unapplied cash. Take the totals from the previous system's " +
      'list, and find the items that the file lacks or has twice.',
  ),
  opening_after_close: refused([
    'The cut-over of {cut_over_on} is before {month}, which is closed and reported. Carry the items over as ',
    'of a day in {month} or later, less what was paid by then.',
  ]),
  opening_books_closed: refused([
    'Nothing can be posted on the cut-over of {cut_over_on}: the books before {earliest} are closed. ',
    'Carry the items over as of {earliest} or a later day.',
  ]),
  opening_unknown: badInput('No such opening: {opening}.', toRun('See all openings', 'opening list')),
  opening_item_unknown: badInput(
    'Item {number} was never carried over, or was reversed.',
    toRun('See the items of an opening', 'opening show ID'),
  ),
  opening_items_used: refused<{
    items: readonly {
      number: string;
      used: 'paid' | 'credited' | 'written_off' | 'applied';
      reason: string;
    }[];
  }>(({ items }) => {
    const is = (...kinds: string[]) => items.some(({ used }) => kinds.includes(used));
    const [writtenOff] = items.filter(({ used }) => used === 'written_off');
    return says(
      `Nothing was reversed: ${plural(items.length, 'item is', 'items are')} in use.\n` +
        `${bullets(items.slice(0, MOST_SHOWN).map(({ number, reason }) => ({ path: number, reason })))}\n` +
        'Undo that first, or correct the item like any invoice: credit it, or write it off.',
      ...(is('paid', 'applied') ? [toDo('Unapply a payment', 'payment.unapply')] : []),
      ...(writtenOff === undefined
        ? []
        : [toDo('Undo a write-off', 'invoice.write_off_undone', { number: writtenOff.number })]),
    );
  }),
  comparison_invalid: badInput<{ file: string; problems: readonly LineProblem[] }>(
    (f) => `Nothing was compared: ${f.file} cannot be read.\n${some(f.problems)}\nCorrect the file and compare again.`,
  ),
  carried_over: refused<{ number: string; action: string; instead: string; remedies: readonly Remedy[] }>((f) =>
    says(
      `${f.number} was carried over from the previous system, so it cannot be ${f.action}. ${f.instead}`.trimEnd(),
      ...f.remedies,
    ),
  ),
} as const;
